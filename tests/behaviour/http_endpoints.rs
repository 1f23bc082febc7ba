//! The HTTP endpoints: views, health, readiness, and the errors of invalid requests.

use hyper::Method;
use serde_json::json;

use crate::harness::{client::MCP_HEADERS, daemon::Daemon, fake::Fakes};

/// The probe of the README, byte for byte.
const PROBE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;

#[tokio::test]
async fn the_liveness_probe_is_answered_while_every_server_hangs() {
    let fakes = Fakes::new();
    let gate = fakes.path("never").display().to_string();
    let config = fakes.server("stuck", &["--start-gate", &gate]) + "start = \"eager\"\n";
    for root in ["direct", "passthrough:stuck"] {
        let config = format!("[listen]\nroot = \"{root}\"\n{config}");
        let daemon = Daemon::with(config).ready();

        let reply = daemon.client("/").post(PROBE).await;

        assert_eq!(reply.status, 200);
        let answer = reply.answer();
        assert_eq!(answer["id"], 1);
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
        assert!(answer["result"]["serverInfo"]["name"].is_string());
        assert!(answer["result"]["capabilities"]["tools"].is_object());
        assert_eq!(reply.headers["content-type"], "application/json");
    }
}

#[tokio::test]
async fn healthz_does_not_depend_on_servers_and_readyz_names_missing_servers() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate");
    let gate_text = gate.display().to_string();
    let config = fakes.server("slow", &["--start-gate", &gate_text]) + "start = \"eager\"\n";
    let daemon = Daemon::with(config + &fakes.server("lazy", &[])).ready();

    let health = daemon.client("/healthz").get().await;
    assert_eq!((health.status.as_u16(), &health.answer()["ok"]), (200, &json!(true)));
    let ready = daemon.client("/readyz").get().await;
    assert_eq!(ready.status, 503);
    assert_eq!(
        ready.answer(),
        json!({ "ready": false, "missing": [{ "what": "server", "server": "slow", "state": "connecting" }] })
    );

    std::fs::write(&gate, "").expect("written");
    crate::until(async || daemon.client("/readyz").get().await.status == 200).await;
    assert_eq!(
        daemon.client("/readyz").get().await.answer(),
        json!({ "ready": true, "missing": [] })
    );
}

#[tokio::test]
async fn the_path_of_a_server_returns_the_info_and_capabilities_of_that_server() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();

    let answer = daemon.client("/servers/fake").post(PROBE).await.answer();

    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    assert_ne!(answer["result"]["serverInfo"]["name"], "metamcp");
    assert_eq!(answer["result"]["capabilities"]["tools"]["listChanged"], true);
    // The server itself refuses a method of a capability that it does not declare.
    assert!(answer["result"]["capabilities"]["logging"].is_null());
    let level = daemon.client("/servers/fake");
    let refused = level.request(json!(1), "logging/setLevel", json!({ "level": "debug" })).await;
    assert_eq!(refused.answer()["error"]["code"], -32601);
}

#[tokio::test]
async fn the_root_mcp_and_direct_paths_serve_the_same_view() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let mut lists = Vec::new();
    for path in ["/", "/mcp", "/direct"] {
        let client = daemon.client(path);
        let answer = client.request(json!(1), "tools/list", json!({})).await.answer();
        let tools = answer["result"]["tools"].as_array().cloned().unwrap_or_default();
        let names: Vec<_> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        for name in ["fake__echo", "fake__whoami"] {
            assert!(names.contains(&name), "{path}: {answer}");
        }
        let called = client.call("fake__echo", json!({ "value": path })).await;
        assert_eq!(called["value"], path);
        lists.push(answer);
    }
    assert_eq!(lists[1], lists[0]);
    assert_eq!(lists[2], lists[0]);
    assert_eq!(fakes.pids("fake").len(), 1, "one process serves all paths");
}

