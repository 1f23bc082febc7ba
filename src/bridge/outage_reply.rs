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
pub(super) fn service_unavailable(reason: Option<&str>) -> RpcError {
    let waited = defaults::BRIDGE_PATIENCE.as_secs();
    match reason {
        None => unavailable(format!("the service did not come back within {waited} s")),
        Some(reason) => refused(format!("the service does not serve this client: {reason}")),
    }
}

/// So many requests wait already for a service that is away.
pub(super) fn full(reason: Option<&str>) -> RpcError {
    let text = "the service is away, and as many requests as may wait for it";
    match reason {
        None => unavailable(text.to_owned()),
        Some(reason) => refused(format!("{text}: {reason}")),
    }
}

fn unavailable(text: String) -> RpcError {
    error(text, "Start it with `systemctl start metamcp` or `metamcp serve`, then ask again.")
}

/// The service is there: to start it changes nothing.
fn refused(text: String) -> RpcError {
    error(text, "Mend what it says, then ask again: the service is tried again meanwhile.")
}

fn error(text: String, remedy: &str) -> RpcError {
    RpcError::new(BRIDGE_FAILED, "SERVICE_UNAVAILABLE", text).suggest(remedy).context(json!({}))
}
