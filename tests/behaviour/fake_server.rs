//! The scriptable fake server, on which the other tests rely.

use std::{fs, net::TcpStream};

use hyper::{Method, StatusCode};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{
    client::{Client, request, running},
    daemon::Daemon,
    fake::{Fakes, Upstream, executions},
    stream::{End, EventStream},
};

/// Returns the names of the listed tools.
async fn tools(client: &Client) -> Vec<String> {
    let list = client.request(json!(1), "tools/list", json!({})).await.answer();
    let tools = list["result"]["tools"].as_array().expect("a list").clone();
    tools.iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect()
}

/// Reads the next message and returns it with its event id.
async fn message(stream: &mut EventStream) -> (Value, String) {
    let message = stream.message().await;
    (message, stream.last_event_id.clone().expect("an id"))
}

fn notice(n: u64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/n", "params": { "n": n } })
}

#[tokio::test]
async fn a_log_message_goes_to_the_call_or_to_the_listeners_that_want_its_level() {
    let upstream = Upstream::start(&["--logging"]);
    let one = upstream.client().initialized().await;
    let two = upstream.client().initialized().await;
    let (mut to_one, mut to_two) = (one.listen().await, two.listen().await);
    let log = |level, data, related| json!({ "level": level, "data": data, "related": related });

    one.request(json!(1), "logging/setLevel", json!({ "level": "warning" })).await;
    assert_eq!(two.call("log", log("info", 1, false)).await["sent"], 1);
    assert_eq!(two.call("log", log("error", 2, false)).await["sent"], 2);
    assert_eq!(one.call("log", log("info", 3, true)).await["sent"], 0);
    let related = two.tool("log", log("debug", 4, true)).await.messages();

    assert_eq!(to_one.message().await["params"]["data"], 2);
    assert_eq!(to_two.message().await["params"]["data"], 1);
    assert_eq!(to_two.message().await["params"]["data"], 2);
    assert_eq!((related.len(), &related[0]["params"]["data"]), (2, &json!(4)));
    assert_eq!(upstream.log("levels=1").await["levels"], json!(["warning"]));
    let plain = Upstream::start(&[]);
    let client = plain.client().initialized().await;
    let refused = client.request(json!(1), "logging/setLevel", json!({ "level": "info" })).await;
    assert_eq!(refused.answer()["error"]["code"], -32601);
}

#[tokio::test]
async fn a_resource_update_goes_to_the_subscribed_sessions() {
    let upstream = Upstream::start(&["--subscribe"]);
    let client = upstream.client().initialized().await;
    let mut updates = client.listen().await;
    let ask = async |method: &str, uri| {
        let method = format!("resources/{method}");
        client.request(json!(1), &method, json!({ "uri": uri })).await.answer()
    };

    assert!(ask("subscribe", "a:1").await["result"].is_object());
    assert!(ask("subscribe", "a:2").await["result"].is_object());
    assert_eq!(ask("subscribe", "refuse:3").await["error"]["code"], -32002);
    ask("unsubscribe", "a:1").await;
    for (uri, n_sent) in [("a:1", 0), ("refuse:3", 0), ("a:2", 1)] {
        assert_eq!(client.call("touch", json!({ "uri": uri })).await["sent"], n_sent, "{uri}");
    }

    assert_eq!(updates.message().await["params"]["uri"], "a:2");
    let log = upstream.log("subscribes=3&unsubscribes=1").await;
    assert_eq!(log["subscribes"], json!(["a:1", "a:2", "refuse:3"]));
    assert_eq!(log["subscribed"], json!(["a:2"]));
}

