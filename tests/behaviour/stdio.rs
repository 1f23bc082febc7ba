//! `metamcp stdio`: clients of both eras on standard input and output, also across restarts of the
//! service.

use std::path::Path;

use rmcp::{ServiceExt as _, model::CallToolRequestParams};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
};

use crate::{
    harness::{
        DEADLINE, daemon,
        daemon::{Daemon, Start},
        fake::{Fakes, Upstream, is_alive},
        modern::{key, subscription},
        stdio::{self, StdioClient},
    },
    server_status, until,
};

const FAKE: [&str; 2] = ["--server", "fake"];

fn restartable(config: String) -> Start {
    Daemon::with(config).keep_sockets()
}

/// Returns the parameters of a request of the modern era.
fn modern(mut params: Value) -> Value {
    params["_meta"][key("protocolVersion")] = json!("2026-07-28");
    params["_meta"][key("clientCapabilities")] = json!({});
    params
}

fn text(answer: &Value) -> String {
    answer["result"].to_string()
}

#[tokio::test]
async fn a_stdio_client_is_served_at_the_view_that_it_chooses() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    for (options, tool) in [
        (&[][..], "fake__echo"),
        (&["--view", "root"], "fake__echo"),
        (&["--view", "direct"], "fake__echo"),
        (&["--view", "meta"], "mcp_discover"),
        (&FAKE, "echo"),
    ] {
        let mut client =
            StdioClient::to(&daemon, options).initialized("2025-06-18", json!({})).await;
        client.ask(1, "tools/list", json!({})).await;
        let listed = client.message().await;
        assert!(listed["result"].to_string().contains(&format!("\"{tool}\"")), "{options:?}");
        let (rest, stderr, ended) = client.close().await;
        assert_eq!((rest, stderr.as_str()), (Vec::new(), ""), "{options:?}");
        assert!(ended.success());
    }
    assert_eq!(fakes.pids("fake").len(), 1, "all clients share one process");
}

#[tokio::test]
async fn progress_notices_and_cancellations_pass_and_requests_run_concurrently() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let other = daemon.client("/servers/fake");
    let mut client = StdioClient::to(&daemon, &FAKE).initialized("2025-11-25", json!({})).await;
    let params = json!({
        "name": "progress", "arguments": { "steps": 2 }, "_meta": { "progressToken": "t" },
    });
    client.ask(1, "tools/call", params).await;
    for n in 1..=2 {
        let progress = client.message().await;
        assert_eq!(
            (&progress["params"]["progressToken"], &progress["params"]["progress"]),
            (&json!("t"), &json!(n))
        );
    }
    assert_eq!(client.message().await["id"], 1);

    client.tool(2, "hold", json!({ "key": "a" })).await;
    client.tool(3, "hold", json!({ "key": "b" })).await;
    other.call("held", json!({ "at_least": 2 })).await;
    assert_eq!(
        client.result(4, "echo", json!({ "value": 4 })).await["id"],
        4,
        "the others are held"
    );
    client.notify("notifications/cancelled", json!({ "requestId": 2 })).await;
    other.call("seen", json!({ "cancelled": 1 })).await;
    other.call("release", json!({ "key": "b" })).await;
    assert_eq!(client.message().await["id"], 3, "and the first has no answer");

    client.tool(5, "flip_tools", json!({})).await;
    let mut messages = [client.message().await, client.message().await];
    messages.sort_by_key(|message| message["id"].is_null());
    assert_eq!(messages[0]["id"], 5);
    assert_eq!(messages[1]["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_server_request_reaches_a_stdio_client_also_after_a_restart() {
    let fakes = Fakes::new();
    let config = fakes.server("own", &[]) + "sharing = \"session\"\n";
    let mut daemon = restartable(config).ready();
    let capabilities = json!({ "roots": {} });
    let mut client = StdioClient::to(&daemon, &["--server", "own"])
        .initialized("2025-11-25", capabilities)
        .await;
    for id in 1..=2 {
        client.tool(id, "ask", json!({ "method": "roots/list" })).await;
        let question = client.message().await;
        assert_eq!(question["method"], "roots/list");
        let result = json!({ "roots": [format!("here{id}")] });
        client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })).await;
        let answer = client.message().await;
        assert!(answer["id"] == id && text(&answer).contains(&format!("here{id}")), "{answer}");
        if id == 1 {
            assert!(daemon.stop().success());
            daemon.restart();
            assert_eq!(client.message().await["method"], "notifications/tools/list_changed");
        }
    }
}

