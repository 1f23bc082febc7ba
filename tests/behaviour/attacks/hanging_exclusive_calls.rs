//! Calls that are never answered, on a server that serves one request at a time on each connection.

use super::Bystanders;
use crate::{
    harness::{client::running, daemon::Daemon, fake::Fakes},
    until,
};

#[tokio::test]
async fn hanging_calls_of_one_client_leave_an_exclusive_connection_to_other_clients() {
    let fakes = Fakes::new();
    let server = fakes.server("fake", &[]) + "sharing = \"exclusive\"\nmax_connections = 4\n";
    let daemon = Daemon::with(server).ready();
    let bystanders = Bystanders::start(&daemon, "/servers/fake").await;
    let client = daemon.client("/servers/fake").initialized().await;

    let hanging: Vec<_> = (0..8).map(|_| running(client.clone().hold("a"))).collect();
    // The two parties hold two connections each. The client gets a third only if others leave it.
    until(async || fakes.n_events("fake", "held") >= 2).await;
    bystanders.wait_progress().await;
    bystanders.wait_progress().await;
    assert!(
        fakes.n_events("fake", "held") <= 3,
        "the last connection is reserved for other clients"
    );

    drop(hanging);
    bystanders.end().await;
}
