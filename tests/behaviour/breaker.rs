//! The circuit breaker: it keeps requests from a server that fails repeatedly, and probes it with
//! one request at a time.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    all,
    command_line::status,
    harness::{
        client::{Client, running},
        daemon::Daemon,
        fake::{Fakes, Upstream, executions},
    },
    server_status, until,
};

/// The number of consecutive failures that open the breaker.
const THRESHOLD: usize = 5;

/// A cooldown that does not end while a test runs.
const LONG_COOLDOWN: &str = "[breaker]\ncooldown = \"1h\"\n";
/// A cooldown that ends before the next request.
const SHORT_COOLDOWN: &str = "[breaker]\ncooldown = \"1ms\"\n";

fn code(answer: &Value) -> &str {
    answer["error"]["data"]["code"].as_str().unwrap_or_default()
}

/// Makes the process of the server exit, and checks the error of the call.
async fn crash(client: &Client) {
    let answer = client.tool("exit", json!({ "code": 1 })).await.answer();
    assert_eq!(code(&answer), "SERVER_EXITED", "{answer}");
}

async fn open_breaker(client: &Client) {
    for _ in 0..THRESHOLD {
        crash(client).await;
    }
}

/// Returns the breaker of a server as `/status` shows it.
async fn breaker(daemon: &Daemon, name: &str) -> Value {
    server_status(daemon, name).await["breaker"].clone()
}

#[tokio::test]
async fn five_crashes_in_a_row_open_the_breaker_of_a_server() {
    let fakes = Fakes::new();
    let config = LONG_COOLDOWN.to_owned() + &fakes.server("bad", &[]) + &fakes.server("good", &[]);
    let mut daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/bad");
    for n_crashes in 1..=THRESHOLD {
        assert_eq!(breaker(&daemon, "bad").await["state"], "normal");
        crash(&client).await;
        assert_eq!(fakes.pids("bad").len(), n_crashes);
    }

    for answer in all((0..10).map(|_| client.tool("echo", json!({ "value": 1 })))).await {
        let error = &answer.answer()["error"];
        assert_eq!(error["data"]["code"], "SERVER_TRIPPED", "{error}");
        let retry_after_ms = error["data"]["context"]["retryAfterMs"].as_u64().expect("a number");
        assert!((1..=3_600_000).contains(&retry_after_ms), "{error}");
        let message = error["message"].as_str().expect("a text");
        assert!(
            message.contains("is not available: its process ")
                && message.contains("; next attempt in "),
            "{error}"
        );
    }

    assert_eq!(fakes.pids("bad").len(), THRESHOLD, "the server is not started");
    daemon.wait_log("its requests are refused mcp_server=bad fault=stdio-exit");
    let shown = breaker(&daemon, "bad").await;
    assert_eq!(
        (&shown["state"], &shown["failures"], &shown["trips"], &shown["last_fault"]),
        (&json!("open"), &json!(0), &json!(1), &json!("stdio-exit")),
        "{shown}"
    );
    assert!(shown["next_probe_ms"].as_u64().is_some_and(|wait_ms| wait_ms > 0), "{shown}");
    let (_, table, _) = status(&daemon, &[]);
    assert!(table.contains("breaker open, next attempt in "), "{table}");
    daemon.wait_notice("of an open breaker", |notice| notice.contains(", breaker open: "));

    // The breaker affects neither another server nor the merged lists.
    assert_eq!(breaker(&daemon, "good").await["state"], "normal");
    let client = daemon.client("/");
    assert_eq!(client.call("good__echo", json!({ "value": 2 })).await["value"], 2);
    let listed = client.request(json!(1), "tools/list", json!({})).await.answer();
    let names = listed["result"]["tools"].as_array().expect("a list").iter();
    let servers: Vec<&str> = names
        .filter_map(|tool| tool["name"].as_str()?.split_once("__").map(|(server, _)| server))
        .collect();
    assert!(!servers.is_empty() && servers.iter().all(|server| *server == "good"), "{servers:?}");
    // A new client completes its handshake without the server.
    drop(daemon.client("/servers/bad").initialized().await);
    assert_eq!(fakes.pids("bad").len(), THRESHOLD, "the server is still not started");
}

