//! A call of a meta-tool, and the replies to it.

use bytes::Bytes;

use super::{
    arguments::ArgumentError, cursor::CursorError, definitions::MetaTool, services::MetaServices,
};
use crate::{
    connection::ConnectionLimits,
    era,
    forward::RequestOutcome,
    protocol::{
        Era, Message, RpcError,
        jsonrpc::MessagePart,
        payloads::{self, method},
    },
    session::Session,
    tool::{ErrorObject, RequestedTool, ResolvedTool, text_block},
};

/// A call of a meta-tool, with everything that answers it.
#[derive(Clone, Copy)]
pub(super) struct MetaCall<'a> {
    /// The services of the view.
    pub(super) services: &'a MetaServices,
    /// The session of the client.
    pub(super) session: &'a Session,
    /// The reply to the client.
    pub(super) reply: &'a MetaReply,
    /// The request of the client.
    pub(super) request: &'a Message,
}

impl MetaCall<'_> {
    /// Returns the client's progress token, as JSON text.
    pub(super) fn token(&self) -> Option<&str> {
        self.request.part(MessagePart::ProgressToken)
    }

    /// Returns the requested tool of a server, as this client sees its tools. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`ErrorObject`] if there is no such server or tool, or the server cannot be asked.
    pub(super) async fn resolve(
        &self,
        tool: &RequestedTool,
        limits: ConnectionLimits,
    ) -> Result<ResolvedTool, ErrorObject> {
        let list_owner = self.services.forwarder.list_owner(self.session);
        self.services.directory.resolve(list_owner, tool, limits).await
    }
}

/// The reply to a call of a meta-tool.
#[derive(Clone, Debug)]
pub(super) struct MetaReply {
    /// The tool.
    pub(super) tool: MetaTool,
    /// The client's id of the request, JSON text.
    id: String,
    era: Era,
}

impl MetaReply {
    /// Returns the reply to `request`, a call of `tool`.
    pub(super) fn new(request: &Message, session: &Session, tool: MetaTool) -> Self {
        let id = request.part(MessagePart::Id).unwrap_or("null").to_owned();
        Self { tool, id, era: session.era() }
    }

    /// Returns the answer with a structured value, JSON text, repeated as text content.
    pub(super) fn value(&self, value: &str) -> RequestOutcome {
        self.result(&structured_answer(value))
    }

    /// Returns the answer with an error for the model.
    pub(super) fn failed(&self, error: ErrorObject) -> RequestOutcome {
        self.result(&error.during(self.tool.name()).to_result())
    }

    /// Returns the answer to an invalid call.
    pub(super) fn refused(&self, error: RpcError) -> RequestOutcome {
        RequestOutcome::Answer(error.for_era(self.era).render(Some(&self.id)))
    }

    /// Returns the answer with the result of a tool, JSON text.
    pub(super) fn result(&self, result: &str) -> RequestOutcome {
        RequestOutcome::Answer(self.render(result))
    }

    /// Returns the answer with a result that metamcp made, JSON text.
    pub(super) fn message(&self, result: &str) -> Message {
        Message::parse_own(self.render(result)).expect("an answer of our own is a message")
    }

    /// Returns the answer with the result of a tool, JSON text, in the client's era.
    pub(super) fn render(&self, result: &str) -> Bytes {
        match self.era {
            Era::Modern => {
                let info = Some(payloads::implementation_text());
                let result = era::decorate(result, method::TOOLS_CALL, info);
                Message::response(&self.id, &result)
            }
            Era::Legacy => Message::response(&self.id, result),
        }
    }
}

/// The reason why a meta-tool rejects a call.
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

/// Returns an answer with a structured value, JSON text, and the same value as text, as the MCP
/// specification asks for.
pub(super) fn structured_answer(structured: &str) -> String {
    let block = text_block(structured);
    format!(r#"{{"content":[{block}],"structuredContent":{structured},"isError":false}}"#)
}
