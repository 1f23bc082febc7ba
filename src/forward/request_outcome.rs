//! The outcome of routing a request, and what its answers and errors quote.

use bytes::Bytes;
use serde_json::Value;

use crate::{
    call::{CallError, Exchange},
    config::defaults,
    protocol::{Message, jsonrpc::MessagePart},
    redact,
};

/// The outcome of routing a request.
pub enum RequestOutcome {
    /// The answer of metamcp itself.
    Answer(Bytes),
    /// The exchange with a server that answers it.
    Exchange(Box<Exchange>),
}

impl RequestOutcome {
    /// Returns the answer to `request` with this result.
    pub fn answer(request: &Message, result: &Value) -> Self {
        Self::answer_text(request, &result.to_string())
    }

    /// Returns the answer to `request` with this result, JSON text.
    pub fn answer_text(request: &Message, result: &str) -> Self {
        let id = request.part(MessagePart::Id).unwrap_or("null");
        Self::Answer(Message::response(id, result))
    }
}

/// Returns the error for a request without a parameter that routing needs.
pub fn missing(request: &Message, parameter: &'static str) -> CallError {
    let method = request.method().unwrap_or_default().to_owned();
    CallError::MissingParameter { method, parameter }
}

/// Returns the part of a client's own text that an error quotes.
pub fn quoted(text: &str) -> String {
    redact::cut(text, defaults::SUGGESTION_BYTES_MAX).to_owned()
}
