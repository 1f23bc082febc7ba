//! The names in a record of a call, as the service sends it.

use serde_json::Value;

use super::terminal;

/// Returns the name of the called tool or prompt, with its server's.
pub(super) fn target(call: &Value) -> String {
    let part = |member: &str| call[member].as_str();
    terminal::escape(&match (part("server"), part("tool")) {
        (Some(server), Some(tool)) => format!("{server}__{tool}"),
        (Some(name), None) | (None, Some(name)) => name.to_owned(),
        (None, None) => part("method").unwrap_or_default().to_owned(),
    })
}

/// Returns the name and the version of the client.
pub(super) fn client_name(call: &Value) -> String {
    let part = |member: &str| call[member].as_str().unwrap_or_default();
    let name = if part("client").is_empty() { "a client without a name" } else { part("client") };
    terminal::escape(format!("{name} {}", part("clientVersion")).trim_end())
}
