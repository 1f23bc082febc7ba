//! Calls that continue without their callers, started by an operator.

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

/// Asks over the control socket; returns the result or the error.
async fn ask(daemon: &Daemon, method: &str, params: Value) -> Result<Value, Value> {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let exchange = async {
        let mut stream = UnixStream::connect(daemon.control()).await.expect("somebody listens");
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

async fn done(daemon: &Daemon, method: &str, params: Value) -> Value {
    ask(daemon, method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
}

async fn refused(daemon: &Daemon, method: &str, params: Value) -> Value {
    let error = ask(daemon, method, params).await.expect_err(method);
    let data = &error["data"];
    assert!(data["context"].is_object(), "{error}");
    assert!(data["suggestion"].as_str().is_some_and(|text| !text.is_empty()), "{error}");
    error
}

/// Starts a call and returns its id.
async fn started(daemon: &Daemon, tool: &str, arguments: Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    let told = done(daemon, "tools/call-async", params).await;
    assert_eq!(told["status"], "working", "{told}");
    told["taskId"].as_str().expect("an id").to_owned()
}

/// Looks at a call until `is_it` of what is told of it.
async fn until(daemon: &Daemon, id: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let looking = async {
        loop {
            let told = done(daemon, "tasks/get", json!({ "taskId": id })).await;
            if is_it(&told) {
                return told;
            }
            tokio::task::yield_now().await;
        }
    };
    let last = timeout(DEADLINE, looking).await;
    last.unwrap_or_else(|_| panic!("it does not come to that\n{}", daemon.log()))
}

async fn until_it_is(daemon: &Daemon, id: &str, status: &str) -> Value {
    until(daemon, id, |told| told["status"] == status).await
}

/// Waits for what comes of a call.
async fn result(daemon: &Daemon, id: &str) -> Value {
    done(daemon, "tasks/result", json!({ "taskId": id, "wait": true })).await
}

fn client(daemon: &Daemon, server: &str) -> Client {
    daemon.client(&format!("/servers/{server}"))
}

/// Returns JSON text in which what differs from run to run is replaced by a word.
fn golden(value: &Value) -> String {
    let mut value = value.clone();
    settle(&mut value);
    serde_json::to_string_pretty(&value).expect("JSON")
}

fn settle(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), &member) {
                    ("taskId" | "serverTaskId", Value::String(_)) => *member = json!("ID"),
                    (name, Value::String(_)) if name.ends_with("At") => *member = json!("TIME"),
                    _ => settle(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::String(text) => {
            let words = text.split('`').map(|word| if is_id(word) { "ID" } else { word });
            *text = words.collect::<Vec<_>>().join("`");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_id(word: &str) -> bool {
    word.len() == 36 && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

#[tokio::test]
async fn a_call_goes_on_without_its_caller_and_is_fetched_later() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let params = json!({ "name": "fake/hold", "arguments": { "key": "a" } });
    let begun = done(&daemon, "tools/call-async", params).await;
    let id = begun["taskId"].as_str().expect("an id").to_owned();
    let named = json!({ "taskId": id });
    let runs = done(&daemon, "tasks/get", named.clone()).await;
    let listed = done(&daemon, "tasks/list", json!({})).await;
    let early = refused(&daemon, "tasks/result", named.clone()).await;

    client(&daemon, "fake").call("held", json!({ "at_least": 1 })).await;
    client(&daemon, "fake").call("release", json!({ "key": "a" })).await;
    let result = result(&daemon, &id).await;
    let ended = done(&daemon, "tasks/get", named.clone()).await;
    let again = done(&daemon, "tasks/result", named.clone()).await;
    assert_eq!(result, again, "it is there until it expires");
    let late = refused(&daemon, "tasks/cancel", named).await;
    let shown = json!({
        "tools/call-async": begun, "tasks/get": { "runs": runs, "ended": ended },
        "tasks/list": listed, "tasks/result": { "early": early, "ended": result },
        "tasks/cancel": { "late": late },
    });
    insta::assert_snapshot!("a_call_in_the_background", golden(&shown));
}

#[tokio::test]
async fn an_impossible_call_is_refused_at_once_and_starts_no_task() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    for (tool, arguments) in [
        ("fake/nothing", json!({})),
        ("nobody/echo", json!({})),
        ("fake/bytes", json!({ "n": "x" })),
    ] {
        refused(&daemon, "tools/call-async", json!({ "name": tool, "arguments": arguments })).await;
    }
    assert_eq!(done(&daemon, "tasks/list", json!({})).await, json!([]));
    for (method, params) in [
        ("tasks/get", json!({ "taskId": "a" })),
        ("tasks/result", json!({ "taskId": "a", "server": "fake" })),
        ("tasks/cancel", json!({ "taskId": "a" })),
    ] {
        let error = refused(&daemon, method, params).await;
        let code = error["data"]["code"].as_str().expect("a code");
        assert!(matches!(code, "TASK_NOT_FOUND" | "TASK_FAILED"), "{method}: {error}");
    }
    let error = refused(&daemon, "tasks/list", json!({ "server": "nobody" })).await;
    assert_eq!(error["data"]["code"], "SERVER_NOT_FOUND");
}

#[tokio::test]
async fn a_tool_that_fails_and_a_call_that_fails_are_told_apart() {
    let fakes = Fakes::new();
    let config = fakes.server("fake", &[]) + "retry = \"never\"\n";
    let daemon = Daemon::with(config).ready();
    let failed = json!({ "result": r#"{"content":[],"isError":true}"# });
    let tool = started(&daemon, "fake/raw", failed).await;
    assert_eq!(result(&daemon, &tool).await["isError"], true);
    until_it_is(&daemon, &tool, "failed").await;
    let gone = started(&daemon, "fake/exit", json!({ "code": 1 })).await;
    let error = refused(&daemon, "tasks/result", json!({ "taskId": gone, "wait": true })).await;
    assert_eq!(error["data"]["code"], "TASK_FAILED", "{error}");
    assert_eq!(error["data"]["context"]["server"], "fake");
    let told = until_it_is(&daemon, &gone, "failed").await;
    assert!(told["statusMessage"].as_str().is_some_and(|text| text.contains("fake")), "{told}");
}

#[tokio::test]
async fn a_background_call_reports_its_progress() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let id = started(&daemon, "fake/progress", json!({ "steps": 3 })).await;
    result(&daemon, &id).await;
    let told = done(&daemon, "tasks/get", json!({ "taskId": id })).await;
    assert_eq!(told["progress"]["progress"], 3, "{told}");
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_cancelled_at_its_server() {
    let fakes = Fakes::new();
    let upstream = Upstream::start(&LEGACY);
    let daemon = Daemon::with(fakes.server("fake", &[]) + &upstream.server("far", "")).ready();
    let id = started(&daemon, "fake/hold", json!({ "key": "a" })).await;
    client(&daemon, "fake").call("held", json!({ "at_least": 1 })).await;
    let told = done(&daemon, "tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(told["status"], "cancelled");
    let seen = client(&daemon, "fake").call("seen", json!({ "cancelled": 1 })).await;
    assert_eq!(seen["cancelled"].as_array().map(Vec::len), Some(1), "{seen}");
    let error = refused(&daemon, "tasks/result", json!({ "taskId": id })).await;
    assert_eq!(error["data"]["code"], "TASK_CANCELLED");

    let id = started(&daemon, "far/job", json!({ "steps": ["working"] })).await;
    let told = until(&daemon, &id, |told| told["serverTaskId"].is_string()).await;
    done(&daemon, "tasks/cancel", json!({ "taskId": told["serverTaskId"], "server": "far" })).await;
    until_it_is(&daemon, &id, "cancelled").await;
    let named = json!({ "taskId": told["serverTaskId"] });
    let asked = client(&daemon, "far").request(json!(1), "tasks/get", named).await.answer();
    assert_eq!(asked["result"]["status"], "cancelled", "{asked}");
}

#[tokio::test]
async fn the_task_of_a_server_is_used_where_it_has_any() {
    for options in [LEGACY, MODERN] {
        let (fakes, upstream) = (Fakes::new(), Upstream::start(&options));
        // An unused connection would be closed between two polls, and the task with it.
        let config = fakes.server("pipe", &options) + &upstream.server("http", "");
        let daemon = Daemon::with("[pool]\nidle_timeout = \"10ms\"\n".to_owned() + &config).ready();
        for server in ["pipe", "http"] {
            let steps = json!(["working", "working", "working", "completed"]);
            let arguments = json!({ "steps": steps, "value": 7 });
            let id = started(&daemon, &format!("{server}/job"), arguments).await;
            let told = result(&daemon, &id).await;
            assert_eq!(told["structuredContent"]["value"], 7, "{server}: {told}");
            let ended = done(&daemon, "tasks/get", json!({ "taskId": id })).await;
            assert_eq!(ended["status"], "completed");
            assert!(ended["serverTaskId"].is_string(), "{options:?} {server}: {ended}");
            for fails in ["tool", "rpc"] {
                let arguments = json!({ "steps": ["completed"], "fails": fails });
                let id = started(&daemon, &format!("{server}/job"), arguments).await;
                until_it_is(&daemon, &id, "failed").await;
                let told = ask(&daemon, "tasks/result", json!({ "taskId": id })).await;
                assert_eq!(told.is_ok(), fails == "tool", "{told:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_server_answers_at_once_that_could_have_made_a_task_of_it() {
    let upstream = Upstream::start(&MODERN);
    let daemon = Daemon::with(upstream.server("http", "")).ready();
    let id = started(&daemon, "http/job", json!({ "at_once": true, "value": 7 })).await;
    assert_eq!(result(&daemon, &id).await["structuredContent"]["value"], 7);
}

#[tokio::test]
async fn a_server_of_each_client_is_called_on_a_connection_of_the_call() {
    let fakes = Fakes::new();
    let config = fakes.server("mine", &[]) + "sharing = \"session\"\n";
    let config = config + &fakes.server("alone", &LEGACY) + "sharing = \"exclusive\"\n";
    let daemon = Daemon::with(config).ready();
    for tool in ["mine/echo", "alone/echo"] {
        let id = started(&daemon, tool, json!({ "value": 7 })).await;
        let told = result(&daemon, &id).await;
        assert!(told.to_string().contains('7'), "{tool}: {told}");
    }
}

#[tokio::test]
async fn a_background_call_shows_that_its_server_needs_input_and_can_be_cancelled() {
    let upstream = Upstream::start(&LEGACY);
    let daemon = Daemon::with(upstream.server("http", "")).ready();
    let arguments = json!({ "steps": ["input_required", "input_required", "input_required", "input_required", "working"] });
    let id = started(&daemon, "http/job", arguments).await;
    until_it_is(&daemon, &id, "input_required").await;
    let told = done(&daemon, "tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(told["status"], "cancelled");
}

#[tokio::test]
async fn tasks_that_a_server_lists_itself_are_listed_too() {
    let (fakes, upstream) = (Fakes::new(), Upstream::start(&LEGACY));
    let daemon = Daemon::with(upstream.server("http", "") + &fakes.server("plain", &[])).ready();
    let ours = started(&daemon, "http/job", json!({ "steps": ["working"] })).await;
    until(&daemon, &ours, |told| told["serverTaskId"].is_string()).await;
    let params = json!({ "name": "job", "arguments": { "value": 1 }, "task": { "ttl": 5000 } });
    let other = client(&daemon, "http").request(json!(1), "tools/call", params).await.answer();
    let other = other["result"]["task"]["taskId"].clone();
    let listed = done(&daemon, "tasks/list", json!({})).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "servers without tasks are left out");
    let ids: Vec<&Value> =
        listed[0]["tasks"].as_array().expect("tasks").iter().map(|task| &task["taskId"]).collect();
    assert_eq!(ids, [&json!(ours), &other], "{listed}");
    let named = json!({ "server": "http", "taskId": other });
    until_of(&daemon, &named, "completed").await;
    let told = done(&daemon, "tasks/result", named.clone()).await;
    assert_eq!(told["structuredContent"]["value"], 1);
    let error = refused(&daemon, "tasks/cancel", named).await;
    assert_eq!(error["data"]["code"], "TASK_FAILED", "it has ended: {error}");
}

async fn until_of(daemon: &Daemon, named: &Value, status: &str) {
    let looking =
        async { while done(daemon, "tasks/get", named.clone()).await["status"] != status {} };
    timeout(DEADLINE, looking).await.expect("it comes to that");
}

#[tokio::test]
async fn a_task_of_an_unreachable_server_continues_when_the_server_returns() {
    let upstream = Upstream::start(&LEGACY);
    let config = "[breaker]\nfailure_threshold = 1000\n".to_owned() + &upstream.server("http", "");
    let daemon = Daemon::with(config).ready();
    let id = started(&daemon, "http/job", json!({ "steps": ["working"] })).await;
    until(&daemon, &id, |told| told["serverTaskId"].is_string()).await;
    upstream.control("status?code=503&n=1000000").await;
    let lost = until_it_is(&daemon, &id, "unreachable").await;
    assert!(lost["statusMessage"].as_str().is_some_and(|text| text.contains("503")), "{lost}");
    let error = refused(&daemon, "tasks/result", json!({ "taskId": id })).await;
    assert_eq!(error["data"]["code"], "TASK_NOT_FINISHED");
    upstream.control("status?code=200&n=0").await;
    until_it_is(&daemon, &id, "working").await;
    done(&daemon, "tasks/cancel", json!({ "taskId": id })).await;
}

#[tokio::test]
async fn a_server_that_comes_back_without_the_task_has_failed_it() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("pipe", &LEGACY)).ready();
    let id = started(&daemon, "pipe/job", json!({ "steps": ["working"] })).await;
    until(&daemon, &id, |told| told["serverTaskId"].is_string()).await;
    let exit = json!({ "name": "exit", "arguments": { "code": 1 } });
    client(&daemon, "pipe").request(json!(1), "tools/call", exit).await;
    let told = until_it_is(&daemon, &id, "failed").await;
    let message = told["statusMessage"].as_str().expect("why");
    assert!(message.contains("does not know the task any more"), "{told}");
}

/// Starts the service with what an earlier one has left in `state`.
fn daemon(config: &str, state: &Path) -> Daemon {
    Daemon::with(config).env("STATE_DIRECTORY", state).ready()
}

#[tokio::test]
async fn a_restart_forgets_no_call() {
    for signal in [Signal::KILL, Signal::TERM] {
        let (fakes, upstream) = (Fakes::new(), Upstream::start(&LEGACY));
        let state = tempfile::tempdir().expect("a directory");
        let config = "[service]\nshutdown_timeout = \"10ms\"\n".to_owned()
            + &fakes.server("pipe", &LEGACY)
            + &upstream.server("http", "");
        let mut first = daemon(&config, state.path());
        let ended = started(&first, "pipe/echo", json!({ "value": 7 })).await;
        let result_before = result(&first, &ended).await;
        let runs = started(&first, "pipe/hold", json!({ "key": "a" })).await;
        client(&first, "pipe").call("held", json!({ "at_least": 1 })).await;
        let local = started(&first, "pipe/job", json!({ "steps": ["working"] })).await;
        let far = started(&first, "http/job", json!({ "steps": ["working"] })).await;
        let waiting = started(&first, "http/hold", json!({ "key": "b" })).await;
        client(&first, "http").call("held", json!({ "at_least": 1 })).await;
        for id in [&local, &far] {
            until(&first, id, |told| told["serverTaskId"].is_string()).await;
            // Who looks sees it a moment before it is on the disk, where a kill leaves it.
            let file = state.path().join(format!("tasks/{id}.task"));
            let is_kept =
                || fs::read_to_string(&file).is_ok_and(|it| it.contains(r#""upstream":{"#));
            crate::until(async || is_kept()).await;
        }
        first.signal(signal);
        first.wait_exit();

        let mut second = daemon(&config, state.path());
        assert_eq!(result(&second, &ended).await, result_before);
        for id in [&runs, &waiting] {
            let error = refused(&second, "tasks/result", json!({ "taskId": id })).await;
            assert_eq!(error["data"]["code"], "OUTCOME_UNKNOWN", "{signal:?}: {error}");
            let told = done(&second, "tasks/get", json!({ "taskId": id })).await;
            assert_eq!(told["status"], "unknown_outcome");
        }
        let told = done(&second, "tasks/get", json!({ "taskId": local })).await;
        let expected = if signal == Signal::KILL { "unknown_outcome" } else { "cancelled" };
        assert_eq!(told["status"], expected, "its process has ended with ours: {told}");
        until_it_is(&second, &far, "working").await;
        let told = done(&second, "tasks/cancel", json!({ "taskId": far })).await;
        assert_eq!(told["status"], "cancelled", "its server has kept it");
        second.signal(Signal::TERM);
        second.wait_exit();
        let files = fs::read_dir(state.path().join("tasks")).expect("a directory").count();
        assert_eq!(files, 5, "one for each");
    }
}

#[tokio::test]
async fn a_service_with_an_idle_exit_stays_for_as_long_as_a_call_goes_on() {
    let (fakes, state) = (Fakes::new(), tempfile::tempdir().expect("a directory"));
    let rules = "[service]\nidle_exit = \"1s\"\nshutdown_timeout = \"10ms\"\n";
    let config = rules.to_owned() + &fakes.server("pipe", &LEGACY);
    let mut first = daemon(&config, state.path());
    // It is looked at every 50 ms, and nothing is under way in between.
    let steps = [["working"; 60].as_slice(), &["completed"]].concat();
    let id = started(&first, "pipe/job", json!({ "steps": steps, "value": 7 })).await;
    assert_eq!(first.wait_exit().code(), Some(0));

    let second = daemon(&config, state.path());
    assert_eq!(result(&second, &id).await["structuredContent"]["value"], 7);
}

#[tokio::test]
async fn a_file_that_makes_no_sense_is_set_aside_and_the_service_starts() {
    let fakes = Fakes::new();
    let state = tempfile::tempdir().expect("a directory");
    let tasks = state.path().join("tasks");
    fs::create_dir(&tasks).expect("a directory");
    let name = "01234567-89ab-cdef-0123-456789abcdef";
    fs::write(tasks.join(format!("{name}.task")), "{").expect("written");
    let daemon = daemon(&fakes.server("fake", &[]), state.path());
    assert_eq!(done(&daemon, "tasks/list", json!({})).await, json!([]));
    assert!(tasks.join(format!("{name}.broken")).exists());
    daemon.wait_log("task set aside");
}
