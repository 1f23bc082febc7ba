//! The reason why a meta tool rejects a call.

use super::MetaReply;
use crate::{
    meta::{ErrorObject, arguments::ArgumentError, cursor::CursorError},
    protocol::RpcError,
    view::RequestOutcome,
};

/// The reason why a meta tool rejects a call.
#[derive(Debug)]
pub(super) enum MetaRefusal {
    /// The call is invalid: a fault of the client.
    Protocol(Box<RpcError>),
    /// An error for the model, which can correct the call.
    Tool(Box<ErrorObject>),
}

impl MetaRefusal {
    /// Returns the answer to the call.
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
