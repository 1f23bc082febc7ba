//! The spans of call records, in the JSON form of OTLP.
//!
//! Source: OpenTelemetry, "OTLP/HTTP", JSON; semantic conventions for MCP. Pure.

use serde::Serialize;
use serde_json::{Value, json};

use crate::call_record::{CallOutcome, CallRecord};

/// The kinds of spans. Source: OTLP, `Span.SpanKind`.
const SERVER: u8 = 2;
const CLIENT: u8 = 3;

/// The status of a failed span. Source: OTLP, `Status.StatusCode`.
const ERROR: u8 = 2;

/// One span.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Span {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    name: String,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Value>,
}

/// Returns the request that exports the spans of `calls`; `None` if they have none.
pub(super) fn span_batch<'a>(calls: impl Iterator<Item = &'a CallRecord>) -> Option<Value> {
    let spans: Vec<Span> = calls.flat_map(spans_of).collect();
    let version = env!("CARGO_PKG_VERSION");
    (!spans.is_empty()).then(|| {
        json!({
            "resourceSpans": [{
                "resource": {
                    "attributes": [
                        attribute("service.name", "metamcp"),
                        attribute("service.version", version),
                    ],
                },
                "scopeSpans": [{ "scope": { "name": "metamcp", "version": version }, "spans": spans }],
            }],
        })
    })
}

/// Returns the spans of one call: that of the client's request, and that of the request to the
/// server.
fn spans_of(call: &CallRecord) -> impl Iterator<Item = Span> {
    let spans = call.spans.filter(|spans| spans.is_sampled);
    let of_client = spans.filter(|_| call.parent.is_none()).map(|spans| Span {
        span_id: span_id(spans.server),
        parent_span_id: spans.parent.map(span_id),
        kind: SERVER,
        ..span(call, spans.trace_id, call.started_us, call.duration)
    });
    let of_server = spans.zip(call.at_server).map(|(spans, at_server)| {
        let ended_us = call.started_us + micros(call.duration);
        let started_us = ended_us.saturating_sub(micros(at_server));
        Span {
            span_id: span_id(spans.client),
            parent_span_id: Some(span_id(spans.server)),
            kind: CLIENT,
            ..span(call, spans.trace_id, started_us, at_server)
        }
    });
    of_client.into_iter().chain(of_server)
}

fn span(call: &CallRecord, trace_id: u128, started_us: u64, duration: std::time::Duration) -> Span {
    let name = match call.item.as_deref() {
        Some(item) => format!("{} {item}", call.method),
        None => call.method.to_owned(),
    };
    let error = match &call.outcome {
        CallOutcome::Ok => None,
        CallOutcome::Failed { code, cause, .. } => Some(((*code).to_owned(), &**cause)),
        CallOutcome::ServerError(code) => Some((code.to_string(), "")),
        outcome => Some((outcome.name().to_owned(), "")),
    };
    let is_tool = call.method == "tools/call";
    let attributes = [
        Some(attribute("mcp.method.name", call.method)),
        is_tool.then(|| attribute("gen_ai.operation.name", "execute_tool")),
        call.item.as_deref().filter(|_| is_tool).map(|tool| attribute("gen_ai.tool.name", tool)),
        call.server.as_ref().map(|server| attribute("metamcp.server.name", server.as_str())),
        Some(attribute("metamcp.client.name", &call.caller.name.name)),
        Some(attribute("metamcp.view", call.caller.view.name())),
        error.as_ref().map(|(error, _)| attribute("error.type", error)),
    ];
    Span {
        trace_id: format!("{trace_id:032x}"),
        span_id: String::new(),
        parent_span_id: None,
        name,
        kind: SERVER,
        start_time_unix_nano: nanos(started_us),
        end_time_unix_nano: nanos(started_us + micros(duration)),
        attributes: attributes.into_iter().flatten().collect(),
        status: error.map(|(_, message)| json!({ "code": ERROR, "message": message })),
    }
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn span_id(id: u64) -> String {
    format!("{id:016x}")
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Returns a time in nanoseconds. 64-bit numbers are strings in JSON.
fn nanos(unix_us: u64) -> String {
    format!("{unix_us}000")
}
