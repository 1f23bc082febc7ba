//! `listen.legacy_sse`: HTTP with SSE, as clients of protocol version 2024-11-05 speak it.

use hyper::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{
    client::{Client, MCP_HEADERS},
    daemon::Daemon,
    fake::Fakes,
    stream::{End, EventStream},
};

const ON: &str = "[listen]\nlegacy_sse = true\n";

/// A client of the first protocol version: its stream, and where it posts.
struct Old {
    stream: EventStream,
    up: Client,
}

impl Old {
    async fn open(daemon: &Daemon, path: &str) -> Self {
        let client = daemon.client(path);
        let mut stream = client.listen().await;
        assert_eq!(stream.status, 200);
        assert_eq!(stream.headers["content-type"], "text/event-stream");
        let first = stream.next().await.expect("an event");
        assert_eq!(first.kind.as_deref(), Some("endpoint"));
        let address = first.data.expect("an address");
        assert!(address.starts_with("/messages?"), "{address}");
        Self { stream, up: client.at(&address) }
    }

    /// Opens a stream and shakes hands.
    async fn initialized(daemon: &Daemon, path: &str, capabilities: Value) -> Self {
        let mut old = Self::open(daemon, path).await;
        let params = json!({
            "protocolVersion": "2024-11-05", "capabilities": capabilities,
            "clientInfo": { "name": "old", "version": "1" },
        });
        old.send(0, "initialize", params).await;
        let profile = old.stream.message().await;
        assert_eq!(profile["result"]["protocolVersion"], "2024-11-05");
        assert_eq!(old.up.notify("notifications/initialized", json!({})).await.status, 202);
        old
    }

    async fn send(&self, id: u64, method: &str, params: Value) {
        let reply = self.up.request(json!(id), method, params).await;
        assert_eq!((reply.status.as_u16(), reply.body.as_str()), (202, ""), "{method}");
    }

    async fn tool(&self, id: u64, name: &str, arguments: Value) {
        self.send(id, "tools/call", json!({ "name": name, "arguments": arguments })).await;
    }
}

#[tokio::test]
async fn it_is_off_unless_it_is_asked_for() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("sse", &[])).ready();
    for path in ["/sse", "/direct/sse", "/servers/sse/sse"] {
        let reply =
            daemon.client(path).send(Method::GET, &[("accept", "text/event-stream")], "").await;
        assert_eq!(reply.status, 404, "{path}");
        let remedy = reply.answer()["error"]["data"]["suggestion"].clone();
        assert!(remedy.as_str().is_some_and(|text| text.contains("listen.legacy_sse")), "{remedy}");
    }
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    assert_eq!(daemon.client("/messages").post(ping.clone()).await.status, 404);
    // A server may be called so.
    assert_eq!(daemon.client("/servers/sse").post(ping).await.status, 200);
}

#[tokio::test]
async fn an_old_client_is_served_over_its_stream() {
    let fakes = Fakes::new();
    let config = ON.to_owned() + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config).ready();
    for (path, prefix) in [("/servers/fake/sse", ""), ("/sse", "fake__"), ("/direct/sse", "fake__")]
    {
        let mut old = Old::initialized(&daemon, path, json!({})).await;
        old.send(1, "tools/list", json!({})).await;
        let listed = old.stream.message().await;
        let echo = format!("{prefix}echo");
        let tools = listed["result"]["tools"].as_array().expect("a list");
        assert!(tools.iter().any(|tool| tool["name"] == echo), "{path}");

        old.tool(2, &echo, json!({ "value": "hello" })).await;
        let answer = old.stream.message().await;
        assert_eq!((&answer["id"], answer.to_string().contains("hello")), (&json!(2), true));

        let params = json!({
            "name": format!("{prefix}progress"), "arguments": { "steps": 2 },
            "_meta": { "progressToken": "t" },
        });
        old.send(3, "tools/call", params).await;
        for n in 1..=2 {
            let progress = old.stream.message().await;
            assert_eq!(progress["params"]["progressToken"], "t");
            assert_eq!(progress["params"]["progress"], n);
        }
        assert_eq!(old.stream.message().await["id"], 3);

        old.tool(4, &format!("{prefix}flip_tools"), json!({})).await;
        let mut told = [old.stream.message().await, old.stream.message().await];
        told.sort_by_key(|message| message["id"].is_null());
        assert_eq!(told[0]["id"], 4);
        assert_eq!(told[1]["method"], "notifications/tools/list_changed");
    }
}

#[tokio::test]
async fn its_requests_run_at_the_same_time_and_one_can_be_cancelled() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(ON.to_owned() + &fakes.server("fake", &[])).ready();
    let mut old = Old::initialized(&daemon, "/servers/fake/sse", json!({})).await;
    let other = daemon.client("/servers/fake");
    old.tool(1, "hold", json!({ "key": "a" })).await;
    old.tool(2, "hold", json!({ "key": "b" })).await;
    other.call("held", json!({ "at_least": 2 })).await;

    old.tool(3, "echo", json!({ "value": 3 })).await;
    assert_eq!(old.stream.message().await["id"], 3, "the others are held");
    old.up.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    other.call("seen", json!({ "cancelled": 1 })).await;
    other.call("release", json!({ "key": "b" })).await;
    assert_eq!(old.stream.message().await["id"], 2, "and the first has no answer");
}

