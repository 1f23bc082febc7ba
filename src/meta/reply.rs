//! The replies to calls of meta-tools.

use bytes::Bytes;

use super::definitions::MetaTool;
use crate::{
    era,
    forward::RequestOutcome,
    protocol::{
        Era, Message, RpcError,
        jsonrpc::MessagePart,
        payloads::{self, method},
    },
    session::Session,
    tool::{ErrorObject, text_block},
};

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
    pub(super) fn failed(&self, error: ErrorObject) -> Bytes {
        self.render(&error.during(self.tool.name()).to_result())
    }

    /// Returns the answer to an invalid call.
    pub(super) fn refused(&self, error: RpcError) -> Bytes {
        error.for_era(self.era).render(Some(&self.id))
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

/// Returns an answer with a structured value, JSON text, and the same value as text, as the MCP
/// specification asks for.
pub(super) fn structured_answer(structured: &str) -> String {
    let block = text_block(structured);
    format!(r#"{{"content":[{block}],"structuredContent":{structured},"isError":false}}"#)
}
