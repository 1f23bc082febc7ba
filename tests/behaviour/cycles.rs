//! Connections by the thousand, one after the other: nothing is left of them.

use std::fs;

use hyper::Method;
use serde_json::json;

use crate::{
    all,
    harness::{
        client::Client,
        daemon::Daemon,
        fake::{Fakes, Upstream, is_alive},
    },
    server_status, until,
};

const OWNED: &str = "sharing = \"session\"\n";

/// The number of clients at a time.
const N_CLIENTS: usize = 8;

/// The connections of each client before memory is measured: by then, buffers have grown and the
/// allocator has its arenas.
const N_WARM_UP: usize = 25;

/// The processes that each client has started by then: a thousand in all.
const N_PROCESSES: usize = 125;

/// The number of sessions at an upstream; fewer, because each takes more requests.
const N_SESSIONS: usize = 50;

/// The memory that a connection may leave behind, in bytes. Measured: 150 to 600 for the first
/// thousand, 1,190 on a loaded machine, 290 for each of three thousand, while the allocator fills
/// its arenas. An open connection takes much more.
const LEFT_MAX: usize = 2048;

/// The resources of an idle service.
#[derive(Debug)]
struct Held {
    files: usize,
    tasks: u64,
}

impl Held {
    async fn by(daemon: &Daemon) -> Self {
        // The connection that asks is one of them, each time.
        let status = daemon.client("/status").get().await.answer();
        // The service shows its files to root alone.
        let files = fs::read_dir(format!("/proc/{}/fd", daemon.pid())).map_or(0, Iterator::count);
        Self { files, tasks: status["tasks"].as_u64().expect("a number") }
    }

    fn is_within(&self, other: &Self) -> bool {
        self.files <= other.files && self.tasks <= other.tasks
    }
}

/// Returns what the service has written into its memory and not given back, in bytes.
fn memory(daemon: &Daemon) -> usize {
    let text = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("it is told");
    let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024
}

/// Opens a session, which has a connection of its own, calls once, and ends it.
async fn cycle(client: &Client) {
    let client = client.clone().initialized().await;
    assert_eq!(client.call("echo", json!({ "value": 7 })).await["value"], 7);
    assert!(client.send(Method::DELETE, &[], "").await.status.is_success());
}

/// Has all clients make so many connections, and waits until the last one is gone.
async fn cycles(daemon: &Daemon, n_cycles: usize) {
    // Their connections to the service end with them.
    all((0..N_CLIENTS).map(async |_| {
        let client = daemon.client("/servers/own");
        for _ in 0..n_cycles {
            cycle(&client).await;
        }
    }))
    .await;
    until(async || server_status(daemon, "own").await["connections"] == 0).await;
}

/// Checks that so many connections of each client leave no file, no task and no memory behind.
async fn nothing_is_left(daemon: &Daemon, n_cycles: usize) {
    cycles(daemon, N_WARM_UP).await;
    // Something may be ending still, which is a few more, and never fewer.
    let (held, before) = (Held::by(daemon).await, memory(daemon));

    cycles(daemon, n_cycles).await;

    until(async || Held::by(daemon).await.is_within(&held)).await;
    let grown = memory(daemon).saturating_sub(before);
    assert!(grown <= LEFT_MAX * N_CLIENTS * n_cycles, "{grown} bytes are left");
}

#[tokio::test]
async fn a_thousand_processes_leave_nothing_behind() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("own", &[]) + OWNED).ready();
    nothing_is_left(&daemon, N_PROCESSES).await;
    assert!(fakes.pids("own").into_iter().all(|pid| !is_alive(pid)));
}

#[tokio::test]
async fn hundreds_of_sessions_at_an_upstream_leave_nothing_behind() {
    let upstream = Upstream::start(&["--end-cancelled"]);
    let daemon = Daemon::with(upstream.server("own", OWNED)).ready();
    nothing_is_left(&daemon, N_SESSIONS).await;
}
