//! Why a tool of ours does not do what it was asked for.

use super::MetaReply;
use crate::{
    meta::{ErrorObject, arguments::ArgumentError, cursor::CursorError},
    protocol::RpcError,
    view::RequestOutcome,
};

/// Why a tool of ours does not do what it was asked for.
#[derive(Debug)]
pub(super) enum MetaRefusal {
    /// The call makes no sense: its client is at fault.
    Protocol(Box<RpcError>),
    /// The model reads it, and can do better.
    Tool(Box<ErrorObject>),
}

impl MetaRefusal {
    /// Returns it as the answer to the call.
    pub(super) fn answer(self, reply: &MetaReply) -> RequestOutcome {
        match self {
            Self::Protocol(error) => reply.refused(*error),
            Self::Tool(error) => reply.failed(*error),
        }
    }
}

impl From<ErrorObject> for MetaRefusal {
    fn from(error: ErrorObject) -> Self {
        Self::Tool(Box::new(error))
    }
}

impl From<Box<ErrorObject>> for MetaRefusal {
    fn from(error: Box<ErrorObject>) -> Self {
        Self::Tool(error)
    }
}

impl From<ArgumentError> for MetaRefusal {
    fn from(error: ArgumentError) -> Self {
        Self::Protocol(Box::new(error.to_rpc()))
    }
}

impl From<CursorError> for MetaRefusal {
    fn from(error: CursorError) -> Self {
        Self::Protocol(Box::new(error.to_rpc()))
    }
}
