//! The records of calls: in memory, on the command line, and in the file of a service that does not
//! log to the journal.

use std::{fs, os::unix::fs::PermissionsExt as _};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    harness::{
        daemon::{self, Daemon},
        fake::Fakes,
        modern::Modern,
    },
    until,
};

/// Returns what a command prints about this service.
fn printed(daemon: &Daemon, words: &[&str]) -> String {
    let socket = daemon.control().display().to_string();
    let (name, rest) = words.split_first().expect("a command");
    let (code, stdout, stderr) = daemon::run(&[&[*name, "--socket", &socket], rest].concat());
    assert_eq!(code, 0, "{stderr}");
    stdout
}

/// Returns the records that `metamcp calls` shows.
fn calls(daemon: &Daemon, words: &[&str]) -> Vec<Value> {
    let lines = printed(daemon, &[&["calls", "--json"], words].concat());
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Returns these members of a record.
fn members(call: &Value, names: &[&str]) -> Value {
    names.iter().map(|name| call[*name].clone()).collect()
}

#[tokio::test]
async fn a_call_is_recorded_with_its_client_its_tool_its_outcome_and_its_time() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let legacy = daemon.client("/").initialized().await;
    legacy.tool("fake__echo", json!({ "value": 1 })).await;
    legacy.tool("fake__tool_error", json!({})).await;
    legacy.tool("fake__rpc_error", json!({ "code": -7, "message": "no" })).await;
    legacy.tool("nobody__x", json!({})).await;
    let modern = Modern::new(daemon.client("/servers/fake")).named("modern");
    modern.call("echo", json!({ "value": 2 })).await;

    let found = calls(&daemon, &[]);
    let summary: Vec<Value> = found
        .iter()
        .map(|call| members(call, &["client", "view", "server", "tool", "outcome", "error"]))
        .collect();
    assert_eq!(
        json!(summary),
        json!([
            ["test", "direct", "fake", "echo", "ok", null],
            ["test", "direct", "fake", "tool_error", "tool_error", null],
            ["test", "direct", "fake", "rpc_error", "error", -7],
            ["test", "direct", null, "nobody__x", "error", "SERVER_NOT_FOUND"],
            ["modern", "server", "fake", "echo", "ok", null],
        ])
    );
    let first = &found[0];
    assert!(first["durationMs"].as_f64().is_some_and(|ms| ms > 0.0), "{first}");
    assert!(first["requestBytes"].as_u64() > Some(50) && first["answerBytes"].as_u64() > Some(20));
    assert_eq!(members(first, &["generation", "clientVersion"]), json!([1, "1"]));
    assert!(first["session"].is_u64() && first["uid"].is_u64(), "{first}");
    assert_eq!(found[3]["cause"], "there is no server `nobody`");

    assert_eq!(calls(&daemon, &["--failed"]).len(), 3);
    assert_eq!(calls(&daemon, &["--tool", "fake/echo"]).len(), 2);
    assert_eq!(calls(&daemon, &["--tool", "echo", "--client", "modern"]).len(), 1);
    assert_eq!(calls(&daemon, &["--server", "fake", "-n", "2"]).len(), 2);
    assert_eq!(calls(&daemon, &["--since", "1h"]).len(), 5);
    let lines = printed(&daemon, &["calls", "-n", "1"]);
    assert!(lines.contains(" ok ") && lines.contains(" fake__echo for modern"), "{lines}");
}

#[tokio::test]
async fn a_failure_is_recorded_with_its_code_and_its_cause() {
    let broken =
        "[servers.git]\ncommand = \"sh\"\nargs = [\"-c\", \"echo no token >&2; exit 1\"]\n";
    let daemon = Daemon::with(broken).ready();
    let client = daemon.client("/").initialized().await;
    client.tool("git__log", json!({})).await;
    let found = calls(&daemon, &["--failed"]);
    assert_eq!(
        members(&found[0], &["server", "tool", "error", "fault"]),
        json!(["git", "log", "SERVER_EXITED", "stdio-exit"])
    );
    assert!(found[0]["cause"].as_str().is_some_and(|cause| cause.contains("no token")));
}

