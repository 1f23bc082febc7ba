//! The scriptable fake server in the modern era.

use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{
    claude_code::ClaudeCode,
    client::{Client, Reply, running},
    fake::Upstream,
    fake_stdio::FakeStdio,
    modern::{Modern, VERSION, key, refusal, retry, subscription},
    stream::End,
};

const MODERN: [&str; 2] = ["--era", "modern"];

/// Starts an upstream of the modern era with more options.
fn upstream(options: &[&str]) -> Upstream {
    Upstream::start(&[&MODERN, options].concat())
}

/// Returns a client of an upstream.
fn client(upstream: &Upstream) -> Modern {
    Modern::new(upstream.client())
}

/// Returns a modern request as a message for a pipe.
fn on_pipe(id: u64, method: &str, params: Value) -> Value {
    Modern::new(Client::new(String::new())).message(&json!(id), method, params)
}

/// Returns a modern tool call as a message for a pipe.
fn call_on_pipe(id: u64, name: &str, arguments: Value) -> Value {
    on_pipe(id, "tools/call", json!({ "name": name, "arguments": arguments }))
}

#[tokio::test]
async fn the_modern_fake_declares_itself_and_its_cache_hints() {
    let upstream = upstream(&["--ttl", "7000"]);
    let client = client(&upstream);

    let reported = client.discover().await.answer()["result"].clone();
    assert_eq!(reported["resultType"], "complete");
    assert_eq!(reported["supportedVersions"], json!([VERSION]));
    assert_eq!((&reported["ttlMs"], &reported["cacheScope"]), (&json!(7000), &json!("public")));
    assert_eq!(reported["_meta"][key("serverInfo")]["name"], "fake_mcp");
    assert_eq!(reported["capabilities"]["prompts"]["listChanged"], true);
    for (method, params, scope) in [
        ("tools/list", json!({}), "public"),
        ("prompts/list", json!({}), "public"),
        ("resources/list", json!({}), "public"),
        ("resources/templates/list", json!({}), "public"),
        ("resources/read", json!({ "uri": "fake:///one" }), "private"),
    ] {
        let reply = client.request(json!(1), method, params).await;
        let result = &reply.answer()["result"];
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(7000), &json!(scope)));
        assert_eq!(result["resultType"], "complete", "{method}");
        assert!(!reply.headers.contains_key("mcp-session-id"));
        assert_eq!(reply.headers["x-accel-buffering"], "no");
    }
    let called = client.tool("echo", json!({ "value": 1 })).await.answer()["result"].clone();
    assert_eq!((&called["resultType"], called.get("ttlMs")), (&json!("complete"), None));
    let unknown = json!({ "uri": "fake:///three" });
    let unknown = client.request(json!(1), "resources/read", unknown).await;
    assert_eq!(refusal(&unknown), (StatusCode::OK, Some(-32602)));
    for method in [Method::GET, Method::DELETE] {
        let headers = [("accept", "text/event-stream"), ("mcp-session-id", "x")];
        let refused = client.http.send(method, &headers, "").await;
        assert_eq!(refused.status, StatusCode::METHOD_NOT_ALLOWED);
    }
}

#[tokio::test]
async fn the_modern_fake_refuses_invalid_requests() {
    let upstream = upstream(&[]);
    let client = client(&upstream);
    let bad = StatusCode::BAD_REQUEST;

    for name in ["protocolVersion", "clientCapabilities"] {
        let mut message = client.message(&json!("a"), "tools/list", json!({}));
        message["params"]["_meta"].as_object_mut().expect("an object").remove(&key(name));
        let reply = Reply::read(client.open(&message).await).await;
        assert_eq!(refusal(&reply), (bad, Some(-32602)), "{name}");
        assert_eq!(reply.answer()["id"], "a");
    }
    let other = client.clone().version("1900-01-01").discover().await;
    assert_eq!(refusal(&other), (bad, Some(-32022)));
    let data = json!({ "supported": [VERSION], "requested": "1900-01-01" });
    assert_eq!(other.answer()["error"]["data"], data);
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
        let reply = client.request(json!(1), method, json!({})).await;
        assert_eq!(refusal(&reply), (StatusCode::NOT_FOUND, Some(-32601)), "{method}");
    }
    let ask = json!({ "method": "sampling/createMessage" });
    let undeclared = client.tool("ask", ask).await;
    assert_eq!(refusal(&undeclared), (bad, Some(-32021)));
    let required = &undeclared.answer()["error"]["data"]["requiredCapabilities"];
    assert_eq!(required, &json!({ "sampling": {} }));
    let legacy = upstream.client().request(json!(0), "initialize", json!({})).await;
    assert_eq!(refusal(&legacy), (bad, Some(-32020)));
    let batch = json!([client.message(&json!(1), "tools/list", json!({}))]);
    let headers = client.headers(&batch[0]);
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let batch = client.http.send(Method::POST, &headers, batch.to_string()).await;
    assert_eq!(refusal(&batch), (bad, Some(-32600)));
}

