//! What a client is told of a request that no service has answered.
//!
//! Pure.

use serde_json::json;

use crate::{config::defaults, protocol::RpcError};

/// Something between the client and its servers is not there. Source: JSON-RPC 2.0, the first of the
/// codes that are left to implementations; as the MCP SDKs have it for a connection that closed.
const BRIDGE_FAILED: i64 = -32000;

/// The service was lost while it worked on a request that may do something.
pub(super) fn unknown() -> RpcError {
    let text = "the service was lost while the request ran: nobody knows whether it was done";
    RpcError::new(BRIDGE_FAILED, "OUTCOME_UNKNOWN", text)
        .suggest(
            "Look whether it was done before you ask again: the service is tried again meanwhile.",
        )
        .context(json!({}))
}

/// The service was away for as long as a request waits; or is there and refuses, for `reason`.
pub(super) fn away(reason: Option<&str>) -> RpcError {
    let waited = defaults::BRIDGE_PATIENCE.as_secs();
    match reason {
        None => unavailable(format!("the service did not come back within {waited} s")),
        Some(reason) => unavailable(format!("the service does not serve this client: {reason}")),
    }
}

/// So many requests wait already for a service that is away.
pub(super) fn full(reason: Option<&str>) -> RpcError {
    let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let text = "the service is away, and as many requests as may wait for it";
    unavailable(format!("{text}{why}"))
}

fn unavailable(text: String) -> RpcError {
    RpcError::new(BRIDGE_FAILED, "SERVICE_UNAVAILABLE", text)
        .suggest("Start it with `systemctl start metamcp` or `metamcp serve`, then ask again.")
        .context(json!({}))
}
