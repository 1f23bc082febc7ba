//! Servers of both eras: metamcp detects the era of each server and speaks it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    harness::{
        DEADLINE,
        client::{Client, running},
        daemon::Daemon,
        fake::{Fakes, Upstream},
        scripted_upstream::{ReceivedRequest, ResponseWriter, ScriptedUpstream},
        stream::EventStream,
    },
    until,
};

const MODERN: [&str; 2] = ["--era", "modern"];
const BOTH: [&str; 2] = ["--era", "both"];

/// Returns the entry of a server in `/status`.
async fn status(daemon: &Daemon, name: &str) -> Value {
    let status = daemon.client("/status").get().await.answer();
    let servers = status["servers"].as_array().expect("servers");
    servers.iter().find(|server| server["name"] == name).expect(name).clone()
}

async fn era(daemon: &Daemon, name: &str) -> [Value; 2] {
    let status = status(daemon, name).await;
    [status["era"].clone(), status["protocol_version"].clone()]
}

async fn echo(client: &Client) -> Value {
    client.call("echo", json!({ "value": 1 })).await["value"].clone()
}

/// Returns the number of requests that a server has received, by method.
async fn requests(client: &Client) -> Value {
    client.call("seen", json!({})).await["requests"].clone()
}

async fn subscribe(client: &Client, uri: &str) -> Value {
    client.request(json!("s"), "resources/subscribe", json!({ "uri": uri })).await.answer()
}

/// Returns the next notice of this kind.
async fn next(events: &mut EventStream, method: &str) -> Value {
    loop {
        let message = events.message().await;
        if message["method"] == method {
            return message;
        }
    }
}

async fn updated(events: &mut EventStream) -> Value {
    next(events, "notifications/resources/updated").await
}

#[tokio::test]
async fn metamcp_speaks_to_each_server_in_its_own_era_and_status_shows_it() {
    let fakes = Fakes::new();
    let old = Upstream::start(&[]);
    let new = Upstream::start(&MODERN);
    let both = Upstream::start(&BOTH);
    let config = [
        fakes.server("old", &[]),
        fakes.server("new", &MODERN),
        fakes.server("both", &BOTH),
        old.server("old-up", ""),
        new.server("new-up", ""),
        both.server("both-up", ""),
    ];
    let daemon = Daemon::with(config.concat()).ready();

    for (name, expected) in [
        ("old", ["legacy", "2025-06-18"]),
        ("new", ["modern", "2026-07-28"]),
        ("both", ["modern", "2026-07-28"]),
        ("old-up", ["legacy", "2025-06-18"]),
        ("new-up", ["modern", "2026-07-28"]),
        ("both-up", ["modern", "2026-07-28"]),
    ] {
        let client = daemon.client(&format!("/servers/{name}"));
        assert_eq!(echo(&client).await, 1, "{name}");
        assert_eq!(era(&daemon, name).await, expected.map(Value::from), "{name}");
    }
    let log = new.log("").await;
    assert_eq!(log["sessions_minted"], 0, "a modern upstream has no sessions");
    assert_eq!(log["requests"].get("initialize"), None);
    assert_eq!(log["last_headers"]["mcp-protocol-version"], "2026-07-28");
    assert_eq!(log["gets"], 0);
    let shown = daemon.client("/status").get().await.body;
    assert!(shown.contains("\"era\":\"modern\""), "{shown}");
}

#[tokio::test]
async fn the_era_of_a_server_is_probed_once_and_remembered_over_restarts() {
    let fakes = Fakes::new();
    let config = fakes.server("old", &["--probe", "silent"]) + &fakes.server("new", &MODERN);
    let daemon = Daemon::with(config).ready();
    for name in ["old", "new"] {
        let client = daemon.client(&format!("/servers/{name}"));
        assert_eq!(echo(&client).await, 1);
        client.tool("exit", json!({ "code": 0 })).await;
        assert_eq!(echo(&client).await, 1, "the server is restarted");
        let seen = requests(&client).await;
        match name {
            "old" => {
                assert_eq!(seen.get("server/discover"), None, "{seen}");
                assert_eq!(seen["initialize"], 1);
            }
            _ => {
                assert_eq!(seen["server/discover"], 1, "discovery replaces the handshake");
                assert_eq!(seen.get("initialize"), None, "{seen}");
            }
        }
        assert_eq!(fakes.pids(name).len(), 2);
    }
}

