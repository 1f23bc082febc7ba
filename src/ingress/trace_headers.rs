//! The trace that a request names in its headers, moved to where servers look for it.
//!
//! Source: W3C, "Trace Context" and "Baggage"; MCP, SEP-414: the same names in `params._meta`.

use hyper::HeaderMap;
use serde_json::Value;

use crate::{
    config::defaults,
    protocol::{Message, ObjectMembers, jsonrpc::MessagePart, payloads::method},
    telemetry::trace_context::TRACEPARENT,
};

/// The headers, which are also the names in `_meta`.
const NAMES: [&str; 3] = [TRACEPARENT, "tracestate", "baggage"];

/// Returns a call with the trace of its headers in `_meta`. What is in `_meta` already stays.
pub(super) fn with_trace_headers(message: Message, headers: &HeaderMap) -> Message {
    let is_call = || message.method().is_some_and(|it| method::MAY_NEED_INPUT.contains(&it));
    // Fewer instructions than three searches by name.
    if !headers.keys().any(|name| NAMES.contains(&name.as_str())) || !is_call() {
        return message;
    }
    let sent = NAMES.iter().map(|name| Some((*name, headers.get(*name)?.to_str().ok()?)));
    let meta = message.part(MessagePart::Meta).and_then(ObjectMembers::read).unwrap_or_default();
    let missing: Vec<_> = sent
        .flatten()
        .filter(|(name, value)| {
            meta.get(name).is_none() && value.len() <= defaults::TRACE_HEADER_BYTES_MAX
        })
        .collect();
    if missing.is_empty() {
        return message;
    }
    message.with_params(|params| {
        for (name, value) in &missing {
            params.set_in_object("_meta", name, &Value::from(*value).to_string());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(params: &str, headers: &[(&'static str, &str)]) -> String {
        let headers = headers.iter().map(|(name, value)| {
            (hyper::header::HeaderName::from_static(name), value.parse().expect("a value"))
        });
        let message = Message::request("tools/call", Some(params));
        let moved = with_trace_headers(message, &headers.collect());
        moved.params().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_trace_in_headers_reaches_the_place_where_servers_look() {
        let headers = [("traceparent", "00-a-b-01"), ("baggage", "k=\"v\"")];
        assert_eq!(
            moved(r#"{"name":"x"}"#, &headers),
            r#"{"name":"x","_meta":{"traceparent":"00-a-b-01","baggage":"k=\"v\""}}"#
        );
        assert_eq!(
            moved(r#"{"_meta":{"traceparent":"mine","a":1}}"#, &headers[..1]),
            r#"{"_meta":{"traceparent":"mine","a":1}}"#
        );
        assert_eq!(moved(r#"{"name":"x"}"#, &[("accept", "a")]), r#"{"name":"x"}"#);
    }
}