#[tokio::test]
async fn a_server_request_is_answered_by_another_post() {
    let upstream = Upstream::start(&[]);
    let capabilities = json!({ "roots": { "listChanged": true }, "sampling": {} });
    let client = upstream.client().initialized_with(capabilities.clone()).await;

    let mut call = client.tool_stream("ask", json!({ "method": "roots/list" })).await;
    let server_request = call.message().await;
    assert_eq!(server_request["method"], "roots/list");
    client.respond(&server_request["id"], json!({ "roots": [] })).await;
    let answer = call.message().await["result"]["structuredContent"].clone();
    assert_eq!(answer, json!({ "result": { "roots": [] } }));
    assert_eq!(call.rest().await.1, End::Whole);

    let mut get = client.listen().await;
    let arguments = json!({ "method": "elicitation/create", "on": "get" });
    let mut call = client.tool_stream("ask", arguments).await;
    let server_request = get.message().await;
    client.respond_error(&server_request["id"], -32601, "no").await;
    let answer = call.message().await["result"]["structuredContent"].clone();
    assert_eq!(answer, json!({ "error": { "code": -32601, "message": "no" } }));
    assert_eq!(upstream.log("asked=2").await["capabilities"], json!([capabilities]));
}

#[tokio::test]
async fn tool_executions_are_counted_across_processes_and_transports() {
    let fakes = Fakes::new();
    let state = fakes.path("state");
    let options = ["--state", state.to_str().expect("UTF-8"), "--flip-at-start"];
    let upstream = Upstream::start(&options);
    let client = upstream.client().initialized().await;
    assert_eq!(client.call("count", json!({ "key": "a" })).await["n"], 1);
    let held = running({
        let client = client.clone();
        async move { client.tool_stream("read_only", json!({ "key": "b", "then": "hold" })).await }
    });
    assert_eq!(upstream.log("executions.b=1&held=1").await["executions"], json!({"a": 1, "b": 1}));

    let mut upstream = upstream;
    upstream.signal(Signal::KILL);
    upstream.wait_exit();
    assert_eq!(held.end().await.rest().await.1, End::Cut);
    assert_eq!(executions(&state).values().sum::<u64>(), 2);

    let daemon = Daemon::with(fakes.server("fake", &options)).ready();
    let client = daemon.client("/servers/fake");
    let dies = json!({ "key": "c", "then": "exit_first" });
    assert!(client.tool("count_idempotent", dies.clone()).await.answer()["error"].is_object());
    assert_eq!(client.call("count_idempotent", dies).await["n"], 2);
    assert_eq!(client.call("count", json!({ "key": "a" })).await["n"], 2);
    let seen = client.call("seen", json!({ "counts": { "executions.a": 2 } })).await;
    assert_eq!(seen["executions"], json!({ "a": 2, "b": 1, "c": 2 }));
    let names = tools(&client).await;
    assert!(names.contains(&"extra_2".to_owned()), "the third process: {names:?}");
    let list = client.request(json!(1), "tools/list", json!({})).await.answer();
    let hints = list["result"]["tools"].as_array().expect("a list").iter();
    let hints = hints.filter(|tool| tool["annotations"].is_object()).count();
    assert_eq!(hints, 2);
}

#[tokio::test]
async fn a_silent_list_change_persists_in_a_new_session() {
    let upstream = Upstream::start(&[]);
    let before = tools(&upstream.client().initialized().await).await;

    upstream.control("flip").await;
    upstream.control("forget").await;

    let after = tools(&upstream.client().initialized().await).await;
    assert_eq!(after.len(), before.len() + 1);
}

#[tokio::test]
async fn the_ping_options_affect_only_pings() {
    let upstream = Upstream::start(&["--silent-pings"]);
    let client = upstream.client().initialized().await;
    let ping = {
        let client = client.clone();
        async move { client.request(json!(9), "ping", json!({})).await }
    };
    let silent = running(ping);
    upstream.log("requests.ping=1").await;
    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);
    drop(silent);

    upstream.control("pings?mode=status&code=500").await;
    let refused = client.request(json!(1), "ping", json!({})).await;
    assert_eq!(refused.status, StatusCode::INTERNAL_SERVER_ERROR);
    upstream.control("pings?mode=answer").await;
    let answered = client.request(json!(1), "ping", json!({})).await.answer();
    assert_eq!(answered["result"], json!({}));
    assert_eq!(upstream.log("requests.ping=3").await["requests"]["ping"], 3);
    client.call("pings", json!({ "mode": "never" })).await;
    let silent = running(async move { client.request(json!(9), "ping", json!({})).await });
    upstream.log("requests.ping=4").await;
    drop(silent);
}

