//! `metamcp stdio`: clients on standard input and output, of both eras, and a service that is
//! restarted under them.

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
        stdio::{self, Piped},
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
async fn a_client_is_served_over_its_pipes_at_the_view_that_it_chooses() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    for (options, tool) in [
        (&[][..], "fake__echo"),
        (&["--view", "root"], "fake__echo"),
        (&["--view", "direct"], "fake__echo"),
        (&["--view", "meta"], "mcp_discover"),
        (&FAKE, "echo"),
    ] {
        let mut piped = Piped::to(&daemon, options).initialized("2025-06-18", json!({})).await;
        piped.ask(1, "tools/list", json!({})).await;
        let listed = piped.message().await;
        assert!(listed["result"].to_string().contains(&format!("\"{tool}\"")), "{options:?}");
        let (rest, complaints, ended) = piped.close().await;
        assert_eq!((rest, complaints.as_str()), (Vec::new(), ""), "{options:?}");
        assert!(ended.success());
    }
    assert_eq!(fakes.pids("fake").len(), 1, "all of them share it");
}

#[tokio::test]
async fn progress_notices_and_cancellations_pass_and_requests_run_at_the_same_time() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let other = daemon.client("/servers/fake");
    let mut piped = Piped::to(&daemon, &FAKE).initialized("2025-11-25", json!({})).await;
    let params = json!({
        "name": "progress", "arguments": { "steps": 2 }, "_meta": { "progressToken": "t" },
    });
    piped.ask(1, "tools/call", params).await;
    for n in 1..=2 {
        let progress = piped.message().await;
        assert_eq!(
            (&progress["params"]["progressToken"], &progress["params"]["progress"]),
            (&json!("t"), &json!(n))
        );
    }
    assert_eq!(piped.message().await["id"], 1);

    piped.tool(2, "hold", json!({ "key": "a" })).await;
    piped.tool(3, "hold", json!({ "key": "b" })).await;
    other.call("held", json!({ "at_least": 2 })).await;
    assert_eq!(
        piped.result(4, "echo", json!({ "value": 4 })).await["id"],
        4,
        "the others are held"
    );
    piped.notify("notifications/cancelled", json!({ "requestId": 2 })).await;
    other.call("seen", json!({ "cancelled": 1 })).await;
    other.call("release", json!({ "key": "b" })).await;
    assert_eq!(piped.message().await["id"], 3, "and the first has no answer");

    piped.tool(5, "flip_tools", json!({})).await;
    let mut told = [piped.message().await, piped.message().await];
    told.sort_by_key(|message| message["id"].is_null());
    assert_eq!(told[0]["id"], 5);
    assert_eq!(told[1]["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_server_asks_its_client_over_the_pipe() {
    let fakes = Fakes::new();
    let config = fakes.server("own", &[]) + "sharing = \"session\"\n";
    let mut daemon = restartable(config).ready();
    let capabilities = json!({ "roots": {} });
    let mut piped =
        Piped::to(&daemon, &["--server", "own"]).initialized("2025-11-25", capabilities).await;
    for id in 1..=2 {
        piped.tool(id, "ask", json!({ "method": "roots/list" })).await;
        let question = piped.message().await;
        assert_eq!(question["method"], "roots/list");
        let result = json!({ "roots": [format!("here{id}")] });
        piped.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })).await;
        let answer = piped.message().await;
        assert!(answer["id"] == id && text(&answer).contains(&format!("here{id}")), "{answer}");
        if id == 1 {
            assert!(daemon.stop().success());
            daemon.start_again();
            assert_eq!(piped.message().await["method"], "notifications/tools/list_changed");
        }
    }
}

