//! The retry modes of a server: the calls that it receives twice. Its tools count their executions.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::{
    harness::{
        client::{Client, running},
        daemon::Daemon,
        fake::{Fakes, executions},
    },
    server_status, until,
};

/// A service with a server that counts executions.
struct CountingServer {
    fakes: Fakes,
    state: PathBuf,
    daemon: Daemon,
    client: Client,
}

impl CountingServer {
    /// Starts the service with settings for the service and the server, and options for the fake.
    fn start(service: &str, server: &str, options: &[&str]) -> Self {
        let fakes = Fakes::new();
        let state = fakes.path("state");
        let options = [&["--state", state.to_str().expect("UTF-8")], options].concat();
        let config = format!("{service}{}{server}\n", fakes.server("fake", &options));
        let daemon = Daemon::with(config).ready();
        let client = daemon.client("/servers/fake");
        Self { fakes, state, daemon, client }
    }

    fn mode(retry: &str) -> Self {
        Self::start("", &format!("retry = \"{retry}\""), &[])
    }

    /// Calls `tool` with this key; returns the answer and the number of executions.
    async fn count(&self, tool: &str, key: &str, then: &str) -> (Value, u64) {
        let answer = self.client.tool(tool, json!({ "key": key, "then": then })).await.answer();
        (answer, executions(&self.state).get(key).copied().unwrap_or_default())
    }

    /// Returns the number of failures that the breaker has counted.
    async fn failures(&self) -> Value {
        server_status(&self.daemon, "fake").await["breaker"]["failures"].clone()
    }

    async fn list(&self) {
        let listed = self.client.request(json!(1), "tools/list", json!({})).await.answer();
        assert!(listed["result"]["tools"].is_array(), "{listed}");
    }
}

