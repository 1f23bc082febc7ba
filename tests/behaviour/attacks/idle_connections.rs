//! Large numbers of idle connections.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::Instant,
};

use super::Bystanders;
use crate::{
    all,
    harness::{DEADLINE, daemon::Daemon, fake::Fakes},
};

/// A few more than the descriptors of a service without its own limit on connections.
const N_CONNECTIONS: usize = 1100;

/// A request that any client may send.
const PROBE: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

async fn connect(daemon: &Daemon) -> TcpStream {
    let connecting = TcpStream::connect(daemon.address());
    let connecting = tokio::time::timeout(DEADLINE, connecting).await;
    connecting.expect("it connects in time").expect("a connection")
}

/// Waits until the service closes the connection, and ignores what it still sends.
async fn wait_closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let reading = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut rest)).await;
    let _reset = reading.expect("it is closed in time");
}

#[tokio::test]
async fn idle_connections_of_one_client_do_not_lock_out_other_clients() {
    let fakes = Fakes::new();
    let config = fakes.server("fake", &[]);
    let daemon = Daemon::with(config).descriptors(64, 512).ready();
    let bystanders = Bystanders::start(&daemon, "/servers/fake").await;

    let mut idle = Vec::new();
    for number in 0..N_CONNECTIONS {
        let mut stream = connect(&daemon).await;
        // Half of the connections send one valid request.
        if number % 2 == 0 {
            stream.write_all(PROBE).await.ok();
        }
        idle.push(stream);
        if number % 20 == 0 {
            bystanders.wait_progress().await;
        }
    }
    bystanders.wait_progress().await;

    // The service has closed the oldest connections for the newest ones.
    all(idle.iter_mut().take(N_CONNECTIONS / 2).map(wait_closed)).await;
    bystanders.end().await;
}

#[tokio::test]
async fn a_connection_without_an_accepted_request_is_closed_after_ten_seconds() {
    let token = "[listen]\ntoken = \"env:TOKEN\"\n";
    let daemon = Daemon::with(token).env("TOKEN", "0123456789abcdef").ready();
    let since = Instant::now();
    let mut known = connect(&daemon).await;
    known.write_all(PROBE).await.expect("sent");
    let mut silent = join_all((0..4).map(|_| connect(&daemon))).await;
    // Half a head, a wrong token, and no token.
    silent[1].write_all(b"GET / HTTP/1.1\r\nhost: local").await.expect("sent");
    let wrong = b"GET /status HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer no\r\n\r\n";
    silent[2].write_all(wrong).await.expect("sent");
    silent[3].write_all(b"GET /status HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("sent");

    all(silent.iter_mut().map(wait_closed)).await;

    let after = since.elapsed();
    assert!(after >= Duration::from_secs(10), "{after:?}");
    known.write_all(PROBE).await.expect("it is still open");
    let mut answers = Vec::new();
    while answers.windows(10).filter(|text| text == b"HTTP/1.1 2").count() < 2 {
        let reading = tokio::time::timeout(DEADLINE, known.read_buf(&mut answers)).await;
        assert_ne!(reading.expect("in time").expect("an answer"), 0, "it was closed");
    }
}

#[tokio::test]
async fn children_get_the_descriptor_limit_that_the_service_was_started_with() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).descriptors(96, 512).ready();
    daemon.client("/servers/fake").call("whoami", serde_json::json!({})).await;
    let limits = |pid: u64| {
        let all = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("readable");
        let line = all.lines().find(|line| line.starts_with("Max open files")).expect("a line");
        line.split_whitespace().skip(3).take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(limits(daemon.pid().into()), ["512", "512"]);
    let child = *fakes.pids("fake").first().expect("a child");
    assert_eq!(limits(child), ["96", "512"]);
}
