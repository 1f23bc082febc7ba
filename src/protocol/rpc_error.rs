//! The JSON-RPC error object: code, message and suggestion.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::{Era, version};

/// Invalid JSON. Source: JSON-RPC 2.0, "Error object".
pub const PARSE_ERROR: i64 = -32700;
/// JSON that is not a message. Source: JSON-RPC 2.0.
pub const INVALID_REQUEST: i64 = -32600;
/// An unknown method. Source: JSON-RPC 2.0.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Parameters that do not fit the method; also an unknown tool or server. Source: JSON-RPC 2.0.
pub const INVALID_PARAMS: i64 = -32602;
/// A failure of metamcp or the server. Source: JSON-RPC 2.0.
pub const INTERNAL_ERROR: i64 = -32603;
/// A timeout of a request. Source: the MCP SDKs.
pub const REQUEST_TIMEOUT: i64 = -32001;
/// A request without the session id that it needs. Source: the MCP SDKs.
pub const SESSION_REQUIRED: i64 = -32000;
/// An unknown or expired session; the HTTP status distinguishes it from a timeout of a request.
/// Source: the MCP SDKs.
pub const SESSION_NOT_FOUND: i64 = -32001;
/// An unknown resource, up to protocol version 2025-11-25. Source: MCP, "Resources".
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// URLs that the client must visit first, in protocol version 2025-11-25 only. Source: MCP,
/// "Elicitation".
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// A header that contradicts the body of its request. Source: MCP 2026-07-28, "Error codes", as for
/// the next two.
pub const HEADER_MISMATCH: i64 = -32020;
/// A capability that the request needs and the client has not declared.
pub const CAPABILITY_REQUIRED: i64 = -32021;
/// An unsupported protocol version. Source: MCP 2026-07-28, "Versioning".
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// A server that receives no requests for the time in `data.context.retryAfterMs`. This and the
/// next two are codes of metamcp, used only for operators.
pub const SERVER_PAUSED: i64 = -32010;
/// Exhausted connections, requests or memory, of which others will release some.
pub const NO_ROOM: i64 = -32011;
/// A server that could not be connected, has exited, or broke off its answer.
pub const SERVER_FAILED: i64 = -32012;

/// An error as clients receive it.
///
/// `data.code` is stable and meant for programs. `data.suggestion` is one sentence about the next
/// step. `data.context` names the things involved.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// The JSON-RPC code.
    pub code: i64,
    /// A description of the failure.
    pub message: String,
    /// The stable name of the error, in `SCREAMING_SNAKE`.
    pub name: &'static str,
    /// The action that the caller can take.
    pub suggestion: Option<String>,
    /// The things involved, by name; `null` is left out.
    pub context: Value,
    /// The members that the protocol requires in `data` for this error.
    pub details: BTreeMap<&'static str, Value>,
}

/// An error object with its members in reading order.
#[derive(Serialize)]
struct Object<'a> {
    code: i64,
    message: &'a str,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<&'a str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    context: &'a Value,
    #[serde(flatten)]
    details: &'a BTreeMap<&'static str, Value>,
}

impl RpcError {
    /// Returns the error of a request that is interrupted by the shutdown of the service.
    /// `may_be_done` states whether a server may have executed it.
    pub fn stopping(may_be_done: bool) -> Self {
        let suggestion = match may_be_done {
            true => {
                "The server may have executed the request: check its effects before you send it again."
            }
            false => "Try again in a moment: the service may be restarting.",
        };
        Self::new(INTERNAL_ERROR, "SERVICE_STOPPING", "the service is stopping").suggest(suggestion)
    }