fn code(answer: &Value) -> &str {
    answer["error"]["data"]["code"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn safe_repeats_no_call_that_must_not_run_twice() {
    let server = CountingServer::mode("safe");
    server.list().await;
    for n_failed in 1..4 {
        let key = format!("key {n_failed}");
        let (answer, n_done) = server.count("count", &key, "exit").await;
        assert_eq!((code(&answer), n_done), ("SERVER_EXITED", 1));
        assert_eq!(server.failures().await, n_failed);
    }
}

#[tokio::test]
async fn safe_repeats_calls_of_tools_that_are_listed_as_read_only_or_idempotent() {
    let server = CountingServer::start("", "", &["--page", "3"]);
    let (answer, n_done) = server.count("read_only", "unknown", "exit_first").await;
    assert_eq!((code(&answer), n_done), ("SERVER_EXITED", 1), "no list was read yet");

    let mut params = json!({});
    loop {
        let page = server.client.request(json!(1), "tools/list", params).await.answer();
        let Some(cursor) = page["result"]["nextCursor"].as_str() else { break };
        params = json!({ "cursor": cursor });
    }
    for tool in ["read_only", "count_idempotent"] {
        let (answer, n_done) = server.count(tool, tool, "exit_first").await;
        assert_eq!((&answer["result"]["structuredContent"]["n"], n_done), (&json!(2), 2), "{tool}");
        assert_eq!(server.failures().await, 0, "a call that was answered has not failed");
    }
    // The learned hints outlive the process that listed them.
    let (answer, n_done) = server.count("read_only", "again", "exit_first").await;
    assert!(answer["result"].is_object() && n_done == 2, "{answer}");
    let (answer, n_done) = server.count("count", "never", "exit_first").await;
    assert_eq!((code(&answer), n_done), ("SERVER_EXITED", 1));
}

#[tokio::test]
async fn vital_repeats_any_call_once() {
    let server = CountingServer::mode("vital");
    for key in ["one", "two"] {
        let (answer, n_done) = server.count("count", key, "exit_first").await;
        assert_eq!((&answer["result"]["structuredContent"]["n"], n_done), (&json!(2), 2), "{key}");
    }
    assert_eq!(server.failures().await, 0);
    let (answer, n_done) = server.count("count", "three", "exit").await;
    assert_eq!((code(&answer), n_done), ("SERVER_EXITED", 2));
    assert_eq!(server.failures().await, 1, "one count per call, after its second attempt");
}

#[tokio::test]
async fn vital_repeats_a_timed_out_call_and_safe_does_not() {
    for (retry, n_expected) in [("vital", 2), ("safe", 1)] {
        let service = "[service]\nrequest_timeout = \"300ms\"\n";
        let server = CountingServer::start(service, &format!("retry = \"{retry}\""), &[]);
        let is_up =
            async || server.client.tool("whoami", json!({})).await.answer()["result"].is_object();
        until(is_up).await;
        let (answer, n_done) = server.count("read_only", "k", "hold").await;
        assert_eq!((code(&answer), n_done), ("TIMEOUT", n_expected), "{retry}");
        assert_eq!(server.failures().await, 1, "{retry}");
    }
}

#[tokio::test]
async fn fresh_repeats_calls_until_the_server_has_been_reconnected() {
    let server = CountingServer::mode("fresh");
    let (answer, n_done) = server.count("count", "first", "exit_first").await;
    assert!(answer["result"].is_object() && n_done == 2, "{answer}");
    assert_eq!(server.fakes.pids("fake").len(), 2);
    let (answer, n_done) = server.count("count", "second", "exit_first").await;
    assert_eq!((code(&answer), n_done), ("SERVER_EXITED", 1));
}

#[tokio::test]
async fn never_repeats_no_call() {
    let server = CountingServer::mode("never");
    server.list().await;
    for tool in ["read_only", "count_idempotent", "count"] {
        let (answer, n_done) = server.count(tool, tool, "exit_first").await;
        assert_eq!((code(&answer), n_done), ("SERVER_EXITED", 1), "{tool}");
    }
}

#[tokio::test]
async fn a_call_is_not_repeated_after_the_client_received_a_part_of_its_answer() {
    let server = CountingServer::mode("vital");
    server.list().await;
    let params = json!({
        "name": "read_only", "arguments": { "key": "k", "then": "tell_and_exit" },
        "_meta": { "progressToken": "t" },
    });
    let reply = server.client.request(json!(1), "tools/call", params).await;
    let messages = reply.messages();
    assert_eq!(messages[0]["method"], "notifications/progress", "{messages:?}");
    assert_eq!(code(&messages[1]), "SERVER_EXITED", "{messages:?}");
    assert_eq!(executions(&server.state)["k"], 1);
}

#[tokio::test]
async fn a_failed_connection_attempt_is_repeated_once_before_the_call_fails() {
    for (retry, n_bad_starts, n_starts) in
        [("safe", 1, 2), ("safe", 2, 2), ("vital", 1, 2), ("never", 1, 1)]
    {
        let server = CountingServer::start(
            "",
            &format!("retry = \"{retry}\""),
            &["--exit-first", &n_bad_starts.to_string()],
        );
        let (answer, n_done) = server.count("count", "k", "answer").await;
        let is_answered = n_bad_starts < n_starts;
        assert_eq!(answer["result"].is_object(), is_answered, "{retry}: {answer}");
        assert_eq!(n_done, u64::from(is_answered), "{retry}");
        assert_eq!(server.fakes.pids("fake").len(), n_starts, "{retry}");
        assert_eq!(server.failures().await, u64::from(!is_answered), "{retry}");
    }
}

#[tokio::test]
async fn a_hopeless_connection_attempt_is_not_repeated() {
    let fakes = Fakes::new();
    let script = fakes.path("not-executable");
    fs::write(&script, "#!/bin/sh\n").expect("written");
    let config = format!("[servers.fake]\ncommand = {script:?}\n");
    let daemon = Daemon::with(config).ready();
    let answer = daemon.client("/servers/fake").tool("x", json!({})).await.answer();
    assert_eq!(code(&answer), "SERVER_NOT_STARTED");
    assert!(!daemon.log().contains("request sent to server"));
}

#[tokio::test]
async fn a_call_waiting_for_a_connection_continues_with_the_reloaded_server() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate").display().to_string();
    let slow = fakes.server("fake", &["--start-gate", &gate]);
    for (retry, sharing) in [("safe", "shared"), ("never", "exclusive")] {
        let mut daemon = Daemon::with(slow.clone()).ready();
        let n_before = fakes.pids("fake").len();
        let client = daemon.client("/servers/fake");
        let call = running(async move { client.tool("echo", json!({ "value": 1 })).await });
        until(async || fakes.n_events("fake", "initialize") > n_before).await;

        let more = format!("retry = \"{retry}\"\nsharing = \"{sharing}\"\n");
        daemon.rewrite(&(fakes.server("fake", &[]) + &more));
        daemon.reload();

        let answer = call.end().await.answer();
        assert_eq!(answer["result"]["structuredContent"]["value"], 1, "{sharing}: {answer}");
        assert_eq!(server_status(&daemon, "fake").await["breaker"]["failures"], 0);
        let n_now = fakes.pids("fake").len();
        assert_eq!(n_now, n_before + 2, "one process for each declaration");
        // The next round counts from here.
        assert_eq!(fakes.n_events("fake", "initialize"), n_now);
    }
}

#[tokio::test]
async fn a_queued_call_continues_with_the_reloaded_server() {
    let fakes = Fakes::new();
    // The shutdown at the end need not wait for the held call.
    let service = "[service]\nshutdown_timeout = \"1ms\"\n";
    let server = service.to_owned() + &fakes.server("fake", &[]);
    let mut daemon =
        Daemon::with(format!("{server}sharing = \"exclusive\"\nmax_connections = 1\n")).ready();
    let client = daemon.client("/servers/fake");
    let held = running(client.clone().hold("k"));
    until(async || fakes.n_events("fake", "held") == 1).await;
    let waiting = {
        let client = client.clone();
        running(async move { client.tool("echo", json!({ "value": 1 })).await })
    };

    daemon.rewrite(&server);
    daemon.reload();

    let answer = waiting.end().await.answer();
    assert_eq!(answer["result"]["structuredContent"]["value"], 1, "{answer}");
    drop(held);
}

#[tokio::test]
async fn a_call_waiting_for_a_server_that_a_reload_removes_gets_server_closed() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate").display().to_string();
    let mut daemon = Daemon::with(fakes.server("fake", &["--start-gate", &gate])).ready();
    let client = daemon.client("/servers/fake");
    let call = running(async move { client.tool("echo", json!({ "value": 1 })).await });
    until(async || fakes.n_events("fake", "initialize") == 1).await;

    daemon.rewrite("");
    daemon.reload();

    assert_eq!(code(&call.end().await.answer()), "SERVER_CLOSED");
}
