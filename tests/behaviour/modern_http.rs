//! Requests of clients of 2026-07-28: statuses, headers and errors on the wire.

use hyper::Method;
use serde_json::{Value, json};

use crate::harness::{
    client::{MCP_HEADERS, Reply, request, running},
    daemon::Daemon,
    fake::{Fakes, Upstream},
    modern::{Modern, VERSION, key, refusal},
};

const SERVED: [&str; 5] = [VERSION, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

fn modern(daemon: &Daemon, path: &str) -> Modern {
    Modern::new(daemon.client(path))
}

/// Posts a request with changed headers; `None` removes a header.
async fn with_headers(client: &Modern, message: &Value, changed: &[(&str, Option<&str>)]) -> Reply {
    let mut headers = client.headers(message);
    headers.retain(|(name, _)| changed.iter().all(|(changed, _)| changed != name));
    let added = changed.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(added).collect();
    client.http.send(Method::POST, &headers, message.to_string()).await
}

#[tokio::test]
async fn headers_that_contradict_the_body_are_refused_under_the_requests_id() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let version = "mcp-protocol-version";
    for path in ["/", "/mcp", "/direct", "/servers/fake"] {
        let client = modern(&daemon, path);
        let list = client.message(&json!("l"), "tools/list", json!({}));
        let name = if path == "/servers/fake" { "echo" } else { "fake__echo" };
        let call = json!({ "name": name, "arguments": { "value": 1 } });
        let call = client.message(&json!("l"), "tools/call", call);
        for (message, changed, refused) in [
            (&list, &[][..], None),
            (&list, &[(version, None)][..], Some(-32020)),
            (&list, &[(version, Some("2025-11-25"))][..], Some(-32020)),
            (&list, &[(version, Some("2027-01-01"))][..], Some(-32020)),
            (&list, &[("mcp-method", None)][..], Some(-32020)),
            (&list, &[("mcp-method", Some("prompts/list"))][..], Some(-32020)),
            (&list, &[("mcp-method", Some("TOOLS/LIST"))][..], Some(-32020)),
            (&list, &[("mcp-session-id", Some("any")), ("last-event-id", Some("1-1"))][..], None),
            (&call, &[][..], None),
            (&call, &[("mcp-name", None)][..], Some(-32020)),
            (&call, &[("mcp-name", Some("other"))][..], Some(-32020)),
            (&call, &[("mcp-name", Some("=?base64?ZWNobw?="))][..], Some(-32020)),
            (&call, &[("mcp-param-unheard-of", Some("x"))][..], None),
        ] {
            let reply = with_headers(&client, message, changed).await;
            let answer = reply.answer();
            assert_eq!(answer["id"], "l", "{path} {changed:?}");
            assert_eq!(answer["error"]["code"].as_i64(), refused, "{path} {changed:?} {answer}");
            let status = if refused.is_some() { 400 } else { 200 };
            assert_eq!(reply.status, status, "{path} {changed:?}");
            assert!(!reply.headers.contains_key("mcp-session-id"));
        }
    }
}

#[tokio::test]
async fn a_modern_request_without_valid_client_metadata_is_refused() {
    let daemon = Daemon::with("").ready();
    let client = modern(&daemon, "/");
    let whole = client.message(&json!(7), "tools/list", json!({}));
    let changed = |name: &str, value: Value| {
        let mut message = whole.clone();
        message["params"]["_meta"][key(name)] = value;
        message
    };
    let without = |name: &str| {
        let mut message = whole.clone();
        message["params"]["_meta"].as_object_mut().expect("an object").remove(&key(name));
        message
    };
    let mut bare = whole.clone();
    bare["params"] = json!({});
    for (message, status, code) in [
        (whole.clone(), 200, None),
        (without("clientInfo"), 200, None),
        (bare, 400, Some(-32602)),
        (without("protocolVersion"), 400, Some(-32602)),
        (without("clientCapabilities"), 400, Some(-32602)),
        (changed("clientCapabilities", json!("all")), 400, Some(-32602)),
        (changed("protocolVersion", json!(7)), 400, Some(-32602)),
        (changed("logLevel", json!("loud")), 400, Some(-32602)),
        (changed("logLevel", json!("debug")), 200, None),
    ] {
        let reply = with_headers(&client, &message, &[]).await;
        let answer = reply.answer();
        assert_eq!(reply.status, status, "{message}: {answer}");
        assert_eq!(answer["error"]["code"].as_i64(), code, "{message}: {answer}");
        assert_eq!(answer["id"], 7, "{message}");
    }
}

