//! Canary secrets in calls: they appear in no record, metric, span and page.

use std::fs;

use http_body_util::BodyExt as _;
use hyper::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    harness::{
        DEADLINE,
        client::Client,
        daemon::{self, Daemon},
        fake::Fakes,
        scripted_upstream::ScriptedUpstream,
    },
    until,
};

/// The secret in each place, each of which begins with this.
const CANARY: &str = "canary-";

/// Starts an upstream that repeats the arguments of calls in answers that are not MCP.
fn echoing() -> ScriptedUpstream {
    ScriptedUpstream::start(|request, response| {
        let params = &request.message["params"];
        let status = match params["name"].as_str() {
            _ if request.method() != "tools/call" => return false,
            Some("fail") => 500,
            Some("busy") => 429,
            _ => 200,
        };
        response.page(status, "application/json", &params["arguments"].to_string());
        true
    })
}

/// Reads resources whose URIs have secrets, also one that is cut in the answer.
async fn read_resources(client: &Client) {
    let long = format!("nos:///canary-in-a-uri-{}", "A".repeat(5000));
    for uri in ["file:///notes?token=canary-in-a-uri", &long] {
        client.request(json!(1), "resources/read", json!({ "uri": uri })).await;
    }
}

#[tokio::test]
async fn secrets_in_calls_appear_in_no_record_metric_span_and_page() {
    let fakes = Fakes::new();
    let echoing = echoing();
    let collector = ScriptedUpstream::start(|_, response| {
        response.json("{}");
        true
    });
    let credentials = tempfile::tempdir().expect("a directory");
    fs::write(credentials.path().join("token"), "canary-of-the-listener\n").expect("written");
    fs::write(credentials.path().join("key"), "canary-of-a-credential\n").expect("written");
    let config = format!(
        "[listen]\ntoken = \"credential:token\"\n[telemetry]\notlp = {:?}\n{}env = {{ KEY = \"credential:key\" }}\n\
         [servers.leaky]\ncommand = \"sh\"\nargs = [\"-c\", \"echo no access with $KEY >&2; exit 1\"]\nenv = {{ KEY = \"credential:key\" }}\n{}",
        collector.url,
        fakes.server("fake", &[]),
        echoing.server(""),
    );
    let mut daemon = Daemon::with(config).env("CREDENTIALS_DIRECTORY", credentials.path()).ready();
    let anybody = daemon.client("/").header("authorization", "Bearer canary-of-the-listener");
    let client = anybody.clone().initialized().await;
    let session = client.headers.last().expect("the session").1.clone();

    client.tool("fake__echo", json!({ "value": "canary-in-arguments" })).await;
    client.tool("fake__rpc_error", json!({ "code": -7, "message": "canary-in-an-error" })).await;
    client.tool("fake__stderr", json!({ "lines": 1, "text": "a line" })).await;
    client.tool("leaky__any", json!({ "value": "canary-in-arguments" })).await;
    client.tool("nobody__any", json!({ "value": "canary-in-arguments" })).await;
    for tool in ["up__fail", "up__busy", "up__odd"] {
        let answer = client.tool(tool, json!({ "value": "canary-in-arguments" })).await;
        assert!(answer.body.contains(CANARY), "{}", answer.body);
    }
    for path in ["/", "/servers/fake"] {
        let reader = client.at(path);
        read_resources(&reader).await;
        let params = json!({ "name": "any", "arguments": { "text": "canary-in-a-prompt" } });
        reader.request(json!(1), "prompts/get", params).await;
    }
    let code = "return (await call('fake', 'echo', { value: 'canary-in-a-script' })).value";
    client.at("/meta").tool("mcp_execute", json!({ "code": code })).await;
    let baggage = client.clone().header("baggage", "user=canary-in-baggage");
    baggage.tool("fake__echo", json!({ "value": 1 })).await;

    let socket = daemon.control().display().to_string();
    let records = || daemon::run(&["calls", "--json", "--socket", &socket]).1;
    let traces = || -> Vec<String> {
        let calls = records();
        let calls = calls.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        calls.map(|call| call["traceId"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert!(traces().len() >= 10, "{}", records());
    let exported = || collector.requests().into_iter().map(|it| it.body).collect::<String>();
    until(async || {
        let exported = exported();
        traces().iter().all(|trace| exported.contains(trace))
    })
    .await;
    let mut places = vec![("the records in memory", records())];
    places.push(("the status", daemon::run(&["status", "--json", "--socket", &socket]).1));
    places.push(("top", daemon::run(&["top", "--json", "--socket", &socket]).1));
    for request in collector.requests() {
        assert!(!request.headers.values().any(|value| value.contains(CANARY)));
        places.push(("a span", request.body));
    }
    for accepted in ["text/plain", "application/openmetrics-text"] {
        let reply = anybody.at("/metrics").header("accept", accepted).get().await;
        assert_eq!(reply.status, 200);
        places.push(("the metrics", reply.body));
    }
    for path in ["/status", "/status?q=echo"] {
        let reply = anybody.at(path).send(Method::GET, &[("accept", "text/html")], "").await;
        assert_eq!(reply.status, 200);
        places.push(("the page", reply.body));
    }
    let events = anybody.at("/status/events").open(Method::GET, &[], "").await;
    assert_eq!(events.status(), 200);
    let (mut events, mut text) = (events.into_body(), String::new());
    while !text.contains("\"id\":\"calls\"") {
        let frame = tokio::time::timeout(DEADLINE, events.frame()).await.expect("in time");
        let frame = frame.expect("open").expect("readable");
        text.push_str(std::str::from_utf8(frame.data_ref().expect("data")).expect("text"));
    }
    places.push(("the events of the page", text));
    drop(events);
    let file = daemon.control().with_file_name("calls.jsonl");
    daemon.signal(Signal::TERM);
    daemon.wait_exit();
    places.push(("the file of records", fs::read_to_string(&file).expect("written")));
    places.push(("the log", daemon.log()));
    for (place, text) in places {
        assert!(!text.is_empty(), "{place}");
        for secret in [CANARY, &session] {
            let at = text.find(secret);
            let around = at.map(|at| text.get(at.saturating_sub(200)..(at + 60).min(text.len())));
            assert_eq!(around, None, "{place}");
        }
    }
}
