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
const NAMES: [&str; 3] = [TRACEPARENT, TRACESTATE, "baggage"];
const TRACESTATE: &str = "tracestate";

/// Adds the trace of the headers of a call to its `_meta`. What is in `_meta` already stays.
pub(super) fn add_trace_headers(message: &mut Message, headers: &HeaderMap) {
    let is_call = || message.method().is_some_and(|it| method::MAY_NEED_INPUT.contains(&it));
    // Fewer instructions than three searches by name.
    if !headers.keys().any(|name| NAMES.contains(&name.as_str())) || !is_call() {
        return;
    }
    let meta = message.part(MessagePart::Meta).and_then(ObjectMembers::read).unwrap_or_default();
    // A state belongs to the trace that it came with.
    let has_trace = meta.get(TRACEPARENT).is_some();
    let missing: Vec<_> = NAMES
        .into_iter()
        .filter(|name| meta.get(name).is_none() && !(has_trace && *name == TRACESTATE))
        .map(|name| (name, joined(headers, name)))
        .filter(|(_, value)| (1..=defaults::TRACE_HEADER_BYTES_MAX).contains(&value.len()))
        .collect();
    if missing.is_empty() {
        return;
    }
    *message = message.with_params(|params| {
        for (name, value) in &missing {
            params.set_in_object("_meta", name, &Value::from(value.as_str()).to_string());
        }
    });
}

/// Returns the values of all headers of this name, as one list. Source: RFC 9110, section 5.3.
fn joined(headers: &HeaderMap, name: &str) -> String {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(params: &str, headers: &[(&'static str, &str)]) -> String {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(*name, value.parse().expect("a value"));
        }
        let mut message = Message::request("tools/call", Some(params));
        add_trace_headers(&mut message, &all);
        message.params().unwrap_or_default().to_owned()
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

    #[test]
    fn lines_of_one_header_are_one_list_and_a_state_stays_with_its_trace() {
        let headers =
            [("tracestate", "a=1"), ("baggage", "k=1"), ("tracestate", "b=2"), ("baggage", "l=2")];
        assert_eq!(
            moved(r#"{"name":"x"}"#, &headers),
            r#"{"name":"x","_meta":{"tracestate":"a=1,b=2","baggage":"k=1,l=2"}}"#
        );
        assert_eq!(
            moved(r#"{"_meta":{"traceparent":"mine"}}"#, &headers),
            r#"{"_meta":{"traceparent":"mine","baggage":"k=1,l=2"}}"#
        );
    }
}
