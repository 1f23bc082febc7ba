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

/// Returns the name and the version of the client of a call.
pub(super) fn client_name(call: &Value) -> String {
    named_client(&call["client"], &call["clientVersion"])
}

/// Returns the name and the version of a client, as a reader names one without a name.
pub(super) fn named_client(name: &Value, version: &Value) -> String {
    let name = name.as_str().filter(|name| !name.is_empty()).unwrap_or("a client without a name");
    terminal::escape(format!("{name} {}", version.as_str().unwrap_or_default()).trim_end())
}
