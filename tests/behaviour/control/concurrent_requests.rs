//! Concurrent requests on one connection: order, limits, cancellation and progress.

use serde_json::json;

use super::assert_complete;
use crate::{
    harness::{daemon::Daemon, fake::Fakes, operator::Operator},
    until,
};

/// Returns the parameters of a call that is held until released.
fn held(key: &str) -> serde_json::Value {
    json!({ "name": "one/hold", "arguments": { "key": key } })
}

/// Releases a held call.
async fn release(operator: &mut Operator, key: &str) {
    let release = json!({ "name": "one/release", "arguments": { "key": key } });
    operator.result("tools/call", release).await;
}

/// Waits until `n` requests have been cancelled at the server.
async fn wait_cancelled(operator: &mut Operator, n: u64) {
    let seen = json!({ "name": "one/seen", "arguments": { "cancelled": n } });
    operator.result("tools/call", seen).await;
}

#[tokio::test]
async fn requests_on_one_connection_run_concurrently_and_are_answered_as_they_finish() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let (mut operator, mut other) = (Operator::at(&daemon).await, Operator::at(&daemon).await);
    operator.request(json!(1), "tools/call", held("a")).await;
    operator.request(json!("1"), "tools/call", held("b")).await;
    operator.request(json!(2), "servers/list", json!({})).await;
    assert_eq!(operator.next().await.expect("an answer")["id"], 2);
    // The same id again, while it is in use.
    operator.request(json!(1), "servers/list", json!({})).await;
    let refused = operator.next().await.expect("an answer");
    assert_complete(&refused["error"]);
    assert_eq!((&refused["id"], &refused["error"]["data"]["code"]), (&json!(1), &json!("SAME_ID")));
    let at_least = json!({ "name": "one/held", "arguments": { "at_least": 2 } });
    other.result("tools/call", at_least).await;
    for (key, id) in [("b", json!("1")), ("a", json!(1))] {
        release(&mut other, key).await;
        let answer = operator.next().await.expect("an answer");
        assert_eq!(answer["id"], id);
        assert!(answer["result"]["content"].is_array(), "{answer}");
    }
    operator.request(json!(1), "servers/list", json!({})).await;
    assert!(operator.next().await.expect("an answer")["result"].is_array(), "the id is free again");
}

#[tokio::test]
async fn requests_beyond_the_limit_wait_and_all_are_answered() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let (mut operator, mut other) = (Operator::at(&daemon).await, Operator::at(&daemon).await);
    for n in 0..32 {
        operator.request(json!(n), "tools/call", held("a")).await;
    }
    let at_least = json!({ "name": "one/held", "arguments": { "at_least": 32 } });
    other.result("tools/call", at_least).await;
    for n in 32..40 {
        operator.request(json!(n), "daemon/status", json!({})).await;
    }
    release(&mut other, "a").await;
    let mut ids = Vec::new();
    for _ in 0..40 {
        ids.push(operator.next().await.expect("an answer")["id"].as_u64().expect("a number"));
    }
    assert!(ids[..1].iter().all(|id| *id < 32), "the requests beyond the limit waited: {ids:?}");
    ids.sort_unstable();
    assert_eq!(ids, (0..40).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_cancelled_request_ends_at_its_server_and_has_no_answer() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let mut operator = Operator::at(&daemon).await;
    operator.request(json!(7), "tools/call", held("a")).await;
    let at_least = json!({ "name": "one/held", "arguments": { "at_least": 1 } });
    operator.result("tools/call", at_least).await;
    operator
        .send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":7}}\n")
        .await;
    // The next answer is that of another request.
    wait_cancelled(&mut operator, 1).await;
}

#[tokio::test]
async fn a_half_closed_connection_gets_its_answers_and_a_closed_one_cancels_its_requests() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let (mut quiet, mut other) = (Operator::at(&daemon).await, Operator::at(&daemon).await);
    quiet.request(json!(1), "tools/call", held("a")).await;
    // The last line has no line break.
    quiet.send("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"daemon/status\"}").await;
    quiet.close_writing();
    assert_eq!(quiet.next().await.expect("an answer")["id"], 2);
    let at_least = json!({ "name": "one/held", "arguments": { "at_least": 1 } });
    other.result("tools/call", at_least.clone()).await;
    release(&mut other, "a").await;
    let answer = quiet.next().await.expect("an answer");
    assert_eq!(answer["id"], 1);
    assert!(answer["result"]["content"].is_array(), "{answer}");
    assert_eq!(quiet.next().await, None, "the service then closes the connection");

    let mut gone = Operator::at(&daemon).await;
    gone.request(json!(1), "tools/call", held("b")).await;
    other.result("tools/call", at_least).await;
    drop(gone);
    wait_cancelled(&mut other, 1).await;
}

#[tokio::test]
async fn a_closed_connection_cancels_all_its_requests_even_at_the_limit() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let (mut full, mut other) = (Operator::at(&daemon).await, Operator::at(&daemon).await);
    for n in 0..40 {
        full.request(json!(n), "tools/call", held("a")).await;
    }
    let at_least = json!({ "name": "one/held", "arguments": { "at_least": 32 } });
    other.result("tools/call", at_least).await;
    drop(full);
    wait_cancelled(&mut other, 32).await;
}

#[tokio::test]
async fn progress_carries_the_operators_token_and_precedes_the_answer() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let mut operator = Operator::at(&daemon).await;
    let call = json!({
        "name": "one/progress", "arguments": { "steps": 3 },
        "_meta": { "progressToken": "mine" },
    });
    operator.request(json!(1), "tools/call", call).await;
    for step in 1..=3 {
        let progress = operator.next().await.expect("progress");
        assert_eq!(progress["method"], "notifications/progress", "{progress}");
        assert_eq!(progress["params"]["progressToken"], "mine");
        assert_eq!(progress["params"]["progress"], step);
    }
    assert!(operator.next().await.expect("an answer")["result"]["content"].is_array());
    let silent = json!({ "name": "one/progress", "arguments": { "steps": 3 } });
    operator.result("tools/call", silent).await;
}

#[tokio::test]
async fn an_operator_can_call_per_session_and_exclusive_servers() {
    let fakes = Fakes::new();
    let config = fakes.server("own", &[])
        + "sharing = \"session\"\n"
        + &fakes.server("alone", &[])
        + "sharing = \"exclusive\"\n";
    let daemon = Daemon::with(config).ready();
    let mut operator = Operator::at(&daemon).await;
    for server in ["own", "alone"] {
        let call = json!({ "name": format!("{server}/echo"), "arguments": { "value": 1 } });
        operator.result("tools/call", call).await;
        let uri = json!({ "server": server, "uri": "fake:///one" });
        operator.result("resources/read", uri).await;
        // A server's question has no recipient: it is refused, and the call continues.
        let ask =
            json!({ "name": format!("{server}/ask"), "arguments": { "method": "roots/list" } });
        operator.result("tools/call", ask).await;
    }
    until(async || {
        let servers = operator.result("servers/list", json!({})).await;
        servers.as_array().expect("a list").iter().all(|server| server["inFlight"] == 0)
    })
    .await;
}
