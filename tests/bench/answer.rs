//! The answers of the in-house MCP server, independent of the transport.
//!
//! It has three tools: `echo` returns its `text`, `blob` returns `bytes` bytes, and `sleep` waits
//! for `ms` milliseconds and then does the same as `echo`.

use std::{borrow::Cow, time::Duration};

use serde::Deserialize;
use serde_json::value::RawValue;

/// The reply to one message.
pub(crate) enum Reply {
    /// The message needs no answer.
    Nothing,
    /// The answer to `initialize`.
    Handshake(String),
    /// The answer to any other request, after some time.
    After(Duration, String),
}

#[derive(Deserialize)]
struct Incoming<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "protocolVersion")]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Default, Deserialize)]
struct Arguments<'a> {
    /// The JSON text: without unescaping, it need not be escaped again.
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    ms: Option<u64>,
    bytes: Option<usize>,
}

/// The tool list, as JSON text.
pub(crate) const TOOLS: &str = r#"{"tools":[
{"name":"echo","description":"Returns the text.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}},
{"name":"blob","description":"Returns so many bytes.","inputSchema":{"type":"object","properties":{"bytes":{"type":"integer"}}}},
{"name":"sleep","description":"Waits, then returns the text.","inputSchema":{"type":"object","properties":{"ms":{"type":"integer"},"text":{"type":"string"}}}}
]}"#;

impl Reply {
    /// Answers one message; `None` if it is invalid. `tools` is the tool list as JSON text.
    pub(crate) fn to(message: &[u8], tools: &str) -> Option<Self> {
        let message: Incoming<'_> = serde_json::from_slice(message).ok()?;
        let Some(id) = message.id else { return Some(Self::Nothing) };
        let params = message.params.unwrap_or_default();
        let mut pause = Duration::ZERO;
        let outcome = match &*message.method {
            "initialize" => {
                let version = params.protocol_version.map_or(r#""2025-06-18""#, RawValue::get);
                let result = format!(
                    r#"{{"protocolVersion":{version},"capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"bench","version":"1"}}}}"#
                );
                return Some(Self::Handshake(answer(id, "result", &result)));
            }
            "ping" => answer(id, "result", "{}"),
            "tools/list" => answer(id, "result", &tools.replace('\n', "")),
            "tools/call" => {
                let arguments = params.arguments.unwrap_or_default();
                pause = Duration::from_millis(arguments.ms.unwrap_or(0));
                match params.name.as_deref() {
                    Some("echo" | "sleep") => {
                        echo(id, arguments.text.map_or(r#""""#, RawValue::get))
                    }
                    Some("blob") => {
                        echo(id, &format!("\"{}\"", "b".repeat(arguments.bytes.unwrap_or(0))))
                    }
                    _ => answer(id, "error", r#"{"code":-32602,"message":"no such tool"}"#),
                }
            }
            _ => answer(id, "error", r#"{"code":-32601,"message":"no such method"}"#),
        };
        Some(Self::After(pause, outcome))
    }
}

/// Returns the answer with one text, which is given as JSON.
fn echo(id: &RawValue, text: &str) -> String {
    answer(id, "result", &format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#))
}

fn answer(id: &RawValue, kind: &str, content: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"{kind}":{content}}}"#)
}

/// Returns the exact answer to `echo` for request `id`.
pub(crate) fn expected(id: u64, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}
