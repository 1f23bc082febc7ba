//! Batches, as clients of protocol version 2025-03-26 send them: several messages in one POST.

use hyper::Method;
use serde_json::{Value, json};

use crate::harness::{
    client::{Client, MCP_HEADERS, Reply, request, running},
    daemon::Daemon,
    fake::Fakes,
    stream::{End, EventStream},
};

/// Returns the text of a tool call, with `id` as JSON text.
fn call(id: &str, name: &str, arguments: &Value) -> String {
    let params = json!({ "name": name, "arguments": arguments });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
}

/// Returns the text of a call that reports progress once.
fn progressing(id: &str, name: &str) -> String {
    let params = json!({
        "name": name, "arguments": { "steps": 1 }, "_meta": { "progressToken": id },
    });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
}

fn batch(messages: &[String]) -> String {
    format!("[{}]", messages.join(","))
}

/// Returns the answers of an array, by the JSON text of their ids.
#[track_caller]
fn by_id(answers: &Value) -> std::collections::BTreeMap<String, Value> {
    let answers = answers.as_array().expect("an array");
    answers.iter().map(|answer| (answer["id"].to_string(), answer.clone())).collect()
}

/// Returns the answers to a batch in either form: on a busy machine they may arrive too late for
/// an array.
#[track_caller]
fn answers(reply: &Reply) -> std::collections::BTreeMap<String, Value> {
    let is_stream = reply.headers["content-type"] == "text/event-stream";
    by_id(&if is_stream { json!(reply.messages()) } else { reply.answer() })
}

fn value_of(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]["value"]
}

#[tokio::test]
async fn each_request_of_a_batch_is_answered_under_its_own_id() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[]) + &fakes.server("two", &[])).ready();
    let echo = |id: &str, server: &str| {
        call(id, &format!("{server}__echo"), &json!({ "value": format!("{server} {id}") }))
    };
    let messages = [
        echo("1", "one"),
        echo("\"1\"", "two"),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        echo("1.50", "two"),
        echo("18446744073709551616", "one"),
        r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":77,"result":{}}"#.to_owned(),
    ];
    // Both servers are connected, so that the answers arrive soon.
    daemon.client("/").request(json!(0), "tools/list", json!({})).await;
    let known = daemon.client("/").header("mcp-protocol-version", "2025-03-26").initialized().await;
    for client in [daemon.client("/"), known] {
        let reply = client.post(batch(&messages)).await;

        assert_eq!(reply.status, 200);
        assert_eq!(reply.headers["content-type"], "application/json");
        let answers: Vec<Value> = serde_json::from_str(&reply.body).expect("an array");
        assert_eq!(answers.len(), 5, "a notification and a response have no answer");
        for id in ["1", "\"1\"", "1.50", "18446744073709551616", "\"p\""] {
            assert!(reply.body.contains(&format!(r#""id":{id},"#)), "{id}: {}", reply.body);
        }
        let has_answer = |id: &str, text: &str| {
            reply.body.contains(&format!("{text} {}", id.replace('"', "\\\"")))
        };
        assert!(has_answer("1.50", "two") && has_answer("18446744073709551616", "one"));
        let found = by_id(&json!(answers));
        assert_eq!(value_of(&found["1"]), "one 1");
        assert_eq!(value_of(&found["\"1\""]), "two \"1\"");
        assert_eq!(found["\"p\""]["result"], json!({}));
    }
}

#[tokio::test]
async fn the_requests_of_a_batch_run_concurrently() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    // The server answers no call before all three have arrived.
    let meet = |id: &str| call(id, "meet", &json!({ "n": 3, "value": id }));
    let messages = [meet("1"), meet("2"), meet("3")];

    let reply = daemon.client("/servers/fake").post(batch(&messages)).await;

    let answers = answers(&reply);
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|(id, answer)| value_of(answer) == id.as_str()), "{answers:?}");
}