#[tokio::test]
async fn the_error_for_an_unsupported_version_lists_the_supported_ones() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    for path in ["/", "/servers/fake"] {
        for version in ["2027-01-01", "v999.0.0", "2025-11-25"] {
            let reply = modern(&daemon, path).version(version).discover().await;
            assert_eq!(refusal(&reply), (400.try_into().expect("a status"), Some(-32022)));
            let answer = reply.answer();
            assert_eq!(answer["id"], "discover");
            assert_eq!(answer["error"]["data"]["requested"], version);
            assert_eq!(answer["error"]["data"]["supported"], json!(SERVED));
        }
    }
}

#[tokio::test]
async fn an_unknown_method_gets_404() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &["--subscribe", "--logging"])).ready();
    for path in ["/", "/servers/fake"] {
        let client = modern(&daemon, path);
        for method in [
            "initialize",
            "ping",
            "logging/setLevel",
            "resources/subscribe",
            "resources/unsubscribe",
            "unknown/method",
        ] {
            let params = json!({ "uri": "fake:///one", "level": "debug" });
            let reply = client.request(json!("x"), method, params).await;
            assert_eq!(
                refusal(&reply),
                (404.try_into().expect("a status"), Some(-32601)),
                "{method}"
            );
            assert_eq!(reply.answer()["id"], "x", "{path} {method}");
            assert_eq!(reply.headers["content-type"], "application/json");
        }
    }
}

#[tokio::test]
async fn other_messages_and_http_methods_get_the_statuses_of_the_modern_era() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let with_version = |version| {
        let [kind, accept] = MCP_HEADERS;
        [kind, accept, ("mcp-protocol-version", version), ("mcp-method", "tools/list")]
    };
    let notification =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let list = request(&json!(1), "tools/list", &json!({}));
    for path in ["/", "/servers/fake"] {
        let client = daemon.client(path);
        for (version, body, status, code) in [
            (VERSION, notification, 202, None),
            ("2027-01-01", notification, 400, Some(-32022)),
            (VERSION, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 400, Some(-32600)),
            (VERSION, "{", 400, Some(-32700)),
            (VERSION, "7", 400, Some(-32600)),
            (VERSION, &format!("[{list}]"), 400, Some(-32600)),
        ] {
            let reply = client.send(Method::POST, &with_version(version), body.to_owned()).await;
            assert_eq!(reply.status, status, "{path} {version} {body}: {reply:?}");
            if let Some(code) = code {
                assert_eq!(reply.answer()["error"]["code"], code, "{path} {body}");
            }
            if status == 202 {
                assert_eq!(reply.body, "");
            }
        }
        for method in [Method::GET, Method::DELETE] {
            let reply = client.send(method.clone(), &with_version(VERSION), "").await;
            assert_eq!(reply.status, 405, "{method}");
            assert_eq!(reply.headers["allow"], "POST");
        }
        let mut wrong = with_version(VERSION);
        wrong[1].1 = "text/html";
        assert_eq!(client.send(Method::POST, &wrong, list.clone()).await.status, 406);
        wrong[0].1 = "text/plain";
        assert_eq!(client.send(Method::POST, &wrong, list.clone()).await.status, 415);
    }
}

#[tokio::test]
async fn both_eras_are_served_on_the_same_paths_at_the_same_time() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    for path in ["/", "/mcp", "/direct", "/servers/fake"] {
        let (new, old) = (modern(&daemon, path), daemon.client(path).initialized().await);
        let name = if path == "/servers/fake" { "meet" } else { "fake__meet" };
        let met = json!({ "n": 2, "value": path });
        // Each call waits for the other one in the same process.
        let waiting = running(old.call(name, met.clone()));
        let answer = new.tool(name, met).await.answer();
        assert_eq!(answer["result"]["structuredContent"], waiting.end().await, "{path}");
        let old_list = old.request(json!(1), "tools/list", json!({})).await.answer();
        let new_list = new.request(json!(1), "tools/list", json!({})).await.answer();
        assert_eq!(old_list["result"]["tools"], new_list["result"]["tools"], "{path}");
        assert_eq!(old_list["result"].get("resultType"), None);
        assert_eq!(new_list["result"]["resultType"], "complete", "{path}");
    }
    assert_eq!(fakes.pids("fake").len(), 1);
}

