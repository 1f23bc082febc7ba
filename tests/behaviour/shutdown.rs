//! The shutdown of the service and its children: running calls finish, and no process is left.

use std::fs;

use rustix::process::Signal;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    all,
    harness::{
        client::{Client, running},
        daemon::Daemon,
        fake::{Fakes, is_alive},
    },
    until,
};

/// Starts an orphaned process in its own session, which ignores SIGTERM.
async fn start_orphan(client: &Client) -> u64 {
    let started = client.call("grandchild", json!({ "detach": true })).await;
    let pid = started["pid"].as_u64().expect("a pid");
    assert!(is_alive(pid));
    pid
}

#[tokio::test]
async fn a_shutdown_under_load_finishes_running_calls_and_leaves_no_process() {
    let fakes = Fakes::new();
    let servers = ["one", "two", "three"];
    let config = servers.map(|name| fakes.server(name, &["--ignore-term", "--no-eof-exit"]));
    let mut daemon = Daemon::with(config.concat()).ready();
    let clients = servers.map(|name| daemon.client(&format!("/servers/{name}")));
    let orphans = all(clients.iter().chain(&clients).map(start_orphan)).await;
    let gate = fakes.path("gate");
    let held: Vec<_> = (0..30)
        .map(|number| {
            let (client, gate) = (clients[number % 3].clone(), gate.clone());
            let arguments = json!({ "key": number.to_string(), "gate": gate });
            running(async move { (number, client.tool("hold", arguments).await) })
        })
        .collect();
    for client in &clients {
        client.call("seen", json!({ "counts": { "gated": 10 } })).await;
    }

    daemon.signal(Signal::TERM);
    daemon.wait_notice("STOPPING=1", |notice| notice.contains("STOPPING=1"));
    daemon.wait_refused();
    fs::write(&gate, "").expect("written");

    for call in held {
        let (number, reply) = call.end().await;
        let answer = reply.answer();
        assert_eq!(answer["result"]["structuredContent"]["key"], number.to_string(), "{answer}");
    }
    assert!(daemon.wait_exit().success());
    for server in servers {
        assert!(
            fakes.pids(server).into_iter().all(|pid| !is_alive(pid)),
            "a process of {server} is left"
        );
    }
    assert_eq!(orphans.into_iter().filter(|pid| is_alive(*pid)).count(), 0);
}

#[tokio::test]
async fn a_client_that_connected_just_before_a_shutdown_is_answered() {
    let mut daemon = Daemon::with("").ready();
    let mut client = TcpStream::connect(daemon.address()).await.expect("a connection");
    // Connections are accepted in order.
    let mut next = TcpStream::connect(daemon.address()).await.expect("a connection");
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    next.write_all(request).await.expect("sent");
    let mut answer = String::new();
    next.read_to_string(&mut answer).await.expect("an answer");

    daemon.signal(Signal::TERM);
    // Nothing slow may follow: the service waits one second for a first request.
    daemon.wait_notice("STOPPING=1", |notice| notice.contains("STOPPING=1"));
    client.write_all(request).await.expect("sent");

    answer.clear();
    client.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
    assert!(daemon.wait_exit().success());
}

#[tokio::test]
async fn descendants_of_a_crashed_child_are_gone_before_its_successor_serves() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    let left_behind = start_orphan(&client).await;

    client.tool("exit", json!({ "code": 1 })).await;

    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);
    assert_eq!(fakes.pids("fake").len(), 2);
    assert!(!is_alive(left_behind));
}

#[tokio::test]
async fn a_service_terminates_the_processes_left_by_a_killed_service() {
    let fakes = Fakes::new();
    let mut killed =
        Daemon::with(fakes.server("fake", &["--ignore-term", "--no-eof-exit"])).ready();
    let client = killed.client("/servers/fake");
    let left_behind = start_orphan(&client).await;
    let child = fakes.pids("fake").pop_first().expect("a child");
    killed.signal(Signal::KILL);
    assert!(!killed.wait_exit().success());

    let _next = Daemon::with("").ready();

    until(async || !is_alive(child) && !is_alive(left_behind)).await;
}

#[tokio::test]
async fn a_long_drain_extends_the_stop_timeout_of_the_service_manager() {
    let mut daemon = Daemon::with("[service]\nshutdown_timeout = \"3h\"\n").ready();

    assert!(daemon.stop().success());

    let notices = daemon.notices();
    let stopping = notices.iter().find(|notice| notice.contains("STOPPING=1")).expect("a notice");
    // Three hours, and five seconds to hurry the running requests and to close the servers.
    assert!(stopping.contains("EXTEND_TIMEOUT_USEC=10805000000"), "{stopping}");
}
