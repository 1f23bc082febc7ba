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

/// A client of 2024-11-05: its stream, and the client of the address that it posts to.
struct LegacyClient {
    stream: EventStream,
    poster: Client,
}

impl LegacyClient {
    async fn open(daemon: &Daemon, path: &str) -> Self {
        let client = daemon.client(path);
        let mut stream = client.listen().await;
        assert_eq!(stream.status, 200);
        assert_eq!(stream.headers["content-type"], "text/event-stream");
        let first = stream.next().await.expect("an event");
        assert_eq!(first.kind.as_deref(), Some("endpoint"));
        let address = first.data.expect("an address");
        assert!(address.starts_with("/messages?"), "{address}");
        Self { stream, poster: client.at(&address) }
    }

    /// Opens a stream and performs the handshake.
    async fn initialized(daemon: &Daemon, path: &str, capabilities: Value) -> Self {
        let mut old = Self::open(daemon, path).await;
        let params = json!({
            "protocolVersion": "2024-11-05", "capabilities": capabilities,
            "clientInfo": { "name": "old", "version": "1" },
        });
        old.send(0, "initialize", params).await;
        let profile = old.stream.message().await;
        assert_eq!(profile["result"]["protocolVersion"], "2024-11-05");
        assert_eq!(old.poster.notify("notifications/initialized", json!({})).await.status, 202);
        old
    }

    async fn send(&self, id: u64, method: &str, params: Value) {
        let reply = self.poster.request(json!(id), method, params).await;
        assert_eq!((reply.status.as_u16(), reply.body.as_str()), (202, ""), "{method}");
    }

    async fn tool(&self, id: u64, name: &str, arguments: Value) {
        self.send(id, "tools/call", json!({ "name": name, "arguments": arguments })).await;
    }
}

#[tokio::test]
async fn legacy_sse_is_off_by_default() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("sse", &[])).ready();
    for path in ["/sse", "/direct/sse", "/servers/sse/sse"] {
        let reply =
            daemon.client(path).send(Method::GET, &[("accept", "text/event-stream")], "").await;
        assert_eq!(reply.status, 404, "{path}");
        let suggestion = reply.answer()["error"]["data"]["suggestion"].clone();
        assert!(
            suggestion.as_str().is_some_and(|text| text.contains("listen.legacy_sse")),
            "{suggestion}"
        );
    }
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    assert_eq!(daemon.client("/messages").post(ping.clone()).await.status, 404);
    // A server may be named `sse`.
    assert_eq!(daemon.client("/servers/sse").post(ping).await.status, 200);
}

#[tokio::test]
async fn a_legacy_sse_client_is_served_over_its_stream() {
    let fakes = Fakes::new();
    let config = ON.to_owned() + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config).ready();
    for (path, prefix) in [("/servers/fake/sse", ""), ("/sse", "fake__"), ("/direct/sse", "fake__")]
    {
        let mut old = LegacyClient::initialized(&daemon, path, json!({})).await;
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
        let mut messages = [old.stream.message().await, old.stream.message().await];
        messages.sort_by_key(|message| message["id"].is_null());
        assert_eq!(messages[0]["id"], 4);
        assert_eq!(messages[1]["method"], "notifications/tools/list_changed");
    }
}

#[tokio::test]
async fn requests_of_one_client_run_concurrently_and_can_be_cancelled() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(ON.to_owned() + &fakes.server("fake", &[])).ready();
    let mut old = LegacyClient::initialized(&daemon, "/servers/fake/sse", json!({})).await;
    let other = daemon.client("/servers/fake");
    old.tool(1, "hold", json!({ "key": "a" })).await;
    old.tool(2, "hold", json!({ "key": "b" })).await;
    other.call("held", json!({ "at_least": 2 })).await;

    old.tool(3, "echo", json!({ "value": 3 })).await;
    assert_eq!(old.stream.message().await["id"], 3, "the others are held");
    old.poster.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    other.call("seen", json!({ "cancelled": 1 })).await;
    other.call("release", json!({ "key": "b" })).await;
    assert_eq!(old.stream.message().await["id"], 2, "and the first has no answer");
}

#[tokio::test]
async fn a_client_that_closes_its_stream_ends_its_requests_and_connections() {
    let fakes = Fakes::new();
    let config = ON.to_owned()
        + &fakes.server("fake", &[])
        + &fakes.server("own", &[])
        + "sharing = \"session\"\n";
    let daemon = Daemon::with(config).ready();
    let mut old = LegacyClient::initialized(&daemon, "/sse", json!({})).await;
    old.tool(1, "own__echo", json!({ "value": 1 })).await;
    assert_eq!(old.stream.message().await["id"], 1);
    old.tool(2, "fake__hold", json!({ "key": "k" })).await;
    let other = daemon.client("/servers/fake");
    other.call("held", json!({ "at_least": 1 })).await;
    assert_eq!(crate::server_status(&daemon, "own").await["connections"], 1);

    let LegacyClient { stream, poster } = old;
    drop(stream);

    other.call("seen", json!({ "cancelled": 1 })).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" }).to_string();
    crate::until(async || poster.post(ping.clone()).await.status == 404).await;
    assert_eq!(poster.post(ping).await.answer()["error"]["data"]["code"], "STREAM_NOT_FOUND");
    crate::until(async || crate::server_status(&daemon, "own").await["connections"] == 0).await;
}