#[tokio::test]
async fn a_list_states_its_type_lifetime_and_server_and_keeps_its_order() {
    let fakes = Fakes::new();
    let config = fakes.server("b", &[]) + &fakes.server("a", &[]);
    let daemon = Daemon::with(config).ready();
    let client = modern(&daemon, "/");
    for (method, member) in [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let first = client.request(json!(1), method, json!({})).await;
        let result = &first.answer()["result"];
        assert!(result[member].is_array(), "{method}");
        assert_eq!(result["resultType"], "complete");
        assert!(result["ttlMs"].is_u64() && result["cacheScope"] == "private", "{method}");
        assert_eq!(result["_meta"][key("serverInfo")]["name"], "metamcp");
        assert_eq!(client.request(json!(1), method, json!({})).await.body, first.body);
    }
}

#[tokio::test]
async fn discovery_is_answered_while_every_server_is_still_starting() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate");
    let gate = gate.display().to_string();
    let config = fakes.server("stuck", &["--start-gate", &gate]) + "start = \"eager\"\n";
    let daemon = Daemon::with(config).ready();
    for (path, name) in [("/", "metamcp"), ("/direct", "metamcp"), ("/servers/stuck", "metamcp")] {
        let result = modern(&daemon, path).discover().await.answer()["result"].clone();
        assert_eq!(result["supportedVersions"], json!(SERVED), "{path}");
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["_meta"][key("serverInfo")]["name"], name);
        assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
        assert!(result["instructions"].is_string() && result["ttlMs"].is_u64());
        assert!(result.get("protocolVersion").is_none() && result.get("serverInfo").is_none());
    }
    // A subscriber is notified when the server has connected.
    let filter = json!({ "toolsListChanged": true });
    let mut listen = modern(&daemon, "/servers/stuck").listen(json!(1), filter).await;
    listen.message().await;
    std::fs::write(&gate, "").expect("the gate is opened");
    assert_eq!(listen.message().await["method"], "notifications/tools/list_changed");
    let discovered = modern(&daemon, "/servers/stuck").discover().await.answer()["result"].clone();
    assert_eq!(discovered["_meta"][key("serverInfo")]["name"], "fake_mcp");
}

#[tokio::test]
async fn discovery_describes_a_legacy_server_in_modern_terms() {
    let upstream = Upstream::start(&["--subscribe", "--logging"]);
    let fakes = Fakes::new();
    let config = upstream.server("up", "")
        + &fakes.server("one", &["--logging"])
        + "sharing = \"exclusive\"\n";
    let daemon = Daemon::with(config).ready();
    // Before the first connection, metamcp may describe itself in place of the server.
    modern(&daemon, "/servers/up").tool("whoami", json!({})).await;
    let discovered = modern(&daemon, "/servers/up").discover().await.answer()["result"].clone();
    assert_eq!(discovered["_meta"][key("serverInfo")]["name"], "fake_mcp");
    assert_eq!(discovered["supportedVersions"], json!(SERVED));
    assert_eq!(discovered["capabilities"]["resources"]["subscribe"], true);
    assert!(discovered["capabilities"]["logging"].is_object());

    modern(&daemon, "/servers/one").tool("whoami", json!({})).await;
    let discovered = modern(&daemon, "/servers/one").discover().await.answer()["result"].clone();
    assert_eq!(
        discovered["capabilities"]["tools"],
        json!({}),
        "no client can be notified of changes"
    );
}