#[tokio::test]
async fn a_call_that_its_client_gives_up_is_recorded_as_cancelled() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    let mut held = tokio::task::JoinSet::new();
    held.spawn(client.clone().hold("a"));
    client.call("seen", json!({ "counts": { "held": 1 } })).await;
    let top: Value = serde_json::from_str(&printed(&daemon, &["top", "--json"])).expect("JSON");
    assert_eq!(members(&top["running"][0], &["server", "tool"]), json!(["fake", "hold"]));

    held.abort_all();
    until(async || calls(&daemon, &["--tool", "hold"]).len() == 1).await;
    assert_eq!(calls(&daemon, &["--tool", "hold"])[0]["outcome"], "cancelled");
    let top: Value = serde_json::from_str(&printed(&daemon, &["top", "--json"])).expect("JSON");
    assert_eq!(top["running"], json!([]));
    let held = top["lastMinute"].as_array().into_iter().flatten().find(|it| it["tool"] == "hold");
    assert_eq!(held.map(|held| members(held, &["calls", "failed"])), Some(json!([1, 1])));
    let table = printed(&daemon, &["top"]);
    assert!(table.starts_with("No call runs.\n") && table.contains("fake__hold"), "{table}");
}

#[tokio::test]
async fn no_record_has_arguments_or_results_and_the_file_is_private() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/").initialized().await;
    client.tool("fake__echo", json!({ "value": "canary-7f3a" })).await;
    client.tool("fake__rpc_error", json!({ "code": -7, "message": "canary-7f3a" })).await;
    let shown = calls(&daemon, &[]);
    assert_eq!(shown.len(), 2);
    assert!(!json!(shown).to_string().contains("canary-7f3a"));
    assert!(!daemon.client("/metrics").get().await.body.contains("canary-7f3a"));

    let file = daemon.control().with_file_name("calls.jsonl");
    daemon.signal(Signal::TERM);
    daemon.wait_exit();
    let written = fs::read_to_string(&file).expect("written before the end");
    assert!(!written.contains("canary-7f3a") && !daemon.log().contains("canary-7f3a"));
    let written: Vec<Value> =
        written.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(written, shown);
    let mode = fs::metadata(&file).expect("readable").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn calls_of_an_earlier_service_come_from_its_file() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let earlier = json!({
        "time": "2026-11-26T23:02:16.848Z", "call": 1, "client": "agent", "server": "git",
        "tool": "log", "outcome": "error", "error": "SERVER_TIMEOUT", "durationMs": 60_000.0,
    });
    let file = daemon.control().with_file_name("calls.jsonl");
    fs::write(&file, format!("{earlier}\n")).expect("written");
    let client = daemon.client("/servers/fake").initialized().await;
    client.tool("echo", json!({ "value": 1 })).await;
    until(async || fs::read_to_string(&file).is_ok_and(|text| text.lines().count() == 2)).await;

    let tools = |words: &[&str]| -> Vec<Value> {
        calls(&daemon, words).iter().map(|call| call["tool"].clone()).collect()
    };
    assert_eq!(tools(&["--since", "2026-11-26T00:00:00.000Z"]), ["log", "echo"]);
    assert_eq!(tools(&["-n", "10", "--failed"]), ["log"]);
    assert_eq!(tools(&[]), ["echo"]);
}

#[tokio::test]
async fn a_failure_of_metamcp_itself_is_recorded_with_its_code_its_server_and_its_tool() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/meta").initialized().await;
    let mut sizes = Vec::new();
    for arguments in [
        json!({ "server": "fake", "tool": "echo", "canary": 1 }),
        json!({ "server": "fake", "tool": "echo", "args": "canary" }),
        json!({ "server": "fake", "tool": "nothing" }),
        json!({ "server": "nobody", "tool": "echo" }),
    ] {
        sizes.push(client.tool("mcp_call", arguments).await.body.len());
    }
    let found = calls(&daemon, &["--failed"]);
    let shown: Vec<Value> = found
        .iter()
        .map(|call| members(call, &["server", "tool", "outcome", "error", "fault"]))
        .collect();
    assert_eq!(
        json!(shown),
        json!([
            ["fake", "echo", "error", "INVALID_ARGUMENTS", "cancelled"],
            ["fake", "echo", "error", "INVALID_ARGUMENTS", "cancelled"],
            ["fake", "nothing", "error", "TOOL_NOT_FOUND", "cancelled"],
            [null, "nobody/echo", "error", "SERVER_NOT_FOUND", "cancelled"],
        ])
    );
    assert_eq!(calls(&daemon, &["--server", "fake", "--failed"]).len(), 3);
    for (call, size) in found.iter().zip(sizes) {
        assert_eq!(call["answerBytes"], size, "{call}");
        let cause = call["cause"].as_str().expect("a cause");
        assert!(!cause.is_empty() && !cause.contains("canary"), "{cause}");
    }
}