#[tokio::test]
async fn a_failed_or_slow_request_does_not_affect_the_others_of_its_batch() {
    let fakes = Fakes::new();
    let config = fakes.server("fake", &[]) + &fakes.server("mortal", &[]);
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/");
    let messages = [
        call("1", "fake__hold", &json!({ "key": "k" })),
        call("2", "mortal__exit", &json!({ "code": 3 })),
        call("3", "fake__rpc_error", &json!({ "code": -5, "message": "no" })),
        call("4", "nobody__echo", &json!({ "value": 1 })),
        call("5", "fake__echo", &json!({ "value": "well" })),
        progressing("6", "fake__progress"),
        "7".to_owned(),
    ];

    let mut stream = EventStream::new(client.open_post(batch(&messages)).await);

    assert_eq!(stream.headers["content-type"], "text/event-stream");
    let (mut answers, mut n_progress) = (std::collections::BTreeMap::new(), 0);
    while answers.len() < 6 {
        let message = stream.message().await;
        if message["method"] == "notifications/progress" {
            assert_eq!(message["params"]["progressToken"], "6");
            n_progress += 1;
        } else {
            answers.insert(message["id"].to_string(), message);
        }
    }
    assert_eq!(n_progress, 1);
    assert!(answers["2"]["error"].is_object(), "{answers:?}");
    assert_eq!(answers["3"]["error"]["code"], -5);
    assert_eq!(answers["4"]["error"]["data"]["code"], "SERVER_NOT_FOUND");
    assert_eq!(value_of(&answers["5"]), "well");
    assert!(answers["6"]["result"].is_object());
    assert_eq!(
        answers["null"]["error"]["code"], -32600,
        "an invalid message is answered with an error"
    );
    client.call("fake__release", json!({ "key": "k" })).await;
    assert_eq!(stream.message().await["id"], 1);
    let (rest, end) = stream.rest().await;
    assert_eq!((rest.len(), end), (0, End::Whole));
}

#[tokio::test]
async fn a_batch_of_notifications_is_accepted_without_an_answer() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    client.call("echo", json!({ "value": 1 })).await;
    let notice = |n: u64| {
        json!({ "jsonrpc": "2.0", "method": "notifications/mine", "params": { "n": n } })
            .to_string()
    };

    let reply = client.post(batch(&[notice(1), notice(2), notice(3)])).await;

    assert_eq!((reply.status.as_u16(), reply.body.as_str()), (202, ""));
    client.call("seen", json!({ "counts": { "requests.notifications/mine": 3 } })).await;
}

#[tokio::test]
async fn a_refused_batch_executes_none_of_its_requests() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    client.call("echo", json!({ "value": 1 })).await;
    let count = |id: &str| call(id, "count", &json!({ "key": "k" }));
    let handshake = request(&json!(9), "initialize", &json!({ "protocolVersion": "2025-03-26" }));
    let many: Vec<String> = (0..129).map(|id| count(&id.to_string())).collect();
    let large = call("2", "echo", &json!({ "value": "x".repeat(4 << 20) }));

    for (messages, status, code) in [
        (vec![], 400, "INVALID_REQUEST"),
        (vec!["1".to_owned(), "{}".to_owned()], 400, "INVALID_REQUEST"),
        (vec![batch(&[count("1")])], 400, "INVALID_REQUEST"),
        (vec![count("1"), handshake], 400, "BATCH_INITIALIZE"),
        (vec![count("1"), count("2"), count("1")], 400, "BATCH_SAME_ID"),
        (many, 400, "BATCH_TOO_LONG"),
        (vec![count("1"), "{".to_owned()], 400, "PARSE_ERROR"),
        (vec![count("1"), large], 413, "BODY_TOO_LARGE"),
    ] {
        let reply = client.post(batch(&messages)).await;
        assert_eq!(reply.status, status, "{code}: {reply:?}");
        let error = reply.answer()["error"].clone();
        assert_eq!(error["data"]["code"], code);
        assert!(error["data"]["suggestion"].as_str().is_some_and(|text| text.ends_with('.')));
    }
    let reply = client.post(batch(&[count("1")])).await;
    assert!(reply.body.starts_with('['), "a batch of one is a batch: {}", reply.body);
    let seen = client.call("seen", json!({ "counts": { "executions.k": 1 } })).await;
    assert_eq!(seen["executions"]["k"], 1);
}

