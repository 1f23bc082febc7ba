//! Upstreams over HTTP: their streams, their old transport, their absences and their bad manners.

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
        scripted::{Asked, Scripted, Wire},
    },
    server_status, until,
};

/// Returns the code of the error that a reply is.
#[track_caller]
fn code(reply: &Reply) -> String {
    let answer = reply.answer();
    answer["error"]["data"]["code"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Holds a stream open until the other side has gone; what is sent through `pieces` comes on it,
/// and nothing any more breaks it off.
fn hold(wire: &mut Wire, pieces: &mpsc::Receiver<String>) {
    wire.events();
    while let Ok(piece) = pieces.recv() {
        match piece.as_str() {
            "end" => return wire.end(),
            "break" => return wire.hang_up(),
            piece => {
                if !wire.piece(piece) {
                    return;
                }
            }
        }
    }
    wire.wait_gone();
}

fn tool(name: &str) -> Value {
    json!({ "tools": [{ "name": name, "inputSchema": { "type": "object" } }] })
}

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

#[tokio::test]
async fn a_notification_stream_is_reopened_at_its_last_event_id() {
    let (say, said) = mpsc::channel();
    let said = Mutex::new(said);
    let version = Arc::new(AtomicUsize::new(1));
    let listed = Arc::clone(&version);
    let upstream = Scripted::start(move |asked, wire| match asked.method() {
        "GET" => {
            hold(wire, &said.lock().expect("not poisoned"));
            true
        }
        "tools/list" => {
            let name = format!("tool_{}", listed.load(Ordering::Relaxed));
            wire.json(&asked.result(&tool(&name)));
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
    say.send("retry: 1\nid: 7\ndata:\n\n".to_owned()).expect("it listens");
    say.send("break".to_owned()).expect("it listens");
    until(async || upstream.count("GET") == 2).await;
    assert_eq!(upstream.last("GET").header("last-event-id"), "7");
    assert!(list().await.contains("tool_1"), "no change was announced");
    say.send(format!("id: 8\ndata: {CHANGED}\n\n")).expect("it listens");
    until(async || list().await.contains("tool_2")).await;

    say.send("end".to_owned()).expect("it listens");
    until(async || upstream.count("GET") == 3).await;
    assert_eq!(upstream.last("GET").header("last-event-id"), "8");
    assert_eq!(upstream.count("initialize"), 1);
}

#[tokio::test]
async fn lists_that_may_have_changed_while_the_stream_was_away_are_read_again() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = daemon.client("/");
    let list = async || client.request(json!(1), "tools/list", json!({})).await.body;
    assert!(!list().await.contains("extra_1"));
    upstream.log("streams=1").await;

    // No client hears of the change, as if it had no listener at that time.
    upstream.control("cut").await;
    upstream.control("flip").await;

    until(async || list().await.contains("extra_1")).await;
    upstream.log("streams=2").await;
}

#[tokio::test]
async fn an_upstream_without_a_stream_is_asked_for_it_once() {
    for (status, kind) in [(405, "text/plain"), (404, "text/plain"), (200, "text/html")] {
        let upstream = Scripted::start(move |asked, wire| {
            let is_get = asked.verb == "GET";
            if is_get {
                wire.page(status, kind, "no such stream");
            }
            is_get
        });
        let daemon =
            Daemon::with(format!("[service]\nlog_level = \"debug\"\n{}", upstream.server("")))
                .ready();
        let client = daemon.client("/servers/up");
        client.call("x", json!({})).await;
        daemon.wait_log("no stream of notices");
        client.call("x", json!({})).await;
        assert_eq!((upstream.count("GET"), upstream.count("initialize")), (1, 1), "{status}");
    }
}

#[tokio::test]
async fn a_stream_that_is_refused_after_it_worked_tells_that_the_session_is_lost() {
    let n_opened = AtomicUsize::new(0);
    let upstream = Scripted::start(move |asked, wire| match asked.method() {
        "GET" => {
            match n_opened.fetch_add(1, Ordering::Relaxed) {
                0 => {
                    wire.events();
                    wire.hang_up();
                }
                1 => wire.page(404, "text/plain", "Session not found"),
                _ => {
                    wire.events();
                    wire.wait_gone();
                }
            }
            true
        }
        "tools/call" => {
            wire.wait_gone();
            true
        }
        _ => false,
    });
    // A call that runs does not hold up the new session.
    let mut daemon = Daemon::with(format!(
        "[service]\nshutdown_timeout = \"1ms\"\n{}",
        upstream.server("start = \"prewarm\"")
    ))
    .ready();
    let held = running(daemon.client("/servers/up").hold("k"));

    until(async || upstream.count("initialize") == 2).await;

    assert!(daemon.stop().success());
    assert_eq!(code(&held.end().await), "SERVICE_STOPPING");
    assert_eq!(upstream.count("DELETE"), 1, "a session that is lost is not ended");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_gone_on_with_and_not_asked_for_again() {
    let n_resumed = AtomicUsize::new(0);
    let upstream = Scripted::start(move |asked, wire| {
        let note = |number: usize| {
            json!({
                "jsonrpc": "2.0", "method": "notifications/message",
                "params": { "level": "info", "data": number },
            })
        };
        match (asked.method(), asked.header("last-event-id")) {
            ("tools/call", _) => {
                wire.events();
                let id = &asked.message["id"];
                wire.piece(&format!("id: {id}/0\nretry: 1\ndata:\n\n"));
                wire.piece(&format!("id: {id}/1\ndata: {}\n\n", note(1)));
                wire.piece("id: never\ndata: half of");
                wire.hang_up();
                true
            }
            ("GET", "") => false,
            ("GET", last) => {
                let (call, _) = last.split_once('/').expect(last);
                match n_resumed.fetch_add(1, Ordering::Relaxed) {
                    // Not now, not yet, and a stream that has nothing new.
                    0 => wire.page(503, "text/plain", ""),
                    1 => wire.hang_up(),
                    2 => {
                        wire.events();
                        wire.end();
                    }
                    3 => {
                        wire.events();
                        wire.piece(&format!("id: {call}/2\ndata: {}\n\n", note(2)));
                        wire.end();
                    }
                    _ => {
                        let answer = json!({ "jsonrpc": "2.0", "id": call.parse::<u64>().expect("ours"), "result": { "n": 3 } });
                        wire.events();
                        wire.piece(&format!("data: {answer}\n\n"));
                        wire.end();
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
        .asked()
        .iter()
        .filter_map(|asked| asked.header("last-event-id").split_once('/'))
        .map(|(_, event)| event.to_owned())
        .collect();
    assert_eq!(last_ids, ["1", "1", "1", "1", "2"]);
}

#[tokio::test]
async fn calls_outlive_the_connections_that_they_were_sent_on() {
    let upstream = Upstream::start(&["--event-ids", "--retry", "1"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let keys = ["a", "b", "c"];
    let clients = keys.map(|key| daemon.client("/servers/up").hold(key));
    let calls = running(async { all(clients).await });
    upstream.log("held=3&gets=1").await;

    // Broken off where they began, and once more where they were gone on with; the stream of
    // notices too.
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
async fn an_answer_that_cannot_be_gone_on_with_is_broken_off() {
    // With an id and a refusal; with an id and endless trouble; without an id.
    for (event, refusal, n_gets) in [("id: 1\n", 404, 1), ("id: 1\n", 503, 5), ("", 200, 0)] {
        let upstream = Scripted::start(move |asked, wire| match asked.method() {
            "tools/call" => {
                wire.events();
                wire.piece(&format!("{event}data:\n\n"));
                wire.hang_up();
                true
            }
            "GET" if asked.header("last-event-id") == "1" => {
                wire.page(refusal, "text/plain", "Session not found");
                true
            }
            _ => false,
        });
        let daemon = Daemon::with(upstream.server("")).ready();

        let reply = daemon.client("/servers/up").tool("x", json!({})).await;

        assert_eq!(code(&reply), "ANSWER_BROKEN_OFF", "{reply:?}");
        assert_eq!(upstream.count("tools/call"), 1, "it may have been executed");
        let resumed =
            upstream.asked().into_iter().filter(|asked| asked.header("last-event-id") == "1");
        assert_eq!(resumed.count(), n_gets);
        assert_eq!(upstream.count("initialize"), 1, "the session is as good as before");
    }
}

/// The writer of the stream that an old upstream has open now.
type Speaker = Arc<Mutex<Option<mpsc::Sender<String>>>>;

/// An upstream of protocol version 2024-11-05.
fn legacy(endpoint: &'static str, refusal: u16) -> (Scripted, Speaker) {
    let speaker = Speaker::default();
    let current = Arc::clone(&speaker);
    let upstream = Scripted::start(move |asked, wire| {
        match (asked.verb.as_str(), asked.path.as_str()) {
            ("POST", "/mcp") => wire.page(refusal, "text/plain", "not here"),
            ("GET", _) => {
                let (say, said) = mpsc::channel();
                say.send(format!("event: endpoint\ndata: {endpoint}\n\n")).expect("it is held");
                *current.lock().expect("not poisoned") = Some(say);
                hold(wire, &said);
            }
            ("POST", _) if asked.message["params"]["name"] == "refuse" => {
                wire.page(500, "text/plain", "");
            }
            ("POST", _) if asked.message["params"]["name"] == "forget" => {
                wire.page(404, "text/plain", "Could not find session");
            }
            ("POST", _) => {
                wire.page(202, "text/plain", "Accepted");
                let result = match asked.method() {
                    "initialize" => json!({
                        "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                        "serverInfo": { "name": "old", "version": "1" },
                    }),
                    "tools/list" => json!({ "tools": [] }),
                    _ => json!({ "structuredContent": asked.message["params"]["arguments"] }),
                };
                let is_held = asked.message["params"]["name"] == "hold";
                if !asked.message["id"].is_null() && !is_held {
                    speak(&current, format!("event: message\ndata: {}\n\n", asked.result(&result)));
                }
            }
            _ => return false,
        }
        true
    });
    (upstream, speaker)
}

fn speak(speaker: &Speaker, piece: String) {
    if let Some(say) = &*speaker.lock().expect("not poisoned") {
        say.send(piece).ok();
    }
}

#[tokio::test]
async fn an_upstream_of_the_first_protocol_version_is_spoken_to_over_its_one_stream() {
    let (upstream, speaker) = legacy("/messages?session=1", 405);
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

    // The stream is the connection: its end fails what waits, and the next call makes another.
    let held = running(client.clone().hold("k"));
    until(async || upstream.last("tools/call").message["params"]["name"] == "hold").await;
    speak(&speaker, "break".to_owned());
    assert_eq!(code(&held.end().await), "ANSWER_BROKEN_OFF");
    assert_eq!(client.call("x", json!({ "n": 1 })).await["n"], 1);
    let status = daemon.client("/status").get().await.answer();
    assert_eq!(status["servers"][0]["generation"], 2);
}

#[tokio::test]
async fn the_pinned_session_of_an_old_upstream_is_one_too() {
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

    // The session ends with its stream; who asks next gets another one.
    upstream.control("cut").await;
    until(async || client.call("echo", json!({ "value": 1 })).await["value"] == 1).await;
    assert_eq!(upstream.log("").await["initializes"], 2);
}

#[tokio::test]
async fn one_post_that_an_old_upstream_refuses_fails_alone() {
    let (upstream, _speaker) = legacy("messages", 404);
    let config = format!("[service]\nshutdown_timeout = \"1ms\"\n{}", upstream.server(""));
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/up");
    let held = running(client.clone().hold("k"));
    until(async || upstream.count("tools/call") == 1).await;

    let reply = client.tool("refuse", json!({})).await;
    assert_eq!(code(&reply), "UPSTREAM_STATUS", "{reply:?}");
    assert_eq!(client.call("x", json!({ "n": 1 })).await["n"], 1);

    // 404 is what such an upstream says when it does not know the session.
    let reply = client.tool("forget", json!({})).await;
    assert_eq!(code(&reply), "SESSION_LOST", "{reply:?}");
    // Refused at /mcp, the second time before and after the probe, and taken at /messages.
    assert_eq!(upstream.count("initialize"), 2 + 3);
    drop(held);
}

#[tokio::test]
async fn credentials_are_not_taken_to_another_origin() {
    let (upstream, _speaker) = legacy("http://other.example/messages", 404);
    let daemon = Daemon::with(upstream.server("headers = { X-Key = \"k\" }")).ready();
    let reply = daemon.client("/servers/up").tool("x", json!({})).await;
    assert_eq!(code(&reply), "ENDPOINT_FOREIGN", "{reply:?}");
    assert!(upstream.asked().iter().all(|asked| asked.path == "/mcp"), "nothing was sent there");
}

#[tokio::test]
async fn an_upstream_that_is_of_no_version_at_all_is_shown_as_it_answered() {
    let upstream = Scripted::start(|asked, wire| {
        match asked.verb.as_str() {
            "POST" => wire.page(404, "text/html", "<h1>no such page</h1>"),
            _ => {
                wire.events();
                wire.piece("data: something else\n\n");
                wire.end();
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
async fn an_upstream_that_leaves_three_pings_unanswered_is_given_up() {
    let is_stuck = Arc::new(AtomicBool::new(false));
    let stuck = Arc::clone(&is_stuck);
    let upstream = Scripted::start(move |asked, wire| {
        let is_ping = asked.method() == "ping";
        match is_ping {
            true if stuck.load(Ordering::Relaxed) => wire.wait_gone(),
            // A refusal is an answer.
            true => {
                let error = json!({ "code": -32601, "message": "no such method" });
                let id = &asked.message["id"];
                wire.json(&json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string());
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
    daemon.wait_log("server does not answer pings");
    let status = daemon.client("/status").get().await.answer();
    assert_eq!(status["servers"][0]["last_error"], "the server does not answer pings");
}

#[tokio::test]
async fn no_ping_is_sent_while_a_session_is_established() {
    const INTERVAL: Duration = Duration::from_millis(5);
    let (open, opened) = mpsc::channel::<()>();
    let (opened, is_lost) = (Mutex::new(opened), Arc::new(AtomicBool::new(false)));
    let lost = Arc::clone(&is_lost);
    let upstream = Scripted::start(move |asked, wire| match asked.method() {
        "initialize" => {
            // It fails when the test is over.
            opened.lock().expect("not poisoned").recv().ok();
            false
        }
        "tools/call" if lost.load(Ordering::SeqCst) => {
            wire.page(404, "text/plain", "gone");
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
        // A ping of the session before may still be on its way.
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
async fn the_lists_are_read_one_after_the_other_before_anybody_uses_the_session() {
    let n_open = AtomicUsize::new(0);
    let is_overlapping = Arc::new(AtomicBool::new(false));
    let overlapping = Arc::clone(&is_overlapping);
    let upstream = Scripted::start(move |asked, wire| {
        if asked.method() == "initialize" {
            let result = json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": {}, "prompts": {}, "completions": {} },
                "serverInfo": { "name": "scripted", "version": "1" },
            });
            wire.json(&asked.result(&result));
            return true;
        }
        let is_list = asked.method().ends_with("/list");
        if is_list {
            if n_open.fetch_add(1, Ordering::SeqCst) > 0 {
                overlapping.store(true, Ordering::SeqCst);
            }
            // Time for one that does not wait for its turn.
            std::thread::yield_now();
            n_open.fetch_sub(1, Ordering::SeqCst);
            match asked.method() {
                "prompts/list" => wire.page(500, "text/plain", "not yet"),
                _ => wire.json(&asked.result(&json!({ "tools": [] }))),
            }
        }
        is_list
    });
    let daemon = Daemon::with(upstream.server("")).ready();

    let client = daemon.client("/servers/up");
    all((0..5).map(|_| client.call("x", json!({})))).await;

    let methods: Vec<String> = upstream
        .asked()
        .iter()
        .map(|asked| asked.method().to_owned())
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
async fn a_cold_wave_waits_for_an_upstream_that_is_not_there_yet() {
    let (address, url) = free_port();
    let config = format!("[service]\nlog_level = \"debug\"\n[servers.up]\nurl = {url:?}\n");
    let daemon = Daemon::with(config).ready();
    let calls = running({
        let client = daemon.client("/servers/up");
        async move { all((0..10).map(|_| client.tool("echo", json!({ "value": 1 })))).await }
    });
    until(async || daemon.log().contains("upstream is not there yet")).await;

    let upstream = Upstream::start(&["--port", &address.port().to_string()]);

    for reply in calls.end().await {
        assert_eq!(reply.answer()["result"]["structuredContent"]["value"], 1, "{reply:?}");
    }
    assert_eq!(upstream.log("").await["sessions_minted"], 1);
}

#[tokio::test]
async fn a_call_waits_for_a_server_behind_a_proxy_that_does_not_reach_it_yet() {
    let n_asked = AtomicUsize::new(0);
    let upstream = Scripted::start(move |asked, wire| {
        if asked.method() != "initialize" {
            return false;
        }
        match n_asked.fetch_add(1, Ordering::Relaxed) {
            0 => wire.page(502, "text/html", "<h1>Bad Gateway</h1>"),
            1 => wire.page(503, "text/plain", ""),
            2 => wire.hang_up(),
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
async fn a_stop_does_not_wait_for_an_upstream_that_is_not_there() {
    let (_, url) = free_port();
    let config = format!(
        "[service]\nlog_level = \"debug\"\nshutdown_timeout = \"1ms\"\n[servers.up]\nurl = {url:?}\nstart = \"eager\"\n"
    );
    let mut daemon = Daemon::with(config).ready();
    daemon.wait_log("upstream is not there yet");
    let since = tokio::time::Instant::now();
    assert!(daemon.stop().success());
    // Far below the patience of ten seconds, and above what a slow machine needs.
    assert!(since.elapsed() < std::time::Duration::from_secs(5));
}

/// Misbehaves as the tool `name` says.
fn misbehave(name: &str, asked: &Asked, wire: &mut Wire) {
    match name {
        "html" => wire.page(200, "text/html", "<html>sign in</html>"),
        "gateway" => wire.page(502, "text/html", "<html>bad gateway</html>"),
        "cut_json" => {
            wire.raw(
                "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
            );
            wire.hang_up();
        }
        "cut_stream" => {
            wire.events();
            wire.piece("data: {\"jsonrpc\"");
            wire.hang_up();
        }
        "cut_head" => {
            wire.raw("HTTP/1.1 200 X\r\ncontent-ty");
            wire.hang_up();
        }
        "silent" => wire.wait_gone(),
        "no_end" => {
            wire.events();
            wire.piece(": hello\n\n");
            wire.wait_gone();
        }
        "endless_headers" => {
            wire.raw("HTTP/1.1 200 X\r\n");
            while wire.raw("x-more: and more, and more, and more, and more, and more\r\n") {}
            wire.hang_up();
        }
        "endless_comments" => {
            wire.events();
            while wire.piece(&": nothing\n".repeat(100)) {}
            wire.hang_up();
        }
        "endless_event" => {
            wire.events();
            let line = format!("data: {}\n", "x".repeat(100_000));
            while wire.piece(&line) {}
            wire.hang_up();
        }
        "endless_json" => {
            wire.raw("HTTP/1.1 200 X\r\ncontent-type: application/json\r\n\r\n");
            while wire.raw([b' '; 100_000]) {}
            wire.hang_up();
        }
        "other_id" => wire.json(r#"{"jsonrpc":"2.0","id":"other","result":{}}"#),
        "large" => {
            let text = "x".repeat(1 << 20);
            wire.events();
            wire.piece(&format!(
                "data: {}\n\n",
                asked.result(&json!({ "structuredContent": { "text": text } }))
            ));
            wire.end();
        }
        _ => wire.json(&asked.result(&json!({ "structuredContent": { "ok": true } }))),
    }
}

#[tokio::test]
async fn whatever_an_upstream_does_to_one_request_is_told_in_time_and_no_other_one_suffers() {
    let upstream = Scripted::start(|asked, wire| {
        let is_call = asked.method() == "tools/call";
        if is_call {
            misbehave(asked.message["params"]["name"].as_str().expect("a name"), asked, wire);
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
        ("html", "UPSTREAM_STATUS"),
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
    assert_eq!(upstream.count("initialize"), 1, "none of it is a reason for a new session");
}

/// Has a client leave while an answer of this status comes, and returns the service after that.
async fn answered_late(status: u16) -> (Scripted, Daemon) {
    let (tell, told) = mpsc::channel::<()>();
    let (told, begun) = (Mutex::new(told), Arc::new(AtomicBool::new(false)));
    let begins = Arc::clone(&begun);
    let upstream = Scripted::start(move |asked, wire| match asked.method() {
        "tools/call" if asked.message["params"]["name"] == "late" => {
            let answer = asked.result(&json!({ "content": [] }));
            let (first, rest) = answer.split_at(1);
            let head = format!("HTTP/1.1 {status} X\r\ncontent-type: application/json");
            wire.raw(format!("{head}\r\ncontent-length: {}\r\n\r\n{first}", answer.len()));
            begins.store(true, Ordering::Relaxed);
            told.lock().expect("not poisoned").recv().expect("it is told");
            wire.raw(rest);
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
    tell.send(()).expect("it waits");
    until(async || server_status(&daemon, "up").await["draining"] == 0).await;
    (upstream, daemon)
}

#[tokio::test]
async fn an_answer_that_comes_after_its_client_has_gone_is_counted() {
    let (_upstream, daemon) = answered_late(200).await;
    assert_eq!(server_status(&daemon, "up").await["late_answers"], 1);
}

#[tokio::test]
async fn a_session_that_is_lost_is_noticed_though_its_client_has_gone() {
    let (upstream, daemon) = answered_late(404).await;
    assert_eq!(server_status(&daemon, "up").await["late_answers"], 0);
    daemon.client("/servers/up").tool("x", json!({})).await;
    assert_eq!(upstream.count("initialize"), 2);
}

#[tokio::test]
async fn an_upstream_that_takes_connections_and_does_nothing_is_given_up_in_time() {
    // Never accepted from: the system takes connections and bytes all the same.
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