#[tokio::test]
async fn an_invalid_http_request_is_refused_with_the_remedy() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let root = daemon.client("/");
    let json_only = ("content-type", "application/json");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let too_large = format!("\"{}\"", "x".repeat(4 << 20));

    for (headers, body, status, code) in [
        (&MCP_HEADERS[..], "{", 400, "PARSE_ERROR"),
        (&MCP_HEADERS[..], "[]", 400, "INVALID_REQUEST"),
        (&MCP_HEADERS[..], r#"["2.0",1,"ping",{}]"#, 400, "INVALID_REQUEST"),
        (
            &MCP_HEADERS[..],
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            400,
            "INVALID_REQUEST",
        ),
        (&MCP_HEADERS[..], &too_large, 413, "BODY_TOO_LARGE"),
        (&[("content-type", "text/plain")][..], ping, 415, "CONTENT_TYPE"),
        (&[json_only, ("accept", "text/html")][..], ping, 406, "ACCEPT"),
        (
            &[json_only, ("mcp-protocol-version", "2027-01-01")][..],
            ping,
            400,
            "UNSUPPORTED_VERSION",
        ),
        (&[json_only, ("origin", "https://evil.example")][..], ping, 403, "ORIGIN_FORBIDDEN"),
        (&[json_only, ("host", "evil.example")][..], ping, 403, "HOST_FORBIDDEN"),
        (&[json_only, ("host", "localhost:80@evil.example")][..], ping, 403, "HOST_FORBIDDEN"),
        (
            &[json_only, ("host", "localhost"), ("host", "evil.example")][..],
            ping,
            400,
            "HOST_AMBIGUOUS",
        ),
        (
            &MCP_HEADERS[..],
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            400,
            "INVALID_REQUEST",
        ),
    ] {
        let reply = root.send(Method::POST, headers, body.to_owned()).await;
        assert_eq!(reply.status, status, "{code}: {reply:?}");
        let error = &reply.answer()["error"];
        let rpc_code = match code {
            "PARSE_ERROR" => -32700,
            "UNSUPPORTED_VERSION" => -32022,
            _ => -32600,
        };
        assert_eq!(error["code"], rpc_code, "{code}");
        let error = &error["data"];
        assert_eq!(error["code"], code);
        assert!(error["suggestion"].as_str().is_some_and(|text| text.ends_with('.')), "{error}");
    }
    let foreign_path = daemon.client("/nothing/here").post(ping).await;
    assert_eq!(foreign_path.status, 404);
    assert_eq!(foreign_path.headers["content-type"], "application/json");
    let well_known = daemon.client("/.well-known/oauth-protected-resource").get().await;
    assert_eq!(well_known.status, 404);
    assert!(well_known.answer()["error"].is_object());
    let put = root.send(Method::PUT, &[], String::new()).await;
    assert_eq!(put.status, 405);
    assert_eq!(put.headers["allow"], "GET, POST, DELETE");
    let followed = root.get().await;
    assert_eq!(followed.status, 406, "a browser that follows a link does not wait for a stream");
    assert_eq!(daemon.client("/healthz").post(ping).await.status, 405);
    let unknown = daemon.client("/servers/fak").post(ping).await;
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.answer()["error"]["data"]["suggestion"], "Did you mean `fake`?");
    // The service still serves valid requests.
    assert_eq!(root.post(ping).await.answer()["result"], json!({}));
}

#[tokio::test]
async fn an_unsupported_version_is_refused_with_the_supported_ones() {
    let daemon = Daemon::with("").ready();
    let client = daemon.client("/").header("mcp-protocol-version", "2027-01-01");

    let reply = client.request(json!("probe"), "server/discover", json!({})).await;

    assert_eq!(reply.status, 400);
    let error = &reply.answer()["error"];
    assert_eq!(error["code"], -32022);
    let served = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
    assert_eq!(error["data"]["context"]["supported"], json!(served));
    assert_eq!(error["data"]["supported"], json!(served));
}

#[tokio::test]
async fn a_misspelled_tool_or_server_name_is_refused_with_a_suggestion() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/");
    client.request(json!(1), "tools/list", json!({})).await;

    let bare = client.tool("whoami", json!({})).await.answer();
    assert_eq!(bare["error"]["code"], -32602);
    assert_eq!(bare["error"]["data"]["suggestion"], "Did you mean `fake__whoami`?");
    let server = client.tool("fkae__whoami", json!({})).await.answer();
    assert_eq!(server["error"]["data"]["code"], "SERVER_NOT_FOUND");
    assert_eq!(server["error"]["data"]["suggestion"], "Did you mean `fake`?");
    let nameless = client.request(json!(1), "tools/call", json!({})).await.answer();
    assert_eq!(nameless["error"]["data"]["code"], "MISSING_PARAMETER");
    let cursor = client.request(json!(1), "tools/list", json!({ "cursor": "x" })).await.answer();
    assert_eq!(
        (&cursor["error"]["data"]["code"], &cursor["error"]["code"]),
        (&json!("INVALID_CURSOR"), &json!(-32602))
    );
}

#[tokio::test]
async fn an_answer_has_the_content_type_that_the_client_accepts() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","arguments":{"steps":2},"_meta":{"progressToken":1}}}"#;

    for (accept, kind, n_messages) in [
        ("application/json", "application/json", 1),
        ("text/event-stream", "text/event-stream", 3),
        ("*/*", "text/event-stream", 3),
    ] {
        let headers = [("content-type", "application/json"), ("accept", accept)];
        let reply = client.send(Method::POST, &headers, call).await;
        assert_eq!(reply.headers["content-type"], kind, "{accept}");
        assert_eq!(reply.messages().len(), n_messages, "{accept}");
    }
}

#[tokio::test]
async fn a_slow_request_does_not_delay_requests_on_other_connections() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    let held = crate::harness::client::running(client.clone().hold("k"));
    client.call("held", json!({ "at_least": 1 })).await;

    for value in 0..20 {
        assert_eq!(client.call("echo", json!({ "value": value })).await["value"], value);
    }

    client.call("release", json!({ "key": "k" })).await;
    assert_eq!(held.end().await.answer()["id"], 1);
}

#[tokio::test]
async fn a_tool_name_of_megabytes_is_refused_without_being_quoted() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/");
    client.request(json!(1), "tools/list", json!({})).await;

    let reply = client.tool(&"a".repeat(3_900_000), json!({})).await;

    assert_eq!(reply.answer()["error"]["data"]["code"], "TOOL_NOT_FOUND");
    assert!(reply.body.len() < 1000, "{} bytes", reply.body.len());
}