    /// Returns an error without suggestion or context.
    pub fn new(code: i64, name: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            name,
            suggestion: None,
            context: Value::Null,
            details: BTreeMap::new(),
        }
    }

    /// Returns whether an error object, given as JSON text, lists the modern version as supported.
    /// Returns `None` if it lists no versions.
    pub fn serves_modern(error: &str) -> Option<bool> {
        let error: Value = serde_json::from_str(error).ok()?;
        let served = error["data"]["supported"].as_array()?;
        Some(served.iter().any(|found| found == version::MODERN))
    }

    /// Returns the code of an error object, given as JSON text.
    pub fn code_of(error: &str) -> Option<i64> {
        serde_json::from_str::<Value>(error).ok()?.get("code")?.as_i64()
    }

    /// Adds the action that the caller can take.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Adds a member that the protocol requires in `data` for this error.
    #[must_use]
    pub fn detail(mut self, name: &'static str, value: Value) -> Self {
        self.details.insert(name, value);
        self
    }

    /// Returns the error with the code that clients of `era` know. The modern era has another code
    /// for an unknown resource, and none for the codes of the SDKs and metamcp. Source: MCP
    /// 2026-07-28, "Error Codes".
    #[must_use]
    pub fn for_era(self, era: Era) -> Self {
        let code = match self.code {
            code if era == Era::Legacy => code,
            RESOURCE_NOT_FOUND => INVALID_PARAMS,
            -32019..=-32000 => INTERNAL_ERROR,
            other => other,
        };
        Self { code, ..self }
    }

    /// Adds the things involved.
    #[must_use]
    pub fn context(mut self, context: Value) -> Self {
        self.context = context;
        self
    }

    /// Returns the error with a suggestion and a context, even an empty one. Programs that read
    /// errors from the control interface find both in each.
    #[must_use]
    pub fn complete(mut self) -> Self {
        if self.suggestion.as_deref().is_none_or(str::is_empty) {
            self.suggestion = Some("See the log of the service for the cause.".to_owned());
        }
        if self.context.is_null() {
            self.context = Value::Object(serde_json::Map::new());
        }
        self
    }

    /// Returns the error object as JSON text.
    pub fn object(&self) -> String {
        let data = Data {
            code: self.name,
            suggestion: self.suggestion.as_deref(),
            context: &self.context,
            details: &self.details,
        };
        let error = Object { code: self.code, message: &self.message, data };
        serde_json::to_string(&error).expect("strings and numbers are JSON")
    }

    /// Returns the answer to the request whose id is the JSON text `id`. `None` stands for the null
    /// id of an answer to an unreadable message.
    pub fn render(&self, id: Option<&str>) -> Bytes {
        let error = self.object();
        let id = id.unwrap_or("null");
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_carries_code_suggestion_and_context() {
        let error = RpcError::new(INVALID_PARAMS, "TOOL_NOT_FOUND", "no tool `clok__now`")
            .suggest("Did you mean `clock__now`?")
            .context(json!({ "similarTools": ["clock__now"] }));

        insta::assert_snapshot!(
            String::from_utf8_lossy(&error.render(Some("\"a\""))),
            @r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"no tool `clok__now`","data":{"code":"TOOL_NOT_FOUND","suggestion":"Did you mean `clock__now`?","context":{"similarTools":["clock__now"]}}}}"#
        );
    }

    #[test]
    fn an_error_carries_the_data_of_the_protocol_beside_the_code_of_metamcp() {
        let error = RpcError::new(UNSUPPORTED_VERSION, "UNSUPPORTED_VERSION", "no")
            .detail("requested", json!("1900-01-01"));
        insta::assert_snapshot!(
            String::from_utf8_lossy(&error.render(None)),
            @r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"no","data":{"code":"UNSUPPORTED_VERSION","requested":"1900-01-01"}}}"#
        );
    }

    #[test]
    fn an_error_states_whether_the_modern_version_is_supported() {
        for (data, expected) in [
            (r#"{"supported":["2025-11-25","2026-07-28"]}"#, Some(true)),
            (r#"{"supported":["2025-11-25"]}"#, Some(false)),
            (r#"{"supported":[]}"#, Some(false)),
            (r#"{"supported":"2026-07-28"}"#, None),
            ("null", None),
        ] {
            let error = format!(r#"{{"code":-32022,"message":"","data":{data}}}"#);
            assert_eq!(RpcError::serves_modern(&error), expected, "{data}");
        }
        assert_eq!(RpcError::serves_modern(""), None);
    }

    #[test]
    fn errors_for_modern_clients_have_modern_codes() {
        let code = |code| RpcError::new(code, "X", "x").for_era(Era::Modern).code;
        assert_eq!(code(RESOURCE_NOT_FOUND), INVALID_PARAMS);
        assert_eq!(code(REQUEST_TIMEOUT), INTERNAL_ERROR);
        for same in [METHOD_NOT_FOUND, HEADER_MISMATCH, UNSUPPORTED_VERSION, PARSE_ERROR] {
            assert_eq!(code(same), same);
        }
    }
}