#[tokio::test]
async fn a_successful_probe_returns_the_breaker_to_normal() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(SHORT_COOLDOWN.to_owned() + &fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    open_breaker(&client).await;

    until(async || {
        let answer = client.tool("echo", json!({ "value": 1 })).await.answer();
        assert!(answer["result"].is_object() || code(&answer) == "SERVER_TRIPPED", "{answer}");
        answer["result"].is_object()
    })
    .await;

    daemon.wait_log("breaker normal again: server `fake` works mcp_server=fake");
    let shown = breaker(&daemon, "fake").await;
    assert_eq!((&shown["state"], &shown["trips"]), (&json!("normal"), &json!(1)), "{shown}");
    assert_eq!(shown["next_probe_ms"], Value::Null);
}

#[tokio::test]
async fn a_failed_probe_reopens_the_breaker_for_another_cooldown() {
    let fakes = Fakes::new();
    let server = fakes.server("fake", &[]);
    let mut daemon = Daemon::with(LONG_COOLDOWN.to_owned() + &server).ready();
    let client = daemon.client("/servers/fake");
    open_breaker(&client).await;
    for n_trips in 2..5 {
        daemon.rewrite(&(SHORT_COOLDOWN.to_owned() + &server));
        daemon.reload();
        crash(&client).await;
        daemon.rewrite(&(LONG_COOLDOWN.to_owned() + &server));
        daemon.reload();

        let shown = breaker(&daemon, "fake").await;
        assert_eq!((&shown["state"], &shown["trips"]), (&json!("open"), &json!(n_trips)));
        let answer = client.tool("echo", json!({ "value": 1 })).await.answer();
        assert_eq!(code(&answer), "SERVER_TRIPPED", "{answer}");
        assert_eq!(fakes.pids("fake").len(), THRESHOLD + n_trips - 1, "one start for each probe");
    }
}

#[tokio::test]
async fn the_breaker_passes_one_probe_at_a_time_and_a_disconnect_ends_it() {
    let fakes = Fakes::new();
    let server = fakes.server("fake", &[]);
    let mut daemon = Daemon::with(SHORT_COOLDOWN.to_owned() + &server).ready();
    let client = daemon.client("/servers/fake");
    open_breaker(&client).await;
    until(async || breaker(&daemon, "fake").await["next_probe_ms"] == 0).await;
    let probe = running(client.clone().hold("never"));
    until(async || fakes.n_events("fake", "held") == 1).await;
    // From now on, the cooldown does not end during the test.
    daemon.rewrite(&(LONG_COOLDOWN.to_owned() + &server));
    daemon.reload();

    assert_eq!(breaker(&daemon, "fake").await["state"], "probe");
    for reply in all((0..10).map(|_| client.tool("echo", json!({ "value": 1 })))).await {
        assert_eq!(code(&reply.answer()), "SERVER_TRIPPED", "{reply:?}");
    }
    let (_, table, _) = status(&daemon, &[]);
    assert!(table.contains("breaker open, an attempt runs"), "{table}");

    drop(probe);
    until(async || breaker(&daemon, "fake").await["state"] == "open").await;
    assert_eq!(client.call("echo", json!({ "value": 2 })).await["value"], 2);
    assert_eq!(breaker(&daemon, "fake").await["state"], "normal");
}

#[tokio::test]
async fn the_calls_lost_in_one_crash_count_as_one_failure() {
    let fakes = Fakes::new();
    let state = fakes.path("state");
    let server = fakes.server("fake", &["--state", &state.display().to_string()]);
    let daemon = Daemon::with(LONG_COOLDOWN.to_owned() + &server).ready();
    let client = daemon.client("/servers/fake");
    for n_crashes in 1..THRESHOLD {
        let held = (0..8).map(|_| {
            let client = client.clone();
            let arguments = json!({ "key": "k", "then": "hold" });
            running(async move { client.tool("count", arguments).await })
        });
        let held: Vec<_> = held.collect();
        // The server has received all calls: metamcp would retry a call that it never received.
        until(async || executions(&state).get("k") == Some(&(8 * n_crashes as u64))).await;
        crash(&client).await;
        for reply in held {
            assert_eq!(code(&reply.end().await.answer()), "SERVER_EXITED");
        }
        let shown = breaker(&daemon, "fake").await;
        assert_eq!(
            (&shown["state"], &shown["failures"]),
            (&json!("normal"), &json!(n_crashes)),
            "nine calls, one crash: {shown}"
        );
    }
    crash(&client).await;
    assert_eq!(breaker(&daemon, "fake").await["state"], "open");
}

