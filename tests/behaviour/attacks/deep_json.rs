//! JSON nested so deeply that a parser may crash, in messages of clients and servers.

use hyper::Method;
use serde_json::{Value, json};

use super::Bystanders;
use crate::harness::{
    client::{Client, MCP_HEADERS, request},
    daemon::Daemon,
    fake::{Fakes, Upstream},
    meta_client::MetaClient,
    operator::Operator,
    stdio::StdioClient,
    stream::EventStream,
};

/// The maximum depth of a message, in levels.
const DEPTH_MAX: usize = 128;

/// The levels of a tool call above its argument: the message, its parameters, the arguments.
const CALL_LEVELS: usize = 3;

/// The options of a server that exits on deeper nesting.
const FRAGILE: [&str; 2] = ["--depth-max", "128"];

/// Returns `levels` nested arrays.
fn nested(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

/// Returns a call of `tool` with an argument `value` of `levels` nested arrays.
fn call(id: u64, tool: &str, levels: usize) -> String {
    let hole = json!({ "name": tool, "arguments": { "value": "HOLE" } });
    request(&json!(id), "tools/call", &hole).replace("\"HOLE\"", &nested(levels))
}

#[track_caller]
fn assert_refused(answer: &Value, id: &Value) {
    let error = &answer["error"];
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32600), &json!("TOO_DEEP")));
    assert!(error["message"].as_str().is_some_and(|text| text.contains("128 levels")), "{error}");
    assert_eq!(&answer["id"], id, "{answer}");
}

/// Returns whether the server answers, and from its first process.
async fn is_unharmed(fakes: &Fakes, client: &Client) -> bool {
    let answer = client.tool("echo", json!({ "value": 1 })).await.answer();
    answer["result"].is_object() && fakes.pids("fragile").len() == 1
}

#[tokio::test]
async fn a_request_nested_too_deep_does_not_reach_a_child() {
    let fakes = Fakes::new();
    let config = fakes.server("fragile", &FRAGILE) + &fakes.server("calm", &[]);
    let daemon = Daemon::with(config).ready();
    let bystanders = Bystanders::start(&daemon, "/servers/calm").await;
    let client = daemon.client("/servers/fragile").initialized().await;

    for levels in [DEPTH_MAX - CALL_LEVELS + 1, 1_000, 100_000] {
        let reply = client.post(call(7, "echo", levels)).await;
        assert_eq!(reply.status, 400, "{levels}");
        assert_refused(&reply.answer(), &json!(7));
    }
    let params = r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":DEEP}"#;
    let completion = format!(
        r#"{{"jsonrpc":"2.0","id":"c","method":"completion/complete","params":{}}}"#,
        params.replace("DEEP", &nested(1_000))
    );
    let reply = client.post(completion).await;
    assert_refused(&reply.answer(), &json!("c"));
    let notice = format!(r#"{{"jsonrpc":"2.0","method":"x","params":{}}}"#, nested(1_000));
    assert_refused(&client.post(notice).await.answer(), &Value::Null);

    let reply = client.post(call(8, "echo", DEPTH_MAX - CALL_LEVELS)).await;
    let deepest = nested(DEPTH_MAX - CALL_LEVELS);
    assert!(reply.status == 200 && reply.body.contains(&deepest), "{reply:?}");
    assert!(is_unharmed(&fakes, &client).await);
    bystanders.end().await;
}

#[tokio::test]
async fn a_batch_member_nested_too_deep_does_not_affect_the_other_members() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fragile", &FRAGILE)).ready();
    let client = daemon.client("/servers/fragile");
    assert!(is_unharmed(&fakes, &client).await);
    let client = client.header("mcp-protocol-version", "2025-03-26");

    let batch = format!("[{},{}]", call(1, "echo", 1_000), call(2, "echo", 1));
    let reply = client.send(Method::POST, &MCP_HEADERS, batch).await;
    let answers = match reply.headers["content-type"] == "text/event-stream" {
        true => reply.messages(),
        false => reply.answer().as_array().expect("an array").clone(),
    };
    let of = |id: u64| answers.iter().find(|answer| answer["id"] == id).expect("an answer");
    assert_refused(of(1), &json!(1));
    assert_eq!(of(2)["result"]["structuredContent"]["value"], json!([]));

    let reply =
        client.send(Method::POST, &MCP_HEADERS, format!("[{}]", call(1, "echo", 999))).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.answer()["error"]["data"]["code"], "TOO_DEEP");
    assert!(is_unharmed(&fakes, &client).await);
}

