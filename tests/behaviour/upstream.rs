//! Upstreams over HTTP: streams, resumption, HTTP with SSE, outages and misbehaviour.

use std::{
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    all,
    harness::{
        client::{Client, Reply, running},
        daemon::Daemon,
        fake::Upstream,
        scripted_upstream::{ReceivedRequest, ResponseWriter, ScriptedUpstream},
    },
    server_status, until,
};

/// Returns the error code of a reply.
#[track_caller]
fn code(reply: &Reply) -> String {
    let answer = reply.answer();
    answer["error"]["data"]["code"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Serves an event stream with the chunks from a channel: `end` ends the stream, and `break` cuts
/// the connection. Once the channel is closed, the stream stays open until the client is gone.
fn serve_stream(response: &mut ResponseWriter, chunks: &mpsc::Receiver<String>) {
    response.events();
    while let Ok(chunk) = chunks.recv() {
        match chunk.as_str() {
            "end" => return response.end(),
            "break" => return response.hang_up(),
            chunk => {
                if !response.chunk(chunk) {
                    return;
                }
            }
        }
    }
    response.wait_gone();
}

fn tool(name: &str) -> Value {
    json!({ "tools": [{ "name": name, "inputSchema": { "type": "object" } }] })
}

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

#[tokio::test]
async fn a_notification_stream_is_reopened_at_its_last_event_id() {
    let (chunks, receiver) = mpsc::channel();
    let receiver = Mutex::new(receiver);
    let version = Arc::new(AtomicUsize::new(1));
    let listed = Arc::clone(&version);
    let upstream = ScriptedUpstream::start(move |request, response| match request.method() {
        "GET" => {
            serve_stream(response, &receiver.lock().expect("not poisoned"));
            true
        }
        "tools/list" => {
            let name = format!("tool_{}", listed.load(Ordering::Relaxed));
            response.json(&request.result(&tool(&name)));
            true
        }
        _ => false,
    });
    let config = upstream.server("headers = { X-Key = \"k\" }");
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/");
    let list = async || client.request(json!(1), "tools/list", json!({})).await.body;
    assert!(list().await.contains("tool_1"));
    until(async || upstream.count("GET") == 1).await;

    let first = upstream.last("GET");
    assert_eq!(first.header("accept"), "text/event-stream");
    assert_eq!(first.header("mcp-session-id"), "s1");
    assert_eq!(first.header("mcp-protocol-version"), "2025-06-18");
    assert_eq!(first.header("x-key"), "k");
    assert_eq!((first.header("last-event-id"), first.header("content-type")), ("", ""));

    version.store(2, Ordering::Relaxed);
    chunks.send("retry: 1\nid: 7\ndata:\n\n".to_owned()).expect("the stream is served");
    chunks.send("break".to_owned()).expect("the stream is served");
    until(async || upstream.count("GET") == 2).await;
    assert_eq!(upstream.last("GET").header("last-event-id"), "7");
    assert!(list().await.contains("tool_1"), "no change was announced");
    chunks.send(format!("id: 8\ndata: {CHANGED}\n\n")).expect("the stream is served");
    until(async || list().await.contains("tool_2")).await;

    chunks.send("end".to_owned()).expect("the stream is served");
    until(async || upstream.count("GET") == 3).await;
    assert_eq!(upstream.last("GET").header("last-event-id"), "8");
    assert_eq!(upstream.count("initialize"), 1);
}

#[tokio::test]
async fn lists_are_read_again_after_the_notification_stream_was_interrupted() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = daemon.client("/");
    let list = async || client.request(json!(1), "tools/list", json!({})).await.body;
    assert!(!list().await.contains("extra_1"));
    upstream.log("streams=1").await;

    // The stream is closed during the change, so no notice announces it.
    upstream.control("cut").await;
    upstream.control("flip").await;

    until(async || list().await.contains("extra_1")).await;
    upstream.log("streams=2").await;
}

#[tokio::test]
async fn an_upstream_without_a_notification_stream_is_asked_for_it_once() {
    for (status, kind) in [(405, "text/plain"), (404, "text/plain"), (200, "text/html")] {
        let upstream = ScriptedUpstream::start(move |request, response| {
            let is_get = request.verb == "GET";
            if is_get {
                response.page(status, kind, "no such stream");
            }
            is_get
        });
        let daemon =
            Daemon::with(format!("[service]\nlog_level = \"debug\"\n{}", upstream.server("")))
                .ready();
        let client = daemon.client("/servers/up");
        client.call("x", json!({})).await;
        daemon.wait_log("has no open stream of notices");
        client.call("x", json!({})).await;
        assert_eq!((upstream.count("GET"), upstream.count("initialize")), (1, 1), "{status}");
    }
}

#[tokio::test]
async fn a_404_for_a_reopened_notification_stream_means_that_the_session_is_lost() {
    let n_opened = AtomicUsize::new(0);
    let upstream = ScriptedUpstream::start(move |request, response| match request.method() {
        "GET" => {
            match n_opened.fetch_add(1, Ordering::Relaxed) {
                0 => {
                    response.events();
                    response.hang_up();
                }
                1 => response.page(404, "text/plain", "Session not found"),
                _ => {
                    response.events();
                    response.wait_gone();
                }
            }
            true
        }
        "tools/call" => {
            response.wait_gone();
            true
        }
        _ => false,
    });
    // A running call does not delay the new session.
    let mut daemon = Daemon::with(format!(
        "[service]\nshutdown_timeout = \"1ms\"\n{}",
        upstream.server("start = \"prewarm\"")
    ))
    .ready();
    let held = running(daemon.client("/servers/up").hold("k"));

    until(async || upstream.count("initialize") == 2).await;

    assert!(daemon.stop().success());
    assert_eq!(code(&held.end().await), "SERVICE_STOPPING");
    assert_eq!(upstream.count("DELETE"), 1, "metamcp does not end a lost session");
}

#[tokio::test]
async fn a_broken_answer_stream_is_resumed_and_the_call_is_not_repeated() {
    let n_resumed = AtomicUsize::new(0);
    let upstream = ScriptedUpstream::start(move |request, response| {
        let note = |number: usize| {
            json!({
                "jsonrpc": "2.0", "method": "notifications/message",
                "params": { "level": "info", "data": number },
            })
        };
        match (request.method(), request.header("last-event-id")) {
            ("tools/call", _) => {
                response.events();
                let id = &request.message["id"];
                response.chunk(&format!("id: {id}/0\nretry: 1\ndata:\n\n"));
                response.chunk(&format!("id: {id}/1\ndata: {}\n\n", note(1)));
                response.chunk("id: never\ndata: half of");
                response.hang_up();
                true
            }
            ("GET", "") => false,
            ("GET", last) => {
                let (call, _) = last.split_once('/').expect(last);
                match n_resumed.fetch_add(1, Ordering::Relaxed) {
                    // A refusal, a broken connection, and a stream without new events.
                    0 => response.page(503, "text/plain", ""),
                    1 => response.hang_up(),
                    2 => {
                        response.events();
                        response.end();
                    }
                    3 => {
                        response.events();
                        response.chunk(&format!("id: {call}/2\ndata: {}\n\n", note(2)));
                        response.end();
                    }
                    _ => {
                        let answer = json!({ "jsonrpc": "2.0", "id": call.parse::<u64>().expect("a request id"), "result": { "n": 3 } });
                        response.events();
                        response.chunk(&format!("data: {answer}\n\n"));
                        response.end();
                    }
                }
                true
            }
            _ => false,
        }
    });
    let daemon = Daemon::with(upstream.server("")).ready();

    let reply = daemon.client("/servers/up").tool("x", json!({})).await;

    let messages = reply.messages();
    let notes: Vec<&Value> = messages
        .iter()
        .filter(|message| message["id"].is_null())
        .map(|note| &note["params"]["data"])
        .collect();
    assert_eq!(notes, [&json!(1), &json!(2)], "{reply:?}");
    assert_eq!(reply.answer()["result"]["n"], 3);
    assert_eq!(upstream.count("tools/call"), 1);
    let last_ids: Vec<String> = upstream
        .requests()
        .iter()
        .filter_map(|request| request.header("last-event-id").split_once('/'))
        .map(|(_, event)| event.to_owned())
        .collect();
    assert_eq!(last_ids, ["1", "1", "1", "1", "2"]);
}

#[tokio::test]
async fn calls_survive_the_loss_of_their_connections() {
    let upstream = Upstream::start(&["--event-ids", "--retry", "1"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let keys = ["a", "b", "c"];
    let clients = keys.map(|key| daemon.client("/servers/up").hold(key));
    let calls = running(async { all(clients).await });
    upstream.log("held=3&gets=1").await;

    // The first cut breaks the streams of the calls, the second one the resumed streams and the
    // notification stream.
    upstream.control("cut_posts").await;
    upstream.log("gets=4").await;
    upstream.control("cut").await;
    upstream.log("gets=8").await;
    for key in keys {
        upstream.control(&format!("release?key={key}")).await;
    }

    for (reply, key) in calls.end().await.iter().zip(keys) {
        assert_eq!(reply.answer()["result"]["structuredContent"]["key"], key, "{reply:?}");
    }
    assert_eq!(upstream.log("").await["requests"]["tools/call"], 3, "each was sent once");
}

#[tokio::test]
async fn a_broken_answer_stream_that_cannot_be_resumed_fails_its_call() {
    // An event id and a refusal; an event id and repeated errors; no event id.
    for (event, refusal, n_gets) in [("id: 1\n", 404, 1), ("id: 1\n", 503, 5), ("", 200, 0)] {
        let upstream = ScriptedUpstream::start(move |request, response| match request.method() {
            "tools/call" => {
                response.events();
                response.chunk(&format!("{event}data:\n\n"));
                response.hang_up();
                true
            }
            "GET" if request.header("last-event-id") == "1" => {
                response.page(refusal, "text/plain", "Session not found");
                true
            }
            _ => false,
        });
        let daemon = Daemon::with(upstream.server("")).ready();

        let reply = daemon.client("/servers/up").tool("x", json!({})).await;

        assert_eq!(code(&reply), "ANSWER_BROKEN_OFF", "{reply:?}");
        assert_eq!(upstream.count("tools/call"), 1, "it may have been executed");
        let resumed = upstream
            .requests()
            .into_iter()
            .filter(|request| request.header("last-event-id") == "1");
        assert_eq!(resumed.count(), n_gets);
        assert_eq!(upstream.count("initialize"), 1, "the session is kept");
    }
}

/// The sender of chunks for the stream that a legacy SSE upstream has open.
pub(crate) type ChunkSender = Arc<Mutex<Option<mpsc::Sender<String>>>>;

/// An upstream of protocol version 2024-11-05.
pub(crate) fn legacy_sse_upstream(
    endpoint: &'static str,
    refusal: u16,
) -> (ScriptedUpstream, ChunkSender) {
    let sender = ChunkSender::default();
    let (current, is_rested) = (Arc::clone(&sender), AtomicBool::new(false));
    let upstream = ScriptedUpstream::start(move |request, response| {
        match (request.verb.as_str(), request.path.as_str()) {
            ("POST", "/mcp") => response.page(refusal, "text/plain", "not here"),
            ("GET", _) => {
                let (chunks, receiver) = mpsc::channel();
                chunks
                    .send(format!("event: endpoint\ndata: {endpoint}\n\n"))
                    .expect("the receiver exists");
                *current.lock().expect("not poisoned") = Some(chunks);
                serve_stream(response, &receiver);
            }
            ("POST", _)
                if request.message["params"]["name"] == "busy"
                    && !is_rested.swap(true, Ordering::Relaxed) =>
            {
                response.raw("HTTP/1.1 429 X\r\ncontent-length: 0\r\nretry-after: 1\r\n\r\n");
            }
            ("POST", _) if request.message["params"]["name"] == "refuse" => {
                response.page(500, "text/plain", "");
            }
            ("POST", _) if request.message["params"]["name"] == "forget" => {
                response.page(404, "text/plain", "Could not find session");
            }
            ("POST", _) => {
                response.page(202, "text/plain", "Accepted");
                let result = match request.method() {
                    "initialize" => json!({
                        "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                        "serverInfo": { "name": "old", "version": "1" },
                    }),
                    "tools/list" => json!({ "tools": [] }),
                    _ => json!({ "structuredContent": request.message["params"]["arguments"] }),
                };
                let is_held = request.message["params"]["name"] == "hold";
                if !request.message["id"].is_null() && !is_held {
                    send_chunk(
                        &current,
                        format!("event: message\ndata: {}\n\n", request.result(&result)),
                    );
                }
            }
            _ => return false,
        }
        true
    });
    (upstream, sender)
}

/// Sends a chunk on the stream of a legacy SSE upstream.
fn send_chunk(sender: &ChunkSender, chunk: String) {
    if let Some(chunks) = &*sender.lock().expect("not poisoned") {
        chunks.send(chunk).ok();
    }
}

#[tokio::test]
async fn all_calls_to_a_legacy_sse_upstream_use_its_one_stream() {
    let (upstream, sender) = legacy_sse_upstream("/messages?session=1", 405);
    let daemon = Daemon::with(upstream.server("headers = { X-Key = \"k\" }")).ready();
    let client = daemon.client("/servers/up");

    let answers = all((0..10).map(|number| client.call("x", json!({ "n": number })))).await;

    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer["n"], number);
    }
    let posted = upstream.last("tools/call");
    assert_eq!((posted.path.as_str(), posted.header("x-key")), ("/messages?session=1", "k"));
    assert_eq!((upstream.count("GET"), upstream.count("notifications/initialized")), (1, 1));
    let status = daemon.client("/status").get().await.answer();
    assert_eq!(status["servers"][0]["transport"], "sse");

    // The stream is the connection: its end fails waiting calls, and the next call opens another
    // one.
    let held = running(client.clone().hold("k"));
    until(async || upstream.last("tools/call").message["params"]["name"] == "hold").await;
    send_chunk(&sender, "break".to_owned());
    assert_eq!(code(&held.end().await), "ANSWER_BROKEN_OFF");
    assert_eq!(client.call("x", json!({ "n": 1 })).await["n"], 1);
    let status = daemon.client("/status").get().await.answer();
    assert_eq!(status["servers"][0]["generation"], 2);
}

#[tokio::test]
async fn all_clients_share_one_session_at_a_legacy_sse_upstream() {
    let upstream = Upstream::sse(&["--drop-duplicate-ids"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = daemon.client("/servers/up");

    let sessions = all((0..12).map(|number| {
        let client = client.clone();
        async move {
            client.call("meet", json!({ "n": 12, "value": number })).await;
            client.call("whoami", json!({})).await["session"].clone()
        }
    }))
    .await;
    assert!(sessions.iter().all(|session| *session == sessions[0]), "{sessions:?}");
    let params = json!({
        "name": "progress", "arguments": { "steps": 5 }, "_meta": { "progressToken": "t" },
    });
    let progress = client.request(json!(1), "tools/call", params).await;
    assert_eq!(progress.messages().len(), 6, "{progress:?}");
    assert_eq!(upstream.log("").await["initializes"], 1);

    // The session ends with its stream; the next call opens another one.
    upstream.control("cut").await;
    until(async || client.call("echo", json!({ "value": 1 })).await["value"] == 1).await;
    assert_eq!(upstream.log("").await["initializes"], 2);
}

#[tokio::test]
async fn a_post_that_a_legacy_sse_upstream_refuses_fails_alone() {
    let (upstream, _sender) = legacy_sse_upstream("messages", 404);
    let config = format!("[service]\nshutdown_timeout = \"1ms\"\n{}", upstream.server(""));
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/up");
    let held = running(client.clone().hold("k"));
    until(async || upstream.count("tools/call") == 1).await;

    let reply = client.tool("refuse", json!({})).await;
    assert_eq!(code(&reply), "UPSTREAM_STATUS", "{reply:?}");
    assert_eq!(client.call("x", json!({ "n": 1 })).await["n"], 1);

    // Such an upstream answers 404 if it does not know the session.
    let reply = client.tool("forget", json!({})).await;
    assert_eq!(code(&reply), "SESSION_LOST", "{reply:?}");
    // Refused at /mcp, the second time before and after the probe, and accepted at /messages.
    assert_eq!(upstream.count("initialize"), 2 + 3);
    drop(held);
}

#[tokio::test]
async fn credentials_are_not_sent_to_another_origin() {
    let (upstream, _sender) = legacy_sse_upstream("http://other.example/messages", 404);
    let daemon = Daemon::with(upstream.server("headers = { X-Key = \"k\" }")).ready();
    let reply = daemon.client("/servers/up").tool("x", json!({})).await;
    assert_eq!(code(&reply), "ENDPOINT_FOREIGN", "{reply:?}");
    assert!(
        upstream.requests().iter().all(|request| request.path == "/mcp"),
        "nothing was sent there"
    );
}

#[tokio::test]
async fn the_error_for_an_upstream_that_does_not_speak_mcp_quotes_its_answer() {
    let upstream = ScriptedUpstream::start(|request, response| {
        match request.verb.as_str() {
            "POST" => response.page(404, "text/html", "<h1>no such page</h1>"),
            _ => {
                response.events();
                response.chunk("data: something else\n\n");
                response.end();
            }
        }
        true
    });
    let daemon = Daemon::with(upstream.server("")).ready();
    let reply = daemon.client("/servers/up").tool("x", json!({})).await;
    assert_eq!(code(&reply), "UPSTREAM_STATUS", "{reply:?}");
    assert!(reply.body.contains("no such page"), "{reply:?}");
}

#[tokio::test]
async fn an_upstream_that_leaves_three_pings_unanswered_is_reconnected() {
    let is_stuck = Arc::new(AtomicBool::new(false));
    let stuck = Arc::clone(&is_stuck);
    let upstream = ScriptedUpstream::start(move |request, response| {
        let is_ping = request.method() == "ping";
        match is_ping {
            true if stuck.load(Ordering::Relaxed) => response.wait_gone(),
            // A refusal is an answer.
            true => {
                let error = json!({ "code": -32601, "message": "no such method" });
                let id = &request.message["id"];
                response.json(&json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string());
            }
            false => {}
        }
        is_ping
    });
    let health = "health = { interval = \"20ms\", timeout = \"1s\" }\nstart = \"prewarm\"";
    let daemon = Daemon::with(upstream.server(health)).ready();

    until(async || upstream.count("ping") > 4).await;
    assert_eq!(upstream.count("initialize"), 1);

    is_stuck.store(true, Ordering::Relaxed);
    until(async || upstream.count("initialize") == 2).await;
    is_stuck.store(false, Ordering::Relaxed);
    daemon.wait_log("does not answer pings: metamcp reconnects to it");
    let status = daemon.client("/status").get().await.answer();
    assert_eq!(status["servers"][0]["last_error"], "the server does not answer pings");
}

#[tokio::test]
async fn no_ping_is_sent_while_a_session_is_established() {
    const INTERVAL: Duration = Duration::from_millis(5);
    let (open, opened) = mpsc::channel::<()>();
    let (opened, is_lost) = (Mutex::new(opened), Arc::new(AtomicBool::new(false)));
    let lost = Arc::clone(&is_lost);
    let upstream = ScriptedUpstream::start(move |request, response| match request.method() {
        "initialize" => {
            // This fails when the test is over.
            opened.lock().expect("not poisoned").recv().ok();
            false
        }
        "tools/call" if lost.load(Ordering::SeqCst) => {
            response.page(404, "text/plain", "gone");
            true
        }
        _ => false,
    });
    let health = format!("health = {{ interval = \"{}ms\" }}", INTERVAL.as_millis());
    let daemon = Daemon::with(upstream.server(&health)).ready();
    let call = || {
        let client = daemon.client("/servers/up");
        running(async move { client.tool("x", json!({})).await.answer() })
    };
    let rest = async |intervals: u32| {
        let begin = Instant::now();
        while begin.elapsed() < INTERVAL * intervals {
            daemon.client("/healthz").get().await;
        }
    };

    for generation in 1..=2 {
        is_lost.store(generation > 1, Ordering::SeqCst);
        let waiting = call();
        until(async || upstream.count("initialize") == generation).await;
        // A ping of the previous session may still be on its way.
        rest(4).await;
        let n_pings = upstream.count("ping");
        rest(40).await;
        assert_eq!(upstream.count("ping"), n_pings, "generation {generation}");

        is_lost.store(false, Ordering::SeqCst);
        open.send(()).expect("the upstream waits for it");
        assert!(waiting.end().await["result"].is_object());
        until(async || upstream.count("ping") > n_pings + 2).await;
    }
}

#[tokio::test]
async fn the_lists_are_read_one_by_one_before_the_first_call_of_a_session() {
    let n_open = AtomicUsize::new(0);
    let is_overlapping = Arc::new(AtomicBool::new(false));
    let overlapping = Arc::clone(&is_overlapping);
    let upstream = ScriptedUpstream::start(move |request, response| {
        if request.method() == "initialize" {
            let result = json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": {}, "prompts": {}, "completions": {} },
                "serverInfo": { "name": "scripted", "version": "1" },
            });
            response.json(&request.result(&result));
            return true;
        }
        let is_list = request.method().ends_with("/list");
        if is_list {
            if n_open.fetch_add(1, Ordering::SeqCst) > 0 {
                overlapping.store(true, Ordering::SeqCst);
            }
            // A list that does not wait its turn has time to overlap.
            std::thread::yield_now();
            n_open.fetch_sub(1, Ordering::SeqCst);
            match request.method() {
                "prompts/list" => response.page(500, "text/plain", "not yet"),
                _ => response.json(&request.result(&json!({ "tools": [] }))),
            }
        }
        is_list
    });
    let daemon = Daemon::with(upstream.server("")).ready();

    let client = daemon.client("/servers/up");
    all((0..5).map(|_| client.call("x", json!({})))).await;

    let methods: Vec<String> = upstream
        .requests()
        .iter()
        .map(|request| request.method().to_owned())
        .filter(|method| method != "GET")
        .collect();
    assert!(!is_overlapping.load(Ordering::SeqCst));
    let calls = ["tools/call"; 5];
    let handshake = ["server/discover", "initialize", "notifications/initialized"];
    assert_eq!(methods[..3], handshake);
    assert_eq!(methods[3..5], ["tools/list", "prompts/list"], "resources are not declared");
    assert_eq!(methods[5..], calls);
}

/// Returns a free port without a listener, with the address of an upstream there.
fn free_port() -> (std::net::SocketAddr, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    (address, format!("http://{address}/mcp"))
}

#[tokio::test]
async fn concurrent_first_calls_wait_for_an_upstream_that_is_not_up_yet() {
    let (address, url) = free_port();
    let config = format!("[service]\nlog_level = \"debug\"\n[servers.up]\nurl = {url:?}\n");
    let daemon = Daemon::with(config).ready();
    let calls = running({
        let client = daemon.client("/servers/up");
        async move { all((0..10).map(|_| client.tool("echo", json!({ "value": 1 })))).await }
    });
    until(async || daemon.log().contains("is not available yet, metamcp tries again")).await;

    let upstream = Upstream::start(&["--port", &address.port().to_string()]);

    for reply in calls.end().await {
        assert_eq!(reply.answer()["result"]["structuredContent"]["value"], 1, "{reply:?}");
    }
    assert_eq!(upstream.log("").await["sessions_minted"], 1);
}

#[tokio::test]
async fn a_call_waits_for_an_upstream_that_its_proxy_does_not_reach_yet() {
    let n_requests = AtomicUsize::new(0);
    let upstream = ScriptedUpstream::start(move |request, response| {
        if request.method() != "initialize" {
            return false;
        }
        match n_requests.fetch_add(1, Ordering::Relaxed) {
            0 => response.page(502, "text/html", "<h1>Bad Gateway</h1>"),
            1 => response.page(503, "text/plain", ""),
            2 => response.hang_up(),
            _ => return false,
        }
        true
    });
    let daemon = Daemon::with(upstream.server("")).ready();
    let reply = daemon.client("/servers/up").tool("x", json!({})).await;
    assert!(reply.answer()["result"].is_object(), "{reply:?}");
    assert_eq!(upstream.count("initialize"), 4);
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_an_unreachable_upstream() {
    let (_, url) = free_port();
    let config = format!(
        "[service]\nlog_level = \"debug\"\nshutdown_timeout = \"1ms\"\n[servers.up]\nurl = {url:?}\nstart = \"eager\"\n"
    );
    let mut daemon = Daemon::with(config).ready();
    daemon.wait_log("is not available yet, metamcp tries again");
    let since = tokio::time::Instant::now();
    assert!(daemon.stop().success());
    // Far below the timeout of ten seconds, and above the need of a slow machine.
    assert!(since.elapsed() < std::time::Duration::from_secs(5));
}

/// Answers with the misbehaviour that the tool `name` stands for.
fn misbehave(name: &str, request: &ReceivedRequest, response: &mut ResponseWriter) {
    match name {
        "html" => response.page(200, "text/html", "<html>sign in</html>"),
        "gateway" => response.page(502, "text/html", "<html>bad gateway</html>"),
        "cut_json" => {
            response.raw(
                "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
            );
            response.hang_up();
        }
        "cut_stream" => {
            response.events();
            response.chunk("data: {\"jsonrpc\"");
            response.hang_up();
        }
        "cut_head" => {
            response.raw("HTTP/1.1 200 X\r\ncontent-ty");
            response.hang_up();
        }
        "silent" => response.wait_gone(),
        "no_end" => {
            response.events();
            response.chunk(": hello\n\n");
            response.wait_gone();
        }
        "endless_headers" => {
            response.raw("HTTP/1.1 200 X\r\n");
            while response.raw("x-more: and more, and more, and more, and more, and more\r\n") {}
            response.hang_up();
        }
        "endless_comments" => {
            response.events();
            while response.chunk(&": nothing\n".repeat(100)) {}
            response.hang_up();
        }
        "endless_event" => {
            response.events();
            let line = format!("data: {}\n", "x".repeat(100_000));
            while response.chunk(&line) {}
            response.hang_up();
        }
        "endless_json" => {
            response.raw("HTTP/1.1 200 X\r\ncontent-type: application/json\r\n\r\n");
            while response.raw([b' '; 100_000]) {}
            response.hang_up();
        }
        "other_id" => response.json(r#"{"jsonrpc":"2.0","id":"other","result":{}}"#),
        "large" => {
            let text = "x".repeat(1 << 20);
            response.events();
            response.chunk(&format!(
                "data: {}\n\n",
                request.result(&json!({ "structuredContent": { "text": text } }))
            ));
            response.end();
        }
        _ => response.json(&request.result(&json!({ "structuredContent": { "ok": true } }))),
    }
}

#[tokio::test]
async fn each_misbehaviour_of_an_upstream_is_reported_in_time_and_fails_only_its_request() {
    let upstream = ScriptedUpstream::start(|request, response| {
        let is_call = request.method() == "tools/call";
        if is_call {
            misbehave(
                request.message["params"]["name"].as_str().expect("a name"),
                request,
                response,
            );
        }
        is_call
    });
    let config = format!(
        "[service]\nrequest_timeout = \"5s\"\nmax_total_timeout = \"5s\"\n{}",
        upstream.server("start = \"prewarm\"")
    );
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/up");

    let cases = [
        ("html", "UPSTREAM_WEB_PAGE"),
        ("gateway", "UPSTREAM_STATUS"),
        ("cut_json", "ANSWER_BROKEN_OFF"),
        ("cut_stream", "ANSWER_BROKEN_OFF"),
        ("cut_head", "ANSWER_BROKEN_OFF"),
        ("silent", "TIMEOUT"),
        ("no_end", "TIMEOUT"),
        ("endless_headers", "ANSWER_BROKEN_OFF"),
        ("endless_comments", "TIMEOUT"),
        ("other_id", "UPSTREAM_STATUS"),
        ("endless_event", "ANSWER_TOO_LARGE"),
        ("endless_json", "ANSWER_TOO_LARGE"),
    ];
    let bad = all(cases.map(|(name, _)| client.tool(name, json!({}))));
    let good = all((0..50).map(|_| client.call("good", json!({}))));
    let large = all([client.call("large", json!({}))]);
    let (bad, good, large) = tokio::join!(bad, good, large);

    for ((name, expected), reply) in cases.iter().zip(&bad) {
        assert_eq!(code(reply), *expected, "{name}: {reply:?}");
    }
    assert!(good.iter().all(|answer| answer["ok"] == true), "{good:?}");
    assert_eq!(large[0]["text"].as_str().map(str::len), Some(1 << 20));
    assert_eq!(upstream.count("initialize"), 1, "no misbehaviour opens a new session");
}

/// Lets a client disconnect while an answer of this status arrives, and returns the service after
/// the answer.
async fn answer_late(status: u16) -> (ScriptedUpstream, Daemon) {
    let (release, released) = mpsc::channel::<()>();
    let (released, begun) = (Mutex::new(released), Arc::new(AtomicBool::new(false)));
    let begins = Arc::clone(&begun);
    let upstream = ScriptedUpstream::start(move |request, response| match request.method() {
        "tools/call" if request.message["params"]["name"] == "late" => {
            let answer = request.result(&json!({ "content": [] }));
            let (first, rest) = answer.split_at(1);
            let head = format!("HTTP/1.1 {status} X\r\ncontent-type: application/json");
            response.raw(format!("{head}\r\ncontent-length: {}\r\n\r\n{first}", answer.len()));
            begins.store(true, Ordering::Relaxed);
            released.lock().expect("not poisoned").recv().expect("the test releases it");
            response.raw(rest);
            true
        }
        _ => false,
    });
    let daemon = Daemon::with(upstream.server("")).ready();
    let client = daemon.client("/servers/up").initialized().await;
    let late = running(async move { client.tool("late", json!({})).await });
    until(async || begun.load(Ordering::Relaxed)).await;
    drop(late);
    until(async || upstream.count("notifications/cancelled") == 1).await;
    release.send(()).expect("the upstream waits");
    until(async || server_status(&daemon, "up").await["draining"] == 0).await;
    (upstream, daemon)
}

#[tokio::test]
async fn an_answer_that_arrives_after_its_client_left_is_counted() {
    let (_upstream, daemon) = answer_late(200).await;
    assert_eq!(server_status(&daemon, "up").await["late_answers"], 1);
}

#[tokio::test]
async fn a_lost_session_is_detected_although_the_client_left() {
    let (upstream, daemon) = answer_late(404).await;
    assert_eq!(server_status(&daemon, "up").await["late_answers"], 0);
    daemon.client("/servers/up").tool("x", json!({})).await;
    assert_eq!(upstream.count("initialize"), 2);
}

#[tokio::test]
async fn a_call_to_an_upstream_that_never_answers_times_out() {
    // The listener never accepts, but the system still takes connections and bytes.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let config = format!(
        "[service]\nrequest_timeout = \"200ms\"\n\
         [servers.up]\nurl = \"http://{address}/mcp\"\nstart_timeout = \"500ms\"\n"
    );
    let daemon = Daemon::with(config).ready();
    let reply = Client::new(daemon.url("/servers/up")).tool("x", json!({})).await;
    assert_eq!(code(&reply), "TIMEOUT");
}