#[tokio::test]
async fn a_batch_of_the_maximum_length_is_served() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let echo = |id: usize| call(&id.to_string(), "echo", &json!({ "value": id.to_string() }));
    let messages: Vec<String> = (0..128).map(echo).collect();

    let reply = daemon.client("/servers/fake").post(batch(&messages)).await;

    let answers = answers(&reply);
    assert_eq!(answers.len(), 128);
    assert!(answers.iter().all(|(id, answer)| value_of(answer) == id.as_str()));
}

#[tokio::test]
async fn a_client_that_accepts_only_json_gets_one_array() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    let messages =
        batch(&[progressing("1", "progress"), call("2", "echo", &json!({ "value": "2" }))]);

    let headers = [MCP_HEADERS[0], ("accept", "application/json")];
    let reply = client.send(Method::POST, &headers, messages.clone()).await;
    assert_eq!(reply.headers["content-type"], "application/json");
    assert_eq!(by_id(&reply.answer()).len(), 2);

    let headers = [MCP_HEADERS[0], ("accept", "text/event-stream")];
    let reply = client.send(Method::POST, &headers, messages).await;
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    assert_eq!(reply.messages().len(), 3);
}

#[tokio::test]
async fn the_total_size_of_a_batch_answer_is_bounded_unless_it_is_streamed() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    let bytes = |id: &str| call(id, "bytes", &json!({ "n": 9 << 20 }));
    let messages = batch(&[bytes("1"), bytes("2")]);

    let headers = [MCP_HEADERS[0], ("accept", "application/json")];
    let found = answers(&client.send(Method::POST, &headers, messages.clone()).await);
    let refused: Vec<&Value> = found.values().filter(|answer| !answer["error"].is_null()).collect();
    let [refused] = refused[..] else { panic!("one of two: {}", refused.len()) };
    assert_eq!(refused["error"]["data"]["code"], "BATCH_ANSWER_TOO_LARGE");

    let reply = client.post(messages).await;
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    assert!(answers(&reply).values().all(|answer| answer["result"].is_object()));
}

/// Waits until the server holds `n` calls.
async fn wait_held(client: &Client, n: u64) {
    client.call("held", json!({ "at_least": n })).await;
}

#[tokio::test]
async fn a_cancellation_ends_one_request_of_a_batch_and_a_disconnect_ends_all() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake").header("mcp-protocol-version", "2025-03-26");
    let client = client.initialized().await;
    let other = daemon.client("/servers/fake");
    let hold = |id: &str, key: &str| call(id, "hold", &json!({ "key": key }));
    let posted = |messages: Vec<String>| {
        let client = client.clone();
        running(async move { client.post(batch(&messages)).await })
    };

    let reply = posted(vec![hold("1", "a"), hold("2", "b"), hold("3", "c")]);
    wait_held(&other, 3).await;
    client.notify("notifications/cancelled", json!({ "requestId": 2 })).await;
    other.call("seen", json!({ "cancelled": 1 })).await;
    for key in ["a", "c"] {
        other.call("release", json!({ "key": key })).await;
    }
    let reply = reply.end().await;
    assert_eq!(answers(&reply).into_keys().collect::<Vec<_>>(), ["1", "3"]);

    let leaving = posted(vec![hold("4", "d"), hold("5", "e")]);
    wait_held(&other, 2).await;
    drop(leaving);
    other.call("seen", json!({ "cancelled": 3 })).await;
    assert_eq!(other.call("held", json!({})).await["held"], 0);
}

#[tokio::test]
async fn a_client_without_a_version_header_has_the_version_of_its_session() {
    let daemon = Daemon::with(String::new()).ready();
    let pings = batch(&[r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned()]);
    let later = daemon.client("/").initialized().await;
    assert_eq!(later.post(pings.clone()).await.status, 400, "its session has version 2025-06-18");
    assert_eq!(daemon.client("/").post(pings).await.status, 200);
}
