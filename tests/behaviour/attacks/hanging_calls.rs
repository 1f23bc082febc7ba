//! Calls that are never answered, as many as clients can send.

use serde_json::json;

use super::Bystanders;
use crate::{
    harness::{
        client::{request, running},
        daemon::Daemon,
        fake::Fakes,
    },
    server_status, until,
};

/// A few more calls than one server may have in flight.
const N_CONNECTIONS: usize = 33;
const N_CALLS: u64 = 128;

#[tokio::test]
async fn hanging_calls_of_one_client_do_not_block_the_server_for_other_clients() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let bystanders = Bystanders::start(&daemon, "/servers/fake").await;
    let client = daemon.client("/servers/fake").header("mcp-protocol-version", "2025-03-26");
    let client = client.initialized().await;
    let hold = json!({ "name": "hold", "arguments": { "key": "a" } });
    let calls: Vec<String> =
        (0..N_CALLS).map(|id| request(&json!(id), "tools/call", &hold)).collect();
    let batch = format!("[{}]", calls.join(","));

    let mut hanging = Vec::new();
    for _ in 0..N_CONNECTIONS {
        let (client, batch) = (client.clone(), batch.clone());
        hanging.push(running(async move { client.post(batch).await }));
        bystanders.wait_progress().await;
    }
    // The server has its maximum of calls in flight; the others wait.
    until(async || server_status(&daemon, "fake").await["in_flight"].as_u64() >= Some(4096)).await;
    bystanders.wait_progress().await;

    drop(hanging);
    bystanders.end().await;
}
