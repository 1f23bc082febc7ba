//! One client meets an upstream at its worst; 31 others on the same session notice nothing.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::{
    all,
    harness::{
        client::{Client, Reply, request},
        daemon::Daemon,
        fake::Upstream,
        load::Load,
        scripted::{Asked, Scripted, Wire},
    },
    until,
};

/// The number of clients beside the one.
const N_OTHERS: usize = 31;

/// The request timeout: long enough for many answers to the others.
const DEADLINE_MS: u64 = 8000;

/// Has clients call `good`, each with a value of its own every time.
fn others(daemon: &Daemon) -> Load<(Value, Reply)> {
    let clients: Vec<Client> = (0..N_OTHERS).map(|_| daemon.client("/servers/up")).collect();
    Load::start(N_OTHERS, move |number, n_before| {
        let (client, value) = (clients[number].clone(), json!([number, n_before]));
        async move {
            let reply = client.tool("echo", json!({ "value": value })).await;
            (value, reply)
        }
    })
}

/// Checks that each was answered what it asked.
async fn all_were_served(load: Load<(Value, Reply)>) {
    for (value, reply) in load.end().await {
        let answer = reply.answer();
        assert_eq!(answer["id"], 1, "{answer}");
        assert_eq!(answer["result"]["structuredContent"]["value"], value, "{answer}");
    }
}

fn limits(more: &str) -> String {
    format!(
        "[service]\nrequest_timeout = \"{DEADLINE_MS}ms\"\nmax_total_timeout = \"{DEADLINE_MS}ms\"\n{more}"
    )
}

/// Misbehaves as the tool says, or echoes.
fn misbehave(tool: &str, asked: &Asked, wire: &mut Wire) {
    let event = |id: &str, data: &str| format!("{id}data: {data}\n\n");
    match tool {
        "page" => wire.page(200, "text/html; charset=utf-8", "<html>sign in</html>"),
        "gateway" => wire.page(502, "text/html", "<html>bad gateway</html>"),
        "silence" => wire.wait_gone(),
        "cut" | "cut_with_ids" => {
            let id = if tool == "cut" { "" } else { "id: 7\n" };
            wire.events();
            wire.piece(&event(id, r#"{"jsonrpc":"2.0","method":"notifications/x"}"#));
            wire.hang_up();
        }
        "too_large" => {
            wire.events();
            let line = format!("data: {}\n", "x".repeat(1 << 20));
            while wire.piece(&line) {}
            wire.hang_up();
        }
        "comments" => {
            wire.events();
            while wire.piece(": still here\n\n") {
                std::thread::yield_now();
            }
            wire.hang_up();
        }
        "garbage" => {
            wire.events();
            for garbage in ["{", "[]", "null", "\u{fffd}\u{0}", r#"{"id":1}"#, "{\"jsonrpc\":2}"] {
                wire.piece(&event("", garbage));
            }
            wire.end();
        }
        "garbage_first" => {
            wire.events();
            wire.piece(&event("", "<html>"));
            wire.piece(&event("event: unheard-of\n", "{}"));
            wire.piece(&event("", &asked.result(&json!({ "structuredContent": { "ok": true } }))));
            wire.end();
        }
        "mebibyte" => {
            let text = "x".repeat(1 << 20);
            let result = json!({ "structuredContent": { "text": text } });
            wire.events();
            wire.piece(&event("", &asked.result(&result)));
            wire.end();
        }
        _ => {
            let echo = asked.message["params"]["arguments"].clone();
            wire.json(&asked.result(&json!({ "structuredContent": echo })));
        }
    }
}

#[tokio::test]
async fn whatever_one_client_meets_31_others_go_on() {
    let upstream = Scripted::start(|asked, wire| {
        let is_call = asked.method() == "tools/call";
        if is_call {
            misbehave(asked.message["params"]["name"].as_str().expect("a name"), asked, wire);
        }
        is_call
    });
    // Never accepted from: the system takes connections, and bytes, all the same.
    let half_open = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = half_open.local_addr().expect("it is bound");
    let half_open_server = format!("[servers.half-open]\nurl = \"http://{address}/mcp\"\n");
    let daemon = Daemon::with(limits(&(upstream.server("") + &half_open_server))).ready();
    let load = others(&daemon);
    load.goes_on(1).await;
    let (client, elsewhere) = (daemon.client("/servers/up"), daemon.client("/servers/half-open"));

    // The id of each is its own name: an error comes back under it.
    let broken = [
        ("page", "UPSTREAM_STATUS"),
        ("gateway", "UPSTREAM_STATUS"),
        ("silence", "TIMEOUT"),
        ("cut", "ANSWER_BROKEN_OFF"),
        ("cut_with_ids", "ANSWER_BROKEN_OFF"),
        ("too_large", "ANSWER_TOO_LARGE"),
        ("comments", "TIMEOUT"),
        ("garbage", "ANSWER_BROKEN_OFF"),
        ("half_open", "TIMEOUT"),
    ];
    let asking = all(broken.map(|(tool, _)| {
        let client = if tool == "half_open" { &elsewhere } else { &client };
        client.request(json!(tool), "tools/call", json!({ "name": tool, "arguments": {} }))
    }));
    let meanwhile = async {
        // While those that are never answered are pending.
        until(async || upstream.asked().iter().any(|asked| is_call_of(asked, "silence"))).await;
        load.goes_on(10).await;
        let large = client.tool("mebibyte", json!({})).await.answer();
        let text = large["result"]["structuredContent"]["text"].as_str().map(str::len);
        assert_eq!(text, Some(1 << 20));
        let late = client.tool("garbage_first", json!({})).await.answer();
        assert_eq!(late["result"]["structuredContent"]["ok"], true, "{late}");
    };
    let (replies, ()) = tokio::join!(asking, meanwhile);

    for ((tool, code), reply) in broken.iter().zip(&replies) {
        let answer = reply.answer();
        assert_eq!(answer["id"], *tool, "{answer}");
        assert_eq!(answer["error"]["data"]["code"], *code, "{tool}: {answer}");
        let hint = answer["error"]["data"]["suggestion"].as_str().unwrap_or_default();
        assert!(!hint.is_empty(), "{tool}: {answer}");
    }
    all_were_served(load).await;
    assert_eq!(upstream.count("initialize"), 1, "none of it is a reason for a new session");
    let last = upstream.last("tools/call");
    assert_eq!((&last.path[..], last.header("mcp-session-id")), ("/mcp", "s1"));
}

fn is_call_of(asked: &Asked, tool: &str) -> bool {
    asked.message["params"]["name"] == tool
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_its_request_and_31_others_go_on() {
    let upstream = Upstream::start(&[]);
    let config = "[listen]\nwrite_timeout = \"500ms\"\n".to_owned() + &upstream.server("up", "");
    let daemon = Daemon::with(config).ready();
    let load = others(&daemon);
    load.goes_on(1).await;

    let params = json!({
        "name": "progress", "arguments": { "steps": 60_000 }, "_meta": { "progressToken": 1 },
    });
    let client = daemon.client("/servers/up");
    let slow = client.slow_post(&request(&json!("slow"), "tools/call", &params)).await;
    // Only the stream of its own request waits for it, until the timeout.
    upstream.log("cancelled=1").await;
    load.goes_on(10).await;

    let read = String::from_utf8(slow.read_to_end().await).expect("UTF-8");
    assert!(read.contains("notifications/progress") && !read.contains("\"slow\""), "{read}");
    all_were_served(load).await;
    assert_eq!(upstream.log("").await["sessions_minted"], 1);
}
