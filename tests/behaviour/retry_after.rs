//! Upstreams that ask for a wait: HTTP 429 and 503 with `Retry-After`.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    harness::{
        client::{Client, running},
        daemon::Daemon,
        scripted_upstream::{ReceivedRequest, ResponseWriter, ScriptedUpstream},
    },
    server_status, until,
    upstream::legacy_sse_upstream,
};

/// Answers with `status` and these lines of the head.
fn refuse(response: &mut ResponseWriter, status: u16, head: &str) {
    response.raw(format!("HTTP/1.1 {status} X\r\ncontent-length: 4\r\n{head}\r\nwait"));
}

/// Returns an upstream that refuses the first `n_refused` requests of `method` in this way.
fn busy(
    method: &'static str,
    n_refused: usize,
    status: u16,
    head: &'static str,
) -> ScriptedUpstream {
    let n_seen = AtomicUsize::new(0);
    ScriptedUpstream::start(move |request, response| {
        let is_refused =
            request.method() == method && n_seen.fetch_add(1, Ordering::SeqCst) < n_refused;
        if is_refused {
            refuse(response, status, head);
        }
        is_refused
    })
}

const SECOND: &str = "Retry-After: 1\r\n";
const MINUTE: &str = "Retry-After: 60\r\n";

/// Calls a tool with a progress token, and returns the texts of the progress and the answer.
async fn call(client: &Client) -> (Vec<String>, Value) {
    let params = json!({ "name": "x", "arguments": {}, "_meta": { "progressToken": "t" } });
    let mut messages = client.request(json!(1), "tools/call", params).await.messages();
    let answer = messages.pop().expect("an answer");
    let told = messages.iter().map(|message| {
        assert_eq!(message["method"], "notifications/progress", "{message}");
        assert_eq!(message["params"]["progressToken"], "t");
        message["params"]["message"].as_str().expect("a text").to_owned()
    });
    (told.collect(), answer)
}

#[tokio::test]
async fn a_wait_that_an_upstream_asks_for_is_told_and_the_request_is_sent_again() {
    let date =
        "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:49:38 GMT\r\n";
    for (status, head) in [(429, SECOND), (503, SECOND), (503, date)] {
        let upstream = busy("tools/call", 1, status, head);
        let daemon = Daemon::with(upstream.server("")).ready();
        let began = Instant::now();
        let (told, answer) = call(&daemon.client("/servers/up")).await;
        assert!(answer["result"].is_object(), "{answer}");
        assert_eq!(told, [format!("server `up` asks to wait 1 s (HTTP {status})")]);
        assert!(began.elapsed() >= Duration::from_secs(1));
        assert_eq!((upstream.count("tools/call"), upstream.count("initialize")), (2, 1));
    }
}

#[tokio::test]
async fn a_modern_upstream_gets_the_request_again_after_the_wait() {
    let upstream = ScriptedUpstream::start(answer_as_busy_modern());
    let daemon = Daemon::with(upstream.server("")).ready();
    let (told, answer) = call(&daemon.client("/servers/up")).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(told, ["server `up` asks to wait 1 s (HTTP 429)"]);
    assert_eq!(upstream.count("tools/call"), 2);
    let discovered = (upstream.count("server/discover"), upstream.count("initialize"));
    assert_eq!(discovered, (2, 0), "a wait is not taken for the silence of a legacy server");
}

/// Answers as an upstream of the modern era does that refuses the first `server/discover` for 3 s
/// and the first call for 1 s.
fn answer_as_busy_modern() -> impl Fn(&ReceivedRequest, &mut ResponseWriter) -> bool + Send + Sync {
    let (n_probes, n_calls) = (AtomicUsize::new(0), AtomicUsize::new(0));
    move |request, response| {
        match request.method() {
            "server/discover" if n_probes.fetch_add(1, Ordering::SeqCst) == 0 => {
                refuse(response, 503, "Retry-After: 3\r\n");
            }
            "server/discover" => response.json(&request.result(&json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} },
            }))),
            "tools/call" if n_calls.fetch_add(1, Ordering::SeqCst) == 0 => {
                refuse(response, 429, SECOND);
            }
            "tools/call" => {
                response.json(&request.result(&json!({ "resultType": "complete", "content": [] })));
            }
            "tools/list" => {
                response.json(&request.result(&json!({ "resultType": "complete", "tools": [] })));
            }
            _ => return false,
        }
        true
    }
}

#[tokio::test]
async fn a_legacy_sse_upstream_gets_the_request_again_after_the_wait() {
    let (upstream, _stream) = legacy_sse_upstream("/messages?session=1", 405);
    let daemon = Daemon::with(upstream.server("")).ready();
    let answer = daemon.client("/servers/up").call("busy", json!({ "n": 1 })).await;
    assert_eq!((&answer["n"], upstream.count("tools/call")), (&json!(1), 2));
}

