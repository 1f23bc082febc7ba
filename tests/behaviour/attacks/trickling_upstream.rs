//! Clients of one account ask an upstream for large answers of which it never sends the end, or for
//! progress of which they read nothing.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
    mpsc,
};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    Bystanders,
    unread_answers::{BUDGET, usage},
};
use crate::{
    harness::{
        client::request,
        daemon::Daemon,
        fake::Fakes,
        scripted::{Asked, Scripted, Wire},
    },
    until,
};

/// The number of calls; together they ask for more than the budget.
const N_CALLS: usize = 32;

/// The declared length of each answer, in bytes.
const DECLARED_BYTES: usize = 6 << 20;

/// The bytes of each answer that are sent.
const SENT_BYTES: usize = 5 << 20;

/// The most that bystanders and checks hold beside the attack, in bytes.
const OTHERS_BYTES: u64 = 2 << 20;

/// Begins an answer, as a stream or as a body.
fn trickle(asked: &Asked, wire: &mut Wire) -> bool {
    if asked.method() != "tools/call" {
        return false;
    }
    let part = "x".repeat(SENT_BYTES);
    if asked.message["params"]["name"] == "stream" {
        wire.events();
        wire.piece(&format!("data: {part}"));
    } else {
        let head = "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length:";
        wire.raw(format!("{head} {DECLARED_BYTES}\r\n\r\n{part}"));
    }
    wire.wait_gone();
    true
}

async fn attack(tool: &str) {
    let (fakes, upstream) = (Fakes::new(), Scripted::start(trickle));
    let servers = upstream.server("") + &fakes.server("fake", &[]);
    let daemon = Daemon::with(format!("[service]\nmemory_max = {BUDGET}\n{servers}")).ready();
    let bystanders = Bystanders::start(&daemon, "/servers/fake").await;
    let client = daemon.client("/servers/up").initialized().await;
    let mut attack = JoinSet::new();
    for _ in 0..N_CALLS {
        let (client, tool) = (client.clone(), tool.to_owned());
        attack.spawn(async move { client.tool(&tool, json!({})).await });
    }
    check_memory(&daemon, bystanders, OTHERS_BYTES).await;
    drop(attack);
    until(async || usage(&daemon).await["used_bytes"] == 0).await;
}

/// Checks that others are served while an account has more than half of the memory, and that the
/// account does not get their quarter, beside the bytes of `others`.
async fn check_memory(daemon: &Daemon, bystanders: Bystanders, others: u64) {
    let figure = async |name: &str| usage(daemon).await[name].as_u64().expect("a number");
    until(async || figure("used_bytes").await > BUDGET / 2).await;

    for _ in 0..4 {
        bystanders.go_on().await;
    }

    // The last quarter is for those who have little.
    let peak = figure("peak_bytes").await;
    assert!(peak <= BUDGET / 4 * 3 + others, "{} MiB", peak >> 20);
    bystanders.end().await;
}

#[tokio::test]
async fn progress_on_the_shared_stream_takes_the_memory_of_no_other_client() {
    let (tell, told) = mpsc::channel::<Value>();
    let told = Mutex::new(told);
    let n_sent = Arc::new(AtomicUsize::new(0));
    let sent = Arc::clone(&n_sent);
    let upstream = Scripted::start(move |asked, wire| match asked.method() {
        "GET" => {
            wire.events();
            let text = "x".repeat(SENT_BYTES);
            for token in told.lock().expect("not poisoned").iter() {
                let params = json!({ "progressToken": token, "progress": 1, "message": text });
                let progress = json!({
                    "jsonrpc": "2.0", "method": "notifications/progress", "params": params,
                });
                wire.piece(&format!("data: {progress}\n\n"));
                sent.fetch_add(1, Ordering::Relaxed);
            }
            true
        }
        "tools/call" => {
            let token = asked.message["params"]["_meta"]["progressToken"].clone();
            tell.send(token).expect("it is told");
            wire.wait_gone();
            true
        }
        _ => false,
    });
    let fakes = Fakes::new();
    let servers = upstream.server("") + &fakes.server("fake", &[]);
    let daemon = Daemon::with(format!("[service]\nmemory_max = {BUDGET}\n{servers}")).ready();
    let bystanders = Bystanders::start(&daemon, "/servers/fake").await;
    let client = daemon.client("/servers/up").initialized().await;
    let params = json!({ "name": "x", "arguments": {}, "_meta": { "progressToken": 1 } });
    let mut slow = Vec::new();
    for _ in 0..N_CALLS {
        slow.push(client.slow_post(&request(&json!("slow"), "tools/call", &params)).await);
    }
    until(async || n_sent.load(Ordering::Relaxed) == N_CALLS).await;

    // The message in the reader counts for no account; its buffer doubles as it grows.
    check_memory(&daemon, bystanders, OTHERS_BYTES + 2 * SENT_BYTES as u64).await;
    drop(slow);
}

#[tokio::test]
async fn bodies_that_an_upstream_does_not_end_take_the_memory_of_no_other_client() {
    attack("body").await;
}

#[tokio::test]
async fn streams_that_an_upstream_does_not_end_take_the_memory_of_no_other_client() {
    attack("stream").await;
}
