//! A child that hangs during the call of a client, which then leaves.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::Bystanders;
use crate::{
    harness::{
        client::{Client, request, running},
        daemon::Daemon,
        fake::Fakes,
    },
    server_status, until,
};

/// The longest wait of the next client in the queue, by the constants below.
const BOUND: Duration = Duration::from_secs(3);
const HEALTH: &str = "health = { timeout = \"1s\", failures = 3 }\n";

/// The additional time that a busy machine and the end of a process may take.
const SLACK: Duration = Duration::from_secs(4);

/// The way in which a client abandons its call.
#[derive(Clone, Copy, Debug)]
enum Abandonment {
    Cancelled,
    Disconnected,
}

/// Calls `tool`, and abandons the call once it runs.
async fn abandon_call(
    fakes: &Fakes,
    client: &Client,
    tool: &'static str,
    abandonment: Abandonment,
) {
    let n_before = fakes.n_events("shared", "wedged");
    let caller = client.clone();
    let call = running(async move {
        let params = json!({ "name": tool, "arguments": {} });
        caller.post(request(&json!(5), "tools/call", &params)).await
    });
    until(async || fakes.n_events("shared", "wedged") > n_before).await;
    match abandonment {
        Abandonment::Cancelled => {
            client.notify("notifications/cancelled", json!({ "requestId": 5 })).await;
            call.end().await;
        }
        Abandonment::Disconnected => drop(call),
    }
}

#[tokio::test]
async fn a_child_that_hangs_for_one_client_delays_the_next_client_only_briefly() {
    let fakes = Fakes::new();
    let config = fakes.server("shared", &[]) + HEALTH + &fakes.server("calm", &[]);
    let daemon = Daemon::with(config).ready();
    let bystanders = Bystanders::start(&daemon, "/servers/calm").await;
    for abandonment in [Abandonment::Cancelled, Abandonment::Disconnected] {
        let [bad, next] = [(); 2].map(|()| daemon.client("/servers/shared"));
        let (bad, next) = (bad.initialized().await, next.initialized().await);
        // An older list request of metamcp would hide that the child hangs, so it has to end first.
        next.request(json!(1), "tools/list", json!({})).await;
        until(async || server_status(&daemon, "shared").await["in_flight"] == 0).await;
        abandon_call(&fakes, &bad, "wedge", abandonment).await;

        let since = Instant::now();
        let answer = next.tool("echo", json!({ "value": 1 })).await.answer();
        let waited = since.elapsed();

        assert!(waited < BOUND + SLACK, "{abandonment:?}: {waited:?} {answer}");
        if answer["error"].is_object() {
            assert_eq!(answer["error"]["data"]["code"], "SERVER_UNRESPONSIVE", "{answer}");
        }
        let answer = next.tool("echo", json!({ "value": 2 })).await.answer();
        assert_eq!(answer["result"]["structuredContent"]["value"], 2, "{answer}");
    }
    bystanders.end().await;
}

#[tokio::test]
async fn a_slow_child_is_not_killed_when_its_client_leaves() {
    let fakes = Fakes::new();
    let quick = "health = { timeout = \"200ms\", failures = 1 }\n";
    let daemon = Daemon::with(fakes.server("shared", &[]) + quick).ready();
    let client = daemon.client("/servers/shared").initialized().await;
    let held = running(client.clone().hold("k"));
    until(async || fakes.n_events("shared", "held") == 1).await;

    client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    held.end().await;
    // By then, metamcp has pinged the child, and would have killed it without an answer.
    tokio::time::sleep(Duration::from_secs(1)).await;

    let answer = client.tool("echo", json!({ "value": 1 })).await.answer();
    assert_eq!(answer["result"]["structuredContent"]["value"], 1, "{answer}");
    assert_eq!(fakes.pids("shared").len(), 1);
}
