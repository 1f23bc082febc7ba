//! The few MCP payloads that metamcp reads or writes.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::{Era, version};

/// The methods that metamcp inspects. All others pass through.
pub mod method {
    #![expect(missing_docs, reason = "each constant is named like the method it spells")]

    /// Declares each method as a constant, and [`ALL`] of them.
    macro_rules! methods {
        ($($name:ident = $method:literal;)+) => {
            $(pub const $name: &str = $method;)+
            const ALL: &[&str] = &[$($name),+];
        };
    }

    // Those of most messages come first.
    methods! {
        TOOLS_CALL = "tools/call";
        PROGRESS = "notifications/progress";
        INITIALIZE = "initialize";
        PING = "ping";
        DISCOVER = "server/discover";
        TOOLS_LIST = "tools/list";
        PROMPTS_LIST = "prompts/list";
        PROMPTS_GET = "prompts/get";
        RESOURCES_LIST = "resources/list";
        RESOURCES_READ = "resources/read";
        RESOURCE_TEMPLATES_LIST = "resources/templates/list";
        RESOURCES_SUBSCRIBE = "resources/subscribe";
        RESOURCES_UNSUBSCRIBE = "resources/unsubscribe";
        LOGGING_SET_LEVEL = "logging/setLevel";
        INITIALIZED = "notifications/initialized";
        CANCELLED = "notifications/cancelled";
        TOOLS_CHANGED = "notifications/tools/list_changed";
        PROMPTS_CHANGED = "notifications/prompts/list_changed";
        RESOURCES_CHANGED = "notifications/resources/list_changed";
        RESOURCE_UPDATED = "notifications/resources/updated";
        LOG_MESSAGE = "notifications/message";
        ROOTS_CHANGED = "notifications/roots/list_changed";
        SAMPLING = "sampling/createMessage";
        ELICITATION = "elicitation/create";
        ELICITATION_COMPLETE = "notifications/elicitation/complete";
        ROOTS_LIST = "roots/list";
        COMPLETE = "completion/complete";
        SUBSCRIPTIONS_LISTEN = "subscriptions/listen";
        SUBSCRIPTIONS_ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
        TASKS_GET = "tasks/get";
        TASKS_RESULT = "tasks/result";
    }

    /// The requests that only read, so that repeating them is harmless.
    pub const READ_ONLY: [&str; 10] = [
        PING,
        TASKS_GET,
        TASKS_RESULT,
        TOOLS_LIST,
        PROMPTS_LIST,
        PROMPTS_GET,
        RESOURCES_LIST,
        RESOURCES_READ,
        RESOURCE_TEMPLATES_LIST,
        COMPLETE,
    ];

    /// The requests that a server of the modern era may answer with requests for input. Source: MCP
    /// 2026-07-28, "Multi Round-Trip Requests", "Supported Requests".
    pub const MAY_NEED_INPUT: [&str; 3] = [TOOLS_CALL, PROMPTS_GET, RESOURCES_READ];

    /// The methods that the modern era dropped, because each request carries their data. Source:
    /// MCP 2026-07-28, "Key changes".
    pub const LEGACY_ONLY: [&str; 5] =
        [INITIALIZE, PING, LOGGING_SET_LEVEL, RESOURCES_SUBSCRIBE, RESOURCES_UNSUBSCRIBE];

    /// Returns the constant equal to `name`.
    pub fn known(name: &str) -> Option<&'static str> {
        ALL.iter().copied().find(|known| *known == name)
    }
}

/// The header that names a session, of metamcp at an upstream or of a client at metamcp.
pub const SESSION_HEADER: &str = "mcp-session-id";
/// The header that names the protocol version of a message.
pub const VERSION_HEADER: &str = "mcp-protocol-version";

/// Returns the name and version of metamcp, as clients and servers see them.
pub fn implementation() -> Value {
    json!({ "name": "metamcp", "title": "metamcp", "version": env!("CARGO_PKG_VERSION") })
}

/// Returns the same as JSON text, built once: some requests and lists contain it.
pub fn implementation_text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| implementation().to_string());
    &TEXT
}

/// All client capabilities that a server can use.
///
/// Source: MCP 2025-11-25, "Client features", and [`super::mcp_apps`].
pub const CLIENT_CAPABILITIES: &str = r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#;

/// Returns the parameters of the `initialize` that metamcp sends to a server. `capabilities` are
/// those of the client, JSON text.
pub fn initialize_params(capabilities: &str) -> String {
    let (version, client) = (version::LEGACY_LATEST, implementation());
    format!(
        r#"{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{client}}}"#
    )
}

/// A server's description of itself, from the result of `initialize` or `server/discover`.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerProfile {
    /// The protocol version in use with the server.
    pub protocol_version: String,
    /// The whole result, unknown members included.
    pub result: Map<String, Value>,
}

/// The reason why a server's description of itself is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerProfileError {
    /// The result is not an object with a `protocolVersion`.
    #[error("its `initialize` result has no `protocolVersion`")]
    NoVersion,
    /// The result is not an object with `supportedVersions`.
    #[error("its `server/discover` result has no `supportedVersions`")]
    NoVersions,
    /// The version is unknown or has no handshake.
    #[error("it answered with protocol version `{0}`, which metamcp does not support")]
    Version(String),
}

impl ServerProfile {
    /// Reads the result of `initialize`, given as JSON text.
    ///
    /// # Errors
    ///
    /// [`ServerProfileError`] if it names no protocol version that metamcp speaks.
    pub fn read(result: &str) -> Result<Self, ServerProfileError> {
        let result: Map<String, Value> =
            serde_json::from_str(result).map_err(|_| ServerProfileError::NoVersion)?;
        let Some(Value::String(protocol_version)) = result.get("protocolVersion") else {
            return Err(ServerProfileError::NoVersion);
        };
        if !version::is_legacy(protocol_version) {
            return Err(ServerProfileError::Version(protocol_version.clone()));
        }
        Ok(Self { protocol_version: protocol_version.clone(), result })
    }

    /// Returns the era of the server.
    pub fn era(&self) -> Era {
        Era::of(&self.protocol_version).unwrap_or(Era::Legacy)
    }

    /// Returns whether the server declared `capability`.
    pub fn has(&self, capability: &str) -> bool {
        self.capability(capability).is_some()
    }

    fn capability(&self, name: &str) -> Option<&Value> {
        self.result.get("capabilities")?.get(name)
    }

    /// Returns whether the server announces changes of the lists of `capability`.
    pub fn has_list_changed(&self, capability: &str) -> bool {
        self.capability(capability).is_some_and(|declared| declared["listChanged"] == true)
    }
}

/// Removes all capabilities of a server that need a stream to the client, or memory of its wishes.
pub fn leave_out_notices(capabilities: &mut Value) {
    let Value::Object(capabilities) = capabilities else { return };
    capabilities.remove("logging");
    for capability in capabilities.values_mut().filter_map(Value::as_object_mut) {
        capability.remove("listChanged");
        capability.remove("subscribe");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_an_unknown_version_is_refused() {
        assert_eq!(
            ServerProfile::read(r#"{"protocolVersion":"2026-07-28"}"#),
            Err(ServerProfileError::Version("2026-07-28".into()))
        );
        assert_eq!(ServerProfile::read("[]"), Err(ServerProfileError::NoVersion));
    }
}