#[tokio::test]
async fn the_modern_fake_requires_headers_that_match_the_body() {
    let upstream = upstream(&[]);
    let routed = json!({
        "region": "Zürich ", "count": 42, "urgent": true, "at": { "zone": "=?base64?x?=" }, "text": "t",
    });
    let client = client(&upstream)
        .param_header("Region", "/region")
        .param_header("Count", "/count")
        .param_header("Urgent", "/urgent")
        .param_header("Zone", "/at/zone");
    let reported = client.call("routed", routed.clone()).await;
    assert_eq!(reported["arguments"], routed);
    let absent = json!({ "region": null, "text": "t" });
    assert_eq!(client.call("routed", absent.clone()).await["arguments"], absent);

    let params = json!({ "name": "routed", "arguments": { "region": "here", "count": 42 } });
    let message = client.message(&json!(1), "tools/call", params);
    let headers = client.headers(&message);
    let send = async |change: &str, to: Option<&str>| {
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter_map(|(name, value)| match (name == change, to) {
                (true, to) => to.map(|to| (name, to)),
                (false, _) => Some((name, value)),
            })
            .collect();
        client.http.send(Method::POST, &headers, message.to_string()).await
    };
    let names = ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-Region"];
    for (name, to) in names.iter().flat_map(|name| [(name, None), (name, Some("other"))]) {
        let refused = send(name, to).await;
        assert_eq!(refusal(&refused), (StatusCode::BAD_REQUEST, Some(-32020)), "{name}: {to:?}");
    }
    let encoded = [("mcp-name", "=?base64?cm91dGVk?="), ("mcp-param-Count", " 42.0 ")];
    for (name, to) in encoded {
        assert_eq!(send(name, Some(to)).await.status, StatusCode::OK, "{name}");
    }
    assert_eq!(send("mcp-name", Some("=?base64?%?=")).await.answer()["error"]["code"], -32020);
}

#[tokio::test]
async fn the_modern_fake_reports_the_metadata_and_headers_of_its_client() {
    let upstream = upstream(&[]);
    let capabilities = json!({ "elicitation": {} });
    let client = client(&upstream).named("me").capabilities(capabilities.clone()).level("notice");

    let reported = client.call("whoami", json!({})).await;

    assert_eq!((&reported["era"], &reported["logLevel"]), (&json!("modern"), &json!("notice")));
    assert_eq!(
        (&reported["clientInfo"]["name"], &reported["clientCapabilities"]),
        (&json!("me"), &capabilities)
    );
    let headers = json!({
        "mcp-method": "tools/call", "mcp-name": "whoami", "mcp-protocol-version": VERSION,
    });
    assert_eq!(reported["headers"], headers);
    let keys: Vec<String> =
        ["clientCapabilities", "clientInfo", "logLevel", "protocolVersion"].map(key).into();
    assert_eq!(reported["metaKeys"], json!(keys));
    let legacy = Upstream::start(&["--era", "both"]);
    let reported = legacy.client().initialized().await.call("whoami", json!({})).await;
    assert_eq!(reported["era"], "legacy");
}

