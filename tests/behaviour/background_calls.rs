//! Background calls, which an operator starts and which continue without their caller.

use std::{fs, path::Path};

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    time::timeout,
};

use crate::harness::{
    DEADLINE,
    client::Client,
    daemon::Daemon,
    fake::{Fakes, Upstream},
};

const LEGACY: [&str; 5] = ["--tasks", "--era", "legacy", "--protocol", "2025-11-25"];
const MODERN: [&str; 5] = ["--tasks", "--era", "modern", "--protocol", "2025-11-25"];

/// Sends a request over the control socket; returns the result or the error.
async fn try_request(daemon: &Daemon, method: &str, params: Value) -> Result<Value, Value> {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let exchange = async {
        let mut stream = UnixStream::connect(daemon.control()).await.expect("the service listens");
        stream.write_all(format!("{request}\n").as_bytes()).await.expect("written");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).await.expect("an answer");
        line
    };
    let line = timeout(DEADLINE, exchange).await.expect("an answer in time");
    let mut answer: Value = serde_json::from_str(&line).expect(&line);
    match answer.get("error") {
        Some(error) => Err(error.clone()),
        None => Ok(answer["result"].take()),
    }
}

async fn request(daemon: &Daemon, method: &str, params: Value) -> Value {
    try_request(daemon, method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
}

async fn request_error(daemon: &Daemon, method: &str, params: Value) -> Value {
    let error = try_request(daemon, method, params).await.expect_err(method);
    let data = &error["data"];
    assert!(data["context"].is_object(), "{error}");
    assert!(data["suggestion"].as_str().is_some_and(|text| !text.is_empty()), "{error}");
    error
}

/// Starts a call and returns its id.
async fn start_call(daemon: &Daemon, tool: &str, arguments: Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    let task = request(daemon, "tools/call-async", params).await;
    assert_eq!(task["status"], "working", "{task}");
    task["taskId"].as_str().expect("an id").to_owned()
}

/// Polls a background call until its task satisfies `is_met`.
async fn wait_for_task(daemon: &Daemon, id: &str, is_met: impl Fn(&Value) -> bool) -> Value {
    let polling = async {
        loop {
            let task = request(daemon, "tasks/get", json!({ "taskId": id })).await;
            if is_met(&task) {
                return task;
            }
            tokio::task::yield_now().await;
        }
    };
    let last = timeout(DEADLINE, polling).await;
    last.unwrap_or_else(|_| panic!("the task does not reach the expected state\n{}", daemon.log()))
}

async fn wait_for_status(daemon: &Daemon, id: &str, status: &str) -> Value {
    wait_for_task(daemon, id, |task| task["status"] == status).await
}

/// Waits for the result of a background call.
async fn result(daemon: &Daemon, id: &str) -> Value {
    request(daemon, "tasks/result", json!({ "taskId": id, "wait": true })).await
}

fn client(daemon: &Daemon, server: &str) -> Client {
    daemon.client(&format!("/servers/{server}"))
}

/// Returns JSON text with placeholders for ids and times, which differ from run to run.
fn with_placeholders(value: &Value) -> String {
    let mut value = value.clone();
    replace_varying(&mut value);
    serde_json::to_string_pretty(&value).expect("JSON")
}

fn replace_varying(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), &member) {
                    ("taskId" | "serverTaskId", Value::String(_)) => *member = json!("ID"),
                    (name, Value::String(_)) if name.ends_with("At") => *member = json!("TIME"),
                    _ => replace_varying(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(replace_varying),
        Value::String(text) => {
            let words = text.split_inclusive(['`', ' ']).map(|word| {
                let bare = word.trim_end_matches(['`', ' ']);
                if is_id(bare) { word.replace(bare, "ID") } else { word.to_owned() }
            });
            *text = words.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_id(word: &str) -> bool {
    word.len() == 36 && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

#[tokio::test]
async fn a_background_call_continues_without_its_caller_and_its_result_is_fetched_later() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let params = json!({ "name": "fake/hold", "arguments": { "key": "a" } });
    let created = request(&daemon, "tools/call-async", params).await;
    let id = created["taskId"].as_str().expect("an id").to_owned();
    let named = json!({ "taskId": id });
    let running = request(&daemon, "tasks/get", named.clone()).await;
    let listed = request(&daemon, "tasks/list", json!({})).await;
    let early = request_error(&daemon, "tasks/result", named.clone()).await;

    client(&daemon, "fake").call("held", json!({ "at_least": 1 })).await;
    client(&daemon, "fake").call("release", json!({ "key": "a" })).await;
    let result = result(&daemon, &id).await;
    let ended = request(&daemon, "tasks/get", named.clone()).await;
    let again = request(&daemon, "tasks/result", named.clone()).await;
    assert_eq!(result, again, "the result is available until it expires");
    let late = request_error(&daemon, "tasks/cancel", named).await;
    let shown = json!({
        "tools/call-async": created, "tasks/get": { "runs": running, "ended": ended },
        "tasks/list": listed, "tasks/result": { "early": early, "ended": result },
        "tasks/cancel": { "late": late },
    });
    insta::assert_snapshot!("background_call", with_placeholders(&shown));
}

#[tokio::test]
async fn an_invalid_background_call_is_refused_at_once_and_starts_no_task() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    for (tool, arguments) in [
        ("fake/nothing", json!({})),
        ("unknown/echo", json!({})),
        ("fake/bytes", json!({ "n": "x" })),
    ] {
        request_error(&daemon, "tools/call-async", json!({ "name": tool, "arguments": arguments }))
            .await;
    }
    assert_eq!(request(&daemon, "tasks/list", json!({})).await, json!([]));
    for (method, params) in [
        ("tasks/get", json!({ "taskId": "a" })),
        ("tasks/result", json!({ "taskId": "a", "server": "fake" })),
        ("tasks/cancel", json!({ "taskId": "a" })),
    ] {
        let error = request_error(&daemon, method, params).await;
        let code = error["data"]["code"].as_str().expect("a code");
        assert!(matches!(code, "TASK_NOT_FOUND" | "TASK_FAILED"), "{method}: {error}");
    }
    let error = request_error(&daemon, "tasks/list", json!({ "server": "unknown" })).await;
    assert_eq!(error["data"]["code"], "SERVER_NOT_FOUND");
}

#[tokio::test]
async fn a_failed_tool_and_a_failed_background_call_have_different_outcomes() {
    let fakes = Fakes::new();
    let config = fakes.server("fake", &[]) + "retry = \"never\"\n";
    let daemon = Daemon::with(config).ready();
    let failed = json!({ "result": r#"{"content":[],"isError":true}"# });
    let tool = start_call(&daemon, "fake/raw", failed).await;
    assert_eq!(result(&daemon, &tool).await["isError"], true);
    wait_for_status(&daemon, &tool, "failed").await;
    let gone = start_call(&daemon, "fake/exit", json!({ "code": 1 })).await;
    let error =
        request_error(&daemon, "tasks/result", json!({ "taskId": gone, "wait": true })).await;
    assert_eq!(error["data"]["code"], "TASK_FAILED", "{error}");
    assert_eq!(error["data"]["context"]["server"], "fake");
    let task = wait_for_status(&daemon, &gone, "failed").await;
    assert!(task["statusMessage"].as_str().is_some_and(|text| text.contains("fake")), "{task}");
}

#[tokio::test]
async fn a_background_call_reports_its_progress() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let id = start_call(&daemon, "fake/progress", json!({ "steps": 3 })).await;
    result(&daemon, &id).await;
    let task = request(&daemon, "tasks/get", json!({ "taskId": id })).await;
    assert_eq!(task["progress"]["progress"], 3, "{task}");
}

#[tokio::test]
async fn cancelling_a_background_call_cancels_it_at_its_server() {
    let fakes = Fakes::new();
    let upstream = Upstream::start(&LEGACY);
    let daemon = Daemon::with(fakes.server("fake", &[]) + &upstream.server("far", "")).ready();
    let id = start_call(&daemon, "fake/hold", json!({ "key": "a" })).await;
    client(&daemon, "fake").call("held", json!({ "at_least": 1 })).await;
    let task = request(&daemon, "tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(task["status"], "cancelled");
    let seen = client(&daemon, "fake").call("seen", json!({ "cancelled": 1 })).await;
    assert_eq!(seen["cancelled"].as_array().map(Vec::len), Some(1), "{seen}");
    let error = request_error(&daemon, "tasks/result", json!({ "taskId": id })).await;
    assert_eq!(error["data"]["code"], "TASK_CANCELLED");

    let id = start_call(&daemon, "far/job", json!({ "steps": ["working"] })).await;
    let task = wait_for_task(&daemon, &id, |task| task["serverTaskId"].is_string()).await;
    request(&daemon, "tasks/cancel", json!({ "taskId": task["serverTaskId"], "server": "far" }))
        .await;
    wait_for_status(&daemon, &id, "cancelled").await;
    let named = json!({ "taskId": task["serverTaskId"] });
    let answer = client(&daemon, "far").request(json!(1), "tasks/get", named).await.answer();
    assert_eq!(answer["result"]["status"], "cancelled", "{answer}");
}

#[tokio::test]
async fn a_background_call_uses_the_tasks_of_a_server_that_supports_them() {
    for options in [LEGACY, MODERN] {
        let (fakes, upstream) = (Fakes::new(), Upstream::start(&options));
        // An unused connection would be closed between two polls, and the task with it.
        let config = fakes.server("pipe", &options) + &upstream.server("http", "");
        let daemon = Daemon::with("[pool]\nidle_timeout = \"10ms\"\n".to_owned() + &config).ready();
        for server in ["pipe", "http"] {
            let steps = json!(["working", "working", "working", "completed"]);
            let arguments = json!({ "steps": steps, "value": 7 });
            let id = start_call(&daemon, &format!("{server}/job"), arguments).await;
            let output = result(&daemon, &id).await;
            assert_eq!(output["structuredContent"]["value"], 7, "{server}: {output}");
            let ended = request(&daemon, "tasks/get", json!({ "taskId": id })).await;
            assert_eq!(ended["status"], "completed");
            assert!(ended["serverTaskId"].is_string(), "{options:?} {server}: {ended}");
            for fails in ["tool", "rpc"] {
                let arguments = json!({ "steps": ["completed"], "fails": fails });
                let id = start_call(&daemon, &format!("{server}/job"), arguments).await;
                wait_for_status(&daemon, &id, "failed").await;
                let outcome = try_request(&daemon, "tasks/result", json!({ "taskId": id })).await;
                assert_eq!(outcome.is_ok(), fails == "tool", "{outcome:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_server_with_tasks_may_answer_a_background_call_directly() {
    let upstream = Upstream::start(&MODERN);
    let daemon = Daemon::with(upstream.server("http", "")).ready();
    let id = start_call(&daemon, "http/job", json!({ "at_once": true, "value": 7 })).await;
    assert_eq!(result(&daemon, &id).await["structuredContent"]["value"], 7);
}

#[tokio::test]
async fn a_background_call_of_a_per_session_or_exclusive_server_has_its_own_connection() {
    let fakes = Fakes::new();
    let config = fakes.server("mine", &[]) + "sharing = \"session\"\n";
    let config = config + &fakes.server("alone", &LEGACY) + "sharing = \"exclusive\"\n";
    let daemon = Daemon::with(config).ready();
    for tool in ["mine/echo", "alone/echo"] {
        let id = start_call(&daemon, tool, json!({ "value": 7 })).await;
        let output = result(&daemon, &id).await;
        assert!(output.to_string().contains('7'), "{tool}: {output}");
    }
}

#[tokio::test]
async fn a_background_call_shows_that_its_server_needs_input_and_can_be_cancelled() {
    let upstream = Upstream::start(&LEGACY);
    let daemon = Daemon::with(upstream.server("http", "")).ready();
    let arguments = json!({ "steps": ["input_required", "input_required", "input_required", "input_required", "working"] });
    let id = start_call(&daemon, "http/job", arguments).await;
    wait_for_status(&daemon, &id, "input_required").await;
    let task = request(&daemon, "tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(task["status"], "cancelled");
}

#[tokio::test]
async fn tasks_list_includes_the_tasks_that_servers_list() {
    let (fakes, upstream) = (Fakes::new(), Upstream::start(&LEGACY));
    let daemon = Daemon::with(upstream.server("http", "") + &fakes.server("plain", &[])).ready();
    let ours = start_call(&daemon, "http/job", json!({ "steps": ["working"] })).await;
    wait_for_task(&daemon, &ours, |task| task["serverTaskId"].is_string()).await;
    let params = json!({ "name": "job", "arguments": { "value": 1 }, "task": { "ttl": 5000 } });
    let other = client(&daemon, "http").request(json!(1), "tools/call", params).await.answer();
    let other = other["result"]["task"]["taskId"].clone();
    let listed = request(&daemon, "tasks/list", json!({})).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "servers without tasks are left out");
    let ids: Vec<&Value> =
        listed[0]["tasks"].as_array().expect("tasks").iter().map(|task| &task["taskId"]).collect();
    assert_eq!(ids, [&json!(ours), &other], "{listed}");
    let named = json!({ "server": "http", "taskId": other });
    wait_for_server_task(&daemon, &named, "completed").await;
    let output = request(&daemon, "tasks/result", named.clone()).await;
    assert_eq!(output["structuredContent"]["value"], 1);
    let error = request_error(&daemon, "tasks/cancel", named).await;
    assert_eq!(error["data"]["code"], "TASK_FAILED", "the task has ended: {error}");
}

async fn wait_for_server_task(daemon: &Daemon, named: &Value, status: &str) {
    let polling =
        async { while request(daemon, "tasks/get", named.clone()).await["status"] != status {} };
    timeout(DEADLINE, polling).await.expect("the task reaches the status in time");
}

#[tokio::test]
async fn a_task_of_an_unreachable_server_continues_when_the_server_returns() {
    let upstream = Upstream::start(&LEGACY);
    let config = "[breaker]\nfailure_threshold = 1000\n".to_owned() + &upstream.server("http", "");
    let daemon = Daemon::with(config).ready();
    let id = start_call(&daemon, "http/job", json!({ "steps": ["working"] })).await;
    wait_for_task(&daemon, &id, |task| task["serverTaskId"].is_string()).await;
    upstream.control("status?code=503&n=1000000").await;
    let lost = wait_for_status(&daemon, &id, "unreachable").await;
    assert!(lost["statusMessage"].as_str().is_some_and(|text| text.contains("503")), "{lost}");
    let error = request_error(&daemon, "tasks/result", json!({ "taskId": id })).await;
    assert_eq!(error["data"]["code"], "TASK_NOT_FINISHED");
    upstream.control("status?code=200&n=0").await;
    wait_for_status(&daemon, &id, "working").await;
    request(&daemon, "tasks/cancel", json!({ "taskId": id })).await;
}

#[tokio::test]
async fn a_background_call_fails_if_its_restarted_server_does_not_know_the_task() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("pipe", &LEGACY)).ready();
    let id = start_call(&daemon, "pipe/job", json!({ "steps": ["working"] })).await;
    wait_for_task(&daemon, &id, |task| task["serverTaskId"].is_string()).await;
    let exit = json!({ "name": "exit", "arguments": { "code": 1 } });
    client(&daemon, "pipe").request(json!(1), "tools/call", exit).await;
    let task = wait_for_status(&daemon, &id, "failed").await;
    let message = task["statusMessage"].as_str().expect("a reason");
    assert!(message.contains("no longer knows the task"), "{task}");
}

/// Starts the service with the state directory of an earlier one.
fn daemon(config: &str, state: &Path) -> Daemon {
    Daemon::with(config).env("STATE_DIRECTORY", state).ready()
}

#[tokio::test]
async fn a_restart_of_the_service_keeps_all_background_calls() {
    for signal in [Signal::KILL, Signal::TERM] {
        let (fakes, upstream) = (Fakes::new(), Upstream::start(&LEGACY));
        let state = tempfile::tempdir().expect("a directory");
        let config = "[service]\nshutdown_timeout = \"10ms\"\n".to_owned()
            + &fakes.server("pipe", &LEGACY)
            + &upstream.server("http", "");
        let mut first = daemon(&config, state.path());
        let ended = start_call(&first, "pipe/echo", json!({ "value": 7 })).await;
        let result_before = result(&first, &ended).await;
        let running = start_call(&first, "pipe/hold", json!({ "key": "a" })).await;
        client(&first, "pipe").call("held", json!({ "at_least": 1 })).await;
        let local = start_call(&first, "pipe/job", json!({ "steps": ["working"] })).await;
        let far = start_call(&first, "http/job", json!({ "steps": ["working"] })).await;
        let waiting = start_call(&first, "http/hold", json!({ "key": "b" })).await;
        client(&first, "http").call("held", json!({ "at_least": 1 })).await;
        for id in [&local, &far] {
            wait_for_task(&first, id, |task| task["serverTaskId"].is_string()).await;
            // A client sees the task before its file is written, and only the file survives a kill.
            let file = state.path().join(format!("tasks/{id}.task"));
            let is_kept =
                || fs::read_to_string(&file).is_ok_and(|it| it.contains(r#""upstream":{"#));
            crate::until(async || is_kept()).await;
        }
        first.signal(signal);
        first.wait_exit();

        let mut second = daemon(&config, state.path());
        assert_eq!(result(&second, &ended).await, result_before);
        for id in [&running, &waiting] {
            let error = request_error(&second, "tasks/result", json!({ "taskId": id })).await;
            assert_eq!(error["data"]["code"], "OUTCOME_UNKNOWN", "{signal:?}: {error}");
            let task = request(&second, "tasks/get", json!({ "taskId": id })).await;
            assert_eq!(task["status"], "unknown_outcome");
        }
        let task = request(&second, "tasks/get", json!({ "taskId": local })).await;
        let expected = if signal == Signal::KILL { "unknown_outcome" } else { "cancelled" };
        assert_eq!(task["status"], expected, "its server ended with the service: {task}");
        wait_for_status(&second, &far, "working").await;
        let task = request(&second, "tasks/cancel", json!({ "taskId": far })).await;
        assert_eq!(task["status"], "cancelled", "its server has kept the task");
        second.signal(Signal::TERM);
        second.wait_exit();
        let files = fs::read_dir(state.path().join("tasks")).expect("a directory").count();
        assert_eq!(files, 5, "one file for each task");
    }
}

#[tokio::test]
async fn idle_exit_waits_for_running_background_calls() {
    let (fakes, state) = (Fakes::new(), tempfile::tempdir().expect("a directory"));
    let rules = "[service]\nidle_exit = \"1s\"\nshutdown_timeout = \"10ms\"\n";
    let config = rules.to_owned() + &fakes.server("pipe", &LEGACY);
    let mut first = daemon(&config, state.path());
    // The service polls the task every 50 ms, and no request runs in between.
    let steps = [["working"; 60].as_slice(), &["completed"]].concat();
    let id = start_call(&first, "pipe/job", json!({ "steps": steps, "value": 7 })).await;
    assert_eq!(first.wait_exit().code(), Some(0));

    let second = daemon(&config, state.path());
    assert_eq!(result(&second, &id).await["structuredContent"]["value"], 7);
}

#[tokio::test]
async fn an_unreadable_task_file_is_set_aside_and_the_service_starts() {
    let fakes = Fakes::new();
    let state = tempfile::tempdir().expect("a directory");
    let tasks = state.path().join("tasks");
    fs::create_dir(&tasks).expect("a directory");
    let name = "01234567-89ab-cdef-0123-456789abcdef";
    fs::write(tasks.join(format!("{name}.task")), "{").expect("written");
    let daemon = daemon(&fakes.server("fake", &[]), state.path());
    assert_eq!(request(&daemon, "tasks/list", json!({})).await, json!([]));
    assert!(tasks.join(format!("{name}.broken")).exists());
    daemon.wait_log("set aside");
}