#[tokio::test]
async fn stdio_legacy_sse_and_control_requests_nested_too_deep_are_refused() {
    let fakes = Fakes::new();
    let config = "[listen]\nlegacy_sse = true\nrpc = true\n".to_owned();
    let daemon = Daemon::with(config + &fakes.server("fragile", &FRAGILE)).ready();
    let client = daemon.client("/servers/fragile");
    assert!(is_unharmed(&fakes, &client).await);

    let mut piped = StdioClient::to(&daemon, &["--server", "fragile"]);
    piped = piped.initialized("2025-06-18", json!({})).await;
    piped.line(&call(7, "echo", 1_000)).await;
    assert_refused(&piped.message().await, &json!(7));

    let old = daemon.client("/servers/fragile/sse");
    let mut stream: EventStream = old.listen().await;
    let address = stream.next().await.and_then(|event| event.data).expect("an address");
    let reply = old.at(&address).post(call(7, "echo", 1_000)).await;
    assert_eq!(reply.status, 400);
    assert_refused(&reply.answer(), &json!(7));

    let line = call(7, "fragile/echo", 1_000);
    let rpc = daemon.client("/rpc");
    let reply = rpc.send(Method::POST, &[("content-type", "application/json")], line.clone()).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.answer()["error"]["data"]["code"], "TOO_DEEP");
    let mut operator = Operator::at(&daemon).await;
    operator.send(line + "\n").await;
    let refused = operator.next().await.expect("an answer");
    assert_eq!(refused["error"]["data"]["code"], "TOO_DEEP");
    assert!(is_unharmed(&fakes, &client).await);
}

#[tokio::test]
async fn arguments_in_json_text_nested_too_deep_do_not_reach_a_child() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fragile", &FRAGILE)).ready();
    let client = daemon.client("/servers/fragile");
    assert!(is_unharmed(&fakes, &client).await);
    let meta = MetaClient::at(daemon.client("/meta")).await;

    let hidden = format!(r#"{{"value":{}}}"#, nested(1_000));
    let error = meta
        .error("mcp_call", json!({ "server": "fragile", "tool": "echo", "args": hidden }))
        .await;

    assert_eq!(error["details"]["cause"], "TOO_DEEP", "{error}");
    assert!(is_unharmed(&fakes, &client).await);
    // A message to a meta-tool may use the full depth.
    let levels = DEPTH_MAX - CALL_LEVELS - 1;
    let hole = json!({ "name": "mcp_call", "arguments": {
        "server": "fragile", "tool": "echo", "args": { "value": "HOLE" },
    } });
    let message = request(&json!(1), "tools/call", &hole).replace("\"HOLE\"", &nested(levels));
    let reply = meta.http.post(message).await;
    assert!(reply.body.contains(&nested(levels)), "{}", reply.body);
}

#[tokio::test]
async fn an_answer_nested_too_deep_fails_only_its_own_call() {
    let fakes = Fakes::new();
    let upstreams = [Upstream::start(&["--json"]), Upstream::start(&[]), Upstream::sse(&[])];
    let mut config = fakes.server("child", &[]) + &fakes.server("calm", &[]);
    for (name, upstream) in ["json", "events", "old"].iter().zip(&upstreams) {
        config += &format!("[servers.{name}]\nurl = {:?}\n", upstream.url);
    }
    let daemon = Daemon::with(config).ready();
    let bystanders = Bystanders::start(&daemon, "/servers/calm").await;
    for name in ["child", "json", "events", "old"] {
        let client = daemon.client(&format!("/servers/{name}")).initialized().await;
        let whoami = async || client.tool("whoami", json!({})).await.answer()["result"].clone();
        let before = whoami().await["structuredContent"]["session"].clone();

        let result = format!(r#"{{"content":[],"structuredContent":{{"x":{}}}}}"#, nested(10_000));
        let answer = client.tool("raw", json!({ "result": result })).await.answer();

        let error = &answer["error"];
        assert_eq!(error["data"]["code"], "ANSWER_TOO_DEEP", "{name}: {error}");
        assert_eq!(whoami().await["structuredContent"]["session"], before, "{name}");
    }
    assert_eq!(fakes.pids("child").len(), 1);
    bystanders.end().await;
}