#[tokio::test]
async fn the_modern_fake_asks_with_input_required_and_the_retry_carries_the_answers() {
    for options in [&[][..], &["--json"]] {
        let upstream = upstream(options);
        let all = json!({ "elicitation": {}, "roots": {}, "sampling": {} });
        let client = client(&upstream).capabilities(all);
        let tool = json!({ "name": "ask", "arguments": { "method": "roots/list" } });
        let question = client.request(json!(1), "tools/call", tool.clone()).await.answer();
        assert_eq!(question["result"]["resultType"], "input_required");
        assert_eq!(question["result"]["inputRequests"]["answer"]["method"], "roots/list");
        assert_eq!(question["result"].get("ttlMs"), None);
        let again = retry(&tool, &question["result"], |_, _| json!({ "roots": [] }));
        let answer = client.request(json!(2), "tools/call", again.clone()).await.answer();
        let reported = &answer["result"]["structuredContent"];
        assert_eq!(reported, &json!({ "result": { "roots": [] } }));

        let mut forged = again.clone();
        forged["requestState"] = json!("mine");
        let forged = client.request(json!(3), "tools/call", forged).await.answer();
        assert_eq!(forged["error"]["code"], -32602);
        let mut elsewhere = again;
        elsewhere["name"] = json!("ask_twice");
        let elsewhere = client.request(json!(3), "tools/call", elsewhere).await.answer();
        assert_eq!(elsewhere["error"]["code"], -32602);

        let mut questions = Vec::new();
        let answer = client
            .call_with_answers("ask_twice", json!({}), |key, request| {
                questions.push((key.to_owned(), request["method"].clone()));
                json!({ "action": "accept", "content": { "name": key } })
            })
            .await;
        assert_eq!(questions.len(), 2);
        let reported = &answer["result"]["structuredContent"];
        assert_eq!(reported["first"]["result"]["content"]["name"], "first");
        assert_eq!(reported["second"]["result"]["content"]["name"], "second");

        let answer =
            client.call_with_answers("ask_both", json!({}), |key, _| json!({ "for": key })).await;
        let reported = &answer["result"]["structuredContent"];
        let expected = json!({ "name": { "result": { "for": "name" } }, "roots": { "result": { "for": "roots" } } });
        assert_eq!(reported, &expected);
        assert_eq!(upstream.log("retries=4").await["retries"], 4);
    }
}

#[tokio::test]
async fn the_fake_asks_a_legacy_client_within_one_call() {
    let upstream = Upstream::start(&["--era", "both"]);
    let client = upstream.client().initialized().await;

    for (tool, methods) in [
        ("ask_twice", ["elicitation/create", "elicitation/create"]),
        ("ask_both", ["elicitation/create", "roots/list"]),
    ] {
        let mut call = client.tool_stream(tool, json!({})).await;
        for (n, method) in methods.iter().enumerate() {
            let question = call.message().await;
            assert_eq!(question["method"], *method);
            client.respond(&question["id"], json!({ "n": n })).await;
        }
        let answer = call.message().await["result"]["structuredContent"].clone();
        let mut reported: Vec<Value> =
            answer.as_object().expect("an object").values().cloned().collect();
        reported.sort_by_key(|answer| answer["result"]["n"].as_u64());
        assert_eq!(reported, [json!({ "result": { "n": 0 } }), json!({ "result": { "n": 1 } })]);
    }
}

#[tokio::test]
async fn the_modern_fake_sends_log_messages_with_the_call_that_requests_them() {
    let upstream = upstream(&["--logging"]);
    let client = client(&upstream);
    let log = |level: &str| json!({ "level": level, "data": 1 });

    assert_eq!(client.tool("log", log("error")).await.messages().len(), 1);
    let client = client.level("warning");
    assert_eq!(client.tool("log", log("info")).await.messages().len(), 1);
    let messages = client.tool("log", log("error")).await.messages();
    assert_eq!((messages.len(), &messages[0]["method"]), (2, &json!("notifications/message")));
    let mut stream = client.tool_stream("log", log("error")).await;
    assert_eq!(stream.message().await["params"]["data"], 1);
    assert_eq!(stream.message().await["id"], 1);
    let odd = client.level("loud").tool("log", log("error")).await;
    assert_eq!(refusal(&odd), (StatusCode::BAD_REQUEST, Some(-32602)));
}

