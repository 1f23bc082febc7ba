//! The spans of call records, in the JSON form of OTLP.
//!
//! Source: OpenTelemetry, "OTLP/HTTP", JSON; semantic conventions for MCP. Pure.

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    call_record::{CallOutcome, CallRecord},
    protocol::payloads::method::{PROMPTS_GET, TOOLS_CALL},
    server_name::ServerName,
};

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
    let spans = call.spans.as_deref().copied().filter(|spans| spans.is_sampled);
    let of_client = spans.filter(|_| call.parent.is_none()).map(|spans| Span {
        span_id: span_id(spans.server),
        parent_span_id: spans.parent.map(span_id),
        ..span(call, SERVER, spans.trace_id, call.started_us, call.duration)
    });
    let of_server = spans.zip(call.at_server).map(|(spans, at_server)| {
        let ended_us = call.started_us + micros(call.duration);
        let started_us = ended_us.saturating_sub(micros(at_server));
        Span {
            span_id: span_id(spans.client),
            parent_span_id: Some(span_id(spans.server)),
            ..span(call, CLIENT, spans.trace_id, started_us, at_server)
        }
    });
    of_client.into_iter().chain(of_server)
}

fn span(
    call: &CallRecord,
    kind: u8,
    trace_id: u128,
    started_us: u64,
    duration: std::time::Duration,
) -> Span {
    let name = match call.item() {
        Some(item) => format!("{} {item}", call.method),
        None => call.method.to_owned(),
    };
    let error = match &call.outcome {
        CallOutcome::Ok => None,
        CallOutcome::Failed { code, cause, .. } => Some(((*code).to_owned(), &**cause)),
        CallOutcome::ServerError(code) => Some((code.to_string(), "")),
        outcome => Some((outcome.name().to_owned(), "")),
    };
    let attributes = attributes(call, kind, error.as_ref().map(|(error, _)| &**error));
    Span {
        trace_id: format!("{trace_id:032x}"),
        span_id: String::new(),
        parent_span_id: None,
        name,
        kind,
        start_time_unix_nano: nanos(started_us),
        end_time_unix_nano: nanos(started_us + micros(duration)),
        attributes,
        status: error.map(|(_, message)| json!({ "code": ERROR, "message": message })),
    }
}

/// Returns the attributes of a span. The id of the session is a secret, so that `mcp.session.id` is
/// not one of them; nor is the URI of a resource, which may hold one.
fn attributes(call: &CallRecord, kind: u8, error: Option<&str>) -> Vec<Value> {
    let protocol = if kind == SERVER { call.caller.protocol } else { call.server_protocol };
    let item = |method| call.item().filter(|_| call.method == method);
    let status = match call.outcome {
        CallOutcome::ServerError(code) => Some(code.to_string()),
        _ => None,
    };
    let operation = (call.method == TOOLS_CALL).then_some("execute_tool");
    [
        ("mcp.method.name", Some(call.method)),
        ("mcp.protocol.version", protocol.version()),
        ("network.transport", protocol.transport()),
        ("jsonrpc.request.id", call.request_id.as_deref().filter(|_| kind == SERVER)),
        ("gen_ai.operation.name", operation),
        ("gen_ai.tool.name", item(TOOLS_CALL)),
        ("gen_ai.prompt.name", item(PROMPTS_GET)),
        ("rpc.response.status_code", status.as_deref()),
        ("error.type", error),
        ("metamcp.server.name", call.server().map(ServerName::as_str)),
        ("metamcp.client.name", Some(&*call.caller.name.name)),
        ("metamcp.view", Some(call.caller.view.name())),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some(attribute(key, value?)))
    .collect()
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
