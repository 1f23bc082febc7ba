//! metamcp's own part in the handshake of either era.

use serde_json::{Value, json};

use crate::{
    protocol::{Message, client_meta::SERVER_INFO, jsonrpc::MessagePart, payloads, version},
    session::Session,
};

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
