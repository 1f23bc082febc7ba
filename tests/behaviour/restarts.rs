//! Servers that restart while many clients are at work: who notices, and what is done twice.

use std::{collections::BTreeMap, path::Path};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{
    client::{Client, running},
    daemon::Daemon,
    fake::{Fakes, Upstream, executions},
    load::Load,
};

/// The number of clients.
const N_CLIENTS: usize = 32;

/// The number of restarts of the server.
const N_RESTARTS: usize = 3;

/// The tool of every second client, which must not run twice. The others call one that may.
const TOOLS: [&str; 4] = ["count", "count_idempotent", "count", "read_only"];

/// One call and its answer.
struct Called {
    tool: &'static str,
    key: String,
    answer: Value,
}

/// Has many clients call, each under a key of its own every time.
fn load(daemon: &Daemon) -> Load<Called> {
    let clients: Vec<Client> = (0..N_CLIENTS).map(|_| daemon.client("/servers/up")).collect();
    Load::start(N_CLIENTS, move |number, n_before| {
        let client = clients[number].clone();
        async move {
            let (tool, key) = (TOOLS[number % TOOLS.len()], format!("{number}-{n_before}"));
            let answer = client.tool(tool, json!({ "key": key })).await.answer();
            Called { tool, key, answer }
        }
    })
}

/// Checks that no call ran twice that must not, and that every answered call was executed. Only
/// calls failed, with `code`, that the server may have executed and must not repeat.
/// Returns the number of failures.
#[track_caller]
fn check(calls: &[Called], executions: &BTreeMap<String, u64>, code: &str) -> usize {
    let mut n_failed = 0;
    for Called { tool, key, answer } in calls {
        let n_done = executions.get(key).copied().unwrap_or_default();
        let is_repeatable = *tool != "count";
        assert_eq!(answer["id"], 1, "{answer}");
        assert!(n_done <= 1 || is_repeatable, "{tool} {key} was done {n_done} times");
        if answer["result"].is_object() {
            assert!(n_done >= 1, "{tool} {key} was answered and not done");
        } else {
            assert_eq!(answer["error"]["data"]["code"], code, "{tool} {key}: {answer}");
            assert!(!is_repeatable, "{tool} {key} could have been sent again: {answer}");
            n_failed += 1;
        }
    }
    n_failed
}

#[tokio::test]
async fn sessions_that_are_forgotten_under_load_cost_one_mint_each_and_no_error() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let load = load(&daemon);
    load.goes_on(2).await;

    for n_forgotten in 1..=5 {
        upstream.control("forget?finish=1").await;
        upstream.log(&format!("sessions_minted={}", n_forgotten + 1)).await;
        load.goes_on(2).await;
    }

    let calls = load.end().await;
    let log = upstream.log("").await;
    let executions = serde_json::from_value(log["executions"].clone()).expect("counts");
    assert_eq!(check(&calls, &executions, "none"), 0);
    assert!(executions.values().all(|n_done| *n_done == 1), "nothing was done twice");
    assert_eq!((&log["initializes"], &log["sessions_minted"]), (&json!(6), &json!(6)), "{log}");
}

/// Starts an upstream that counts on from what earlier ones have left in the file.
fn come_back(port: &str, state: &Path) -> Upstream {
    Upstream::start(&["--port", port, "--state", state.to_str().expect("UTF-8")])
}

#[tokio::test]
async fn an_upstream_that_is_killed_under_load_costs_only_what_it_was_at() {
    let fakes = Fakes::new();
    let state = fakes.path("state");
    let mut upstream = come_back("0", &state);
    let port = upstream.port();
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let load = load(&daemon);
    load.goes_on(2).await;

    for _ in 0..N_RESTARTS {
        assert_eq!(upstream.log("").await["sessions_minted"], 1, "one per restart");
        upstream.signal(Signal::KILL);
        upstream.wait_exit();
        upstream = come_back(&port, &state);
        load.goes_on(2).await;
    }

    let calls = load.end().await;
    assert_eq!(upstream.log("").await["sessions_minted"], 1);
    let n_failed = check(&calls, &executions(&state), "ANSWER_BROKEN_OFF");
    assert!(n_failed <= N_RESTARTS * N_CLIENTS / 2, "one each at most: {n_failed}");
}

