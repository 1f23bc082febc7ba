//! The outcome of routing a request, and the results and errors of metamcp itself.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::{
    call::{CallError, Exchange},
    config::defaults,
    protocol::{Message, client_meta::SERVER_INFO, jsonrpc::MessagePart, payloads, version},
    redact,
    script::ScriptExchange,
    session::Session,
};

/// The outcome of routing a request.
pub enum RequestOutcome {
    /// The answer of metamcp itself.
    Answer(Bytes),
    /// The exchange with a server that answers it.
    Exchange(Box<Exchange>),
    /// The script that answers it.
    Script(Box<ScriptExchange>),
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

/// Returns metamcp's own `initialize` result.
pub fn initialize_result(
    session: &Session,
    request: &Message,
    mut capabilities: Value,
    instructions: &str,
) -> Value {
    // A client without a session has no stream and no state.
    if session.id().is_none() {
        payloads::leave_out_notices(&mut capabilities);
    }
    let requested = request.string(MessagePart::ProtocolVersion);
    let version = version::negotiate(requested.as_deref());
    let mut server = payloads::implementation();
    if !version::has_titles(version)
        && let Some(server) = server.as_object_mut()
    {
        server.remove("title");
    }
    json!({
        "protocolVersion": version,
        "capabilities": capabilities,
        "serverInfo": server,
        "instructions": instructions,
    })
}

/// Returns metamcp's own discovery result.
pub fn discovery_result(capabilities: Value, instructions: &str) -> Value {
    json!({
        "supportedVersions": version::SERVED,
        "capabilities": capabilities,
        "instructions": instructions,
        "_meta": { SERVER_INFO: payloads::implementation() },
    })
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
