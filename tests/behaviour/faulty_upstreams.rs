//! Faulty answers of an upstream to one client do not affect 31 others on the same session.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::{
    all,
    harness::{
        client::{Client, Reply, request},
        daemon::Daemon,
        fake::Upstream,
        load::Load,
        scripted_upstream::{ReceivedRequest, ResponseWriter, ScriptedUpstream},
    },
    until,
};

/// The number of other clients.
const N_OTHERS: usize = 31;

/// The request timeout: long enough for many answers to the other clients.
const DEADLINE_MS: u64 = 8000;

/// Starts clients that call `echo`, each time with a unique value.
fn start_others(daemon: &Daemon) -> Load<(Value, Reply)> {
    let clients: Vec<Client> = (0..N_OTHERS).map(|_| daemon.client("/servers/up")).collect();
    Load::start(N_OTHERS, move |number, n_before| {
        let (client, value) = (clients[number].clone(), json!([number, n_before]));
        async move {
            let reply = client.tool("echo", json!({ "value": value })).await;
            (value, reply)
        }
    })
}

/// Checks that each answer belongs to its request.
async fn assert_all_served(load: Load<(Value, Reply)>) {
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

/// Answers a call with the fault that `tool` names, or echoes its arguments.
fn answer_with_fault(tool: &str, request: &ReceivedRequest, response: &mut ResponseWriter) {
    let event = |id: &str, data: &str| format!("{id}data: {data}\n\n");
    match tool {
        "page" => response.page(200, "text/html; charset=utf-8", "<html>sign in</html>"),
        "gateway" => response.page(502, "text/html", "<html>bad gateway</html>"),
        "silence" => response.wait_gone(),
        "cut" | "cut_with_ids" => {
            let id = if tool == "cut" { "" } else { "id: 7\n" };
            response.events();
            response.chunk(&event(id, r#"{"jsonrpc":"2.0","method":"notifications/x"}"#));
            response.hang_up();
        }
        "too_large" => {
            response.events();
            let line = format!("data: {}\n", "x".repeat(1 << 20));
            while response.chunk(&line) {}
            response.hang_up();
        }
        "comments" => {
            response.events();
            while response.chunk(": still here\n\n") {
                std::thread::yield_now();
            }
            response.hang_up();
        }
        "garbage" => {
            response.events();
            for garbage in ["{", "[]", "null", "\u{fffd}\u{0}", r#"{"id":1}"#, "{\"jsonrpc\":2}"] {
                response.chunk(&event("", garbage));
            }
            response.end();
        }
        "garbage_first" => {
            response.events();
            response.chunk(&event("", "<html>"));
            response.chunk(&event("event: unheard-of\n", "{}"));
            response.chunk(&event(
                "",
                &request.result(&json!({ "structuredContent": { "ok": true } })),
            ));
            response.end();
        }
        "mebibyte" => {
            let text = "x".repeat(1 << 20);
            let result = json!({ "structuredContent": { "text": text } });
            response.events();
            response.chunk(&event("", &request.result(&result)));
            response.end();
        }
        _ => {
            let echo = request.message["params"]["arguments"].clone();
            response.json(&request.result(&json!({ "structuredContent": echo })));
        }
    }
}

#[tokio::test]
async fn upstream_failures_of_one_client_do_not_affect_31_other_clients() {
    let upstream = ScriptedUpstream::start(|request, response| {
        let is_call = request.method() == "tools/call";
        if is_call {
            answer_with_fault(
                request.message["params"]["name"].as_str().expect("a name"),
                request,
                response,
            );
        }
        is_call
    });
    // The test accepts no connection here; the kernel accepts connections and bytes anyway.
    let half_open = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = half_open.local_addr().expect("it is bound");
    let half_open_server = format!("[servers.half-open]\nurl = \"http://{address}/mcp\"\n");
    let daemon = Daemon::with(limits(&(upstream.server("") + &half_open_server))).ready();
    let load = start_others(&daemon);
    load.wait_for_answers(1).await;
    let (client, elsewhere) = (daemon.client("/servers/up"), daemon.client("/servers/half-open"));

    // The id of each request is the name of its fault, and its error has that id.
    let broken = [
        ("page", "UPSTREAM_WEB_PAGE"),
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
        // Meanwhile, the requests that are never answered are pending.
        until(async || upstream.requests().iter().any(|request| is_call_of(request, "silence")))
            .await;
        load.wait_for_answers(10).await;
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
    assert_all_served(load).await;
    assert_eq!(upstream.count("initialize"), 1, "no fault is a reason for a new session");
    let last = upstream.last("tools/call");
    assert_eq!((&last.path[..], last.header("mcp-session-id")), ("/mcp", "s1"));
}

fn is_call_of(request: &ReceivedRequest, tool: &str) -> bool {
    request.message["params"]["name"] == tool
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_its_request_and_31_other_clients_are_served() {
    let upstream = Upstream::start(&[]);
    let config = "[listen]\nwrite_timeout = \"500ms\"\n".to_owned() + &upstream.server("up", "");
    let daemon = Daemon::with(config).ready();
    let load = start_others(&daemon);
    load.wait_for_answers(1).await;

    let params = json!({
        "name": "progress", "arguments": { "steps": 60_000 }, "_meta": { "progressToken": 1 },
    });
    let client = daemon.client("/servers/up");
    let slow = client.slow_post(&request(&json!("slow"), "tools/call", &params)).await;
    // Only the stream of its own request waits for the client, until the timeout.
    upstream.log("cancelled=1").await;
    load.wait_for_answers(10).await;

    let read = String::from_utf8(slow.read_to_end().await).expect("UTF-8");
    assert!(read.contains("notifications/progress") && !read.contains("\"slow\""), "{read}");
    assert_all_served(load).await;
    assert_eq!(upstream.log("").await["sessions_minted"], 1);
}
