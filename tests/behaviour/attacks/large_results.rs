//! Large results from which clients request fields or previews.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::Bystanders;
use crate::harness::{daemon::Daemon, fake::Fakes};

/// The number of clients that read from results at the same time.
const N_CLIENTS: usize = 4;

/// The number of rows of the result, and their size in bytes: 7 MB, since the result repeats them.
const N_ROWS: usize = 4_000;
const WIDTH: usize = 800;

fn call_of(fields: &[&str]) -> Value {
    let args = json!({ "table": "parts", "n": N_ROWS, "width": WIDTH });
    json!({ "server": "fake", "tool": "rows", "args": args, "fields": fields })
}

#[tokio::test]
async fn field_selections_and_previews_of_large_results_do_not_delay_other_clients() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &["--rich"])).ready();
    let bystanders = Bystanders::start(&daemon, "/meta").await;

    let client = daemon.client("/meta").initialized().await;
    let parts = join_all((0..N_CLIENTS).map(|_| client.tool("mcp_call", call_of(&["total"]))));
    for reply in parts.await {
        let answer = reply.answer();
        assert_eq!(answer["result"]["structuredContent"], json!({ "total": N_ROWS }), "{answer}");
    }
    bystanders.wait_progress().await;
    let previews = join_all((0..N_CLIENTS).map(|_| client.tool("mcp_call", call_of(&[]))));
    for reply in previews.await {
        let size = &reply.answer()["result"]["_meta"]["metamcp/result"];
        assert!(size["bytes"].as_u64() > Some((N_ROWS * WIDTH) as u64), "{size}");
        assert!(size["shownBytes"].as_u64() < Some(100_000), "{size}");
    }

    bystanders.end().await;
}