#[tokio::test]
async fn an_upstream_that_is_drained_and_restarted_finishes_what_it_was_at() {
    let fakes = Fakes::new();
    let state = fakes.path("state");
    let mut old = come_back("0", &state);
    let port = old.port();
    let daemon = Daemon::with(old.server("up", "")).ready();
    let load = load(&daemon);
    let held = running(daemon.client("/servers/up").hold("k"));
    old.log("held=1").await;
    load.goes_on(2).await;

    old.signal(Signal::TERM);
    old.log("drains=1").await;
    let new = come_back(&port, &state);
    new.log("sessions_minted=1").await;
    load.goes_on(2).await;

    // The old process is there for as long as it has something to finish, and so is its session.
    assert_eq!(new.log("").await["deletes"], 0);
    old.control("release?key=k").await;
    assert_eq!(held.end().await.answer()["result"]["structuredContent"]["key"], "k");
    assert!(old.wait_exit().success());
    // The farewell goes to the one that still has a TCP connection to metamcp.
    assert_eq!(new.log("").await["sessions_minted"], 1, "one per restart");
    let calls = load.end().await;
    // If a connection closes while a call is written to it, the server may or may not have read
    // the call. Only calls that may be repeated are sent again.
    check(&calls, &executions(&state), "ANSWER_BROKEN_OFF");
}

#[tokio::test]
async fn a_call_that_outlives_its_session_is_answered_and_then_the_session_is_ended() {
    let upstream = Upstream::start(&[]);
    let health = "health = { interval = \"50ms\", timeout = \"50ms\" }";
    for (server, cause) in [("", "status?code=404&n=1"), (health, "pings?mode=never")] {
        let before = upstream.log("").await;
        let count = |name: &str| before[name].as_u64().expect("a count");
        let (n_minted, n_deleted) = (count("sessions_minted"), count("deletes"));
        let mut daemon = Daemon::with(upstream.server("up", server)).ready();
        let client = daemon.client("/servers/up");
        let old = client.call("whoami", json!({})).await["session"].clone();
        let held = running(client.clone().hold("k"));
        upstream.log("held=1").await;

        upstream.control(cause).await;
        if !server.is_empty() {
            daemon.wait_log("server does not answer pings");
        }
        let new = client.call("whoami", json!({})).await["session"].clone();
        let log = upstream.log(&format!("sessions_minted={}", n_minted + 2)).await;
        upstream.control("pings?mode=answer").await;
        assert_ne!(new, old, "{cause}");
        assert_eq!((&log["held"], &log["deletes"]), (&json!(1), &json!(n_deleted)), "{cause}");

        upstream.control("release?key=k").await;
        assert_eq!(held.end().await.answer()["result"]["structuredContent"]["key"], "k");
        let log = upstream.log(&format!("deletes={}", n_deleted + 1)).await;
        let sessions = log["sessions"].as_array().expect("a list");
        assert!(sessions.contains(&new) && !sessions.contains(&old), "{cause}: {sessions:?}");
        assert!(daemon.stop().success());
        assert_eq!(upstream.log("").await["sessions"], json!([]), "{cause}");
    }
}

#[tokio::test]
async fn a_child_that_is_killed_under_load_costs_only_what_it_was_at() {
    let fakes = Fakes::new();
    let state = fakes.path("state");
    let config = fakes.server("up", &["--state", state.to_str().expect("UTF-8")]);
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/up");
    // What may be repeated is known from the list.
    client.request(json!(1), "tools/list", json!({})).await;
    let load = load(&daemon);
    load.goes_on(2).await;

    for n_killed in 1..=N_RESTARTS {
        let reply = client.tool("whoami", json!({})).await.answer();
        let pid = reply["result"]["structuredContent"]["pid"].as_u64().expect("a pid");
        kill(pid);
        load.goes_on(2).await;
        assert_eq!(fakes.pids("up").len(), n_killed + 1, "one process for all");
    }

    let calls = load.end().await;
    let n_failed = check(&calls, &executions(&state), "SERVER_EXITED");
    assert!(n_failed <= N_RESTARTS * N_CLIENTS / 2, "one each at most: {n_failed}");
}

fn kill(pid: u64) {
    crate::harness::daemon::signal(u32::try_from(pid).expect("a pid"), Signal::KILL);
}
