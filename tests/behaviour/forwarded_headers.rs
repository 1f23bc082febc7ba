//! `forward_headers`: the headers of a client's request that go on to a server.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::{
    all,
    harness::{
        client::Client,
        daemon::Daemon,
        modern::Modern,
        scripted_upstream::{ReceivedRequest, ResponseWriter, ScriptedUpstream},
        stdio::StdioClient,
    },
    upstream::legacy_sse_upstream,
};

const FORWARDS: &str = "forward_headers = [\"X-Project\"]";

/// The requests that a client has its server answer, with their parameters.
fn client_requests() -> [(&'static str, Value); 6] {
    [
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "x", "arguments": {} })),
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "p" })),
        ("resources/read", json!({ "uri": "a:b" })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "" } }),
        ),
    ]
}

/// Returns the values of `X-Project` in all requests of these methods.
fn projects(upstream: &ScriptedUpstream, methods: &[&str]) -> Vec<String> {
    let requests = upstream.requests().into_iter();
    requests
        .filter(|request| methods.contains(&request.method()))
        .map(|request| request.header("x-project").to_owned())
        .collect()
}

/// Answers as an upstream of the modern era does.
fn answer_as_modern(request: &ReceivedRequest, response: &mut ResponseWriter) -> bool {
    let result = match request.method() {
        "server/discover" => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {}, "prompts": {}, "resources": {}, "completions": {} },
        }),
        "subscriptions/listen" => return false,
        "tools/list" => json!({ "resultType": "complete", "tools": [] }),
        "prompts/list" => json!({ "resultType": "complete", "prompts": [] }),
        _ => json!({ "resultType": "complete", "content": [] }),
    };
    response.json(&request.result(&result));
    true
}

#[tokio::test]
async fn a_server_gets_the_headers_that_it_names_with_every_request_of_their_client() {
    for is_modern in [false, true] {
        let upstream = ScriptedUpstream::start(move |request, response| {
            is_modern && answer_as_modern(request, response)
        });
        let daemon = Daemon::with(upstream.server(FORWARDS)).ready();
        let client = daemon.client("/servers/up").header("X-Project", "apollo");
        let modern = Modern::new(client.clone());
        // Connects without a client's request: the requests of metamcp itself come first.
        daemon.client("/servers/up").tool("first", json!({})).await;
        let n_before = upstream.requests().len();

        for (method, params) in client_requests() {
            client.request(json!(1), method, params.clone()).await;
            modern.request(json!(1), method, params).await;
            let values = projects(&upstream, &[method]);
            let own = &values[values.len() - 2..];
            assert_eq!(own, ["apollo", "apollo"], "{method} to a modern upstream: {is_modern}");
        }

        let requests = upstream.requests();
        let mine =
            requests[..n_before].iter().filter(|request| request.headers.contains_key("x-project"));
        assert_eq!(mine.count(), 0, "requests of metamcp carry no header of a client");
    }
}

#[tokio::test]
async fn each_request_has_the_headers_of_its_own_client_with_all_their_values() {
    let upstream = ScriptedUpstream::start(|_, _| false);
    let daemon = Daemon::with(upstream.server(FORWARDS)).ready();
    let client = |number: usize| {
        let client = daemon.client("/servers/up");
        client.header("x-project", &format!("p{number}")).header("X-Project", "zwölf")
    };
    let clients: Vec<Client> = (0..8).map(client).collect();
    all((0..64).map(|n| {
        let client = clients[n % 8].clone();
        async move { client.tool("x", json!({ "project": n % 8 })).await }
    }))
    .await;

    let calls = upstream.requests().into_iter().filter(|request| request.method() == "tools/call");
    let calls: Vec<ReceivedRequest> = calls.collect();
    assert_eq!(calls.len(), 64);
    for call in calls {
        let project = &call.message["params"]["arguments"]["project"];
        assert_eq!(call.header("x-project"), format!("p{project}, zwölf"));
    }
}

#[tokio::test]
async fn a_header_reaches_no_server_that_does_not_name_it_and_credentials_reach_none() {
    let upstream = ScriptedUpstream::start(|_, _| false);
    let other = ScriptedUpstream::start(|_, _| false);
    let config = upstream.server(FORWARDS)
        + &other.server("forward_headers = [\"X-Tenant\"]").replace("servers.up", "servers.other");
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/").header("x-project", "apollo").header("x-tenant", "t");
    let client = client.header("authorization", "Bearer canary").header("cookie", "canary=1");
    client.tool("up__x", json!({})).await;
    client.tool("other__x", json!({})).await;

    let (sent, others) = (upstream.last("tools/call"), other.last("tools/call"));
    assert_eq!((sent.header("x-project"), sent.header("x-tenant")), ("apollo", ""));
    assert_eq!((others.header("x-project"), others.header("x-tenant")), ("", "t"));
    for request in upstream.requests().iter().chain(&other.requests()) {
        assert!(!format!("{request:?}").contains("canary"), "{request:?}");
    }
}