#[tokio::test]
async fn a_server_that_refuses_the_probe_with_any_code_gets_the_handshake() {
    let fakes = Fakes::new();
    let codes = ["-32601", "-32602", "-32600", "-32000", "-32022"];
    let config = codes.map(|code| {
        let refuse = format!("refuse={code}");
        fakes.server(&format!("refuse{}", &code[1..]), &["--probe", &refuse])
    });
    let upstream = Upstream::start(&["--probe", "refuse=-32601"]);
    let config = config.concat() + &upstream.server("up", "");
    let daemon = Daemon::with(config).ready();

    for code in codes {
        let client = daemon.client(&format!("/servers/refuse{}", &code[1..]));
        assert_eq!(echo(&client).await, 1, "{code}");
        let seen = requests(&client).await;
        assert_eq!((&seen["server/discover"], &seen["initialize"]), (&json!(1), &json!(1)));
    }
    assert_eq!(echo(&daemon.client("/servers/up")).await, 1);
    assert_eq!(upstream.log("").await["initializes"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_modern_server_is_not_mistaken_for_a_legacy_one() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate");
    let options = ["--start-gate", gate.to_str().expect("a path")];
    let upstream = Upstream::start(&[&BOTH[..], &options].concat());
    let config = "[service]\nlog_level = \"debug\"\n".to_owned()
        + &fakes.server("new", &[&MODERN[..], &options].concat())
        + &fakes.server("both", &[&BOTH[..], &options].concat())
        + &fakes.server("undecided", &[&["--era", "undecided"][..], &options].concat())
        + &upstream.server("up", "");
    let daemon = Daemon::with(config).ready();
    let names = ["new", "both", "undecided", "up"];
    let calls = names.map(|name| {
        let client = daemon.client(&format!("/servers/{name}"));
        running(async move { echo(&client).await })
    });

    // By then, each server has received the probe and the handshake.
    for name in names {
        daemon.wait_log(&format!("`{name}` has not answered `server/discover` yet"));
    }
    std::fs::write(&gate, "").expect("written");

    for call in calls {
        assert_eq!(call.end().await, 1);
    }
    for (name, n_pids) in names.into_iter().zip([1, 1, 2, 0]) {
        assert_eq!(era(&daemon, name).await[0], "modern", "{name}");
        assert_eq!(
            fakes.pids(name).len(),
            n_pids,
            "only a server that answers both is restarted: {name}"
        );
    }
    let log = upstream.log("deletes=1").await;
    assert_eq!(log["sessions_minted"], 1, "the unused session is ended");
}

#[tokio::test]
async fn a_server_that_the_probe_ends_or_breaks_is_restarted_without_it() {
    let fakes = Fakes::new();
    let config =
        fakes.server("ends", &["--probe", "exit"]) + &fakes.server("spoilt", &["--probe", "spoil"]);
    let daemon = Daemon::with(config).ready();
    for name in ["ends", "spoilt"] {
        let client = daemon.client(&format!("/servers/{name}"));
        assert_eq!(echo(&client).await, 1, "{name}");
        assert_eq!(era(&daemon, name).await[0], "legacy");
        assert_eq!(fakes.pids(name).len(), 2, "{name}");
        client.tool("exit", json!({ "code": 0 })).await;
        assert_eq!(echo(&client).await, 1, "{name}");
        assert_eq!(fakes.pids(name).len(), 3, "{name} is not probed again");
    }
}

#[tokio::test]
async fn an_upstream_that_never_answers_the_probe_is_used_as_legacy() {
    let upstream = Upstream::start(&["--probe", "silent"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    assert_eq!(echo(&daemon.client("/servers/up")).await, 1);
    assert_eq!(era(&daemon, "up").await[0], "legacy");
    assert_eq!(upstream.log("").await["sessions_minted"], 1);
}

#[tokio::test]
async fn metamcp_does_not_probe_the_era_of_a_server_that_declares_it() {
    let fakes = Fakes::new();
    let config = fakes.server("old", &BOTH)
        + "era = \"legacy\"\n"
        + &fakes.server("new", &BOTH)
        + "era = \"modern\"\n"
        + &fakes.server("wrong", &[])
        + "era = \"modern\"\n";
    let daemon = Daemon::with(config).ready();
    for (name, question, other) in
        [("old", "initialize", "server/discover"), ("new", "server/discover", "initialize")]
    {
        let client = daemon.client(&format!("/servers/{name}"));
        assert_eq!(echo(&client).await, 1);
        let seen = requests(&client).await;
        assert_eq!((&seen[question], seen.get(other)), (&json!(1), None), "{name}");
    }
    let refused = daemon.client("/servers/wrong").tool("echo", json!({ "value": 1 })).await;
    let error = refused.answer()["error"].clone();
    assert_eq!(error["data"]["code"], "HANDSHAKE_REFUSED", "{error}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("`server/discover`")));
}

#[tokio::test]
async fn metamcp_detects_that_an_upstream_was_replaced_by_one_of_the_other_era() {
    for (before, after, expected) in [(&MODERN[..], &[][..], "legacy"), (&[], &MODERN, "modern")] {
        let first = Upstream::start(before);
        let port = first.port();
        let daemon = Daemon::with(first.server("up", "")).ready();
        let client = daemon.client("/servers/up");
        assert_eq!(echo(&client).await, 1);
        drop(first);

        let _second = Upstream::start(&[&["--port", &port], after].concat());
        assert_eq!(echo(&client).await, 1, "to {expected}");
        assert_eq!(era(&daemon, "up").await[0], expected);
    }
}

#[tokio::test]
async fn an_upstream_that_now_refuses_the_handshake_is_probed_in_the_same_attempt() {
    let is_modern = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&is_modern);
    let upstream = ScriptedUpstream::start(move |request, response| {
        if !switch.load(Ordering::SeqCst) {
            return false;
        }
        let is_modern_request = request.header("mcp-protocol-version") == "2026-07-28";
        match request.method() {
            "initialize" => response.page(405, "text/plain", "No."),
            "server/discover" => response.json(&request.result(&json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} },
            }))),
            "tools/call" if is_modern_request => {
                response.json(&request.result(&json!({ "resultType": "complete", "content": [] })));
            }
            "tools/list" if is_modern_request => {
                response.json(&request.result(&json!({ "resultType": "complete", "tools": [] })));
            }
            // The notification stream and requests of the old session.
            _ => response.page(404, "text/plain", "Gone."),
        }
        true
    });
    let daemon = Daemon::with(upstream.server("")).ready();
    let client = daemon.client("/servers/up");
    assert!(client.tool("any", json!({})).await.answer()["result"].is_object());
    assert_eq!(era(&daemon, "up").await[0], "legacy");

    is_modern.store(true, Ordering::SeqCst);

    let reply = client.tool("any", json!({})).await;
    assert!(reply.answer()["result"]["content"].is_array(), "{reply:?}");
    until(async || era(&daemon, "up").await[0] == "modern").await;
}