#[tokio::test]
async fn a_batch_is_answered_as_one_or_refused_depending_on_the_version() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/roots/list_changed" },
        { "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "echo", "arguments": { "value": 2 } } },
    ]);
    let mut client = StdioClient::to(&daemon, &FAKE).initialized("2025-03-26", json!({})).await;
    client.send(&batch).await;
    let answers = client.message().await;
    let mut ids: Vec<_> =
        answers.as_array().expect("an array").iter().map(|one| &one["id"]).collect();
    ids.sort_by_key(|id| id.as_u64());
    assert_eq!(ids, [1, 2]);

    let mut client = StdioClient::to(&daemon, &FAKE).initialized("2025-06-18", json!({})).await;
    client.send(&batch).await;
    assert_eq!(client.message().await["error"]["data"]["code"], "BATCH_UNSUPPORTED");
}

#[tokio::test]
async fn an_invalid_line_is_refused_and_the_next_one_is_served() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let mut client = StdioClient::to(&daemon, &FAKE).initialized("2025-06-18", json!({})).await;
    let large = "x".repeat((4 << 20) + 1);
    for (line, id, code) in [
        ("{".to_owned(), Value::Null, "PARSE_ERROR"),
        ("\"text\"".to_owned(), Value::Null, "INVALID_REQUEST"),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_owned(),
            Value::Null,
            "INVALID_REQUEST",
        ),
        (
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"x","params":"{large}"}}"#),
            json!(7),
            "LINE_TOO_LONG",
        ),
        (
            format!(r#"{{"method":"x","params":"{large}","jsonrpc":"2.0","id":8}}"#),
            json!(8),
            "LINE_TOO_LONG",
        ),
    ] {
        client.line(&line).await;
        let refused = client.message().await;
        assert_eq!((&refused["id"], &refused["error"]["data"]["code"]), (&id, &json!(code)));
    }
    client.line("").await;
    client.line("\r").await;
    assert_eq!(client.result(9, "echo", json!({ "value": 9 })).await["id"], 9);
}

#[tokio::test]
async fn a_modern_stdio_client_is_served() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let other = daemon.client("/servers/fake");
    let mut client = StdioClient::to(&daemon, &FAKE);
    client.ask(1, "server/discover", modern(json!({}))).await;
    let discovered = client.message().await;
    assert!(discovered["result"]["supportedVersions"].is_array(), "{discovered}");
    let call =
        |name: &str, arguments: Value| modern(json!({ "name": name, "arguments": arguments }));
    client.ask(2, "tools/call", call("echo", json!({ "value": 2 }))).await;
    assert_eq!(client.message().await["result"]["structuredContent"]["value"], 2);

    client.ask(3, "tools/call", call("hold", json!({ "key": "k" }))).await;
    other.call("held", json!({ "at_least": 1 })).await;
    client.notify("notifications/cancelled", json!({ "requestId": 3 })).await;
    other.call("seen", json!({ "cancelled": 1 })).await;

    let mut params = modern(json!({}));
    params["_meta"][key("protocolVersion")] = json!("2027-01-01");
    client.ask(4, "tools/list", params).await;
    let refused = client.message().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(4), &json!(-32022)));
}

