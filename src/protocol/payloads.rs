//! The few MCP payloads that metamcp reads or writes.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::{
    Era,
    task::{self, TaskCapability},
    version,
};

/// The methods that metamcp inspects. All others pass through.
pub mod method {
    #![expect(missing_docs, reason = "each constant is named like the method it spells")]

    use super::task;

    pub const INITIALIZE: &str = "initialize";
    pub const PING: &str = "ping";
    pub const DISCOVER: &str = "server/discover";
    pub const TOOLS_LIST: &str = "tools/list";
    pub const TOOLS_CALL: &str = "tools/call";
    pub const PROMPTS_LIST: &str = "prompts/list";
    pub const PROMPTS_GET: &str = "prompts/get";
    pub const RESOURCES_LIST: &str = "resources/list";
    pub const RESOURCES_READ: &str = "resources/read";
    pub const RESOURCE_TEMPLATES_LIST: &str = "resources/templates/list";
    pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
    pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
    pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
    pub const INITIALIZED: &str = "notifications/initialized";
    pub const CANCELLED: &str = "notifications/cancelled";
    pub const PROGRESS: &str = "notifications/progress";
    pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
    pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
    pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
    pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
    pub const LOG_MESSAGE: &str = "notifications/message";
    pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
    pub const SAMPLING: &str = "sampling/createMessage";
    pub const ELICITATION: &str = "elicitation/create";
    pub const ROOTS_LIST: &str = "roots/list";
    pub const COMPLETE: &str = "completion/complete";
    pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";
    pub const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

    /// The requests that only read, so that repeating them is harmless.
    pub const READING: [&str; 10] = [
        PING,
        task::GET,
        task::RESULT,
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
    pub const ASKING: [&str; 3] = [TOOLS_CALL, PROMPTS_GET, RESOURCES_READ];

    /// The methods that the modern era dropped, because each request carries their data. Source:
    /// MCP 2026-07-28, "Key changes".
    pub const NOT_MODERN: [&str; 5] =
        [INITIALIZE, PING, LOGGING_SET_LEVEL, RESOURCES_SUBSCRIBE, RESOURCES_UNSUBSCRIBE];

    /// Returns the constant equal to `name`.
    pub fn known(name: &str) -> Option<&'static str> {
        const ALL: [&str; 28] = [
            TOOLS_CALL,
            PROGRESS,
            INITIALIZE,
            PING,
            DISCOVER,
            TOOLS_LIST,
            PROMPTS_LIST,
            PROMPTS_GET,
            RESOURCES_LIST,
            RESOURCES_READ,
            RESOURCE_TEMPLATES_LIST,
            RESOURCES_SUBSCRIBE,
            RESOURCES_UNSUBSCRIBE,
            LOGGING_SET_LEVEL,
            INITIALIZED,
            CANCELLED,
            TOOLS_CHANGED,
            PROMPTS_CHANGED,
            RESOURCES_CHANGED,
            RESOURCE_UPDATED,
            LOG_MESSAGE,
            ROOTS_CHANGED,
            SAMPLING,
            ELICITATION,
            ROOTS_LIST,
            COMPLETE,
            SUBSCRIPTIONS_LISTEN,
            SUBSCRIPTIONS_ACKNOWLEDGED,
        ];
        ALL.into_iter().find(|known| *known == name)
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
        self.result.get("capabilities").and_then(|all| all.get(capability)).is_some()
    }

    /// Returns whether the server announces changes of the lists of `capability`.
    pub fn has_list_changed(&self, capability: &str) -> bool {
        let declared = self.result.get("capabilities").and_then(|all| all.get(capability));
        declared.and_then(|declared| declared.get("listChanged")) == Some(&Value::Bool(true))
    }

    /// Returns the `initialize` result for a client that asked for version `asked`.
    ///
    /// If the connection is not standing, nothing can notify the client. Change notices,
    /// subscriptions and log levels are then not declared: a false declaration would be worse than
    /// none. `offer` selects which of the server's task capabilities are declared.
    pub fn for_client(
        &self,
        asked: Option<&str>,
        is_standing: bool,
        offer: TaskCapability,
    ) -> Value {
        let mut result = match self.era() {
            Era::Legacy => self.result.clone(),
            Era::Modern => self.as_initialized(),
        };
        result.insert("protocolVersion".into(), version::negotiate(asked).into());
        if let Some(capabilities) = result.get_mut("capabilities") {
            task::narrow(capabilities, offer);
            if !is_standing {
                leave_out_notices(capabilities);
            }
        }
        Value::Object(result)
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
    fn a_client_is_told_only_what_we_carry() {
        let profile = ServerProfile::read(
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"completions":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"i","future":1}"#,
        )
        .expect("a profile");

        assert_eq!(
            profile.for_client(Some("2025-06-18"), false, TaskCapability::ById),
            json!({"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{},"completions":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"i","future":1})
        );
        let standing = profile.for_client(None, true, TaskCapability::ById);
        assert_eq!(standing["capabilities"], profile.result["capabilities"]);
        assert!(profile.has("tools") && !profile.has("prompts"));
    }

    #[test]
    fn a_server_of_an_unknown_version_is_refused() {
        assert_eq!(
            ServerProfile::read(r#"{"protocolVersion":"2026-07-28"}"#),
            Err(ServerProfileError::Version("2026-07-28".into()))
        );
        assert_eq!(ServerProfile::read("[]"), Err(ServerProfileError::NoVersion));
    }
}