#[tokio::test]
async fn arguments_are_sent_in_the_headers_that_the_tool_declares() {
    let upstream = Upstream::start(&[&MODERN[..], &["--page", "7", "--bad-header"]].concat());
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = daemon.client("/servers/up");
    let arguments =
        json!({ "region": "Zürich", "count": 3, "urgent": true, "at": { "zone": "a" } });

    // The tool is not on the first page of the list, and metamcp has read only that page.
    let reply = client.tool("routed", arguments).await.answer();
    let received = &reply["result"]["structuredContent"]["arguments"];
    assert_eq!(received["region"], "Zürich", "{reply}");
    let headers = upstream.log("").await["last_headers"].clone();
    assert_eq!(headers["mcp-name"], "routed");
    assert_eq!(headers["mcp-param-region"], "=?base64?WsO8cmljaA==?=");
    assert_eq!(headers["mcp-param-count"], "3");
    assert_eq!(headers["mcp-param-zone"], "a");

    let mut names = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let page = client.request(json!(1), "tools/list", params).await.answer()["result"].clone();
        let tools = page["tools"].as_array().expect("tools").clone();
        names.extend(tools.into_iter().map(|tool| tool["name"].clone()));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert!(names.contains(&json!("routed")));
    assert!(!names.contains(&json!("bad_header")), "{names:?}");
    daemon.wait_log("is left out: `x-mcp-header`");
}

/// The number of concurrent calls that lack a header.
const MISMATCHES: usize = 8;