#[tokio::test]
async fn a_subscription_over_stdio_survives_a_restart_and_ends_when_cancelled() {
    let upstream = Upstream::start(&["--subscribe"]);
    let mut daemon = restartable(upstream.server("up", "")).ready();
    let mut client = StdioClient::to(&daemon, &["--server", "up"]);
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let other = daemon.client("/servers/up");
    other.call("whoami", json!({})).await;
    client.ask(5, "subscriptions/listen", modern(filter)).await;
    let first = client.message().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({ "toolsListChanged": true }));
    upstream.log("streams_open=1").await;
    other.call("flip_tools", json!({})).await;
    let notice = client.message().await;
    assert_eq!(
        (&notice["method"], subscription(&notice)),
        (&json!("notifications/tools/list_changed"), &json!(5))
    );

    assert!(daemon.stop().success());
    daemon.restart();
    let notice = client.message().await;
    assert_eq!(
        (&notice["method"], subscription(&notice)),
        (&json!("notifications/tools/list_changed"), &json!(5)),
        "the client may have missed a change"
    );
    let other = daemon.client("/servers/up");
    other.call("whoami", json!({})).await;
    upstream.log("streams_open=1").await;
    other.call("flip_tools", json!({})).await;
    assert_eq!(subscription(&client.message().await), &json!(5));

    client.notify("notifications/cancelled", json!({ "requestId": 5 })).await;
    client.ask(6, "tools/call", modern(json!({ "name": "flip_tools", "arguments": {} }))).await;
    assert_eq!(client.message().await["id"], 6);
    let (rest, _, ended) = client.close().await;
    assert!(rest.is_empty() && ended.success(), "{rest:?}");
}

#[tokio::test]
async fn a_restart_is_invisible_and_restores_the_log_level_and_the_subscriptions() {
    let upstream = Upstream::start(&["--subscribe", "--logging"]);
    let mut daemon = restartable(upstream.server("up", "")).ready();
    let mut client =
        StdioClient::to(&daemon, &["--server", "up"]).initialized("2025-06-18", json!({})).await;
    client.ask(1, "logging/setLevel", json!({ "level": "error" })).await;
    assert_eq!(client.message().await["result"], json!({}));
    client.ask(2, "resources/subscribe", json!({ "uri": "fake:///one" })).await;
    assert_eq!(client.message().await["result"], json!({}));

    assert!(daemon.stop().success());
    for id in 3..6 {
        client.tool(id, "echo", json!({ "value": id })).await;
    }
    daemon.restart();

    let mut ids = Vec::new();
    while ids.len() < 3 {
        let message = client.message().await;
        assert!(message["error"].is_null(), "{message}");
        ids.extend(message["id"].as_u64());
    }
    ids.sort_unstable();
    assert_eq!(ids, [3, 4, 5]);
    upstream.log("levels=2&subscribes=2&streams_open=1").await;
    client.tool(6, "touch", json!({ "uri": "fake:///one" })).await;
    let mut messages = [client.message().await, client.message().await];
    messages.sort_by_key(|message| message["id"].is_null());
    assert_eq!(
        (&messages[0]["id"], &messages[1]["params"]["uri"]),
        (&json!(6), &json!("fake:///one"))
    );
}

#[tokio::test]
async fn a_stopping_service_answers_running_requests_and_its_successor_answers_unread_ones() {
    let fakes = Fakes::new();
    let mut daemon = restartable(fakes.server("fake", &[])).ready();
    let gate = fakes.path("gate");
    let mut client = StdioClient::to(&daemon, &FAKE).initialized("2025-06-18", json!({})).await;
    client.tool(1, "hold", json!({ "key": "k", "gate": gate })).await;
    daemon.client("/servers/fake").call("seen", json!({ "counts": { "gated": 1 } })).await;

    daemon.signal(Signal::TERM);
    daemon.wait_notice("STOPPING=1", |notice| notice.contains("STOPPING=1"));
    daemon.wait_log("stopping");
    client.tool(2, "count", json!({ "key": "late" })).await;
    std::fs::write(&gate, "").expect("written");
    assert_eq!(client.message().await["id"], 1);
    assert!(daemon.wait_exit().success());
    daemon.restart();

    let answer = loop {
        let message = client.message().await;
        if message["id"] == 2 {
            break message;
        }
    };
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(fakes.pids("fake").len(), 2);
}