#[tokio::test]
async fn a_client_that_goes_away_ends_all_that_is_its_own() {
    let fakes = Fakes::new();
    let config = ON.to_owned()
        + &fakes.server("fake", &[])
        + &fakes.server("own", &[])
        + "sharing = \"session\"\n";
    let daemon = Daemon::with(config).ready();
    let mut old = Old::initialized(&daemon, "/sse", json!({})).await;
    old.tool(1, "own__echo", json!({ "value": 1 })).await;
    assert_eq!(old.stream.message().await["id"], 1);
    old.tool(2, "fake__hold", json!({ "key": "k" })).await;
    let other = daemon.client("/servers/fake");
    other.call("held", json!({ "at_least": 1 })).await;
    assert_eq!(crate::server_status(&daemon, "own").await["connections"], 1);

    let Old { stream, up } = old;
    drop(stream);

    other.call("seen", json!({ "cancelled": 1 })).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" }).to_string();
    crate::until(async || up.post(ping.clone()).await.status == 404).await;
    assert_eq!(up.post(ping).await.answer()["error"]["data"]["code"], "STREAM_NOT_FOUND");
    crate::until(async || crate::server_status(&daemon, "own").await["connections"] == 0).await;
}

#[tokio::test]
async fn a_question_is_put_on_the_stream_and_its_answer_is_posted() {
    let fakes = Fakes::new();
    let config = ON.to_owned() + &fakes.server("own", &[]) + "sharing = \"session\"\n";
    let daemon = Daemon::with(config).ready();
    let mut old = Old::initialized(&daemon, "/servers/own/sse", json!({ "roots": {} })).await;
    old.tool(1, "ask", json!({ "method": "roots/list" })).await;
    let question = old.stream.message().await;
    assert_eq!(question["method"], "roots/list");

    let answered = old.up.respond(&question["id"], json!({ "roots": ["here"] })).await;

    assert_eq!(answered.status, 202);
    let answer = old.stream.message().await;
    assert_eq!(answer["id"], 1);
    assert!(answer.to_string().contains("here"), "{answer}");
}

#[tokio::test]
async fn an_invalid_message_for_a_legacy_stream_is_refused() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(ON.to_owned() + &fakes.server("fake", &[])).ready();
    let old = Old::open(&daemon, "/sse").await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let batch = format!("[{ping}]");
    let plain = [("content-type", "text/plain")];
    for (client, method, headers, body, status) in [
        (old.up.clone(), Method::GET, &MCP_HEADERS[..], "", 405),
        (old.up.clone(), Method::POST, &plain[..], ping, 415),
        (old.up.clone(), Method::POST, &MCP_HEADERS[..], "{", 400),
        (old.up.clone(), Method::POST, &MCP_HEADERS[..], &batch, 400),
        (old.up.at("/messages"), Method::POST, &MCP_HEADERS[..], ping, 404),
        (old.up.at("/messages?sessionId="), Method::POST, &MCP_HEADERS[..], ping, 404),
        (old.up.at("/messages?sessionId=x&y"), Method::POST, &MCP_HEADERS[..], ping, 404),
        (old.up.at("/sse"), Method::POST, &MCP_HEADERS[..], ping, 405),
        (old.up.at("/sse"), Method::GET, &[][..], "", 406),
        (old.up.at("/nothing/sse"), Method::GET, &[("accept", "text/event-stream")][..], "", 404),
    ] {
        let reply = client.send(method.clone(), headers, body.to_owned()).await;
        assert_eq!(reply.status, status, "{method} {} {body}: {reply:?}", client.url());
        assert!(reply.answer()["error"]["data"]["code"].is_string());
    }
}

#[tokio::test]
async fn more_than_a_stream_takes_on_is_refused() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(ON.to_owned() + &fakes.server("fake", &[])).ready();
    let old = Old::initialized(&daemon, "/servers/fake/sse", json!({})).await;
    let other = daemon.client("/servers/fake");
    // As many as run, then as many as wait.
    for _ in 0..2 {
        crate::all((0..256).map(|id| old.tool(id, "hold", json!({ "key": "k" })))).await;
        other.call("held", json!({ "at_least": 256 })).await;
    }

    let refused = old.up.request(json!(512), "ping", json!({})).await;

    assert_eq!(refused.status, 503);
    assert_eq!(refused.answer()["error"]["data"]["code"], "CLIENT_TOO_SLOW");
    drop(old);
    let seen = other.call("seen", json!({ "cancelled": 256 })).await;
    let cancelled = seen["cancelled"].as_array().expect("it has heard of them");
    assert_eq!(cancelled.len(), 256, "of each");
}

#[tokio::test]
async fn it_shows_signs_of_life_and_a_stop_finishes_what_runs() {
    let fakes = Fakes::new();
    let config = "[listen]\nlegacy_sse = true\nkeep_alive = \"20ms\"\n".to_owned()
        + &fakes.server("fake", &[]);
    let mut daemon = Daemon::with(config).ready();
    let mut silent = Old::open(&daemon, "/sse").await.stream;
    for _ in 0..3 {
        assert!(silent.next().await.expect("the stream goes on").comment.is_some());
    }
    let mut old = Old::initialized(&daemon, "/servers/fake/sse", json!({})).await;
    let gate = fakes.path("gate");
    old.tool(1, "hold", json!({ "key": "k", "gate": gate })).await;
    let other = daemon.client("/servers/fake");
    other.call("seen", json!({ "counts": { "gated": 1 } })).await;

    daemon.signal(Signal::TERM);
    assert_eq!(silent.rest().await.1, End::Whole, "nothing runs there");
    std::fs::write(&gate, "").expect("written");

    assert_eq!(old.stream.message().await["id"], 1);
    assert_eq!(old.stream.rest().await.1, End::Whole);
    assert!(daemon.wait_exit().success());
}