#[tokio::test]
async fn the_lists_that_all_clients_share_are_read_without_headers_of_a_client() {
    let upstream = ScriptedUpstream::start(|_, _| false);
    let daemon = Daemon::with(upstream.server(FORWARDS)).ready();
    let client = daemon.client("/").header("x-project", "apollo");
    client.request(json!(1), "tools/list", json!({})).await;
    client.at("/meta").tool("mcp_discover", json!({ "query": "anything" })).await;
    let shared = projects(&upstream, &["tools/list"]);
    assert!(!shared.is_empty() && shared.iter().all(String::is_empty), "{shared:?}");

    client.at("/servers/up").request(json!(1), "tools/list", json!({})).await;
    assert_eq!(upstream.last("tools/list").header("x-project"), "apollo");
}

#[tokio::test]
async fn a_request_that_is_sent_again_keeps_the_headers_of_its_client() {
    let is_known = AtomicBool::new(false);
    let upstream = ScriptedUpstream::start(move |request, response| {
        let is_lost = request.method() == "tools/call" && !is_known.swap(true, Ordering::SeqCst);
        if is_lost {
            response.page(404, "text/plain", "Session not found");
        }
        is_lost
    });
    let daemon = Daemon::with(upstream.server(FORWARDS)).ready();
    let client = daemon.client("/servers/up").header("x-project", "apollo");
    assert!(client.tool("x", json!({})).await.answer()["result"].is_object());
    assert_eq!(projects(&upstream, &["tools/call"]), ["apollo", "apollo"]);
    assert_eq!(projects(&upstream, &["initialize"]), ["", ""]);
}

#[tokio::test]
async fn a_legacy_sse_upstream_gets_the_headers_with_the_posts_of_their_client() {
    let (upstream, _stream) = legacy_sse_upstream("/messages?session=1", 405);
    let daemon = Daemon::with(upstream.server(FORWARDS)).ready();
    let client = daemon.client("/servers/up").header("x-project", "apollo");
    assert_eq!(client.call("x", json!({ "n": 1 })).await["n"], 1);
    assert_eq!(projects(&upstream, &["tools/call"]), ["apollo"]);
    let own = projects(&upstream, &["GET", "initialize", "notifications/initialized"]);
    assert!(own.iter().all(String::is_empty), "{own:?}");
}

#[tokio::test]
async fn a_legacy_sse_client_and_a_batch_pass_headers_on_and_a_pipe_has_none() {
    let upstream = ScriptedUpstream::start(|_, _| false);
    let config = "[listen]\nlegacy_sse = true\n".to_owned() + &upstream.server(FORWARDS);
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/up/sse").header("x-project", "old");
    let mut stream = client.listen().await;
    let address = stream.next().await.and_then(|event| event.data).expect("an address");
    client.at(&address).tool("x", json!({})).await;
    stream.message().await;
    assert_eq!(projects(&upstream, &["tools/call"]), ["old"]);

    let call = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "x" } });
    let client = daemon.client("/servers/up").header("mcp-protocol-version", "2025-03-26");
    let client = client.header("x-project", "batch");
    client.post(json!([call(1), call(2)]).to_string()).await;
    assert_eq!(projects(&upstream, &["tools/call"]), ["old", "batch", "batch"]);

    let pipe = StdioClient::to(&daemon, &["--server", "up"]);
    let mut pipe = pipe.initialized("2025-06-18", json!({})).await;
    pipe.result(1, "x", json!({})).await;
    assert_eq!(projects(&upstream, &["tools/call"]), ["old", "batch", "batch", ""]);
}

#[tokio::test]
async fn too_large_headers_fail_the_request_before_it_is_sent() {
    let upstream = ScriptedUpstream::start(|_, _| false);
    let daemon = Daemon::with(upstream.server(FORWARDS)).ready();
    let client = daemon.client("/servers/up").header("x-project", &"x".repeat(9000));
    let error = client.tool("x", json!({})).await.answer()["error"].clone();
    assert_eq!(error["data"]["code"], "HEADERS_TOO_LARGE", "{error}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("9009 bytes")), "{error}");
    assert!(!error.to_string().contains("xxx"), "{error}");
    assert_eq!(upstream.count("tools/call"), 0);
    let longest = daemon.client("/servers/up").header("x-project", &"x".repeat(8000));
    assert!(longest.tool("x", json!({})).await.answer()["result"].is_object());
}

#[tokio::test]
async fn a_reload_changes_the_headers_that_a_server_gets() {
    let upstream = ScriptedUpstream::start(|_, _| false);
    let mut daemon = Daemon::with(upstream.server("")).ready();
    let client = daemon.client("/servers/up").header("x-project", "apollo");
    client.tool("x", json!({})).await;
    daemon.rewrite(&upstream.server(FORWARDS));
    daemon.reload();
    client.tool("x", json!({})).await;
    daemon.rewrite(&upstream.server("forward_headers = [\"X-Tenant\"]"));
    daemon.reload();
    client.tool("x", json!({})).await;
    assert_eq!(projects(&upstream, &["tools/call"]), ["", "apollo", ""]);
}