#[tokio::test]
async fn a_crash_is_reported_to_the_client_as_an_unknown_outcome_and_the_session_continues() {
    let fakes = Fakes::new();
    let mut daemon = restartable(fakes.server("fake", &[])).ready();
    let mut client = StdioClient::to(&daemon, &FAKE).initialized("2025-06-18", json!({})).await;
    client.tool(1, "hold", json!({ "key": "k" })).await;
    daemon.client("/servers/fake").call("held", json!({ "at_least": 1 })).await;

    daemon.signal(Signal::KILL);
    daemon.wait_exit();

    let lost = client.message().await;
    assert_eq!((&lost["id"], &lost["error"]["code"]), (&json!(1), &json!(-32000)));
    assert_eq!(lost["error"]["data"]["code"], "OUTCOME_UNKNOWN");
    client.ask(2, "tools/list", json!({})).await;
    daemon.restart();
    while client.message().await["id"] != 2 {}
    assert_eq!(client.result(3, "echo", json!({ "value": 3 })).await["id"], 3);
}

#[tokio::test]
async fn a_client_of_the_rust_sdk_works_through_a_restart() {
    let fakes = Fakes::new();
    let mut daemon = restartable(fakes.server("fake", &[])).ready();
    let socket = daemon.control().display().to_string();
    let mut process =
        stdio::command(&["--socket", &socket, "--server", "fake"], &[]).spawn().expect("started");
    let pipes = (process.stdout.take().expect("piped"), process.stdin.take().expect("piped"));
    let client = ().serve(pipes).await.expect("the handshake succeeds");
    for round in 0..3 {
        let tools = client.list_all_tools().await.expect("a list");
        assert!(tools.iter().any(|tool| tool.name == "echo"));
        let arguments = json!({ "value": round }).as_object().cloned();
        let mut params = CallToolRequestParams::new("echo");
        params.arguments = arguments;
        let result = client.call_tool(params).await.expect("a result");
        assert_eq!(result.structured_content.expect("some")["value"], round);
        daemon.stop();
        daemon.restart();
    }
    client.cancel().await.expect("it ends");
    let ended = tokio::time::timeout(DEADLINE, process.wait()).await.expect("in time");
    assert!(ended.expect("waited for").success());
}

#[tokio::test]
async fn a_disconnected_stdio_client_ends_its_requests_and_connections() {
    let fakes = Fakes::new();
    let config = fakes.server("fake", &[]) + &fakes.server("own", &[]) + "sharing = \"session\"\n";
    let daemon = Daemon::with(config).ready();
    let other = daemon.client("/servers/fake");
    for (n_cancelled, is_killed) in [(1, false), (2, true)] {
        let mut client = StdioClient::to(&daemon, &[]).initialized("2025-06-18", json!({})).await;
        client.result(1, "own__echo", json!({ "value": 1 })).await;
        client.tool(2, "fake__hold", json!({ "key": "k" })).await;
        other.call("held", json!({ "at_least": 1 })).await;
        assert_eq!(server_status(&daemon, "own").await["connections"], 1);
        if is_killed {
            daemon::signal(client.pid(), Signal::KILL);
        }
        let (rest, _, ended) = client.close().await;
        assert_eq!((rest, ended.success()), (Vec::new(), !is_killed));
        other.call("seen", json!({ "cancelled": n_cancelled })).await;
        until(async || server_status(&daemon, "own").await["connections"] == 0).await;
    }
}

