//! The spans of calls at a collector, and what servers learn about the trace.

use serde_json::{Value, json};

use crate::{
    harness::{daemon::Daemon, fake::Fakes, scripted_upstream::ScriptedUpstream},
    until,
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// Starts a collector that takes all spans.
fn collector() -> ScriptedUpstream {
    ScriptedUpstream::start(|_, response| {
        response.json("{}");
        true
    })
}

fn telemetry(collector: &ScriptedUpstream) -> String {
    format!("[telemetry]\notlp = {:?}\n", collector.url)
}

/// Returns all spans that a collector has got.
fn spans(collector: &ScriptedUpstream) -> Vec<Value> {
    let scopes = |request: &Value| request["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
    let requests = collector.requests();
    let spans = requests.iter().map(|request| scopes(&request.message));
    spans.filter_map(|spans| spans.as_array().cloned()).flatten().collect()
}

/// Returns the attributes of a span.
fn attributes(span: &Value) -> Value {
    let pairs = span["attributes"].as_array().expect("a list").iter();
    let pair =
        |it: &Value| (it["key"].as_str().unwrap_or("").into(), it["value"]["stringValue"].clone());
    Value::Object(pairs.map(pair).collect())
}

#[tokio::test]
async fn a_call_is_two_spans_in_the_trace_of_its_client() {
    let (fakes, collector) = (Fakes::new(), collector());
    let daemon = Daemon::with(telemetry(&collector) + &fakes.server("fake", &[])).ready();
    let client = daemon.client("/").initialized().await;
    let params = json!({
        "name": "fake__rpc_error", "arguments": { "code": -7, "message": "no" },
        "_meta": { "traceparent": format!("00-{TRACE}-{PARENT}-01") },
    });
    client.request(json!("call-1"), "tools/call", params).await;

    until(async || spans(&collector).len() == 2).await;
    let [server, call] = &spans(&collector)[..] else { panic!("two spans") };
    assert_eq!([&server["traceId"], &call["traceId"]], [TRACE, TRACE]);
    assert_eq!(
        [&server["parentSpanId"], &call["parentSpanId"]],
        [&json!(PARENT), &server["spanId"]]
    );
    assert_eq!([&server["kind"], &call["kind"]], [2, 3]);
    assert_eq!(server["name"], "tools/call rpc_error");
    let both = json!({
        "mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "rpc_error", "rpc.response.status_code": "-7", "error.type": "-7",
        "metamcp.server.name": "fake", "metamcp.client.name": "test", "metamcp.view": "direct",
    });
    let with = |more: Value| {
        let mut both = both.clone();
        both.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
        both
    };
    let of_client = json!({
        "network.transport": "tcp", "mcp.protocol.version": "2025-06-18",
        "jsonrpc.request.id": "call-1",
    });
    assert_eq!(attributes(server), with(of_client));
    let of_server = json!({ "network.transport": "pipe", "mcp.protocol.version": "2025-06-18" });
    assert_eq!(attributes(call), with(of_server));
}

#[tokio::test]
async fn the_calls_of_a_script_are_below_the_span_of_its_client() {
    let (fakes, collector) = (Fakes::new(), collector());
    let daemon = Daemon::with(telemetry(&collector) + &fakes.server("fake", &[])).ready();
    let client = daemon.client("/meta").initialized().await;
    let code =
        "await servers.fake.echo({ value: 1 }); return await servers.fake.echo({ value: 2 })";
    client.tool("mcp_execute", json!({ "code": code })).await;

    until(async || spans(&collector).len() == 3).await;
    let spans = spans(&collector);
    let script = spans.iter().find(|span| span["kind"] == 2).expect("the script");
    assert_eq!(script["name"], "tools/call mcp_execute");
    for call in spans.iter().filter(|span| span["kind"] == 3) {
        assert_eq!(
            [&call["traceId"], &call["parentSpanId"]],
            [&script["traceId"], &script["spanId"]]
        );
        assert_ne!(call["spanId"], script["spanId"]);
    }
}

#[tokio::test]
async fn the_trace_of_a_client_reaches_the_server() {
    let (collector, server) = (collector(), ScriptedUpstream::start(|_, _| false));
    let daemon = Daemon::with(telemetry(&collector) + &server.server("")).ready();
    let client = daemon.client("/servers/up").initialized().await;
    let carried = json!({ "tracestate": "vendor=1", "baggage": "user=alice" });
    let mut params = json!({ "name": "any", "arguments": {}, "_meta": carried });
    params["_meta"]["traceparent"] = format!("00-{TRACE}-{PARENT}-01").into();
    client.request(json!(1), "tools/call", params).await;
    let in_headers = client
        .header("traceparent", &format!("00-{TRACE}-{PARENT}-01"))
        .header("tracestate", "vendor=1")
        .header("baggage", "user=alice");
    in_headers.tool("any", json!({})).await;

    until(async || spans(&collector).len() == 4).await;
    let calls = server.requests().into_iter().filter(|request| request.method() == "tools/call");
    let of_server = spans(&collector).into_iter().filter(|span| span["kind"] == 3);
    let mut n_calls = 0;
    for (call, span) in calls.zip(of_server) {
        let meta = &call.message["params"]["_meta"];
        assert_eq!(
            [&meta["tracestate"], &meta["baggage"]],
            [&carried["tracestate"], &carried["baggage"]]
        );
        let span = span["spanId"].as_str().expect("an id");
        assert_eq!(meta["traceparent"], format!("00-{TRACE}-{span}-01"));
        n_calls += 1;
    }
    assert_eq!(n_calls, 2);
}

#[tokio::test]
async fn a_collector_that_never_answers_slows_no_call() {
    let fakes = Fakes::new();
    let collector = ScriptedUpstream::start(|_, response| {
        response.wait_gone();
        true
    });
    let daemon = Daemon::with(telemetry(&collector) + &fakes.server("fake", &[])).ready();
    let client = daemon.client("/").initialized().await;
    client.call("fake__echo", json!({ "value": 0 })).await;
    until(async || collector.count("POST") == 1).await;
    for number in 0..100 {
        assert_eq!(client.call("fake__echo", json!({ "value": number })).await["value"], number);
    }
    assert_eq!(collector.count("POST"), 1, "the first request still waits");
}
