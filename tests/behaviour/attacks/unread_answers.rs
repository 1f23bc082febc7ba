//! Clients request large answers and do not read them.

use std::fs;

use serde_json::{Value, json};

use super::Bystanders;
use crate::{
    harness::{
        client::{Client, request},
        daemon::Daemon,
        fake::{Fakes, Upstream},
        slow_reader::SlowReader,
    },
    until,
};

/// The number of clients that do not read.
const N_ATTACKERS: usize = 16;

/// The size of each answer, in bytes.
const ANSWER_BYTES: usize = 6 << 20;

/// The number of rows of a table. With their copies, a few tables exceed the budget.
const ANSWER_ROWS: usize = 3_000;

/// The size of a row beside its name, in bytes.
const ROW_BYTES: usize = 600;

/// The bytes of results that are kept for later reads.
const RESULTS_KEPT: u64 = 12 << 20;

/// The memory budget, in bytes: the smallest valid one.
pub(super) const BUDGET: u64 = 112 << 20;

/// The memory that the service may take beyond that at its start and the budget, in bytes:
/// buffers below the threshold, the sockets of the bystanders, and the allocator's reserve.
pub(super) const OVERHEAD: u64 = 24 << 20;

/// Returns a number of bytes from the status of a process.
pub(super) fn bytes_of(daemon: &Daemon, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("readable");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the field");
    let kilobytes = line.trim_start_matches(':').trim().trim_end_matches("kB").trim();
    kilobytes.parse::<u64>().expect("a number") << 10
}

fn call(name: &str, arguments: &Value) -> String {
    request(&json!("slow"), "tools/call", &json!({ "name": name, "arguments": arguments }))
}

pub(super) async fn usage(daemon: &Daemon) -> Value {
    daemon.client("/status").get().await.answer()["memory_budget"].clone()
}

/// Lets clients send `message` without reading. Checks that the service stays within its budget,
/// serves others meanwhile, and releases all but `kept` bytes afterwards.
async fn attack(daemon: &Daemon, attacked: &Client, small: &Client, message: &str, kept: u64) {
    let bystanders = Bystanders::start(daemon, "/servers/calm").await;
    let before = bytes_of(daemon, "VmRSS");
    let mut slow: Vec<SlowReader> = Vec::new();
    for _ in 0..N_ATTACKERS {
        slow.push(attacked.slow_post(message).await);
    }
    // Each has the head of its answer, or of a refusal.
    for client in &mut slow {
        client.read(16).await;
    }
    bystanders.wait_progress().await;
    let small = small.call("echo", json!({ "value": 1 })).await;
    assert_eq!(small["value"], 1, "a small call on the same server is served");

    let peak = bytes_of(daemon, "VmHWM");
    assert!(peak < before + BUDGET + OVERHEAD, "{} MiB", peak >> 20);
    bystanders.end().await;
    drop(slow);
    let used = async || usage(daemon).await["used_bytes"].as_u64().expect("a number");
    until(async || used().await <= kept).await;
}

/// Checks that a small call is answered while large ones are refused, and a large one afterwards.
async fn check_large_answers(daemon: &Daemon, client: &Client) {
    let arguments = json!({ "n": ANSWER_BYTES });
    attack(daemon, client, client, &call("bytes", &arguments), 0).await;

    let answer = client.post(call("bytes", &arguments)).await.answer();
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
    assert_eq!(text.len(), ANSWER_BYTES, "the answer is delivered whole afterwards");
    let usage = usage(daemon).await;
    assert!(
        usage["refused"].as_u64() > Some(0) && usage["peak_bytes"].as_u64() <= Some(BUDGET),
        "{usage}"
    );
}

fn config(servers: &str) -> String {
    // The service sends no head before its answer, and cuts off no client on a slow machine.
    let listen = "[listen]\njson_response = true\nwrite_timeout = \"5m\"\n";
    format!("[service]\nmemory_max = {BUDGET}\n{listen}{servers}")
}

#[tokio::test]
async fn unread_answers_of_a_child_stay_within_the_memory_budget() {
    let fakes = Fakes::new();
    let servers = fakes.server("fake", &[]) + &fakes.server("calm", &[]);
    let daemon = Daemon::with(config(&servers)).ready();
    check_large_answers(&daemon, &daemon.client("/servers/fake")).await;
}

#[tokio::test]
async fn unread_answers_of_an_upstream_stay_within_the_memory_budget() {
    let (fakes, upstream) = (Fakes::new(), Upstream::start(&[]));
    let servers = upstream.server("up", "") + &fakes.server("calm", &[]);
    let daemon = Daemon::with(config(&servers)).ready();
    check_large_answers(&daemon, &daemon.client("/servers/up")).await;
}

#[tokio::test]
async fn field_selections_of_large_results_stay_within_the_memory_budget() {
    let fakes = Fakes::new();
    let servers = fakes.server("fake", &["--rich"]) + &fakes.server("calm", &[]);
    let daemon = Daemon::with(config(&servers)).ready();
    let client = daemon.client("/meta");
    let arguments = json!({
        "server": "fake", "tool": "rows", "fields": ["rows.name"],
        "args": { "table": "parts", "n": ANSWER_ROWS, "width": ROW_BYTES },
    });

    let small = daemon.client("/servers/fake");
    attack(&daemon, &client, &small, &call("mcp_call", &arguments), RESULTS_KEPT).await;

    let answer = client.post(call("mcp_call", &arguments)).await.answer();
    assert!(answer["result"]["content"].is_array(), "{answer}");
    assert_ne!(
        answer["result"]["isError"], true,
        "the selection is delivered afterwards: {answer}"
    );
}

#[tokio::test]
async fn a_client_cut_off_by_the_write_timeout_releases_its_memory() {
    let fakes = Fakes::new();
    let config = "[listen]\nwrite_timeout = \"500ms\"\n".to_owned() + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/fake");
    let slow = client.slow_post(&call("bytes", &json!({ "n": ANSWER_BYTES }))).await;
    let used = async || usage(&daemon).await["used_bytes"].as_u64().expect("a number");

    until(async || used().await >= ANSWER_BYTES as u64).await;
    until(async || used().await == 0).await;

    drop(slow);
}
