//! Thousands of consecutive connections leave no files, tasks or memory behind.

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

const PER_SESSION: &str = "sharing = \"session\"\n";

/// The number of clients at a time.
const N_CLIENTS: usize = 8;

/// The connections of each client before memory is measured: by then, buffers have grown and the
/// allocator has its arenas.
const N_WARM_UP: usize = 25;

/// The number of processes that each client starts: a thousand in all.
const N_PROCESSES: usize = 125;

/// The number of sessions at an upstream; fewer, because each takes more requests.
const N_SESSIONS: usize = 50;

/// The memory that a connection may leave behind, in bytes. Measured: 150 to 600 for the first
/// thousand, 1,190 on a loaded machine, 290 for each of three thousand, while the allocator fills
/// its arenas. An open connection takes much more.
const LEFT_MAX: usize = 2048;

/// The resources of an idle service.
#[derive(Debug)]
struct Resources {
    files: usize,
    tasks: u64,
}

impl Resources {
    async fn of(daemon: &Daemon) -> Self {
        // The connection of this request is counted each time.
        let status = daemon.client("/status").get().await.answer();
        // Only root can list the descriptors of the service.
        let files = fs::read_dir(format!("/proc/{}/fd", daemon.pid())).map_or(0, Iterator::count);
        Self { files, tasks: status["tasks"].as_u64().expect("a number") }
    }

    fn is_within(&self, other: &Self) -> bool {
        self.files <= other.files && self.tasks <= other.tasks
    }
}

/// Returns the anonymous resident memory of the service, in bytes.
fn memory(daemon: &Daemon) -> usize {
    let text = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("it runs");
    let line =
        text.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("the kernel reports it");
    let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024
}

/// Opens a session with its own connection, calls once, and ends the session.
async fn cycle(client: &Client) {
    let client = client.clone().initialized().await;
    assert_eq!(client.call("echo", json!({ "value": 7 })).await["value"], 7);
    assert!(client.send(Method::DELETE, &[], "").await.status.is_success());
}

/// Lets each client open `n_cycles` connections, and waits until all are closed.
async fn cycles(daemon: &Daemon, n_cycles: usize) {
    // The connections of the clients to the service end with the clients.
    all((0..N_CLIENTS).map(async |_| {
        let client = daemon.client("/servers/own");
        for _ in 0..n_cycles {
            cycle(&client).await;
        }
    }))
    .await;
    until(async || server_status(daemon, "own").await["connections"] == 0).await;
}

/// Checks that `n_cycles` connections of each client leave no file, task or memory behind.
async fn assert_nothing_is_left(daemon: &Daemon, n_cycles: usize) {
    cycles(daemon, N_WARM_UP).await;
    // Some connections may still be closing, so the counts may be a few too high.
    let (held, before) = (Resources::of(daemon).await, memory(daemon));

    cycles(daemon, n_cycles).await;

    until(async || Resources::of(daemon).await.is_within(&held)).await;
    let grown = memory(daemon).saturating_sub(before);
    assert!(grown <= LEFT_MAX * N_CLIENTS * n_cycles, "{grown} bytes are left");
}

#[tokio::test]
async fn a_thousand_child_processes_leave_no_files_tasks_or_memory_behind() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("own", &[]) + PER_SESSION).ready();
    assert_nothing_is_left(&daemon, N_PROCESSES).await;
    assert!(fakes.pids("own").into_iter().all(|pid| !is_alive(pid)));
}

#[tokio::test]
async fn hundreds_of_upstream_sessions_leave_no_files_tasks_or_memory_behind() {
    let upstream = Upstream::start(&["--end-cancelled"]);
    let daemon = Daemon::with(upstream.server("own", PER_SESSION)).ready();
    assert_nothing_is_left(&daemon, N_SESSIONS).await;
}
