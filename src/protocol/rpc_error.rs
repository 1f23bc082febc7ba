//! The JSON-RPC error object: code, message, and what to do about it.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::{Era, version};

/// Bytes that are not JSON. Source: JSON-RPC 2.0, "Error object".
pub const PARSE_ERROR: i64 = -32700;
/// JSON that is not a message. Source: JSON-RPC 2.0.
pub const INVALID_REQUEST: i64 = -32600;
/// A method that nobody here knows. Source: JSON-RPC 2.0.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Parameters that do not fit the method; also an unknown tool or server. Source: JSON-RPC 2.0.
pub const INVALID_PARAMS: i64 = -32602;
/// Something failed on our side or at the server. Source: JSON-RPC 2.0.
pub const INTERNAL_ERROR: i64 = -32603;
/// A request ran out of time. Source: seed 001, and the MCP SDKs.
pub const REQUEST_TIMEOUT: i64 = -32001;
/// A request that must belong to a session names none. Source: the MCP SDKs.
pub const SESSION_REQUIRED: i64 = -32000;
/// A session that is not known, or not any more; its HTTP status tells it from a request that ran
/// out of time. Source: the MCP SDKs.
pub const SESSION_NOT_FOUND: i64 = -32001;
/// No such resource, up to protocol version 2025-11-25. Source: MCP, "Resources".
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// The client has to visit addresses first, in protocol version 2025-11-25 only. Source: MCP,
/// "Elicitation".
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// A header of a request says something else than its body. Source: MCP 2026-07-28, "Error codes",
/// as are the next two.
pub const HEADER_MISMATCH: i64 = -32020;
/// The client has not declared a capability that the request takes.
pub const CAPABILITY_REQUIRED: i64 = -32021;
/// A protocol version that is not served. Source: MCP 2026-07-28, "Versioning".
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// A server is left alone for a while, and `data.context.retryAfterMs` says for how long: to operators
/// only, as are the next two. Ours.
pub const SERVER_PAUSED: i64 = -32010;
/// There is no room: connections, requests or memory are used up, and others will give some back. Ours.
pub const NO_ROOM: i64 = -32011;
/// A server could not be connected, has ended, or broke its answer off. Ours.
pub const SERVER_FAILED: i64 = -32012;

/// An error as a client sees it.
///
/// `data.code` is stable and meant for programs, `data.suggestion` is one sentence that says what
/// to do, `data.context` names the things involved. Source: seed 001, "Structured errors".
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// The JSON-RPC code.
    pub code: i64,
    /// What failed, in words.
    pub message: String,
    /// The stable name of the error, in `SCREAMING_SNAKE`.
    pub name: &'static str,
    /// What the caller can do about it.
    pub suggestion: Option<String>,
    /// The things involved, by name; an empty object is left out.
    pub context: Value,
    /// What the protocol wants to be in the data of this error.
    pub details: BTreeMap<&'static str, Value>,
}

/// In the order in which people read it.
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
    /// Returns the error of a request that is cut off as the service stops, and of which a server may have
    /// done what it asks for, or cannot.
    pub fn stopping(may_be_done: bool) -> Self {
        Self::new(INTERNAL_ERROR, "SERVICE_STOPPING", "the service is stopping").suggest(
            match may_be_done {
                true => {
                    "The server may have done it: see what has come of it before you ask again."
                }
                false => "Ask again in a moment: the service may come back.",
            },
        )
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

    /// Tells whether an error object, given as JSON text, says that our version of the modern era is
    /// served; nothing where it does not say which versions are.
    pub fn serves_modern(error: &str) -> Option<bool> {
        let error: Value = serde_json::from_str(error).ok()?;
        let served = error["data"]["supported"].as_array()?;
        Some(served.iter().any(|found| found == version::MODERN))
    }

    /// Returns the code of an error object, given as JSON text.
    pub fn code_of(error: &str) -> Option<i64> {
        serde_json::from_str::<Value>(error).ok()?.get("code")?.as_i64()
    }

    /// Adds what the caller can do about it.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Adds what the protocol wants to be in the data of this error.
    #[must_use]
    pub fn detail(mut self, name: &'static str, value: Value) -> Self {
        self.details.insert(name, value);
        self
    }

    /// Returns the error as a client of `era` knows it.
    #[must_use]
    pub fn for_era(self, era: Era) -> Self {
        match era {
            Era::Legacy => self,
            Era::Modern => self.for_modern(),
        }
    }

    /// Returns the error with a code that the modern era has: it has its own for a resource that is
    /// not there, and none for what the SDKs have made up.
    /// Source: MCP 2026-07-28, "Error Codes".
    fn for_modern(self) -> Self {
        let code = match self.code {
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

    /// Returns the error with a suggestion and a context, be it an empty one: programs that read the
    /// errors of the operator's interface find both in each.
    #[must_use]
    pub fn complete(mut self) -> Self {
        if self.suggestion.as_deref().is_none_or(str::is_empty) {
            self.suggestion = Some("See the log of the service for more.".to_owned());
        }
        if self.context.is_null() {
            self.context = Value::Object(serde_json::Map::new());
        }
        self
    }

    /// Returns the error object, JSON text.
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

    /// Renders the answer to the request whose id is the JSON text `id`; `None` is the null id of
    /// an answer to something that could not be read.
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
    fn what_the_protocol_wants_in_the_data_stands_beside_what_we_say() {
        let error = RpcError::new(UNSUPPORTED_VERSION, "UNSUPPORTED_VERSION", "no")
            .detail("requested", json!("1900-01-01"));
        insta::assert_snapshot!(
            String::from_utf8_lossy(&error.render(None)),
            @r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"no","data":{"code":"UNSUPPORTED_VERSION","requested":"1900-01-01"}}}"#
        );
    }

    #[test]
    fn an_error_says_whether_our_version_is_served_or_says_nothing() {
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
    fn the_modern_era_has_codes_of_its_own() {
        let code = |code| RpcError::new(code, "X", "x").for_modern().code;
        assert_eq!(code(RESOURCE_NOT_FOUND), INVALID_PARAMS);
        assert_eq!(code(REQUEST_TIMEOUT), INTERNAL_ERROR);
        for same in [METHOD_NOT_FOUND, HEADER_MISMATCH, UNSUPPORTED_VERSION, PARSE_ERROR] {
            assert_eq!(code(same), same);
        }
    }
}
