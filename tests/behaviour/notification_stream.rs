//! The notification stream, which a client opens with GET: its notices, and its resumption.

use std::time::Duration;

use hyper::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::harness::{
    client::Client,
    daemon::Daemon,
    fake::{Fakes, Upstream},
    stream::{End, EventStream},
};

const CHANGED: &str = "notifications/tools/list_changed";

fn notice(n: u64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/n", "params": { "n": n } })
}

/// Lets the server send a numbered notice to all clients.
async fn emit(client: &Client, n: u64) {
    client.call("emit", json!({ "message": notice(n).to_string() })).await;
}

/// Reads the next message, which is a numbered notice, and returns its number.
async fn number(stream: &mut EventStream) -> u64 {
    stream.message().await["params"]["n"].as_u64().expect("a number")
}

#[tokio::test]
async fn every_client_with_a_stream_is_notified_of_a_changed_list() {
    let fakes = Fakes::new();
    let upstream = Upstream::start(&[]);
    let config = fakes.server("fake", &[]) + &upstream.server("up", "");
    let daemon = Daemon::with(config).ready();
    let own = daemon.client("/servers/fake").initialized().await;
    let direct = daemon.client("/").initialized().await;
    let stale = daemon.client("/servers/up").header("mcp-session-id", "from-before-a-restart");
    let without_session = daemon.client("/servers/fake");
    let mut streams = Vec::new();
    for client in [&own, &direct, &without_session, &stale] {
        streams.push(client.listen().await);
    }

    own.call("flip_tools", json!({})).await;
    for stream in &mut streams[..3] {
        assert_eq!(stream.message().await["method"], CHANGED);
    }
    // The upstream sends the notice on its own GET stream, which must be open.
    stale.call("echo", json!({ "value": 1 })).await;
    upstream.log("streams_open=1").await;
    stale.call("flip_tools", json!({})).await;
    for stream in &mut streams[3..] {
        assert_eq!(stream.message().await["method"], CHANGED);
    }
    assert_eq!(
        streams[1].message().await["method"],
        CHANGED,
        "the merged view gets the notices of both servers"
    );
    own.call("flip_tools", json!({})).await;
    assert_eq!(streams[0].message().await["method"], CHANGED);
    own.send(Method::DELETE, &[], "").await;
    let (rest, end) = streams[0].rest().await;
    assert_eq!((rest.len(), end), (0, End::Whole), "no notice of the other server");
}

#[tokio::test]
async fn a_broken_stream_resumes_after_the_last_event_without_repeats() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    let mut stream = client.listen().await;
    emit(&client, 1).await;
    emit(&client, 2).await;
    assert_eq!((number(&mut stream).await, number(&mut stream).await), (1, 2));
    let last = stream.last_event_id.clone().expect("events have ids");

    drop(stream);
    emit(&client, 3).await;
    emit(&client, 4).await;
    let mut stream = client.resume(&last).await;
    assert_eq!((number(&mut stream).await, number(&mut stream).await), (3, 4));
    emit(&client, 5).await;
    assert_eq!(number(&mut stream).await, 5);

    // A client may resume from an earlier event again.
    drop(stream);
    let mut stream = client.resume(&last).await;
    for expected in [3, 4, 5] {
        assert_eq!(number(&mut stream).await, expected);
    }
}

#[tokio::test]
async fn an_unknown_last_event_id_loses_no_event() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake").header("mcp-session-id", "from-before-a-restart");
    // The id is from an earlier run of the service: all kept events are newer.
    let foreign = "0badcafe-7";
    let stream = client.resume(foreign).await;
    assert_eq!(stream.status, 200);
    drop(stream);
    emit(&client, 1).await;
    let mut stream = client.resume(foreign).await;
    assert_eq!(number(&mut stream).await, 1);

    // An unknown event id begins a new stream, as a request without one does.
    for garbage in ["7", "", "-", "zzzzzzzz-1", "0badcafe-99999999999999999999"] {
        let mut stream = client.resume(garbage).await;
        emit(&client, 2).await;
        assert_eq!(number(&mut stream).await, 2, "`{garbage}`");
    }
    // An id after the last event means the end of the stream.
    let last = {
        let mut stream = client.listen().await;
        emit(&client, 3).await;
        number(&mut stream).await;
        stream.last_event_id.expect("an id")
    };
    let (run, _) = last.split_once('-').expect("two parts");
    let mut stream = client.resume(&format!("{run}-1000")).await;
    emit(&client, 4).await;
    assert_eq!(number(&mut stream).await, 4);
}