#[tokio::test]
async fn a_wait_that_is_too_long_fails_the_request_at_once_and_the_breaker_does_not_count_it() {
    let upstream = busy("tools/call", 7, 429, MINUTE);
    let config = format!("[service]\nrequest_timeout = \"5s\"\n{}", upstream.server(""));
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/up");
    for n_calls in 1..=7 {
        let (told, answer) = call(&client).await;
        assert_eq!((told.len(), upstream.count("tools/call")), (0, n_calls));
        let (error, data) = (&answer["error"], &answer["error"]["data"]);
        assert_eq!(data["code"], "UPSTREAM_BUSY", "{answer}");
        assert_eq!(data["context"]["retryAfterMs"], 60_000);
        assert_eq!(data["context"]["status"], 429);
        let text = error["message"].as_str().expect("a text");
        assert!(text.contains("asks to wait 60 s (HTTP 429)"), "{text}");
        assert!(data["suggestion"].as_str().is_some_and(|hint| hint.contains("request_timeout")));
    }
    let breaker = server_status(&daemon, "up").await["breaker"].clone();
    assert_eq!((&breaker["state"], &breaker["failures"]), (&json!("normal"), &json!(0)));
    assert_eq!(breaker["last_fault"], "throttled");
    assert!(call(&client).await.1["result"].is_object(), "the next call reaches the server");
}

#[tokio::test]
async fn a_request_waits_five_times_at_most() {
    let upstream = busy("tools/call", 100, 429, "Retry-After: 0\r\n");
    let daemon = Daemon::with(upstream.server("")).ready();
    let (told, answer) = call(&daemon.client("/servers/up")).await;
    assert_eq!((told.len(), upstream.count("tools/call")), (5, 6));
    assert_eq!(answer["error"]["data"]["code"], "UPSTREAM_BUSY", "{answer}");
}

#[tokio::test]
async fn a_429_or_503_without_a_time_fails_the_request_at_once() {
    for (status, head) in [(429, ""), (503, ""), (429, "Retry-After: soon\r\n")] {
        let upstream = busy("tools/call", 1, status, head);
        let daemon = Daemon::with(upstream.server("")).ready();
        let (_, answer) = call(&daemon.client("/servers/up")).await;
        assert_eq!(answer["error"]["data"]["code"], "UPSTREAM_STATUS", "{answer}");
        assert_eq!(upstream.count("tools/call"), 1);
    }
}

#[tokio::test]
async fn a_handshake_waits_within_its_start_timeout() {
    let upstream = busy("initialize", 1, 429, SECOND);
    let daemon = Daemon::with(upstream.server("")).ready();
    let (_, answer) = call(&daemon.client("/servers/up")).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(upstream.count("initialize"), 2);
    daemon.wait_log("server `up` asks to wait 1 s (HTTP 429)");

    let upstream = busy("initialize", 100, 503, MINUTE);
    let daemon = Daemon::with(upstream.server("start_timeout = \"5s\"")).ready();
    for _ in 0..6 {
        let (_, answer) = call(&daemon.client("/servers/up")).await;
        let data = &answer["error"]["data"];
        assert_eq!(data["code"], "UPSTREAM_BUSY", "{answer}");
        assert_eq!(data["context"]["retryAfterMs"], 60_000);
        assert!(data["suggestion"].as_str().is_some_and(|hint| hint.contains("start_timeout")));
    }
    assert_eq!(server_status(&daemon, "up").await["breaker"]["state"], "normal");
}

#[tokio::test]
async fn a_request_whose_client_leaves_during_the_wait_is_not_sent_again() {
    let upstream = ScriptedUpstream::start(|request, response| {
        let is_refused = request.message["params"]["name"] == "left";
        if is_refused {
            refuse(response, 429, SECOND);
        }
        is_refused
    });
    // A call that waits for longer, so that the wait of the first one is over then.
    let later = busy("tools/call", 1, 429, "Retry-After: 2\r\n");
    let config = upstream.server("") + &later.server("").replace("servers.up", "servers.later");
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/up");
    client.tool("x", json!({})).await;
    let leaving = client.clone();
    let left = running(async move { leaving.tool("left", json!({})).await });
    until(async || daemon.log().contains("asks to wait 1 s")).await;
    drop(left);
    until(async || server_status(&daemon, "up").await["in_flight"] == 0).await;

    assert!(call(&daemon.client("/servers/later")).await.1["result"].is_object());
    assert_eq!(upstream.count("tools/call"), 2);
}