/// Serves one tool with an argument that must be sent in a header since the tool was first listed.
/// Answers the second list only after [`MISMATCHES`] calls have lacked the header.
fn serve_late_header(
    request: &ReceivedRequest,
    response: &mut ResponseWriter,
    n_lacking: &AtomicUsize,
) -> bool {
    match request.method() {
        "server/discover" => response.json(&request.result(&json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} }, "serverInfo": { "name": "strict", "version": "1" },
        }))),
        "tools/list" => {
            let mut region = json!({ "type": "string" });
            if n_lacking.load(Ordering::SeqCst) > 0 {
                let deadline = Instant::now() + DEADLINE;
                while n_lacking.load(Ordering::SeqCst) < MISMATCHES && Instant::now() < deadline {
                    std::thread::yield_now();
                }
                region["x-mcp-header"] = json!("Region");
            }
            let schema = json!({ "type": "object", "properties": { "region": region } });
            let tools = json!([{ "name": "routed", "inputSchema": schema }]);
            response.json(&request.result(&json!({ "resultType": "complete", "tools": tools })));
        }
        "tools/call" if request.header("mcp-param-region").is_empty() => {
            n_lacking.fetch_add(1, Ordering::SeqCst);
            let error = json!({ "code": -32020, "message": "Header mismatch" });
            let answer = json!({ "jsonrpc": "2.0", "id": request.message["id"], "error": error });
            response.page(400, "application/json", &answer.to_string());
        }
        "tools/call" => {
            response.json(&request.result(&json!({ "resultType": "complete", "content": [] })));
        }
        _ => return false,
    }
    true
}

#[tokio::test]
async fn calls_refused_for_a_missing_header_cause_one_new_read_of_the_tools() {
    let n_lacking = AtomicUsize::new(0);
    let upstream = ScriptedUpstream::start(move |request, response| {
        serve_late_header(request, response, &n_lacking)
    });
    let daemon = Daemon::with(upstream.server("")).ready();
    let client = daemon.client("/servers/up");
    client.request(json!(1), "tools/list", json!({})).await;
    let n_lists = upstream.count("tools/list");

    let calls = (0..MISMATCHES).map(|_| client.tool("routed", json!({ "region": "here" })));
    for reply in crate::all(calls).await {
        assert!(reply.answer()["result"]["content"].is_array(), "{reply:?}");
    }

    assert_eq!(upstream.count("tools/list"), n_lists + 1);
    assert_eq!(upstream.count("tools/call"), 2 * MISMATCHES);
}

#[tokio::test]
async fn a_disconnected_client_cancels_its_call_at_a_modern_server() {
    let upstream = Upstream::start(&MODERN);
    let fakes = Fakes::new();
    let config = upstream.server("up", "") + &fakes.server("child", &MODERN);
    let daemon = Daemon::with(config).ready();

    let leaving = daemon.client("/servers/up").tool_stream("hold", json!({ "key": "a" })).await;
    upstream.log("held=1").await;
    drop(leaving);
    let log = upstream.log("closed=1").await;
    assert_eq!(log["requests"].get("notifications/cancelled"), None, "{log}");

    let client = daemon.client("/servers/child");
    let leaving = client.tool_stream("hold", json!({ "key": "a" })).await;
    client.call("held", json!({ "at_least": 1 })).await;
    drop(leaving);
    client.call("seen", json!({ "cancelled": 1 })).await;
}

#[tokio::test]
async fn a_change_at_a_modern_server_is_passed_on_to_legacy_clients() {
    let upstream = Upstream::start(&[&MODERN[..], &["--subscribe"]].concat());
    let fakes = Fakes::new();
    let child = fakes.server("child", &[&MODERN[..], &["--subscribe"]].concat());
    let daemon = Daemon::with(upstream.server("up", "") + &child).ready();
    for name in ["up", "child"] {
        let client = daemon.client(&format!("/servers/{name}")).initialized().await;
        let mut events = client.listen().await;
        assert_eq!(echo(&client).await, 1);
        client.call("seen", json!({ "counts": { "listens": 1 } })).await;

        client.call("flip_tools", json!({})).await;
        let notice = events.message().await;
        assert_eq!(notice["method"], "notifications/tools/list_changed", "{name}");
        assert!(notice.get("params").is_none(), "the subscription id is not passed on: {notice}");

        assert_eq!(subscribe(&client, "a:1").await["result"], json!({}), "{name}");
        client.call("touch", json!({ "uri": "a:1" })).await;
        let notice = updated(&mut events).await;
        assert_eq!(notice["params"], json!({ "uri": "a:1" }), "{name}");
        let refused = subscribe(&client, "refuse:1").await;
        assert_eq!(refused["error"]["data"]["code"], "NOT_WATCHED", "{refused}");
        let status = status(&daemon, name).await;
        assert_eq!((&status["state"], &status["in_flight"]), (&json!("idle"), &json!(0)));
    }
}

