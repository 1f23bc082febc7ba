//! The errors for requests that the service has not answered.
//!
//! Pure.

use serde_json::json;

use crate::{config::defaults, protocol::RpcError};

/// The code of a broken connection between client and servers. Source: JSON-RPC 2.0, first
/// implementation-defined code, which the MCP SDKs use for closed connections.
const BRIDGE_FAILED: i64 = -32000;

/// Returns the error when the service was lost during a request that may have effects.
pub(super) fn outcome_unknown() -> RpcError {
    let text = "the connection to the service was lost while the request ran: the request may or may not have been executed";
    RpcError::new(BRIDGE_FAILED, "OUTCOME_UNKNOWN", text)
        .suggest(
            "Check whether the request was executed before you send it again. `metamcp stdio` keeps trying to reconnect.",
        )
        .context(json!({}))
}

/// Returns the error when the service was away for too long, or refuses the client for `reason`.
pub(super) fn service_unavailable(reason: Option<&str>) -> RpcError {
    let text = match reason {
        None => {
            format!("the service was not reachable for {} s", defaults::BRIDGE_TIMEOUT.as_secs())
        }
        Some(reason) => format!("the service refuses this client: {reason}"),
    };
    unavailable(text, remedy(reason))
}

/// Returns the error when the service hangs: `text` says it, and `remedy` the next step.
pub(super) fn service_silent(text: String, remedy: &str) -> RpcError {
    unavailable(text, remedy)
}

/// Returns the error when too many requests wait for the service.
pub(super) fn queue_full(reason: Option<&str>) -> RpcError {
    let mut text =
        "the service is not reachable, and no further message can wait for it".to_owned();
    if let Some(reason) = reason {
        text += &format!(": {reason}");
    }
    unavailable(text, remedy(reason))
}

fn remedy(refusal: Option<&str>) -> &'static str {
    match refusal {
        None => {
            "Start it with `systemctl start metamcp` or `metamcp serve`, then send the request again."
        }
        // The service runs: starting it would not help.
        Some(_) => {
            "Fix the cause in this message, then send the request again. `metamcp stdio` keeps trying to reconnect."
        }
    }
}

fn unavailable(text: String, remedy: &str) -> RpcError {
    RpcError::new(BRIDGE_FAILED, "SERVICE_UNAVAILABLE", text).suggest(remedy).context(json!({}))
}
