//! Misuse of the control socket, which must not disturb other clients.

use std::os::unix::net::UnixStream as StdUnixStream;

use serde_json::json;

use crate::{
    harness::{daemon::Daemon, fake::Fakes, operator::Operator, random::SeededRandom},
    until,
};

/// Asserts that a call over HTTP and one on another connection succeed.
async fn assert_undisturbed(daemon: &Daemon) {
    daemon.client("/").call("one__echo", json!({ "value": 1 })).await;
    let mut operator = Operator::at(daemon).await;
    let call = json!({ "name": "one/echo", "arguments": { "value": 1 } });
    operator.result("tools/call", call).await;
}

#[tokio::test]
async fn garbage_and_unfinished_lines_do_not_disturb_other_operators() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let mut half = Operator::at(&daemon).await;
    half.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"meth").await;
    let mut endless = Operator::at(&daemon).await;
    for _ in 0..16 {
        endless.send("x".repeat(1 << 20)).await;
    }
    let mut garbage = Operator::at(&daemon).await;
    let mut random = SeededRandom::new();
    for _ in 0..200 {
        let n_bytes = random.below(300);
        let mut line: Vec<u8> =
            (0..n_bytes).map(|_| u8::try_from(random.below(256)).expect("a byte")).collect();
        line.retain(|byte| *byte != b'\n' && *byte != b'\r');
        line.push(b'\n');
        garbage.send(&line).await;
        if line.len() > 1 {
            let answer = garbage.next().await.expect("an answer to each line");
            super::assert_complete(&answer["error"]);
        }
    }
    assert_undisturbed(&daemon).await;
    half.send("od\":\"servers/list\"}\n").await;
    assert!(half.next().await.expect("an answer")["result"].is_array(), "it was only slow");
    endless.send("\n").await;
    let refused = endless.next().await.expect("an answer");
    assert_eq!(refused["error"]["data"]["code"], "LINE_TOO_LONG");
}

#[tokio::test]
async fn a_thousand_silent_connections_do_not_lock_out_an_operator() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let socket = daemon.control();
    let connecting = tokio::task::spawn_blocking(move || {
        (0..1000).map(|_| StdUnixStream::connect(&socket).expect("connected")).collect::<Vec<_>>()
    });
    let all = connecting.await.expect("all connected");
    assert_undisturbed(&daemon).await;
    drop(all);
    assert_undisturbed(&daemon).await;
}

#[tokio::test]
async fn attached_mcp_clients_do_not_lock_out_an_operator() {
    let daemon = Daemon::with("").ready();
    let mut all = Vec::new();
    let refused = loop {
        let mut client = Operator::at(&daemon).await;
        client.request(json!(1), "mcp/attach", json!({ "view": "root" })).await;
        let answer = client.next().await.expect("an answer");
        if answer["error"].is_object() {
            break answer;
        }
        all.push(client);
    };
    super::assert_complete(&refused["error"]);
    assert_eq!(refused["error"]["data"]["code"], "TOO_MANY_CLIENTS");
    let mut operator = Operator::at(&daemon).await;
    operator.request(json!(1), "daemon/status", json!({})).await;
    let status = operator.next().await.expect("an answer");
    assert!(status["result"].is_object(), "{status} with {} clients", all.len());
}

#[tokio::test]
async fn a_connection_beyond_the_limit_gets_an_error_and_http_is_unaffected() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let mut busy = Vec::new();
    for _ in 0..48 {
        let mut operator = Operator::at(&daemon).await;
        let held = json!({ "name": "one/hold", "arguments": { "key": "a" } });
        operator.request(json!(1), "tools/call", held).await;
        busy.push(operator);
    }
    let client = daemon.client("/");
    client.call("one__held", json!({ "at_least": 48 })).await;
    let refused = Operator::at(&daemon).await.next().await.expect("an answer");
    super::assert_complete(&refused["error"]);
    assert_eq!(refused["error"]["data"]["code"], "TOO_MANY_CONNECTIONS");
    client.call("one__release", json!({ "key": "a" })).await;
    for operator in &mut busy {
        assert!(operator.next().await.expect("an answer")["result"]["content"].is_array());
    }
    assert_undisturbed(&daemon).await;
}

#[tokio::test]
async fn an_operator_that_never_reads_is_the_only_one_cut_off() {
    let fakes = Fakes::new();
    let config = "[listen]\nwrite_timeout = \"300ms\"\n".to_owned() + &fakes.server("one", &[]);
    let daemon = Daemon::with(config).ready();
    let mut silent = Operator::at(&daemon).await;
    let large = json!({ "name": "one/bytes", "arguments": { "n": 1 << 20 } });
    for n in 0..8 {
        silent.request(json!(n), "tools/call", large.clone()).await;
    }
    assert_undisturbed(&daemon).await;
    until(async || silent.is_cut_off().await).await;
    // Only a part of the answers has arrived.
    assert!(silent.drain().await < 8 << 20);
}