#[tokio::test]
async fn a_subscription_that_ends_or_breaks_is_reopened() {
    let upstream = Upstream::start(&[&MODERN[..], &["--subscribe"]].concat());
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = daemon.client("/servers/up").initialized().await;
    let mut events = client.listen().await;
    assert_eq!(subscribe(&client, "a:1").await["result"], json!({}));

    let list = async || client.request(json!(1), "tools/list", json!({})).await.answer();
    for (n_listened, route) in [(3, "end_listens"), (4, "cut_posts")] {
        list().await;
        upstream.log("listens=1").await;
        // No client receives a notice, so that only a client that reads again sees the change.
        upstream.control("flip").await;
        upstream.control(route).await;
        upstream.log(&format!("listened={n_listened}&listens=1")).await;
        next(&mut events, "notifications/tools/list_changed").await;
        upstream.control("touch?uri=a:1").await;
        assert_eq!(updated(&mut events).await["params"]["uri"], "a:1", "after {route}");
    }
}

#[tokio::test]
async fn a_subscription_does_not_keep_an_idle_connection_open() {
    let fakes = Fakes::new();
    let upstream = Upstream::start(&MODERN);
    let config = "[pool]\nidle_timeout = \"50ms\"\n".to_owned()
        + &fakes.server("pooled", &MODERN)
        + &fakes.server("ephemeral", &MODERN)
        + "lifecycle = \"ephemeral\"\n"
        + &upstream.server("up", "");
    let daemon = Daemon::with(config).ready();
    for name in ["pooled", "ephemeral", "up"] {
        let client = daemon.client(&format!("/servers/{name}"));
        assert_eq!(echo(&client).await, 1);
        if name == "ephemeral" {
            assert_eq!(requests(&client).await.get("subscriptions/listen"), None);
        }
        while status(&daemon, name).await["connections"] != 0 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(upstream.log("closed=0").await["in_flight"], 0);
}

#[tokio::test]
async fn the_health_check_of_a_modern_server_uses_discover_instead_of_ping() {
    let upstream = Upstream::start(&MODERN);
    let config = "[health]\ninterval = \"20ms\"\n".to_owned() + &upstream.server("up", "");
    let daemon = Daemon::with(config).ready();
    assert_eq!(echo(&daemon.client("/servers/up")).await, 1);
    let log = upstream.log("requests.server/discover=4").await;
    assert_eq!(log["requests"].get("ping"), None);
}

#[tokio::test]
async fn a_legacy_client_cannot_open_a_subscription_at_a_modern_server() {
    let fakes = Fakes::new();
    let daemon =
        Daemon::with(fakes.server("fake", &[&MODERN[..], &["--subscribe"]].concat())).ready();
    for path in ["/servers/fake", "/"] {
        let client = daemon.client(path).initialized().await;
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        let answer = client.request(json!(1), "subscriptions/listen", filter).await.answer();
        assert_eq!(answer["error"]["code"], -32601, "{path}: {answer}");
    }
}

/// Answers every request except discovery with `input_required`, as a modern server.
fn always_require_input(request: &ReceivedRequest, response: &mut ResponseWriter) -> bool {
    let result = match request.method() {
        "server/discover" => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {}, "completions": {} }, "ttlMs": 0, "cacheScope": "public",
        }),
        _ => json!({ "resultType": "input_required", "requestState": "on and on" }),
    };
    response.page(200, "application/json", &request.result(&result));
    true
}

#[tokio::test]
async fn a_modern_server_that_requires_input_out_of_place_gets_no_second_request() {
    let upstream = ScriptedUpstream::start(always_require_input);
    let daemon = Daemon::with(upstream.server("")).ready();
    let client = daemon.client("/servers/up").initialized().await;
    let reference = json!({ "type": "ref/prompt", "name": "a" });
    let argument = json!({ "name": "a", "value": "" });
    for (method, params) in [
        ("tools/list", json!({})),
        ("completion/complete", json!({ "ref": reference, "argument": argument })),
    ] {
        let answer = client.request(json!(1), method, params).await.answer();
        let error = &answer["error"];
        assert_eq!(error["code"], -32603, "{method}: {answer}");
        assert_eq!(error["data"]["code"], "QUESTION_OUT_OF_PLACE", "{method}: {answer}");
    }
}
