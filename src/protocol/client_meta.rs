//! The `_meta` members in which a request of the modern era describes its client.
//!
//! Source of all names: MCP 2026-07-28, "Base Protocol", `_meta`.

use std::sync::Arc;

use super::{LoggingLevel, Message, ObjectMembers, jsonrpc::MessagePart};

/// The protocol version of the request.
pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The client's capabilities.
pub const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The client's name and version.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The lowest level of the log messages that the client wants for this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The server's name and version, in the `_meta` of a result.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The id of the `subscriptions/listen` that a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The extension, in capabilities, that replaced the tasks of 2025-11-25.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The description of a client of the modern era in one of its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientMeta {
    /// The capabilities, JSON text of an object.
    pub capabilities: Arc<str>,
    /// The client's name and version, JSON text.
    pub client_info: Option<Arc<str>>,
    /// The lowest level of log messages that the client wants.
    pub level: Option<LoggingLevel>,
}

/// The reason why a request does not describe its client as required.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientMetaError {
    /// A member is missing or has the wrong type.
    #[error("`params._meta` must contain `{0}` as {1}")]
    Missing(&'static str, &'static str),
    /// An unknown log level.
    #[error("`{0}` is not a log level")]
    Level(String),
}

/// Returns the protocol version that a request names; only requests of the modern era do.
pub fn version_of(request: &Message) -> Option<String> {
    string_of(request, VERSION)
}

/// Returns the lowest level of log messages that a request asks for.
pub fn level_of(request: &Message) -> Option<LoggingLevel> {
    LoggingLevel::named(&string_of(request, LOG_LEVEL)?)
}

/// Returns the member `name` of a request's `_meta` if it is a string. Nearly all requests of the
/// legacy era have a `_meta` without it, which is not parsed.
fn string_of(request: &Message, name: &str) -> Option<String> {
    let meta = request.part(MessagePart::Meta)?;
    // A slash may be escaped as `\/`, and any letter by its code point.
    let last = name.rsplit('/').next().unwrap_or(name);
    if !meta.contains(last) && !meta.contains("\\u") {
        return None;
    }
    ObjectMembers::read(meta)?.string(name)
}

impl ClientMeta {
    /// Reads the description of the client from a request.
    ///
    /// # Errors
    ///
    /// [`ClientMetaError`] if a required member is missing or invalid.
    pub fn read(request: &Message) -> Result<Self, ClientMetaError> {
        let meta =
            request.part(MessagePart::Meta).and_then(ObjectMembers::read).unwrap_or_default();
        if meta.string(VERSION).is_none() {
            return Err(ClientMetaError::Missing(VERSION, "a string"));
        }
        let capabilities = meta.get(CAPABILITIES).filter(|found| found.starts_with('{'));
        let capabilities =
            capabilities.ok_or(ClientMetaError::Missing(CAPABILITIES, "an object"))?;
        let level = match meta.get(LOG_LEVEL) {
            None => None,
            Some(text) => {
                let name = meta.string(LOG_LEVEL).unwrap_or_else(|| text.to_owned());
                Some(LoggingLevel::named(&name).ok_or(ClientMetaError::Level(name))?)
            }
        };
        let client_info = meta.get(CLIENT_INFO).map(Arc::from);
        Ok(Self { capabilities: capabilities.into(), client_info, level })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(meta: &str) -> Message {
        Message::request("tools/list", Some(&format!(r#"{{"_meta":{meta}}}"#)))
    }

    #[test]
    fn the_client_metadata_of_a_request_is_read() {
        let request = request(
            r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/logLevel":"error","x":1}"#,
        );
        assert_eq!(version_of(&request).as_deref(), Some("2026-07-28"));
        let client_meta = ClientMeta::read(&request).expect("an introduction");
        assert_eq!(&*client_meta.capabilities, r#"{"roots":{}}"#);
        assert_eq!(client_meta.level, Some(LoggingLevel::Error));
        assert_eq!(client_meta.client_info, None);
    }

    #[test]
    fn a_name_may_be_written_with_escapes() {
        for name in [
            r"io.modelcontextprotocol\/protocolVersion",
            r"io.modelcontextprotocol/\u0070rotocolVersion",
        ] {
            let named = request(&format!(r#"{{"{name}":"2026-07-28"}}"#));
            assert_eq!(version_of(&named).as_deref(), Some("2026-07-28"), "{name}");
        }
        let level = request(r#"{"io.modelcontextprotocol\/logLevel":"error"}"#);
        assert_eq!((level_of(&level), version_of(&level)), (Some(LoggingLevel::Error), None));
        assert_eq!(version_of(&request(r#"{"progressToken":"protocolVersion"}"#)), None);
    }

    #[test]
    fn a_missing_or_invalid_member_of_the_client_metadata_is_named() {
        let refused = |meta| ClientMeta::read(&request(meta)).expect_err(meta).to_string();
        assert!(refused("{}").contains("protocolVersion"));
        assert!(refused("7").contains("protocolVersion"));
        assert!(
            refused(r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#)
                .contains("clientCapabilities")
        );
        assert!(
            refused(
                r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"loud"}"#
            )
            .contains("`loud`")
        );
        assert_eq!(version_of(&Message::request("ping", None)), None);
    }
}
