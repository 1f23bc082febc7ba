//! Broken answer streams: a client that can resume receives the rest, and its request continues
//! meanwhile.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{
    client::Client,
    daemon::Daemon,
    fake::{Fakes, Upstream},
    stream::{End, EventStream},
};

/// A configuration with which every answer is a stream, even an immediate one.
const STREAMS: &str = "[listen]\nstream_after = \"0s\"\n";

/// Returns a client of 2025-11-25, which can resume streams.
async fn resuming_client(daemon: &Daemon, server: &str) -> Client {
    daemon.client(server).header("mcp-protocol-version", "2025-11-25").initialized().await
}

/// Reads the initial event of a resumable stream, and returns its id.
async fn initial_event(stream: &mut EventStream) -> String {
    let first = stream.next().await.expect("an event");
    assert_eq!((first.data.as_deref(), first.retry), (Some(""), Some(1000)), "{first:?}");
    first.id.expect("an id")
}

fn key(message: &Value) -> &Value {
    &message["result"]["structuredContent"]["key"]
}

#[tokio::test]
async fn a_request_continues_while_its_client_is_disconnected() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(STREAMS.to_owned() + &fakes.server("fake", &[])).ready();
    let (client, other) =
        (resuming_client(&daemon, "/servers/fake").await, daemon.client("/servers/fake"));
    let mut stream = client.tool_stream("hold", json!({ "key": "k" })).await;
    let id = initial_event(&mut stream).await;
    other.call("held", json!({ "at_least": 1 })).await;

    drop(stream);
    other.call("release", json!({ "key": "k" })).await;
    let mut stream = client.resume(&id).await;
    assert_eq!(initial_event(&mut stream).await, id, "the stream continues there");
    let answer = stream.message().await;
    assert_eq!((key(&answer), &answer["id"]), (&json!("k"), &json!(1)));
    assert_eq!(stream.rest().await, (Vec::new(), End::Whole));
    let seen = other.call("seen", json!({})).await;
    assert_eq!(seen["cancelled"], json!([]), "{seen}");
}

#[tokio::test]
async fn a_sent_answer_is_kept_until_its_client_acknowledges_it() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(STREAMS.to_owned() + &fakes.server("fake", &[])).ready();
    let client = resuming_client(&daemon, "/servers/fake").await;
    let mut stream = client.tool_stream("echo", json!({ "value": 1 })).await;
    let id = initial_event(&mut stream).await;
    // The service cannot know whether the client has received this.
    stream.rest().await;

    let mut stream = client.resume(&id).await;
    assert_eq!(initial_event(&mut stream).await, id);
    let answer = stream.next().await.expect("the answer");
    assert!(answer.data.expect("a message").contains("result"));
    let last = answer.id.expect("an id");
    assert_eq!(stream.rest().await, (Vec::new(), End::Whole));

    let mut stream = client.resume(&last).await;
    assert_eq!(initial_event(&mut stream).await, last);
    assert_eq!(stream.rest().await, (Vec::new(), End::Whole), "no event is left");
}

#[tokio::test]
async fn a_client_can_reread_a_stream_from_its_beginning_while_the_request_runs() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(STREAMS.to_owned() + &fakes.server("fake", &[])).ready();
    let (client, other) =
        (resuming_client(&daemon, "/servers/fake").await, daemon.client("/servers/fake"));
    let params = json!({
        "name": "count", "arguments": { "key": "k", "then": "hold" }, "_meta": { "progressToken": 7 },
    });
    let mut first = client.stream(json!("a"), "tools/call", params).await;
    let id = initial_event(&mut first).await;
    other.call("held", json!({ "at_least": 1 })).await;

    // Each resumed stream replaces the one before.
    let mut second = client.resume(&id).await;
    initial_event(&mut second).await;
    assert_eq!(first.rest().await.1, End::Whole);
    let mut third = client.resume(&id).await;
    initial_event(&mut third).await;
    assert_eq!(second.rest().await.1, End::Whole);

    // The notification stream is a separate one.
    let mut standalone = client.listen().await;
    client.call("flip_tools", json!({})).await;
    assert_eq!(standalone.message().await["method"], "notifications/tools/list_changed");
    other.call("release", json!({ "key": "k" })).await;
    assert_eq!(third.message().await["id"], "a");
}