#[tokio::test]
async fn a_server_request_arrives_on_the_stream_and_the_client_posts_its_answer() {
    let fakes = Fakes::new();
    let config = ON.to_owned() + &fakes.server("own", &[]) + "sharing = \"session\"\n";
    let daemon = Daemon::with(config).ready();
    let mut old =
        LegacyClient::initialized(&daemon, "/servers/own/sse", json!({ "roots": {} })).await;
    old.tool(1, "ask", json!({ "method": "roots/list" })).await;
    let question = old.stream.message().await;
    assert_eq!(question["method"], "roots/list");

    let answered = old.poster.respond(&question["id"], json!({ "roots": ["here"] })).await;

    assert_eq!(answered.status, 202);
    let answer = old.stream.message().await;
    assert_eq!(answer["id"], 1);
    assert!(answer.to_string().contains("here"), "{answer}");
}

#[tokio::test]
async fn an_invalid_message_for_a_legacy_stream_is_refused() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(ON.to_owned() + &fakes.server("fake", &[])).ready();
    let old = LegacyClient::open(&daemon, "/sse").await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let batch = format!("[{ping}]");
    let plain = [("content-type", "text/plain")];
    for (client, method, headers, body, status) in [
        (old.poster.clone(), Method::GET, &MCP_HEADERS[..], "", 405),
        (old.poster.clone(), Method::POST, &plain[..], ping, 415),
        (old.poster.clone(), Method::POST, &MCP_HEADERS[..], "{", 400),
        (old.poster.clone(), Method::POST, &MCP_HEADERS[..], &batch, 400),
        (old.poster.at("/messages"), Method::POST, &MCP_HEADERS[..], ping, 404),
        (old.poster.at("/messages?sessionId="), Method::POST, &MCP_HEADERS[..], ping, 404),
        (old.poster.at("/messages?sessionId=x&y"), Method::POST, &MCP_HEADERS[..], ping, 404),
        (old.poster.at("/sse"), Method::POST, &MCP_HEADERS[..], ping, 405),
        (old.poster.at("/sse"), Method::GET, &[][..], "", 406),
        (
            old.poster.at("/nothing/sse"),
            Method::GET,
            &[("accept", "text/event-stream")][..],
            "",
            404,
        ),
    ] {
        let reply = client.send(method.clone(), headers, body.to_owned()).await;
        assert_eq!(reply.status, status, "{method} {} {body}: {reply:?}", client.url());
        assert!(reply.answer()["error"]["data"]["code"].is_string());
    }
}

#[tokio::test]
async fn a_request_beyond_the_limit_of_a_stream_is_refused() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(ON.to_owned() + &fakes.server("fake", &[])).ready();
    let old = LegacyClient::initialized(&daemon, "/servers/fake/sse", json!({})).await;
    let other = daemon.client("/servers/fake");
    // Fills the running requests, then the queue.
    for _ in 0..2 {
        crate::all((0..256).map(|id| old.tool(id, "hold", json!({ "key": "k" })))).await;
        other.call("held", json!({ "at_least": 256 })).await;
    }

    let refused = old.poster.request(json!(512), "ping", json!({})).await;

    assert_eq!(refused.status, 503);
    assert_eq!(refused.answer()["error"]["data"]["code"], "CLIENT_TOO_SLOW");
    drop(old);
    let seen = other.call("seen", json!({ "cancelled": 256 })).await;
    let cancelled = seen["cancelled"].as_array().expect("the cancelled requests");
    assert_eq!(cancelled.len(), 256, "all running requests are cancelled");
}

#[tokio::test]
async fn a_stream_carries_keep_alives_and_a_shutdown_finishes_its_running_requests() {
    let fakes = Fakes::new();
    let config = "[listen]\nlegacy_sse = true\nkeep_alive = \"20ms\"\n".to_owned()
        + &fakes.server("fake", &[]);
    let mut daemon = Daemon::with(config).ready();
    let mut silent = LegacyClient::open(&daemon, "/sse").await.stream;
    for _ in 0..3 {
        assert!(silent.next().await.expect("the stream goes on").comment.is_some());
    }
    let mut old = LegacyClient::initialized(&daemon, "/servers/fake/sse", json!({})).await;
    let gate = fakes.path("gate");
    old.tool(1, "hold", json!({ "key": "k", "gate": gate })).await;
    let other = daemon.client("/servers/fake");
    other.call("seen", json!({ "counts": { "gated": 1 } })).await;

    daemon.signal(Signal::TERM);
    assert_eq!(silent.rest().await.1, End::Whole, "no request runs on this stream");
    std::fs::write(&gate, "").expect("written");

    assert_eq!(old.stream.message().await["id"], 1);
    assert_eq!(old.stream.rest().await.1, End::Whole);
    assert!(daemon.wait_exit().success());
}