#[tokio::test]
async fn a_batch_is_answered_as_one_where_the_version_has_them() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/roots/list_changed" },
        { "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "echo", "arguments": { "value": 2 } } },
    ]);
    let mut piped = Piped::to(&daemon, &FAKE).initialized("2025-03-26", json!({})).await;
    piped.send(&batch).await;
    let answers = piped.message().await;
    let mut ids: Vec<_> =
        answers.as_array().expect("an array").iter().map(|one| &one["id"]).collect();
    ids.sort_by_key(|id| id.as_u64());
    assert_eq!(ids, [1, 2]);

    let mut piped = Piped::to(&daemon, &FAKE).initialized("2025-06-18", json!({})).await;
    piped.send(&batch).await;
    assert_eq!(piped.message().await["error"]["data"]["code"], "BATCH_UNSUPPORTED");
}

#[tokio::test]
async fn an_invalid_line_is_refused_and_the_next_one_is_served() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let mut piped = Piped::to(&daemon, &FAKE).initialized("2025-06-18", json!({})).await;
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
        piped.line(&line).await;
        let refused = piped.message().await;
        assert_eq!((&refused["id"], &refused["error"]["data"]["code"]), (&id, &json!(code)));
    }
    piped.line("").await;
    piped.line("\r").await;
    assert_eq!(piped.result(9, "echo", json!({ "value": 9 })).await["id"], 9);
}

#[tokio::test]
async fn a_client_of_the_modern_era_is_served_request_by_request() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let other = daemon.client("/servers/fake");
    let mut piped = Piped::to(&daemon, &FAKE);
    piped.ask(1, "server/discover", modern(json!({}))).await;
    let discovered = piped.message().await;
    assert!(discovered["result"]["supportedVersions"].is_array(), "{discovered}");
    let call =
        |name: &str, arguments: Value| modern(json!({ "name": name, "arguments": arguments }));
    piped.ask(2, "tools/call", call("echo", json!({ "value": 2 }))).await;
    assert_eq!(piped.message().await["result"]["structuredContent"]["value"], 2);

    piped.ask(3, "tools/call", call("hold", json!({ "key": "k" }))).await;
    other.call("held", json!({ "at_least": 1 })).await;
    piped.notify("notifications/cancelled", json!({ "requestId": 3 })).await;
    other.call("seen", json!({ "cancelled": 1 })).await;

    let mut params = modern(json!({}));
    params["_meta"][key("protocolVersion")] = json!("2027-01-01");
    piped.ask(4, "tools/list", params).await;
    let refused = piped.message().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(4), &json!(-32022)));
}

#[tokio::test]
async fn a_listener_hears_over_the_pipe_also_after_a_restart_and_until_it_cancels() {
    let upstream = Upstream::start(&["--subscribe"]);
    let mut daemon = restartable(upstream.server("up", "")).ready();
    let mut piped = Piped::to(&daemon, &["--server", "up"]);
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let other = daemon.client("/servers/up");
    other.call("whoami", json!({})).await;
    piped.ask(5, "subscriptions/listen", modern(filter)).await;
    let first = piped.message().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({ "toolsListChanged": true }));
    upstream.log("streams_open=1").await;
    other.call("flip_tools", json!({})).await;
    let told = piped.message().await;
    assert_eq!(
        (&told["method"], subscription(&told)),
        (&json!("notifications/tools/list_changed"), &json!(5))
    );

    assert!(daemon.stop().success());
    daemon.start_again();
    let told = piped.message().await;
    assert_eq!(
        (&told["method"], subscription(&told)),
        (&json!("notifications/tools/list_changed"), &json!(5)),
        "it may have missed something"
    );
    let other = daemon.client("/servers/up");
    other.call("whoami", json!({})).await;
    upstream.log("streams_open=1").await;
    other.call("flip_tools", json!({})).await;
    assert_eq!(subscription(&piped.message().await), &json!(5));

    piped.notify("notifications/cancelled", json!({ "requestId": 5 })).await;
    piped.ask(6, "tools/call", modern(json!({ "name": "flip_tools", "arguments": {} }))).await;
    assert_eq!(piped.message().await["id"], 6);
    let (rest, _, ended) = piped.close().await;
    assert!(rest.is_empty() && ended.success(), "{rest:?}");
}