#[tokio::test]
async fn a_cut_get_stream_resumes_after_the_last_event() {
    let upstream = Upstream::start(&["--event-ids"]);
    let client = upstream.client().initialized().await;
    let mut stream = client.listen().await;
    assert_eq!(client.listen().await.status, StatusCode::CONFLICT);
    upstream.push(&notice(1)).await;
    upstream.push(&notice(2)).await;
    assert_eq!(message(&mut stream).await, (notice(1), "g-1".to_owned()));

    upstream.control("cut").await;
    let (rest, end) = stream.rest().await;
    assert_eq!((rest.len(), end), (1, End::Cut));
    upstream.push(&notice(3)).await;
    let mut stream = client.resume("g-2").await;

    assert_eq!(message(&mut stream).await, (notice(3), "g-3".to_owned()));
    upstream.push(&notice(4)).await;
    assert_eq!(message(&mut stream).await, (notice(4), "g-4".to_owned()));
    assert_eq!(client.resume("x-1").await.status, StatusCode::BAD_REQUEST);
    let log = upstream.log("resumes=1").await;
    assert_eq!(log["last_event_ids"], json!(["g-2", "x-1"]));
    assert_eq!((&log["streams"], &log["streams_open"]), (&json!(2), &json!(1)));
}

#[tokio::test]
async fn a_notification_sent_while_no_stream_is_open_is_lost_without_event_ids() {
    let upstream = Upstream::start(&[]);
    let client = upstream.client().initialized().await;
    let mut stream = client.listen().await;
    upstream.control("cut").await;
    assert_eq!(stream.rest().await, (Vec::new(), End::Cut));
    let lost: Value =
        serde_json::from_str(&upstream.push(&notice(1)).await.body).expect("the number of streams");
    assert_eq!(lost["streams"], 0);

    let mut stream = client.resume("g-1").await;
    upstream.push(&notice(2)).await;

    assert_eq!(stream.message().await, notice(2));
    assert_eq!(stream.last_event_id, None);
    let deleted = client.send(Method::DELETE, &[], "").await;
    assert_eq!(deleted.status, 200);
    assert_eq!(stream.rest().await.1, End::Whole);
}

#[tokio::test]
async fn an_answer_on_a_cut_post_stream_is_resumed_by_a_get() {
    let upstream = Upstream::start(&["--event-ids", "--retry", "7"]);
    let client = upstream.client().initialized().await;
    let mut call = client.tool_stream("hold", json!({ "key": "k" })).await;
    let primed = call.next().await.expect("an event");
    assert_eq!((primed.retry, primed.data.as_deref()), (Some(7), Some("")));
    assert_eq!(call.headers["content-type"], "text/event-stream");
    let id = primed.id.expect("an id");
    upstream.log("held=1").await;

    upstream.control("cut_posts").await;
    assert_eq!(call.rest().await.1, End::Cut);
    let mut resumed = client.resume(&id).await;
    let mut get = client.listen().await;
    assert_eq!(client.resume(&id).await.status, StatusCode::CONFLICT);
    upstream.control("release?key=k").await;
    assert_eq!(resumed.message().await["result"]["structuredContent"]["key"], "k");
    assert_eq!(resumed.rest().await.1, End::Whole);

    // The answer can be resumed once more, and the other stream has not received it.
    let (again, end) = client.resume(&id).await.rest().await;
    assert_eq!((again.len(), end), (1, End::Whole));
    upstream.push(&notice(1)).await;
    assert_eq!(get.message().await, notice(1));
}

#[tokio::test]
async fn a_json_answer_can_be_cut() {
    let upstream = Upstream::start(&["--json"]);
    let client = upstream.client().initialized().await;
    let call = json!({ "name": "hold", "arguments": { "key": "k" } });
    let held = client.slow_post(&request(&json!(1), "tools/call", &call)).await;
    upstream.log("held=1").await;

    upstream.control("cut_posts").await;

    let answer = String::from_utf8(held.read_to_end().await).expect("UTF-8");
    assert!(!answer.contains("jsonrpc"), "{answer}");
    assert_eq!(upstream.log("").await["held"], 1, "the call continues");
}