#[tokio::test]
async fn requests_are_answered_although_standard_input_ends_at_once() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let mut client = StdioClient::to(&daemon, &FAKE);
    client.tool(1, "echo", json!({ "value": 1 })).await;
    let (rest, _, ended) = client.close().await;
    assert_eq!((rest.len(), &rest[0]["id"], ended.success()), (1, &json!(1), true));
}

#[tokio::test]
async fn a_missing_or_refusing_service_is_reported_on_standard_error_only() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("none.sock").display().to_string();
    let (rest, stderr, ended) = StdioClient::start(&["--socket", &socket], &[]).close().await;
    assert_eq!((rest.len(), ended.code()), (0, Some(69)));
    assert!(
        stderr.contains("no service answers at") && stderr.contains("--standalone"),
        "{stderr}"
    );

    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let (rest, stderr, ended) = StdioClient::to(&daemon, &["--server", "fak"]).close().await;
    assert_eq!((rest.len(), ended.code()), (0, Some(1)));
    assert!(stderr.contains("`fak`") && stderr.contains("`fake`"), "{stderr}");
}

/// Attaches a client on the control socket; returns the stream and the answer.
async fn attach(daemon: &Daemon, more: &str) -> (BufReader<UnixStream>, Value) {
    let stream = UnixStream::connect(daemon.control()).await.expect("connected");
    let mut stream = BufReader::new(stream);
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"mcp/attach","params":{"server":"fake"}}"#;
    stream.write_all(format!("{request}\n{more}").as_bytes()).await.expect("written");
    let mut line = String::new();
    stream.read_line(&mut line).await.expect("readable");
    let answer = serde_json::from_str(&line).expect(&line);
    (stream, answer)
}