#[tokio::test]
async fn only_clients_of_2025_11_25_receive_an_initial_event_without_data() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake").initialized().await;

    for version in [None, Some("2024-11-05"), Some("2025-03-26"), Some("2025-06-18")] {
        let client = match version {
            Some(version) => client.clone().header("mcp-protocol-version", version),
            None => client.clone(),
        };
        let first = client.listen().await.next().await.expect("a first event");
        assert!(first.comment.is_some() && first.id.is_none() && first.data.is_none(), "{first:?}");
    }
    let newer = client.clone().header("mcp-protocol-version", "2025-11-25");
    let first = newer.listen().await.next().await.expect("an event");
    assert_eq!(first.data.as_deref(), Some(""));

    // The client can resume from this event before the first notice.
    emit(&client, 1).await;
    let mut stream = newer.resume(&first.id.expect("an id")).await;
    assert_eq!(number(&mut stream).await, 1);
}

#[tokio::test]
async fn a_second_stream_of_a_session_replaces_the_first() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    let mut first = client.listen().await;
    let mut second = client.listen().await;

    assert_eq!(first.rest().await.1, End::Whole);
    emit(&client, 1).await;
    assert_eq!(number(&mut second).await, 1);
}

#[tokio::test]
async fn a_silent_stream_carries_keep_alives() {
    let fakes = Fakes::new();
    let config = "[listen]\nkeep_alive = \"20ms\"\n".to_owned()
        + &fakes.server("fake", &[])
        + &fakes.server("own", &[])
        + "sharing = \"session\"\n";
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/own").initialized_with(json!({ "roots": {} })).await;
    // The call waits for the client's answer, and its stream is silent meanwhile.
    let mut post = client.tool_stream("ask", json!({ "method": "roots/list" })).await;
    let asked = post.message().await;
    let mut get = daemon.client("/servers/fake").listen().await;

    for stream in [&mut get, &mut post] {
        for _ in 0..3 {
            let keep_alive = stream.next().await.expect("the stream continues");
            assert!(keep_alive.comment.is_some() && keep_alive.data.is_none(), "{keep_alive:?}");
        }
    }
    client.respond(&asked["id"], json!({ "roots": [] })).await;
    assert_eq!(post.message().await["id"], 1);
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_open_streams() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    let mut streams = vec![client.listen().await, daemon.client("/").listen().await];

    let since = Instant::now();
    daemon.signal(Signal::TERM);
    for stream in &mut streams {
        assert_eq!(stream.rest().await.1, End::Whole);
    }
    assert!(daemon.wait_exit().success());
    // Far below the ten seconds that running requests would get.
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_reload_keeps_open_streams() {
    let fakes = Fakes::new();
    let config = fakes.server("fake", &[]);
    let mut daemon = Daemon::with(config.clone() + &fakes.server("goes", &[])).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    let mut stream = client.listen().await;

    daemon.rewrite(&(config + &fakes.server("comes", &[])));
    daemon.reload();

    emit(&client, 1).await;
    assert_eq!(number(&mut stream).await, 1);
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_stream() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    let other = daemon.client("/servers/fake").initialized().await;
    let (mut ended, mut kept) = (client.listen().await, other.listen().await);

    assert_eq!(client.send(Method::DELETE, &[], "").await.status, 204);

    assert_eq!(ended.rest().await.1, End::Whole);
    emit(&other, 1).await;
    assert_eq!(number(&mut kept).await, 1);
    // The client may open a stream again, which starts empty.
    let mut again = client.listen().await;
    emit(&client, 2).await;
    assert_eq!(number(&mut again).await, 2);
}

#[tokio::test]
async fn a_get_that_does_not_accept_an_event_stream_gets_406() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/");

    for accept in ["*/*", "application/json", "text/plain, */*;q=0.8"] {
        let refused = client.send(Method::GET, &[("accept", accept)], "").await;
        assert_eq!(refused.status, 406, "{accept}");
        let error = &refused.answer()["error"];
        assert_eq!(error["data"]["code"], "ACCEPT");
        assert!(error["message"].to_string().contains(accept), "{error}");
        assert!(error["data"]["suggestion"].to_string().contains("text/event-stream"), "{error}");
    }
    assert_eq!(client.get().await.status, 406, "without an `Accept` header");
    let version = ("mcp-protocol-version", "1999-01-01");
    let refused = client.send(Method::GET, &[("accept", "text/event-stream"), version], "").await;
    assert_eq!(refused.status, 400);
    let opened = client.open(Method::GET, &[("accept", "Text/Event-Stream")], "").await;
    assert_eq!(opened.status(), 200);
}