#[tokio::test]
async fn legacy_sse_sessions_receive_answers_on_their_streams() {
    let upstream = Upstream::sse(&["--subscribe"]);
    let (mut one, at_one) = legacy(&upstream).await;
    let (mut two, at_two) = legacy(&upstream).await;

    let posted = at_two.request(json!(2), "tools/call", json!({ "name": "whoami" })).await;
    assert_eq!((posted.status, &posted.body[..]), (StatusCode::ACCEPTED, "Accepted"));
    at_one.request(json!(1), "resources/subscribe", json!({ "uri": "a:1" })).await;
    assert_eq!(two.message().await["id"], 2);
    assert_eq!(one.message().await["id"], 1);
    at_two.tool("touch", json!({ "uri": "a:1" })).await;
    assert_eq!(one.message().await["method"], "notifications/resources/updated");

    assert_eq!(upstream.client().post("{}").await.status, StatusCode::METHOD_NOT_ALLOWED);
    let unknown = upstream.client().at("/messages?sessionId=x").post("{}").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    drop(one);
    let log = upstream.log("streams_ended=1").await;
    assert_eq!(log["sessions"].as_array().map(Vec::len), Some(1));
    upstream.control("cut").await;
    assert_eq!(two.rest().await.1, End::Cut);
    assert_eq!(at_two.tool("whoami", json!({})).await.status, StatusCode::NOT_FOUND);
}

/// Opens a legacy session; returns its stream and a client that posts to it.
async fn legacy(upstream: &Upstream) -> (EventStream, Client) {
    let mut stream = upstream.client().listen().await;
    let endpoint = stream.next().await.expect("an event");
    assert_eq!(endpoint.kind.as_deref(), Some("endpoint"));
    let client = upstream.client().at(&endpoint.data.expect("a path"));
    (stream, client)
}

#[tokio::test]
async fn the_fake_refuses_connections_until_its_gate_opens() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate");
    let upstream = Upstream::start(&["--listen-after", gate.to_str().expect("UTF-8")]);
    let address = format!("127.0.0.1:{}", upstream.port());

    TcpStream::connect(&address).expect_err("refused");
    assert_eq!(upstream.log("").await["connections"], 0);
    fs::write(&gate, "").expect("written");

    crate::until(async || TcpStream::connect(&address).is_ok()).await;
    upstream.client().initialized().await;
}

#[tokio::test]
async fn a_drained_fake_finishes_its_calls_and_frees_its_port() {
    for is_signal in [true, false] {
        let mut upstream = Upstream::start(&[]);
        let client = upstream.client().initialized().await;
        let mut get = client.listen().await;
        let held = running(client.clone().hold("k"));
        upstream.log("held=1").await;

        if is_signal {
            upstream.signal(Signal::TERM);
        } else {
            upstream.control("drain").await;
        }
        assert_eq!(get.rest().await.1, End::Whole);
        TcpStream::connect(format!("127.0.0.1:{}", upstream.port())).expect_err("refused");
        upstream.control("release?key=k").await;
        assert_eq!(held.end().await.answer()["result"]["structuredContent"]["key"], "k");
        assert!(upstream.wait_exit().success());

        let next = Upstream::start(&["--port", &upstream.port()]);
        next.client().initialized().await;
        let mut sse = Upstream::sse(&[]);
        let (mut stream, _client) = legacy(&sse).await;
        sse.control("drain").await;
        assert_eq!(stream.rest().await.1, End::Whole);
        assert!(sse.wait_exit().success());
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_from_the_fake_delays_only_itself() {
    let upstream = Upstream::start(&[]);
    let client = upstream.client().initialized().await;
    let n_bytes = 8 * 1024 * 1024;
    let call = json!({ "name": "bytes", "arguments": { "n": n_bytes } });
    let text = request(&json!(1), "tools/call", &call);

    let mut slow = client.slow_post(&text).await;
    let mut get = client.slow_get().await;
    upstream.log("calls=1&streams=1").await;
    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);

    let head = slow.read_until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert_eq!(slow.read(n_bytes).await.len(), n_bytes);
    assert!(get.read_until("\r\n\r\n").await.contains("text/event-stream"));
}