#[tokio::test]
async fn the_requests_that_time_out_on_one_connection_attempt_count_as_one_failure() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate").display().to_string();
    let config = "[service]\nrequest_timeout = \"200ms\"\nmax_total_timeout = \"200ms\"\n"
        .to_owned()
        + LONG_COOLDOWN;
    let daemon = Daemon::with(config + &fakes.server("fake", &["--start-gate", &gate])).ready();
    let client = daemon.client("/servers/fake");
    for _ in 0..2 {
        for reply in all((0..8).map(|_| client.tool("echo", json!({ "value": 1 })))).await {
            assert_eq!(code(&reply.answer()), "TIMEOUT", "{reply:?}");
        }
    }
    let shown = breaker(&daemon, "fake").await;
    assert_eq!((&shown["failures"], &shown["last_fault"]), (&json!(1), &json!("offline")));
    // The server was only slow.
    std::fs::write(&gate, "").expect("written");
    until(async || client.tool("whoami", json!({})).await.answer()["result"].is_object()).await;
}

#[tokio::test]
async fn an_error_answer_never_opens_the_breaker() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(LONG_COOLDOWN.to_owned() + &fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    let words = "401 Unauthorized: connect ECONNREFUSED 127.0.0.1:1, HTTP 503";
    let failed = json!({ "content": [{ "type": "text", "text": words }], "isError": true });
    for _ in 0..2 * THRESHOLD {
        let error = json!({ "code": -32000, "message": words });
        let answer = client.tool("rpc_error", error).await.answer();
        assert_eq!(answer["error"]["message"], words);
        let answer = client.tool("raw", json!({ "result": failed.to_string() })).await.answer();
        assert_eq!(answer["result"]["isError"], true);
    }
    let shown = breaker(&daemon, "fake").await;
    assert_eq!(shown, json!({ "state": "normal", "failures": 0, "trips": 0 }));

    // An answer also resets the failure count.
    for _ in 0..3 {
        for _ in 1..THRESHOLD {
            crash(&client).await;
        }
        client.tool("tool_error", json!({})).await;
        assert_eq!(breaker(&daemon, "fake").await["failures"], 0);
    }
}

#[tokio::test]
async fn refused_credentials_never_open_the_breaker_and_are_logged_with_the_server() {
    let closed = Upstream::start(&["--require-header", "x-api-key=right"]);
    let open = Upstream::start(&[]);
    let config = LONG_COOLDOWN.to_owned()
        + &closed.server("closed", "auth = \"none\"")
        + &open.server("revoked", "");
    let daemon = Daemon::with(config).ready();

    let client = daemon.client("/servers/closed");
    for _ in 0..2 * THRESHOLD {
        let answer = client.tool("echo", json!({ "value": 1 })).await.answer();
        assert_eq!(code(&answer), "UPSTREAM_STATUS", "{answer}");
    }
    let shown = breaker(&daemon, "closed").await;
    let expected = json!({ "state": "normal", "failures": 0, "trips": 0, "last_fault": "auth" });
    assert_eq!(shown, expected);
    daemon.wait_log("server `closed` refuses its credentials");

    let client = daemon.client("/servers/revoked");
    client.call("echo", json!({ "value": 1 })).await;
    open.control(&format!("status?code=403&n={}", 2 * THRESHOLD)).await;
    for _ in 0..2 * THRESHOLD {
        let answer = client.tool("echo", json!({ "value": 1 })).await.answer();
        assert_eq!(code(&answer), "UPSTREAM_STATUS", "{answer}");
    }
    assert_eq!(breaker(&daemon, "revoked").await, expected);
    daemon.wait_log("server `revoked` refuses its credentials");
    assert_eq!(client.call("echo", json!({ "value": 2 })).await["value"], 2);
}

