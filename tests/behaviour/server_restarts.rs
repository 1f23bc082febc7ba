//! Servers that restart under load: the calls that fail, and the calls that are repeated.

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

/// The tools of the clients, in turn. Only `count` must not run twice.
const TOOLS: [&str; 4] = ["count", "count_idempotent", "count", "read_only"];

/// One call and its answer.
struct CallRecord {
    tool: &'static str,
    key: String,
    answer: Value,
}

/// Lets many clients call until stopped, each time with a new key.
fn load(daemon: &Daemon) -> Load<CallRecord> {
    let clients: Vec<Client> = (0..N_CLIENTS).map(|_| daemon.client("/servers/up")).collect();
    Load::start(N_CLIENTS, move |number, n_before| {
        let client = clients[number].clone();
        async move {
            let (tool, key) = (TOOLS[number % TOOLS.len()], format!("{number}-{n_before}"));
            let answer = client.tool(tool, json!({ "key": key })).await.answer();
            CallRecord { tool, key, answer }
        }
    })
}

/// Asserts that only repeatable calls ran twice, that every answered call was executed, and that
/// only calls that must not be repeated failed, with `code`. Returns the number of failures.
#[track_caller]
fn check(calls: &[CallRecord], executions: &BTreeMap<String, u64>, code: &str) -> usize {
    let mut n_failed = 0;
    for CallRecord { tool, key, answer } in calls {
        let n_done = executions.get(key).copied().unwrap_or_default();
        let is_repeatable = *tool != "count";
        assert_eq!(answer["id"], 1, "{answer}");
        assert!(n_done <= 1 || is_repeatable, "{tool} {key} ran {n_done} times");
        if answer["result"].is_object() {
            assert!(n_done >= 1, "{tool} {key} was answered and did not run");
        } else {
            assert_eq!(answer["error"]["data"]["code"], code, "{tool} {key}: {answer}");
            assert!(!is_repeatable, "{tool} {key} could have been repeated: {answer}");
            n_failed += 1;
        }
    }
    n_failed
}

#[tokio::test]
async fn a_session_forgotten_under_load_costs_one_new_session_and_no_error() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let load = load(&daemon);
    load.wait_for_answers(2).await;

    for n_forgotten in 1..=5 {
        upstream.control("forget?finish=1").await;
        upstream.log(&format!("sessions_minted={}", n_forgotten + 1)).await;
        load.wait_for_answers(2).await;
    }

    let calls = load.end().await;
    let log = upstream.log("").await;
    let executions = serde_json::from_value(log["executions"].clone()).expect("counts");
    assert_eq!(check(&calls, &executions, "none"), 0);
    assert!(executions.values().all(|n_done| *n_done == 1), "no call ran twice");
    assert_eq!((&log["initializes"], &log["sessions_minted"]), (&json!(6), &json!(6)), "{log}");
}

/// Starts an upstream that continues the execution counts in the file.
fn start_upstream(port: &str, state: &Path) -> Upstream {
    Upstream::start(&["--port", port, "--state", state.to_str().expect("UTF-8")])
}

#[tokio::test]
async fn an_upstream_killed_under_load_fails_only_its_running_calls() {
    let fakes = Fakes::new();
    let state = fakes.path("state");
    let mut upstream = start_upstream("0", &state);
    let port = upstream.port();
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let load = load(&daemon);
    load.wait_for_answers(2).await;

    for _ in 0..N_RESTARTS {
        assert_eq!(upstream.log("").await["sessions_minted"], 1, "one per restart");
        upstream.signal(Signal::KILL);
        upstream.wait_exit();
        upstream = start_upstream(&port, &state);
        load.wait_for_answers(2).await;
    }

    let calls = load.end().await;
    assert_eq!(upstream.log("").await["sessions_minted"], 1);
    let n_failed = check(&calls, &executions(&state), "ANSWER_BROKEN_OFF");
    assert!(
        n_failed <= N_RESTARTS * N_CLIENTS / 2,
        "at most one failure per client and restart: {n_failed}"
    );
}

#[tokio::test]
async fn an_upstream_drained_under_load_finishes_its_running_calls() {
    let fakes = Fakes::new();
    let state = fakes.path("state");
    let mut old = start_upstream("0", &state);
    let port = old.port();
    let daemon = Daemon::with(old.server("up", "")).ready();
    let load = load(&daemon);
    let held = running(daemon.client("/servers/up").hold("k"));
    old.log("held=1").await;
    load.wait_for_answers(2).await;

    old.signal(Signal::TERM);
    old.log("drains=1").await;
    let new = start_upstream(&port, &state);
    new.log("sessions_minted=1").await;
    load.wait_for_answers(2).await;

    // The old process and its session exist until its calls have finished.
    assert_eq!(new.log("").await["deletes"], 0);
    old.control("release?key=k").await;
    assert_eq!(held.end().await.answer()["result"]["structuredContent"]["key"], "k");
    assert!(old.wait_exit().success());
    // The end of the old session goes to the process that still has a TCP connection to metamcp.
    assert_eq!(new.log("").await["sessions_minted"], 1, "one per restart");
    let calls = load.end().await;
    // If a connection closes while a call is written to it, the server may or may not have read
    // the call. Only calls that may be repeated are sent again.
    check(&calls, &executions(&state), "ANSWER_BROKEN_OFF");
}

#[tokio::test]
async fn a_call_in_a_replaced_session_is_answered_before_that_session_is_ended() {
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
            daemon.wait_log("does not answer pings: metamcp reconnects to it");
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
async fn a_child_killed_under_load_fails_only_its_running_calls() {
    let fakes = Fakes::new();
    let state = fakes.path("state");
    let config = fakes.server("up", &["--state", state.to_str().expect("UTF-8")]);
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/up");
    // The list tells metamcp which tools may be repeated.
    client.request(json!(1), "tools/list", json!({})).await;
    let load = load(&daemon);
    load.wait_for_answers(2).await;

    for n_killed in 1..=N_RESTARTS {
        let reply = client.tool("whoami", json!({})).await.answer();
        let pid = reply["result"]["structuredContent"]["pid"].as_u64().expect("a pid");
        kill(pid);
        load.wait_for_answers(2).await;
        assert_eq!(fakes.pids("up").len(), n_killed + 1, "one process for all");
    }

    let calls = load.end().await;
    let n_failed = check(&calls, &executions(&state), "SERVER_EXITED");
    assert!(
        n_failed <= N_RESTARTS * N_CLIENTS / 2,
        "at most one failure per client and restart: {n_failed}"
    );
}

fn kill(pid: u64) {
    crate::harness::daemon::signal(u32::try_from(pid).expect("a pid"), Signal::KILL);
}
