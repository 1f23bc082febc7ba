//! Clients of one account ask an upstream for large answers of which it never sends the end.

use serde_json::json;
use tokio::task::JoinSet;

use super::{
    Bystanders,
    unread_answers::{BUDGET, usage},
};
use crate::{
    harness::{
        daemon::Daemon,
        fake::Fakes,
        scripted::{Asked, Scripted, Wire},
    },
    until,
};

/// How many calls there are: together they ask for more than the budget.
const N_CALLS: usize = 32;

/// How long each answer says that it is, in bytes.
const DECLARED_BYTES: usize = 6 << 20;

/// How many bytes of each are sent.
const SENT_BYTES: usize = 5 << 20;

/// What bystanders and the checks hold at most beside the attack, in bytes.
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
    let figure = async |name: &str| usage(&daemon).await[name].as_u64().expect("a number");
    until(async || figure("used_bytes").await > BUDGET / 2).await;

    for _ in 0..4 {
        bystanders.go_on().await;
    }

    // The last quarter is for those who have little.
    let peak = figure("peak_bytes").await;
    assert!(peak <= BUDGET / 4 * 3 + OTHERS_BYTES, "{} MiB", peak >> 20);
    bystanders.end().await;
    drop(attack);
    until(async || figure("used_bytes").await == 0).await;
}

#[tokio::test]
async fn bodies_that_an_upstream_does_not_end_take_the_memory_of_no_other_client() {
    attack("body").await;
}

#[tokio::test]
async fn streams_that_an_upstream_does_not_end_take_the_memory_of_no_other_client() {
    attack("stream").await;
}