#[tokio::test]
async fn repeated_status_503_of_an_upstream_opens_the_breaker() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(LONG_COOLDOWN.to_owned() + &upstream.server("up", "")).ready();
    let client = daemon.client("/servers/up");
    client.call("echo", json!({ "value": 1 })).await;
    upstream.control(&format!("status?code=503&n={THRESHOLD}")).await;
    for _ in 0..THRESHOLD {
        let answer = client.tool("echo", json!({ "value": 1 })).await.answer();
        assert_eq!(code(&answer), "UPSTREAM_STATUS", "{answer}");
    }
    let n_asked = upstream.log("").await["requests"]["tools/call"].clone();

    let answer = client.tool("echo", json!({ "value": 1 })).await.answer();

    assert_eq!(code(&answer), "SERVER_TRIPPED", "{answer}");
    assert_eq!(upstream.log("").await["requests"]["tools/call"], n_asked);
    assert_eq!(breaker(&daemon, "up").await["last_fault"], "http");
}

#[tokio::test]
async fn repeated_call_timeouts_open_the_breaker() {
    let fakes = Fakes::new();
    let config = "[service]\nrequest_timeout = \"250ms\"\n".to_owned() + LONG_COOLDOWN;
    let state = fakes.path("state");
    let options = ["--state", state.to_str().expect("UTF-8")];
    let daemon = Daemon::with(config + &fakes.server("fake", &options)).ready();
    let client = daemon.client("/servers/fake");
    until(async || client.tool("whoami", json!({})).await.answer()["result"].is_object()).await;
    for _ in 0..THRESHOLD {
        let answer = client.clone().hold("k").await.answer();
        assert_eq!(code(&answer), "TIMEOUT", "{answer}");
    }

    let answer = client.tool("count", json!({ "key": "k" })).await.answer();

    assert_eq!(code(&answer), "SERVER_TRIPPED", "{answer}");
    assert_eq!(breaker(&daemon, "fake").await["last_fault"], "offline");
    assert!(executions(&state).is_empty(), "the server received no call");
}

#[tokio::test]
async fn a_missing_program_opens_the_breaker_until_a_reload_changes_the_program() {
    let fakes = Fakes::new();
    let missing = "[servers.fake]\ncommand = \"/no/such/program\"\n";
    let mut daemon = Daemon::with(LONG_COOLDOWN.to_owned() + missing).ready();
    let client = daemon.client("/servers/fake");
    for _ in 0..THRESHOLD {
        let answer = client.tool("echo", json!({ "value": 1 })).await.answer();
        assert_eq!(code(&answer), "SERVER_NOT_STARTED", "{answer}");
    }
    let answer = client.tool("echo", json!({ "value": 1 })).await.answer();
    assert_eq!(code(&answer), "SERVER_TRIPPED", "{answer}");
    let shown = breaker(&daemon, "fake").await;
    assert_eq!((&shown["state"], &shown["last_fault"]), (&json!("open"), &json!("offline")));

    daemon.rewrite(&(LONG_COOLDOWN.to_owned() + &fakes.server("fake", &[])));
    daemon.reload();

    assert_eq!(client.call("echo", json!({ "value": 2 })).await["value"], 2);
    assert_eq!(breaker(&daemon, "fake").await["trips"], 0, "the count starts at zero again");
}

#[tokio::test]
async fn a_reload_changes_the_threshold_and_the_cooldown_of_unchanged_servers() {
    let fakes = Fakes::new();
    let server = fakes.server("fake", &[]);
    let mut daemon = Daemon::with(LONG_COOLDOWN.to_owned() + &server).ready();
    let client = daemon.client("/servers/fake");
    crash(&client).await;

    daemon.rewrite(&format!("[breaker]\nfailure_threshold = 2\ncooldown = \"30m\"\n{server}"));
    daemon.reload();
    crash(&client).await;

    let shown = breaker(&daemon, "fake").await;
    assert_eq!(shown["state"], "open");
    let longest = u64::try_from(Duration::from_secs(30 * 60).as_millis()).expect("it fits");
    assert!(shown["next_probe_ms"].as_u64().is_some_and(|wait_ms| wait_ms <= longest), "{shown}");

    daemon.rewrite(&format!("[breaker]\nfailure_threshold = 0\n{server}"));
    daemon.reload();
    for _ in 0..2 * THRESHOLD {
        crash(&client).await;
    }
    assert_eq!(breaker(&daemon, "fake").await["state"], "normal");
}
