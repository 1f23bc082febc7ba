//! Clients that connect as Claude Code does: with `server/discover`, with the legacy handshake if a
//! server refuses that, and, as old versions did, without a session id.

use serde_json::{Value, json};

use crate::{
    all,
    harness::{
        claude_code::ClaudeCode,
        client::{Client, running},
        daemon::Daemon,
        fake::{Fakes, Upstream},
        stream::End,
    },
    server_status,
};

const PATHS: [&str; 2] = ["/", "/servers/fake"];

/// The number of concurrent sessions of one user. They use the same request ids.
const N_CLIENTS: usize = 8;

/// Returns the name of a tool of the fake at a path.
fn tool(path: &str, name: &str) -> String {
    if path == "/" { format!("fake__{name}") } else { name.to_owned() }
}

/// Returns the names of the tools in an answer.
fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array().expect("a list of tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn server_discover_is_answered_while_every_server_is_still_starting() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate");
    let held = ["--start-gate", &gate.display().to_string()];
    let modern = [&held[..], &["--era", "modern"]].concat();
    let silent = [&held[..], &["--probe", "silent"]].concat();
    let servers = [("fake", &held[..]), ("modern", &modern), ("silent", &silent)];
    let servers =
        servers.map(|(name, options)| fakes.server(name, options) + "start = \"eager\"\n");
    let daemon = Daemon::with(servers.concat()).ready();

    // The gate opens only after all clients have connected, so no client waits for a server.
    let paths = ["/", "/servers/fake", "/servers/modern", "/servers/silent"];
    let clients = all((0..N_CLIENTS).flat_map(|_| paths).map(|path| {
        let client = daemon.client(path);
        async move { (path, ClaudeCode::connect(client).await) }
    }))
    .await;
    for name in ["fake", "modern", "silent"] {
        assert_eq!(server_status(&daemon, name).await["state"], "connecting", "{name}");
    }
    assert!(clients.iter().all(|(_, client)| client.is_modern()));

    std::fs::write(&gate, "").expect("the gate is opened");
    all(clients.into_iter().map(async |(path, mut client)| {
        if path == "/" {
            // The merged list does not wait for a slow server; the client gets a notice later.
            let mut listed = client.request("tools/list", json!({})).await.answer();
            while !["fake__echo", "modern__echo"].iter().all(|tool| names(&listed).contains(tool)) {
                let notice = client.notices().message().await;
                assert_eq!(notice["method"], "notifications/tools/list_changed");
                listed = client.request("tools/list", json!({})).await.answer();
            }
        } else {
            let listed = client.request("tools/list", json!({})).await.answer();
            assert_eq!(listed["id"], 0, "{path}");
            assert!(names(&listed).contains(&"echo"), "{path}");
        }
    }))
    .await;
}

#[tokio::test]
async fn clients_of_both_eras_use_the_same_ids_and_each_gets_its_own_answers() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    for path in PATHS {
        let mut clients = Vec::new();
        for _ in 0..N_CLIENTS / 2 {
            clients.push(ClaudeCode::connect(daemon.client(path)).await);
            clients.push(ClaudeCode::connect_legacy(daemon.client(path)).await);
        }
        let answers = all(clients.iter_mut().enumerate().map(async |(n, client)| {
            let first = if client.is_modern() { 0 } else { 1 };
            let listed = client.request("tools/list", json!({})).await.answer();
            assert_eq!(listed["id"], first, "{path}");
            assert!(names(&listed).contains(&&*tool(path, "meet")), "{path}");
            // All calls are in flight before the first is answered.
            let params = json!({
                "name": tool(path, "meet"), "arguments": { "n": N_CLIENTS, "value": n },
            });
            let answer = client.request("tools/call", params).await.answer();
            assert_eq!(answer["id"], first + 1, "{path}");
            answer["result"]["structuredContent"]["value"].clone()
        }))
        .await;
        assert_eq!(json!(answers), json!((0..N_CLIENTS).collect::<Vec<_>>()), "{path}");
    }
    assert_eq!(fakes.pids("fake").len(), 1, "all clients share one process");
}

#[tokio::test]
async fn a_legacy_session_has_one_notification_stream_and_a_second_one_replaces_it() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("fake", "")).ready();
    for path in PATHS {
        let mut client = ClaudeCode::connect_legacy(daemon.client(path)).await;
        let mut other = ClaudeCode::connect(daemon.client(path)).await;
        let listed = client.request("tools/list", json!({})).await.answer();
        assert_eq!(listed["id"], 1, "{path}");
        let ClaudeCode::Legacy { client: http, get, .. } = &mut client else {
            panic!("a client with the legacy handshake")
        };
        assert_eq!(get.status, 200, "{path}");
        let mut second = http.listen().await;
        assert_eq!(get.rest().await.1, End::Whole, "{path}");

        upstream.log("streams_open=1").await;
        upstream.control("change?list=tools").await;

        for notice in [second.message().await, other.notices().message().await] {
            assert_eq!(notice["method"], "notifications/tools/list_changed", "{path}");
        }
        // A process that exits closes its connections and ends no session.
        drop((client, other, second));
    }
}

#[tokio::test]
async fn a_client_that_never_sends_a_session_id_is_served() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    for path in PATHS {
        let clients = all((0..N_CLIENTS).map(|_| without_session(daemon.client(path)))).await;
        let holding = clients.iter().enumerate().map(|(n, client)| {
            let meet = json!({ "n": N_CLIENTS, "value": n });
            let call = json!({ "name": tool(path, "meet"), "arguments": meet });
            let client = client.clone();
            running(async move { client.request(json!(2), "tools/call", call).await.answer() })
        });
        let holding: Vec<_> = holding.collect();
        for (n, held) in holding.into_iter().enumerate() {
            let answer = held.end().await;
            assert_eq!(
                (&answer["id"], &answer["result"]["structuredContent"]["value"]),
                (&json!(2), &json!(n))
            );
        }
        // Its stream stays open: the client would reopen an ended stream every second.
        let mut stream = clients[0].listen().await;
        assert_eq!(stream.status, 200, "{path}");
        clients[1].tool(&tool(path, "flip_tools"), json!({})).await;
        assert_eq!(stream.message().await["method"], "notifications/tools/list_changed", "{path}");
    }
}

/// Performs the handshake and omits the session id from then on.
async fn without_session(client: Client) -> Client {
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": { "roots": {} },
        "clientInfo": { "name": "claude-code", "version": "2.1.41" },
    });
    let answer = client.request(json!(0), "initialize", params).await.answer();
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    let client = client.header("mcp-protocol-version", "2025-06-18");
    assert_eq!(client.notify("notifications/initialized", json!({})).await.status, 202);
    let listed = client.request(json!(1), "tools/list", json!({})).await.answer();
    assert!(!names(&listed).is_empty());
    client
}

#[tokio::test]
async fn a_tool_with_a_broken_schema_is_dropped_and_the_others_stay_listed() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &["--bad-tool"])).ready();
    for path in PATHS {
        for mut client in [
            ClaudeCode::connect(daemon.client(path)).await,
            ClaudeCode::connect_legacy(daemon.client(path)).await,
        ] {
            let listed = client.request("tools/list", json!({})).await.answer();
            let names = names(&listed);
            assert!(names.contains(&&*tool(path, "echo")), "{path}");
            assert!(
                !names.contains(&&*tool(path, "bad")),
                "{path}: the client would drop the whole list"
            );
        }
    }
    daemon.wait_log("it has no `inputSchema` of type object");
}
