//! Clients of one account request large answers that an upstream never finishes, or progress that
//! they never read.

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
        scripted_upstream::{ReceivedRequest, ResponseWriter, ScriptedUpstream},
    },
    until,
};

/// The number of calls; together they ask for more than the budget.
const N_CALLS: usize = 32;

/// The declared length of each answer, in bytes.
const DECLARED_BYTES: usize = 6 << 20;

/// The bytes of each answer that are sent.
const SENT_BYTES: usize = 5 << 20;

/// The maximum memory of bystanders and checks beside the attack, in bytes.
const OTHERS_BYTES: u64 = 2 << 20;

/// Begins an answer as a stream or as a body, and never finishes it.
fn trickle(request: &ReceivedRequest, response: &mut ResponseWriter) -> bool {
    if request.method() != "tools/call" {
        return false;
    }
    let part = "x".repeat(SENT_BYTES);
    if request.message["params"]["name"] == "stream" {
        response.events();
        response.chunk(&format!("data: {part}"));
    } else {
        let head = "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length:";
        response.raw(format!("{head} {DECLARED_BYTES}\r\n\r\n{part}"));
    }
    response.wait_gone();
    true
}

async fn attack(tool: &str) {
    let (fakes, upstream) = (Fakes::new(), ScriptedUpstream::start(trickle));
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

/// Checks that other accounts are served while one has more than half of the memory, and that this
/// account leaves a quarter to them. The other accounts hold at most `others_bytes` bytes.
async fn check_memory(daemon: &Daemon, bystanders: Bystanders, others_bytes: u64) {
    let figure = async |name: &str| usage(daemon).await[name].as_u64().expect("a number");
    until(async || figure("used_bytes").await > BUDGET / 2).await;

    for _ in 0..4 {
        bystanders.wait_progress().await;
    }

    // The last quarter is reserved for accounts with little memory.
    let peak = figure("peak_bytes").await;
    assert!(peak <= BUDGET / 4 * 3 + others_bytes, "{} MiB", peak >> 20);
    bystanders.end().await;
}

#[tokio::test]
async fn unread_progress_on_the_shared_stream_leaves_memory_for_other_clients() {
    let (token_sender, tokens) = mpsc::channel::<Value>();
    let tokens = Mutex::new(tokens);
    let n_sent = Arc::new(AtomicUsize::new(0));
    let sent = Arc::clone(&n_sent);
    let upstream = ScriptedUpstream::start(move |request, response| match request.method() {
        "GET" => {
            response.events();
            let text = "x".repeat(SENT_BYTES);
            for token in tokens.lock().expect("not poisoned").iter() {
                let params = json!({ "progressToken": token, "progress": 1, "message": text });
                let progress = json!({
                    "jsonrpc": "2.0", "method": "notifications/progress", "params": params,
                });
                response.chunk(&format!("data: {progress}\n\n"));
                sent.fetch_add(1, Ordering::Relaxed);
            }
            true
        }
        "tools/call" => {
            let token = request.message["params"]["_meta"]["progressToken"].clone();
            token_sender.send(token).expect("the stream receives it");
            response.wait_gone();
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
async fn unfinished_bodies_of_an_upstream_leave_memory_for_other_clients() {
    attack("body").await;
}

#[tokio::test]
async fn unfinished_streams_of_an_upstream_leave_memory_for_other_clients() {
    attack("stream").await;
}