#[tokio::test]
async fn each_listener_receives_its_requested_notifications_under_its_own_id() {
    let upstream = upstream(&["--subscribe"]);
    let client = client(&upstream);
    let watched = json!({
        "toolsListChanged": true, "resourceSubscriptions": ["a:1", "refuse:2"],
    });
    let mut one = client.listen(json!("same"), watched).await;
    let mut two = client.listen(json!("same"), json!({ "promptsListChanged": true })).await;
    let acknowledged = one.message().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    let agreed = json!({ "toolsListChanged": true, "resourceSubscriptions": ["a:1"] });
    assert_eq!(acknowledged["params"]["notifications"], agreed);
    assert_eq!(subscription(&acknowledged), "same");
    two.message().await;
    assert_eq!(upstream.log("listens=2").await["subscribed"], json!(["a:1"]));

    upstream.control("change?list=prompts").await;
    upstream.control("touch?uri=a:1").await;
    client.call("flip_tools", json!({})).await;
    client.call("change", json!({ "list": "resources" })).await;
    for method in ["notifications/resources/updated", "notifications/tools/list_changed"] {
        let notice = one.message().await;
        assert_eq!((&notice["method"], subscription(&notice)), (&json!(method), &json!("same")));
    }
    assert_eq!(two.message().await["method"], "notifications/prompts/list_changed");
    let prompts = client.request(json!(1), "prompts/list", json!({})).await.answer();
    assert_eq!(prompts["result"]["prompts"][1]["name"], "extra_1");

    drop(two);
    assert_eq!(upstream.log("closed=1").await["closed"], json!(["same"]));
    upstream.control("end_listens").await;
    let ended = one.message().await;
    assert_eq!((&ended["id"], subscription(&ended)), (&json!("same"), &json!("same")));
    assert_eq!(ended["result"]["resultType"], "complete");
    assert_eq!(one.rest().await.1, End::Whole);
    assert_eq!(upstream.log("closed=1").await["listens"], 0);

    let mut three = client.listen(json!(3), json!({})).await;
    three.message().await;
    upstream.log("listens=1").await;
    upstream.control("cut_posts").await;
    assert_eq!(three.rest().await.1, End::Cut);
    let log = upstream.log("").await;
    assert_eq!((&log["listens"], &log["closed"]), (&json!(0), &json!(["same"])));
}

#[tokio::test]
async fn the_modern_fake_treats_a_closed_stream_as_cancellation() {
    for options in [&[][..], &["--json"]] {
        let upstream = upstream(options);
        let client = client(&upstream);
        let params = json!({ "name": "hold", "arguments": { "key": "k" } });
        let held = running({
            let client = client.clone();
            async move { client.request(json!("a"), "tools/call", params).await }
        });
        let other = running(client.call("hold", json!({ "key": "k" })));
        upstream.log("held=2").await;

        drop(held);

        assert_eq!(upstream.log("closed=1").await["closed"], json!(["a"]));
        upstream.control("release?key=k").await;
        assert_eq!(other.end().await["key"], "k");
        // A notification cancels nothing, even with an id in flight.
        let notice = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
        let accepted = client.http.post(notice.to_string()).await;
        assert_eq!(accepted.status, StatusCode::ACCEPTED);
        assert_eq!(upstream.log("").await["closed"], json!(["a"]));
    }
}

