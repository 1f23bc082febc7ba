//! A client sends hundreds of request bodies and finishes none of them.

use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use super::{
    Bystanders,
    unread_answers::{BUDGET, OVERHEAD, bytes_of, usage},
};
use crate::{
    all,
    harness::{DEADLINE, daemon::Daemon, fake::Fakes},
    until,
};

/// The number of bodies.
const N_BODIES: usize = 500;

/// The bytes of each body that are sent: together three times the budget.
const SENT_BYTES: usize = 700 << 10;

/// Sends a part of a body, as far as the service reads it.
async fn begin(daemon: &Daemon) -> TcpStream {
    let mut stream = TcpStream::connect(daemon.address()).await.expect("a connection");
    let head = "POST /servers/fake HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 4000000\r\n\r\n";
    let part = [head.as_bytes(), &vec![b' '; SENT_BYTES]].concat();
    let sending = tokio::time::timeout(DEADLINE, stream.write_all(&part)).await;
    // The service refuses a body for which it has no memory.
    let _closed = sending.expect("it is read or refused in time");
    stream
}

#[tokio::test]
async fn unfinished_request_bodies_of_one_client_leave_memory_for_other_clients() {
    let fakes = Fakes::new();
    let config = format!("[service]\nmemory_max = {BUDGET}\n{}", fakes.server("fake", &[]));
    let daemon = Daemon::with(config).ready();
    let bystanders = Bystanders::start(&daemon, "/servers/fake").await;
    let before = bytes_of(&daemon, "VmRSS");

    let mut bodies = Vec::new();
    for _ in 0..N_BODIES / 20 {
        bodies.extend(all((0..20).map(|_| begin(&daemon))).await);
        bystanders.wait_progress().await;
    }

    let peak = bytes_of(&daemon, "VmHWM");
    assert!(peak < before + BUDGET + OVERHEAD, "{} MiB", peak >> 20);
    assert!(usage(&daemon).await["refused"].as_u64() > Some(0), "the budget was used up");
    bystanders.end().await;
    drop(bodies);
    until(async || usage(&daemon).await["used_bytes"] == 0).await;
}
