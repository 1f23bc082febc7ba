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
    let text = "the connection to the service was lost while the request ran: the request may or may not have been executed";
    RpcError::new(BRIDGE_FAILED, "OUTCOME_UNKNOWN", text)
        .suggest(
            "Check whether the request was executed before you send it again. `metamcp stdio` keeps trying to reconnect.",
        )
        .context(json!({}))
}

/// The error when the service was away for too long, or refuses the client for `reason`.
pub(super) fn service_unavailable(reason: Option<&str>) -> RpcError {
    let waited = defaults::BRIDGE_PATIENCE.as_secs();
    match reason {
        None => unavailable(format!("the service was not reachable for {waited} s")),
        Some(reason) => refused(format!("the service refuses this client: {reason}")),
    }
}

/// The error when too many requests wait for the service.
pub(super) fn full(reason: Option<&str>) -> RpcError {
    let text = "the service is not reachable, and no further message can wait for it";
    match reason {
        None => unavailable(text.to_owned()),
        Some(reason) => refused(format!("{text}: {reason}")),
    }
}

fn unavailable(text: String) -> RpcError {
    error(
        text,
        "Start it with `systemctl start metamcp` or `metamcp serve`, then send the request again.",
    )
}

/// Returns the error when the service runs but refuses: starting it would not help.
fn refused(text: String) -> RpcError {
    error(
        text,
        "Fix the cause in this message, then send the request again. `metamcp stdio` keeps trying to reconnect.",
    )
}

fn error(text: String, remedy: &str) -> RpcError {
    RpcError::new(BRIDGE_FAILED, "SERVICE_UNAVAILABLE", text).suggest(remedy).context(json!({}))
}
