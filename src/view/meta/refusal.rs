//! Why a tool of ours does not do what it was asked for.

use super::Reply;
use crate::{
    meta::{ErrorObject, arguments::ArgumentError, cursor::CursorError},
    protocol::RpcError,
    view::Outcome,
};

/// Why a tool of ours does not do what it was asked for.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The call makes no sense: its client is at fault.
    Protocol(Box<RpcError>),
    /// The model reads it, and can do better.
    Tool(Box<ErrorObject>),
}

impl Refusal {
    /// Returns it as the answer to the call.
    pub(super) fn answer(self, reply: &Reply) -> Outcome {
        match self {
            Self::Protocol(error) => reply.refused(*error),
            Self::Tool(error) => reply.failed(*error),
        }
    }
}

impl From<ErrorObject> for Refusal {
    fn from(error: ErrorObject) -> Self {
        Self::Tool(Box::new(error))
    }
}

impl From<Box<ErrorObject>> for Refusal {
    fn from(error: Box<ErrorObject>) -> Self {
        Self::Tool(error)
    }
}

impl From<ArgumentError> for Refusal {
    fn from(error: ArgumentError) -> Self {
        Self::Protocol(Box::new(error.to_rpc()))
    }
}

impl From<CursorError> for Refusal {
    fn from(error: CursorError) -> Self {
        Self::Protocol(Box::new(error.to_rpc()))
    }
}