#[tokio::test]
async fn a_restart_is_not_noticed_and_what_the_session_consists_of_is_there_again() {
    let upstream = Upstream::start(&["--subscribe", "--logging"]);
    let mut daemon = restartable(upstream.server("up", "")).ready();
    let mut piped =
        Piped::to(&daemon, &["--server", "up"]).initialized("2025-06-18", json!({})).await;
    piped.ask(1, "logging/setLevel", json!({ "level": "error" })).await;
    assert_eq!(piped.message().await["result"], json!({}));
    piped.ask(2, "resources/subscribe", json!({ "uri": "fake:///one" })).await;
    assert_eq!(piped.message().await["result"], json!({}));

    assert!(daemon.stop().success());
    for id in 3..6 {
        piped.tool(id, "echo", json!({ "value": id })).await;
    }
    daemon.start_again();

    let mut ids = Vec::new();
    while ids.len() < 3 {
        let message = piped.message().await;
        assert!(message["error"].is_null(), "{message}");
        ids.extend(message["id"].as_u64());
    }
    ids.sort_unstable();
    assert_eq!(ids, [3, 4, 5]);
    upstream.log("levels=2&subscribes=2&streams_open=1").await;
    piped.tool(6, "touch", json!({ "uri": "fake:///one" })).await;
    let mut told = [piped.message().await, piped.message().await];
    told.sort_by_key(|message| message["id"].is_null());
    assert_eq!((&told[0]["id"], &told[1]["params"]["uri"]), (&json!(6), &json!("fake:///one")));
}

#[tokio::test]
async fn a_stopping_service_answers_running_requests_and_its_successor_answers_unread_ones() {
    let fakes = Fakes::new();
    let mut daemon = restartable(fakes.server("fake", &[])).ready();
    let gate = fakes.path("gate");
    let mut piped = Piped::to(&daemon, &FAKE).initialized("2025-06-18", json!({})).await;
    piped.tool(1, "hold", json!({ "key": "k", "gate": gate })).await;
    daemon.client("/servers/fake").call("seen", json!({ "counts": { "gated": 1 } })).await;

    daemon.signal(Signal::TERM);
    daemon.wait_notice("STOPPING=1", |notice| notice.contains("STOPPING=1"));
    daemon.wait_log("stopping");
    piped.tool(2, "count", json!({ "key": "late" })).await;
    std::fs::write(&gate, "").expect("written");
    assert_eq!(piped.message().await["id"], 1);
    assert!(daemon.wait_exit().success());
    daemon.start_again();

    let answer = loop {
        let message = piped.message().await;
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
    let mut piped = Piped::to(&daemon, &FAKE).initialized("2025-06-18", json!({})).await;
    piped.tool(1, "hold", json!({ "key": "k" })).await;
    daemon.client("/servers/fake").call("held", json!({ "at_least": 1 })).await;

    daemon.signal(Signal::KILL);
    daemon.wait_exit();

    let lost = piped.message().await;
    assert_eq!((&lost["id"], &lost["error"]["code"]), (&json!(1), &json!(-32000)));
    assert_eq!(lost["error"]["data"]["code"], "OUTCOME_UNKNOWN");
    piped.ask(2, "tools/list", json!({})).await;
    daemon.start_again();
    while piped.message().await["id"] != 2 {}
    assert_eq!(piped.result(3, "echo", json!({ "value": 3 })).await["id"], 3);
}

#[tokio::test]
async fn a_client_of_the_rust_sdk_works_through_a_restart() {
    let fakes = Fakes::new();
    let mut daemon = restartable(fakes.server("fake", &[])).ready();
    let socket = daemon.control().display().to_string();
    let mut process =
        stdio::command(&["--socket", &socket, "--server", "fake"], &[]).spawn().expect("started");
    let pipes = (process.stdout.take().expect("piped"), process.stdin.take().expect("piped"));
    let client = ().serve(pipes).await.expect("it shakes hands");
    for round in 0..3 {
        let tools = client.list_all_tools().await.expect("a list");
        assert!(tools.iter().any(|tool| tool.name == "echo"));
        let arguments = json!({ "value": round }).as_object().cloned();
        let mut params = CallToolRequestParams::new("echo");
        params.arguments = arguments;
        let result = client.call_tool(params).await.expect("a result");
        assert_eq!(result.structured_content.expect("some")["value"], round);
        daemon.stop();
        daemon.start_again();
    }
    client.cancel().await.expect("it ends");
    let ended = tokio::time::timeout(DEADLINE, process.wait()).await.expect("in time");
    assert!(ended.expect("waited for").success());
}

#[tokio::test]
async fn a_client_that_goes_away_ends_all_that_is_its_own() {
    let fakes = Fakes::new();
    let config = fakes.server("fake", &[]) + &fakes.server("own", &[]) + "sharing = \"session\"\n";
    let daemon = Daemon::with(config).ready();
    let other = daemon.client("/servers/fake");
    for (n_cancelled, is_killed) in [(1, false), (2, true)] {
        let mut piped = Piped::to(&daemon, &[]).initialized("2025-06-18", json!({})).await;
        piped.result(1, "own__echo", json!({ "value": 1 })).await;
        piped.tool(2, "fake__hold", json!({ "key": "k" })).await;
        other.call("held", json!({ "at_least": 1 })).await;
        assert_eq!(server_status(&daemon, "own").await["connections"], 1);
        if is_killed {
            daemon::signal(piped.pid(), Signal::KILL);
        }
        let (rest, _, ended) = piped.close().await;
        assert_eq!((rest, ended.success()), (Vec::new(), !is_killed));
        other.call("seen", json!({ "cancelled": n_cancelled })).await;
        until(async || server_status(&daemon, "own").await["connections"] == 0).await;
    }
}

#[tokio::test]
async fn lines_that_are_given_all_at_once_are_answered() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let mut piped = Piped::to(&daemon, &FAKE);
    piped.tool(1, "echo", json!({ "value": 1 })).await;
    let (rest, _, ended) = piped.close().await;
    assert_eq!((rest.len(), &rest[0]["id"], ended.success()), (1, &json!(1), true));
}