#[tokio::test]
async fn a_cancelled_request_ends_its_stream_and_cannot_be_resumed() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(STREAMS.to_owned() + &fakes.server("fake", &[])).ready();
    let (client, other) =
        (resuming_client(&daemon, "/servers/fake").await, daemon.client("/servers/fake"));
    let mut stream = client.tool_stream("hold", json!({ "key": "k" })).await;
    let id = initial_event(&mut stream).await;
    other.call("held", json!({ "at_least": 1 })).await;

    client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    assert_eq!(stream.rest().await, (Vec::new(), End::Whole));
    other.call("seen", json!({ "cancelled": 1 })).await;
    // metamcp opens a notification stream instead.
    let mut stream = client.resume(&id).await;
    let first = stream.next().await.expect("an event");
    assert_ne!(first.id.expect("an id"), id);
}

#[tokio::test]
async fn a_client_that_cannot_resume_cancels_its_request_by_disconnecting() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(STREAMS.to_owned() + &fakes.server("fake", &[])).ready();
    let without_session =
        daemon.client("/servers/fake").header("mcp-protocol-version", "2025-11-25");
    let older = daemon.client("/servers/fake").initialized().await;
    for (n_cancelled, client) in [(1, without_session), (2, older)] {
        let stream = client.tool_stream("hold", json!({ "key": "k" })).await;
        let other = daemon.client("/servers/fake");
        other.call("held", json!({ "at_least": 1 })).await;
        drop(stream);
        other.call("seen", json!({ "cancelled": n_cancelled })).await;
    }
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_disconnected_clients() {
    let fakes = Fakes::new();
    let config = "[service]\nshutdown_timeout = \"1h\"\n".to_owned() + STREAMS;
    let mut daemon = Daemon::with(config + &fakes.server("fake", &[])).ready();
    let client = resuming_client(&daemon, "/servers/fake").await;
    let mut stream = client.tool_stream("hold", json!({ "key": "k" })).await;
    initial_event(&mut stream).await;
    let other = daemon.client("/servers/fake");
    other.call("held", json!({ "at_least": 1 })).await;

    drop(stream);
    // The connection is closed by a task that must get to run.
    other.call("echo", json!({ "value": 1 })).await;
    daemon.signal(Signal::TERM);
    assert!(daemon.wait_exit().success());
}

#[tokio::test]
async fn a_stream_that_an_upstream_ends_for_polling_ends_at_the_client_too() {
    let upstream = Upstream::start(&["--event-ids", "--retry", "50"]);
    let daemon = Daemon::with(STREAMS.to_owned() + &upstream.server("up", "")).ready();
    let client = resuming_client(&daemon, "/servers/up").await;
    let mut stream = client.tool_stream("hold", json!({ "key": "k" })).await;
    let id = initial_event(&mut stream).await;
    upstream.log("held=1").await;

    upstream.control("end_posts").await;
    assert_eq!(stream.rest().await, (Vec::new(), End::Whole));
    upstream.log("resumes=1").await;
    upstream.control("release?key=k").await;
    let mut stream = client.resume(&id).await;
    assert_eq!(key(&stream.message().await), "k");
}

#[tokio::test]
async fn a_client_that_cannot_resume_keeps_its_stream_while_metamcp_polls() {
    let upstream = Upstream::start(&["--event-ids", "--retry", "50"]);
    let daemon = Daemon::with(STREAMS.to_owned() + &upstream.server("up", "")).ready();
    let older = daemon.client("/servers/up").initialized().await;
    let mut stream = older.tool_stream("hold", json!({ "key": "k" })).await;
    upstream.log("held=1").await;

    upstream.control("end_posts").await;
    upstream.log("resumes=1").await;
    upstream.control("release?key=k").await;
    assert_eq!(key(&stream.message().await), "k");
}