#[tokio::test]
async fn headers_that_repeat_arguments_must_match_them() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    for (path, name) in [("/servers/up", "routed"), ("/", "up__routed")] {
        let client = modern(&daemon, path);
        client.request(json!(1), "tools/list", json!({})).await;
        let arguments = json!({ "region": "Zürich", "count": 42, "text": "x" });
        let call = json!({ "name": name, "arguments": arguments });
        let call = client.message(&json!(3), "tools/call", call);
        for (region, count, is_fine) in [
            (Some("=?base64?WsO8cmljaA==?="), Some("42"), true),
            (Some("=?base64?WsO8cmljaA==?="), Some("42.0"), true),
            (Some("=?base64?WsO8cmljaA?="), Some("42"), false),
            (Some("Zurich"), Some("42"), false),
            (Some("=?base64?WsO8cmljaA==?="), None, false),
            (None, Some("42"), false),
        ] {
            let changed = [("mcp-param-region", region), ("mcp-param-count", count)];
            let reply = with_headers(&client, &call, &changed).await;
            let code = reply.answer()["error"]["code"].as_i64();
            let is_refused = (reply.status == 400, code == Some(-32020));
            assert_eq!(is_refused, (!is_fine, !is_fine), "{path} {changed:?}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn progress_arrives_on_the_stream_of_the_request_and_closing_the_stream_cancels_it() {
    let upstream = Upstream::start(&["--logging"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = modern(&daemon, "/servers/up");
    let params = json!({
        "name": "progress", "arguments": { "steps": 2 }, "_meta": { "progressToken": "t" },
    });
    let mut stream = client.stream(json!(1), "tools/call", params).await;
    for step in 1..=2 {
        let progress = stream.message().await;
        assert_eq!(progress["params"]["progressToken"], "t");
        assert_eq!(progress["params"]["progress"], step);
    }
    assert_eq!(stream.message().await["id"], 1);
    assert_eq!(stream.headers["x-accel-buffering"], "no");

    for key in ["a", "b"] {
        let held = running({
            let client = client.clone();
            async move { client.tool("hold", json!({ "key": key })).await }
        });
        upstream.log("held=1").await;
        drop(held);
        upstream.log(&format!("cancelled={}&held=0", if key == "a" { 1 } else { 2 })).await;
    }
}

#[tokio::test]
async fn the_log_level_of_a_request_applies_to_its_messages_and_ends_with_the_request() {
    let upstream = Upstream::start(&["--logging"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = modern(&daemon, "/servers/up");
    let log = async |client: &Modern, level: &str, data: u64| {
        let arguments = json!({ "level": level, "data": data, "related": true });
        let messages = client.tool("log", arguments).await.messages();
        let (answer, before) = messages.split_last().expect("an answer");
        assert_eq!(answer["result"]["isError"], Value::Null, "{answer}");
        before.iter().map(|message| message["params"]["data"].clone()).collect::<Vec<_>>()
    };
    let none: [u64; 0] = [];
    assert_eq!(log(&client, "emergency", 1).await, none, "no level was requested");
    assert_eq!(log(&client.clone().level("error"), "warning", 2).await, none);
    assert_eq!(log(&client.clone().level("error"), "error", 3).await, [3]);
    assert_eq!(log(&client.clone().level("debug"), "debug", 4).await, [4]);
    let levels = upstream.log("levels=4").await["levels"].clone();
    let levels_set = levels.as_array().expect("a list");
    assert!(
        levels_set.contains(&json!("debug")) && levels_set.contains(&json!("error")),
        "{levels}"
    );

    // The server returns to its default level when no request runs.
    let is_default = async || {
        let levels = upstream.log("").await["levels"].clone();
        levels.as_array().and_then(|levels| levels.last().cloned()) == Some(json!("info"))
    };
    crate::until(is_default).await;
}

#[tokio::test]
async fn each_modern_request_to_a_per_session_server_gets_a_connection_of_its_own() {
    let fakes = Fakes::new();
    let config = fakes.server("own", &["--logging"]) + "sharing = \"session\"\n";
    let daemon = Daemon::with(config).ready();
    let client = modern(&daemon, "/");
    for method in ["tools/list", "prompts/list", "tools/list"] {
        let listed = client.request(json!(1), method, json!({})).await.answer();
        let items = listed["result"].as_object().expect("a result").values();
        assert!(items.filter_map(Value::as_array).any(|items| !items.is_empty()), "{listed}");
    }
    assert_eq!(fakes.pids("own").len(), 1, "one process serves all lists");
    let pid = async |client: &Modern, name: &str| {
        client.call(name, json!({})).await["pid"].as_u64().expect("a process")
    };
    let first = pid(&client, "own__whoami").await;
    let second = pid(&modern(&daemon, "/servers/own"), "whoami").await;
    assert_ne!(first, second, "each request has its own process");
    let seen =
        client.clone().level("critical").call("own__seen", json!({ "counts": { "levels": 1 } }));
    assert_eq!(seen.await["levels"], json!(["critical"]));
    crate::until(async || {
        crate::server_status(&daemon, "own").await["connections"].as_u64() <= Some(1)
    })
    .await;
}