#[tokio::test]
async fn without_a_service_or_with_one_that_refuses_it_says_so_and_nothing_on_standard_output() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("none.sock").display().to_string();
    let (rest, complaints, ended) = Piped::start(&["--socket", &socket], &[]).close().await;
    assert_eq!((rest.len(), ended.code()), (0, Some(69)));
    assert!(
        complaints.contains("no service answers at") && complaints.contains("--standalone"),
        "{complaints}"
    );

    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let (rest, complaints, ended) = Piped::to(&daemon, &["--server", "fak"]).close().await;
    assert_eq!((rest.len(), ended.code()), (0, Some(1)));
    assert!(complaints.contains("`fak`") && complaints.contains("`fake`"), "{complaints}");
}

/// A client on the control socket itself.
async fn attached(daemon: &Daemon, more: &str) -> (BufReader<UnixStream>, Value) {
    let stream = UnixStream::connect(daemon.control()).await.expect("connected");
    let mut stream = BufReader::new(stream);
    let attach = r#"{"jsonrpc":"2.0","id":1,"method":"mcp/attach","params":{"server":"fake"}}"#;
    stream.write_all(format!("{attach}\n{more}").as_bytes()).await.expect("written");
    let mut line = String::new();
    stream.read_line(&mut line).await.expect("readable");
    let answer = serde_json::from_str(&line).expect(&line);
    (stream, answer)
}

