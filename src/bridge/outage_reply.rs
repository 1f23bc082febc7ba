//! The errors for requests that the service has not answered.
//!
//! Pure.

use serde_json::json;

use crate::{config::defaults, protocol::RpcError};

/// The code of a broken connection between client and servers. Source: JSON-RPC 2.0, first
/// implementation-defined code, which the MCP SDKs use for closed connections.
const BRIDGE_FAILED: i64 = -32000;

/// The error when the service was lost during a request that may have effects.
pub(super) fn unknown() -> RpcError {
    let text = "the service was lost while the request ran: nobody knows whether it was done";
    RpcError::new(BRIDGE_FAILED, "OUTCOME_UNKNOWN", text)
        .suggest(
            "Look whether it was done before you ask again: the service is tried again meanwhile.",
        )
        .context(json!({}))
}

/// The error when the service was away for too long, or refuses the client for `reason`.
pub(super) fn service_unavailable(reason: Option<&str>) -> RpcError {
    let waited = defaults::BRIDGE_PATIENCE.as_secs();
    match reason {
        None => unavailable(format!("the service did not come back within {waited} s")),
        Some(reason) => refused(format!("the service does not serve this client: {reason}")),
    }
}

/// The error when too many requests wait for the service.
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

/// Returns the error when the service runs but refuses: starting it would not help.
fn refused(text: String) -> RpcError {
    error(text, "Mend what it says, then ask again: the service is tried again meanwhile.")
}

fn error(text: String, remedy: &str) -> RpcError {
    RpcError::new(BRIDGE_FAILED, "SERVICE_UNAVAILABLE", text).suggest(remedy).context(json!({}))
}