#[tokio::test]
async fn the_detach_message_states_how_many_messages_were_read() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("fake", &[])).ready();
    // The second line arrives together with the first.
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    let (mut stream, answer) = attach(&daemon, &format!("{ping}\n")).await;
    assert_eq!(answer["result"]["path"], "/servers/fake");
    assert_eq!(answer["result"]["version"], env!("CARGO_PKG_VERSION"));
    let mut line = String::new();
    stream.read_line(&mut line).await.expect("readable");
    assert!(line.contains(r#""id":2"#), "{line}");

    assert!(daemon.stop().success());

    let mut rest = String::new();
    while stream.read_line(&mut rest).await.expect("readable") > 0 {}
    let detached: Value = serde_json::from_str(&rest).expect(&rest);
    assert_eq!(
        detached,
        json!({ "jsonrpc": "2.0", "method": "mcp/detached", "params": { "read": 1 } })
    );
}

#[tokio::test]
async fn an_invalid_attachment_is_refused_with_an_explained_error() {
    let daemon = Daemon::with("").ready();
    for (params, code) in [
        (json!({ "view": "upside down" }), "INVALID_PARAMS"),
        (json!({ "view": "meta", "server": "fake" }), "INVALID_PARAMS"),
        (json!({ "sever": "fake" }), "INVALID_PARAMS"),
        (json!({ "server": "fake" }), "SERVER_NOT_FOUND"),
    ] {
        let stream = UnixStream::connect(daemon.control()).await.expect("connected");
        let mut stream = BufReader::new(stream);
        let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": "mcp/attach", "params": params });
        stream.write_all(format!("{ask}\n").as_bytes()).await.expect("written");
        let mut line = String::new();
        stream.read_line(&mut line).await.expect("readable");
        let refused: Value = serde_json::from_str(&line).expect(&line);
        assert_eq!(refused["error"]["data"]["code"], code, "{refused}");
        assert!(refused["error"]["data"]["suggestion"].is_string(), "{refused}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_its_pipe_is_cut_off_without_delaying_other_clients() {
    let fakes = Fakes::new();
    let config = "[listen]\nwrite_timeout = \"200ms\"\n".to_owned() + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config).ready();
    let call = json!({
        "jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": { "name": "bytes", "arguments": { "n": 4 << 20 } },
    });
    let (_silent, _) = attach(&daemon, &format!("{call}\n")).await;
    let mut client = StdioClient::to(&daemon, &FAKE).initialized("2025-06-18", json!({})).await;
    assert_eq!(client.result(1, "echo", json!({ "value": 1 })).await["id"], 1);
    daemon.client("/status").get().await;
    until(async || server_status(&daemon, "fake").await["in_flight"] == 0).await;
    drop(client);
    let status = daemon.client("/status");
    // Only the client of this request is left.
    until(async || status.get().await.answer()["clients"] == 1).await;
}

fn standalone(directory: &Path, config: &str, options: &[&str]) -> StdioClient {
    let file = directory.join("metamcp.toml");
    std::fs::write(&file, config).expect("written");
    let file = file.display().to_string();
    let options = [&["--standalone", "--config", &file], options].concat();
    StdioClient::start(&options, &[("STATE_DIRECTORY", directory), ("CACHE_DIRECTORY", directory)])
}

#[tokio::test]
async fn a_standalone_bridge_runs_the_servers_itself_and_leaves_no_process() {
    let fakes = Fakes::new();
    let directory = tempfile::tempdir().expect("a directory");
    for (options, tool) in [(&FAKE[..], "echo"), (&[], "fake__echo")] {
        let client = standalone(directory.path(), &fakes.server("fake", &[]), options);
        let mut client = client.initialized("2025-06-18", json!({})).await;
        let answer = client.result(1, tool, json!({ "value": 1 })).await;
        assert_eq!(answer["result"]["structuredContent"]["value"], 1);
        let (rest, _, ended) = client.close().await;
        assert!(rest.is_empty() && ended.success(), "{rest:?}");
        assert!(fakes.pids("fake").into_iter().all(|pid| !is_alive(pid)));
    }
    let client = standalone(directory.path(), &fakes.server("fake", &[]), &FAKE);
    let mut client = client.initialized("2025-06-18", json!({})).await;
    client.tool(1, "hold", json!({ "key": "k", "gate": fakes.path("never") })).await;
    until(async || fakes.pids("fake").len() == 3).await;
    client.result(2, "seen", json!({ "counts": { "gated": 1 } })).await;
    daemon::signal(client.pid(), Signal::TERM);
    daemon::signal(client.pid(), Signal::TERM);
    while client.next().await.is_some() {}
    until(async || fakes.pids("fake").into_iter().all(|pid| !is_alive(pid))).await;
}

#[tokio::test]
async fn a_service_with_stdio_transport_is_standalone() {
    let fakes = Fakes::new();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("metamcp.toml");
    std::fs::write(&file, fakes.server("fake", &[])).expect("written");
    let arguments =
        ["serve", "--transport", "stdio", "--config", file.to_str().expect("a path in UTF-8")];
    let environment =
        [("STATE_DIRECTORY", directory.path()), ("CACHE_DIRECTORY", directory.path())];

    let client = StdioClient::run(&arguments, &environment);

    let mut client = client.initialized("2025-06-18", json!({})).await;
    let answer = client.result(1, "fake__echo", json!({ "value": 1 })).await;
    assert_eq!(answer["result"]["structuredContent"]["value"], 1);
    let (rest, _, ended) = client.close().await;
    assert!(rest.is_empty() && ended.success(), "{rest:?}");
}

#[tokio::test]
async fn a_standalone_bridge_reports_a_missing_configuration_or_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let nowhere = directory.path().join("nowhere");
    let client =
        StdioClient::start(&["--standalone"], &[("HOME", &nowhere), ("XDG_CONFIG_HOME", &nowhere)]);
    let (rest, stderr, ended) = client.close().await;
    assert_eq!((rest.len(), ended.code()), (0, Some(78)), "{stderr}");
    let (rest, stderr, ended) =
        standalone(directory.path(), "", &["--server", "none"]).close().await;
    assert_eq!((rest.len(), ended.code()), (0, Some(1)));
    assert!(stderr.contains("`none`"), "{stderr}");
}