#[tokio::test]
async fn the_modern_fake_on_stdio_has_subscriptions_and_no_handshake() {
    let mut pipe = FakeStdio::start(&["--era", "modern", "--subscribe"]);
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18" },
    });
    let refused = pipe.ask(&initialize).await;
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"]["requested"], "2025-06-18");
    let bare = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    assert_eq!(pipe.ask(&bare).await["error"]["code"], -32602);

    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let acknowledged = pipe.ask(&on_pipe(3, "subscriptions/listen", filter)).await;
    assert_eq!(subscription(&acknowledged), 3);
    pipe.send(&call_on_pipe(4, "flip_tools", json!({}))).await;
    let notice = pipe.message().await;
    assert_eq!(subscription(&notice), 3);
    assert_eq!(pipe.message().await["result"]["structuredContent"]["added"], "extra_1");
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 3 } });
    pipe.send(&cancel).await;
    let seen = call_on_pipe(5, "seen", json!({ "cancelled": 1 }));
    let seen = pipe.ask(&seen).await["result"]["structuredContent"].clone();
    assert_eq!((&seen["listens"], &seen["listened"]), (&json!(0), &json!(1)));
    assert_eq!(pipe.ask(&call_on_pipe(6, "flip_tools", json!({}))).await["id"], 6);

    let question = pipe.ask(&call_on_pipe(7, "ask_twice", json!({}))).await;
    assert_eq!(question["error"]["code"], -32021);
    pipe.close().await;
}

#[tokio::test]
async fn the_first_message_decides_the_era_of_a_fake_on_stdio() {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {} },
    });
    let mut modern = FakeStdio::start(&["--era", "both"]);
    let reported = modern.ask(&on_pipe(1, "server/discover", json!({}))).await;
    assert_eq!(reported["result"]["supportedVersions"], json!([VERSION]));
    assert_eq!(modern.ask(&initialize).await["error"]["code"], -32022);

    let mut legacy = FakeStdio::start(&["--era", "both"]);
    assert!(legacy.ask(&initialize).await["result"].is_object());
    let probe = on_pipe(2, "server/discover", json!({}));
    assert_eq!(legacy.ask(&probe).await["error"]["code"], -32601);
    let mut plain = FakeStdio::start(&[]);
    assert_eq!(plain.ask(&probe).await["error"]["code"], -32601);
    assert!(plain.ask(&initialize).await["result"].is_object());
}

#[tokio::test]
async fn the_probe_options_refuse_or_ignore_server_discover() {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 2, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {} },
    });
    for era in ["legacy", "both"] {
        let mut silent = FakeStdio::start(&["--era", era, "--probe", "silent"]);
        silent.send(&on_pipe(1, "server/discover", json!({}))).await;
        assert_eq!(silent.ask(&initialize).await["id"], 2);
        let mut refusing = FakeStdio::start(&["--era", era, "--probe", "refuse=-32000"]);
        let refused = refusing.ask(&on_pipe(1, "server/discover", json!({}))).await;
        assert_eq!(refused["error"]["code"], -32000);
        assert!(refusing.ask(&initialize).await["result"].is_object());
    }
    let upstream = upstream(&["--probe", "silent"]);
    let client = client(&upstream);
    let probe = running({
        let client = client.clone();
        async move { client.discover().await }
    });
    upstream.log("requests.server/discover=1").await;
    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);
    drop(probe);
    let upstream = Upstream::start(&["--probe", "refuse=-32602"]);
    let refused = Modern::new(upstream.client()).discover().await;
    assert_eq!(refusal(&refused), (StatusCode::BAD_REQUEST, Some(-32602)));
}

#[tokio::test]
async fn a_probing_client_works_with_a_fake_of_every_era() {
    for (era, is_modern) in [("legacy", false), ("modern", true), ("both", true)] {
        let upstream = Upstream::start(&["--era", era, "--protocol", "2025-11-25"]);
        let mut client = ClaudeCode::connect(upstream.client()).await;
        assert_eq!(client.is_modern(), is_modern, "{era}");

        let list = client.request("tools/list", json!({})).await.answer();
        assert_eq!(list["id"], if is_modern { 0 } else { 1 });
        upstream.control("change?list=tools").await;
        let notice = client.notices().message().await;
        assert_eq!(notice["method"], "notifications/tools/list_changed");
        if is_modern {
            assert_eq!(subscription(&notice), "listen:0");
        }
    }
}

#[tokio::test]
async fn the_fake_lists_a_tool_with_an_invalid_parameter_header() {
    let upstream = upstream(&["--bad-header"]);
    let list = client(&upstream).request(json!(1), "tools/list", json!({})).await.answer();
    let tools = list["result"]["tools"].as_array().expect("a list").iter();
    assert!(tools.into_iter().any(|tool| tool["name"] == "bad_header"));
}