#[tokio::test]
async fn an_attached_connection_is_told_how_far_it_was_read() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("fake", &[])).ready();
    // The second line comes in one piece with the first.
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    let (mut stream, answer) = attached(&daemon, &format!("{ping}\n")).await;
    assert_eq!(answer["result"]["path"], "/servers/fake");
    assert_eq!(answer["result"]["version"], env!("CARGO_PKG_VERSION"));
    let mut line = String::new();
    stream.read_line(&mut line).await.expect("readable");
    assert!(line.contains(r#""id":2"#), "{line}");

    assert!(daemon.stop().success());

    let mut rest = String::new();
    while stream.read_line(&mut rest).await.expect("readable") > 0 {}
    let told: Value = serde_json::from_str(&rest).expect(&rest);
    assert_eq!(
        told,
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
    let (_silent, _) = attached(&daemon, &format!("{call}\n")).await;
    let mut piped = Piped::to(&daemon, &FAKE).initialized("2025-06-18", json!({})).await;
    assert_eq!(piped.result(1, "echo", json!({ "value": 1 })).await["id"], 1);
    daemon.client("/status").get().await;
    until(async || server_status(&daemon, "fake").await["in_flight"] == 0).await;
    drop(piped);
    let status = daemon.client("/status");
    // The one that asks is all that is left.
    until(async || status.get().await.answer()["clients"] == 1).await;
}

fn standalone(directory: &Path, config: &str, options: &[&str]) -> Piped {
    let file = directory.join("metamcp.toml");
    std::fs::write(&file, config).expect("written");
    let file = file.display().to_string();
    let options = [&["--standalone", "--config", &file], options].concat();
    Piped::start(&options, &[("STATE_DIRECTORY", directory), ("CACHE_DIRECTORY", directory)])
}

#[tokio::test]
async fn standalone_it_runs_the_servers_itself_and_leaves_none_behind() {
    let fakes = Fakes::new();
    let directory = tempfile::tempdir().expect("a directory");
    for (options, tool) in [(&FAKE[..], "echo"), (&[], "fake__echo")] {
        let piped = standalone(directory.path(), &fakes.server("fake", &[]), options);
        let mut piped = piped.initialized("2025-06-18", json!({})).await;
        let answer = piped.result(1, tool, json!({ "value": 1 })).await;
        assert_eq!(answer["result"]["structuredContent"]["value"], 1);
        let (rest, _, ended) = piped.close().await;
        assert!(rest.is_empty() && ended.success(), "{rest:?}");
        assert!(fakes.pids("fake").into_iter().all(|pid| !is_alive(pid)));
    }
    let piped = standalone(directory.path(), &fakes.server("fake", &[]), &FAKE);
    let mut piped = piped.initialized("2025-06-18", json!({})).await;
    piped.tool(1, "hold", json!({ "key": "k", "gate": fakes.path("never") })).await;
    until(async || fakes.pids("fake").len() == 3).await;
    piped.result(2, "seen", json!({ "counts": { "gated": 1 } })).await;
    daemon::signal(piped.pid(), Signal::TERM);
    daemon::signal(piped.pid(), Signal::TERM);
    while piped.next().await.is_some() {}
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

    let piped = Piped::run(&arguments, &environment);

    let mut piped = piped.initialized("2025-06-18", json!({})).await;
    let answer = piped.result(1, "fake__echo", json!({ "value": 1 })).await;
    assert_eq!(answer["result"]["structuredContent"]["value"], 1);
    let (rest, _, ended) = piped.close().await;
    assert!(rest.is_empty() && ended.success(), "{rest:?}");
}

#[tokio::test]
async fn standalone_without_a_configuration_or_server_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let nowhere = directory.path().join("nowhere");
    let piped =
        Piped::start(&["--standalone"], &[("HOME", &nowhere), ("XDG_CONFIG_HOME", &nowhere)]);
    let (rest, complaints, ended) = piped.close().await;
    assert_eq!((rest.len(), ended.code()), (0, Some(78)), "{complaints}");
    let (rest, complaints, ended) =
        standalone(directory.path(), "", &["--server", "none"]).close().await;
    assert_eq!((rest.len(), ended.code()), (0, Some(1)));
    assert!(complaints.contains("`none`"), "{complaints}");
}
