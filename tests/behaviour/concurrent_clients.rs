//! Many concurrent clients: with the same request ids, and before their server is up.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};

use crate::{
    all,
    harness::{
        client::{Client, running},
        daemon::Daemon,
        fake::{Fakes, Upstream},
        scripted_upstream::ScriptedUpstream,
    },
    until,
};

/// The request ids of twelve clients, which are their progress tokens, too. Most mean 1.
const SPELLINGS: [&str; 12] = [
    "1",
    "1",
    "1",
    "\"1\"",
    "\"1\"",
    "1.0",
    "9007199254740993",
    "\"9007199254740993\"",
    "\"é\"",
    r#""\u00e9""#,
    "-1",
    "\"\"",
];

/// Returns a call of `tool` with `id` as its request id and its progress token.
fn call(id: &str, tool: &str, arguments: &Value) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"_meta":{{"progressToken":{id}}},"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// Asserts that twelve concurrent clients get their own answers, without and with progress.
async fn assert_twelve_clients_get_their_own_answers(daemon: &Daemon) {
    let clients: Vec<Client> =
        all(SPELLINGS.iter().map(|_| daemon.client("/servers/up").initialized())).await;

    // `meet` answers when all twelve are in flight, the last one first.
    let replies = all((0..).zip(&clients).map(|(number, client)| {
        let arguments = json!({ "n": SPELLINGS.len(), "value": number });
        client.post(call(SPELLINGS[number], "meet", &arguments))
    }))
    .await;
    for ((number, id), reply) in (0..).zip(SPELLINGS).zip(&replies) {
        assert!(reply.body.contains(&format!(r#""id":{id}"#)), "{id}: {}", reply.body);
        let answer = reply.answer();
        assert_eq!(answer["result"]["structuredContent"]["value"], number, "{id}: {answer}");
    }

    let replies = all((0..).zip(&clients).map(|(number, client)| {
        client.post(call(SPELLINGS[number], "progress", &json!({ "steps": 10, "n": number })))
    }))
    .await;
    for ((number, token), reply) in (0..).zip(SPELLINGS).zip(&replies) {
        let messages = reply.messages();
        assert_eq!(messages.len(), 11, "{token}: {reply:?}");
        for (step, message) in (1..).zip(&messages[..10]) {
            assert_eq!(message["params"]["message"], format!("call {number}, step {step}"));
        }
        let restored = format!(r#""progressToken":{token}"#);
        assert_eq!(reply.body.matches(&restored).count(), 10, "{token}: {}", reply.body);
        assert_eq!(messages[10]["result"]["structuredContent"]["n"], number, "{token}");
    }

    let seen = clients[0].call("seen", json!({})).await;
    assert_eq!(seen["duplicates"], json!([]), "no id and no token came twice");
}

#[tokio::test]
async fn twelve_clients_with_the_same_ids_get_their_own_answers_over_http() {
    let upstream = Upstream::start(&["--drop-duplicate-ids"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    assert_twelve_clients_get_their_own_answers(&daemon).await;
    assert_eq!(upstream.log("").await["sessions_minted"], 1);
}

#[tokio::test]
async fn twelve_clients_with_the_same_ids_get_their_own_answers_over_legacy_sse() {
    let upstream = Upstream::sse(&["--drop-duplicate-ids"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    assert_twelve_clients_get_their_own_answers(&daemon).await;
    assert_eq!(upstream.log("").await["sessions_minted"], 1);
    assert_eq!(daemon.client("/status").get().await.answer()["servers"][0]["transport"], "sse");
}

#[tokio::test]
async fn twelve_clients_with_the_same_ids_get_their_own_answers_from_a_child() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("up", &["--drop-duplicate-ids"])).ready();
    assert_twelve_clients_get_their_own_answers(&daemon).await;
    assert_eq!(fakes.pids("up").len(), 1);
}

/// Initializes a client and calls once.
async fn first_call(client: Client, number: usize) -> Value {
    client.initialized().await.call("echo", json!({ "value": number })).await["value"].clone()
}

#[tokio::test]
async fn a_hundred_first_clients_share_one_session_of_an_upstream_that_starts_late() {
    let fakes = Fakes::new();
    let [door, gate] = ["door", "gate"].map(|name| fakes.path(name));
    let options = [
        "--listen-after",
        door.to_str().expect("UTF-8"),
        "--start-gate",
        gate.to_str().expect("UTF-8"),
    ];
    let upstream = Upstream::start(&options);
    let config = format!("[service]\nlog_level = \"debug\"\n{}", upstream.server("up", ""));
    let daemon = Daemon::with(config).ready();

    let clients: Vec<Client> = (0..100).map(|_| daemon.client("/servers/up")).collect();
    let calls = running(async move {
        all(clients.into_iter().enumerate().map(|(number, client)| first_call(client, number)))
            .await
    });
    // First, the upstream refuses connections for more than a second.
    until(async || daemon.log().matches("is not available yet, metamcp tries again").count() >= 5)
        .await;
    fs::write(&door, "").expect("written");
    // Then, it delays its answer.
    upstream.log("initializes=1").await;
    assert_eq!(
        daemon.client("/readyz").get().await.status,
        200,
        "other requests do not wait for it"
    );
    fs::write(&gate, "").expect("written");

    let values = calls.end().await;
    assert_eq!(values, (0..100).map(Value::from).collect::<Vec<_>>());
    let log = upstream.log("").await;
    assert_eq!((&log["initializes"], &log["sessions_minted"]), (&json!(1), &json!(1)), "{log}");
    assert_eq!(log["requests"]["tools/list"], 1, "read once for all: {log}");
}

/// Lets all clients call concurrently. The upstream answers only once all calls are in flight.
async fn round(clients: Vec<Client>, number: usize) {
    let n = clients.len();
    let replies = all(clients.into_iter().enumerate().map(|(at, client)| async move {
        client.tool("meet", json!({ "n": n, "value": 100 * number + at })).await
    }))
    .await;
    for (at, reply) in replies.iter().enumerate() {
        assert_eq!(reply.status, 200, "round {number}: {reply:?}");
        let value = &reply.answer()["result"]["structuredContent"]["value"];
        assert_eq!(*value, 100 * number + at, "round {number}: {reply:?}");
    }
}

#[tokio::test]
async fn ten_rounds_of_ten_clients_use_one_session_with_pings_between_them() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate");
    let upstream = Upstream::start(&["--start-gate", gate.to_str().expect("UTF-8")]);
    let health = "health = { interval = \"20ms\" }";
    let daemon = Daemon::with(upstream.server("up", health)).ready();

    let clients: Vec<Client> = (0..10).map(|_| daemon.client("/servers/up")).collect();
    let cold = running(async move {
        let clients = all(clients.into_iter().map(Client::initialized)).await;
        round(clients.clone(), 0).await;
        clients
    });
    upstream.log("initializes=1").await;
    fs::write(&gate, "").expect("written");
    let clients = cold.end().await;
    for number in 1..10 {
        // The session is watched while no client needs it.
        let n_pings = upstream.log("").await["requests"]["ping"].as_u64().unwrap_or(0);
        upstream.log(&format!("requests.ping={}", n_pings + 2)).await;
        round(clients.clone(), number).await;
    }

    let log = upstream.log("").await;
    assert_eq!((&log["initializes"], &log["sessions_minted"]), (&json!(1), &json!(1)), "{log}");
    assert_eq!(log["requests"]["tools/call"], 100, "{log}");
}

#[tokio::test]
async fn a_hundred_clients_wait_in_the_backlog_until_the_prewarmed_session_is_open() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate");
    let upstream = Upstream::start(&["--start-gate", gate.to_str().expect("UTF-8")]);
    let mut daemon = Daemon::with(upstream.server("up", "start = \"prewarm\"")).spawn();
    upstream.log("initializes=1").await;

    // All clients are connected and have sent everything; none was refused.
    let text = |number| call("1", "echo", &json!({ "value": number }));
    let client = daemon.client("/servers/up");
    let posts: Vec<String> = (0..100).map(text).collect();
    let waiting = all(posts.iter().map(|post| client.slow_post(post))).await;
    let is_ready = |notice: &String| notice.contains("READY=1");
    assert!(
        !daemon.notices().iter().any(is_ready),
        "no client is served before the session is open"
    );
    assert_eq!(upstream.log("").await["calls"], 0);
    fs::write(&gate, "").expect("written");

    daemon.wait_ready();
    let answers = all(waiting.into_iter().map(|mut waiting| async move {
        waiting.read_until("structuredContent\":{\"value\":").await;
        waiting.read_until("}").await
    }))
    .await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, format!("{number}}}"));
    }
    let log = upstream.log("").await;
    assert_eq!((&log["initializes"], &log["sessions_minted"]), (&json!(1), &json!(1)), "{log}");
}

#[tokio::test]
async fn the_tools_are_read_once_in_each_new_session_before_the_waiting_calls() {
    let (n_minted, n_lost) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let lost = Arc::clone(&n_lost);
    let upstream = ScriptedUpstream::start(move |request, response| {
        let session = request.header("mcp-session-id").trim_start_matches('s');
        if request.method() == "initialize" {
            let number = n_minted.fetch_add(1, Ordering::SeqCst) + 1;
            let body = request.result(&json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "scripted", "version": "1" },
            }));
            response.raw(format!(
                "HTTP/1.1 200 X\r\ncontent-type: application/json\r\nmcp-session-id: s{number}\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            ));
            return true;
        }
        let is_lost =
            session.parse().is_ok_and(|number: usize| number <= lost.load(Ordering::SeqCst));
        if is_lost {
            response.page(404, "text/plain", "gone");
        }
        is_lost
    });
    let daemon = Daemon::with(upstream.server("")).ready();
    let client = daemon.client("/servers/up");

    for generation in 1..=3 {
        let replies = all((0..32).map(|_| client.tool("x", json!({})))).await;
        assert!(replies.iter().all(|reply| reply.answer()["result"].is_object()), "{replies:?}");

        let session = format!("s{generation}");
        let requests = upstream.requests();
        let its_own = requests.iter().filter(|request| request.header("mcp-session-id") == session);
        let methods: Vec<&str> =
            its_own.map(|request| request.method()).filter(|method| *method != "GET").collect();
        assert_eq!(methods[..2], ["notifications/initialized", "tools/list"], "{session}");
        assert_eq!(methods[2..], ["tools/call"; 32], "{session}: all calls, and nothing else");
        assert_eq!(upstream.count("initialize"), generation);
        n_lost.store(generation, Ordering::SeqCst);
    }
}
