//! The view of one server as it is: everything passes, except what concerns the connection.

use std::time::Duration;

use serde_json::json;

use super::{Outcome, Views, answer, own_profile};
use crate::{
    call::{CallError, Exchange},
    config::defaults,
    name::ServerName,
    protocol::{Message, jsonrpc::Part, mcp::method},
};

impl Views {
    pub(super) async fn passthrough(
        &self,
        server: &ServerName,
        is_root: bool,
        request: &Message,
    ) -> Result<Outcome, CallError> {
        let Some(slot) = self.pool.slot(server.as_str()) else {
            return Err(self.unknown_server(server.as_str()));
        };
        match request.method().unwrap_or_default() {
            method::INITIALIZE => {
                // The server has shaken hands once, with us. Its clients are answered from that.
                let patience = if is_root { Duration::ZERO } else { defaults::INITIALIZE_PATIENCE };
                let connected = tokio::time::timeout(patience, slot.connection()).await;
                let connection = connected.ok().and_then(Result::ok);
                let profile = connection.as_ref().and_then(|connection| connection.profile());
                let asked = request.string(Part::ProtocolVersion);
                Ok(match profile {
                    Some(profile) => answer(request, &profile.for_client(asked.as_deref())),
                    // A client that fails to connect may never try again, and a server that is
                    // late or down now may be there for its first call.
                    None => answer(request, &stand_in(request, server)),
                })
            }
            asked @ (method::LOGGING_SET_LEVEL
            | method::RESOURCES_SUBSCRIBE
            | method::RESOURCES_UNSUBSCRIBE) => Err(CallError::UnknownMethod {
                method: asked.to_owned(),
                hint: "It would change the one connection that all clients share.",
            }),
            asked @ method::DISCOVER => Err(CallError::UnknownMethod {
                method: asked.to_owned(),
                hint: "Use `initialize`: versions up to 2025-11-25 are served.",
            }),
            _ => Ok(Outcome::exchange(Exchange::new(slot, request.clone(), self.limits()))),
        }
    }
}

/// What a server that cannot be asked most likely offers.
fn stand_in(request: &Message, server: &ServerName) -> serde_json::Value {
    let capabilities = json!({ "tools": {}, "prompts": {}, "resources": {} });
    let instructions = format!("The server `{server}` is not connected yet.");
    own_profile(request, &capabilities, &instructions)
}