#[tokio::test]
async fn the_record_of_a_failed_request_has_the_size_of_its_answer() {
    let broken = "[servers.git]\ncommand = \"false\"\n";
    let daemon = Daemon::with(broken).ready();
    let direct = daemon.client("/").initialized().await;
    let meta = daemon.client("/meta").initialized().await;
    let sizes = [
        direct.tool("git__log", json!({})).await.body.len(),
        meta.tool("mcp_call", json!({ "server": "git", "tool": "log" })).await.body.len(),
    ];
    let found = calls(&daemon, &["--failed"]);
    for (call, size) in found.iter().zip(sizes) {
        assert_eq!(call["answerBytes"], size, "{call}");
    }
    assert_eq!(found.len(), 2);
}

#[tokio::test]
async fn recorded_texts_have_no_secret_of_the_server() {
    let fakes = Fakes::new();
    let server = fakes.server("fake", &[]);
    let secret = "canary-0123456789";
    let config = format!("{server}record_texts = \"text\"\nenv = {{ MY_SECRET = {secret:?} }}\n");
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/").initialized().await;
    let reply = client.tool("fake__echo", json!({ "value": format!("it is {secret}") })).await;
    assert!(reply.body.contains(secret), "the client gets it: {}", reply.body);
    let call = calls(&daemon, &[])[0].clone();
    assert!(!call.to_string().contains(secret), "{call}");
    assert_eq!(call.to_string().matches("it is [secret]").count(), 3, "{call}");
}

#[tokio::test]
async fn only_the_chosen_calls_are_written() {
    let fakes = Fakes::new();
    let config = format!("[telemetry]\ncalls = \"failures\"\n{}", fakes.server("fake", &[]));
    let mut daemon = Daemon::with(config).ready();
    let client = daemon.client("/").initialized().await;
    client.tool("fake__echo", json!({ "value": 1 })).await;
    client.tool("fake__tool_error", json!({})).await;
    assert_eq!(calls(&daemon, &[]).len(), 2, "memory has all");
    let file = daemon.control().with_file_name("calls.jsonl");
    daemon.signal(Signal::TERM);
    daemon.wait_exit();
    let written = fs::read_to_string(file).expect("written");
    assert_eq!(written.lines().count(), 1);
    assert!(written.contains("\"outcome\":\"tool_error\""), "{written}");
}

#[tokio::test]
async fn a_service_without_telemetry_observes_no_call_and_says_so() {
    let fakes = Fakes::new();
    let servers = fakes.server("fake", &[]);
    let mut daemon = Daemon::with(format!("[telemetry]\nenabled = false\n{servers}")).ready();
    let client = daemon.client("/").initialized().await;
    client.tool("fake__echo", json!({ "value": 1 })).await;
    let socket = daemon.control().display().to_string();
    let (code, stdout, stderr) = daemon::run(&["calls", "--socket", &socket]);
    assert_eq!((code, stdout.as_str()), (0, ""));
    assert!(stderr.contains("`telemetry.enabled` is false"), "{stderr}");
    assert!(printed(&daemon, &["top"]).contains("`telemetry.enabled` is false"));

    daemon.rewrite(&servers);
    daemon.reload();
    client.tool("fake__echo", json!({ "value": 2 })).await;
    assert_eq!(calls(&daemon, &[]).len(), 1);
}

#[tokio::test]
async fn the_calls_of_a_script_name_the_call_that_caused_them() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/meta").initialized().await;
    let code =
        "await servers.fake.echo({ value: 1 }); return await servers.fake.echo({ value: 2 })";
    client.tool("mcp_execute", json!({ "code": code })).await;
    let found = calls(&daemon, &[]);
    let script = found.iter().find(|call| call["tool"] == "mcp_execute").expect("the script");
    let caused: Vec<&Value> =
        found.iter().filter(|call| call["parent"] == script["call"]).collect();
    assert_eq!(caused.len(), 2, "{found:#?}");
    assert!(caused.iter().all(|call| call["tool"] == "echo" && call["client"] == "test"));
}

#[tokio::test]
async fn the_trace_of_a_client_is_recorded_and_reaches_the_server() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/").initialized().await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let params = json!({
        "name": "fake__echo", "arguments": { "value": 1 }, "_meta": { "traceparent": trace },
    });
    client.request(json!(1), "tools/call", params).await;
    assert_eq!(calls(&daemon, &[])[0]["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
}
