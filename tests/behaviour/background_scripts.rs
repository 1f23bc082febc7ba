//! Background scripts, which an operator starts and which go on after a restart of the service.

use std::{fs, path::Path};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    harness::{
        daemon::{self, Daemon},
        fake::{Fakes, executions},
        operator::Operator,
        script::execute_section,
    },
    until,
};

/// Starts the service with a state directory that outlives it.
fn start(config: &str, state: &Path) -> Daemon {
    Daemon::with(config).env("STATE_DIRECTORY", state).ready()
}

/// Starts a script and returns the id of its task.
async fn start_script(operator: &mut Operator, code: &str) -> String {
    let task = operator.result("scripts/run-async", json!({ "code": code, "args": ["x"] })).await;
    assert_eq!(task["status"], "working", "{task}");
    task["taskId"].as_str().expect("an id").to_owned()
}

async fn call(operator: &mut Operator, tool: &str, arguments: Value) {
    operator.result("tools/call", json!({ "name": tool, "arguments": arguments })).await;
}

/// Returns the result of a task, once it has ended.
async fn result(operator: &mut Operator, id: &str) -> Value {
    operator.result("tasks/result", json!({ "taskId": id, "wait": true })).await
}

/// Returns the number of records of scripts.
fn n_records(state: &Path) -> usize {
    fs::read_dir(state.join("scripts")).map(Iterator::count).unwrap_or_default()
}

#[tokio::test]
async fn a_background_script_continues_without_its_caller_and_its_result_is_fetched_later() {
    let (fakes, state) = (Fakes::new(), tempfile::tempdir().expect("a directory"));
    let config = execute_section().to_owned() + &fakes.server("fake", &[]);
    let daemon = start(&config, state.path());
    let mut operator = Operator::at(&daemon).await;
    let code = "progress(1, 4, 'soon'); await servers.fake.hold({ key: 'a' }); console.log('done'); return args";
    let id = start_script(&mut operator, code).await;
    let mut operator = Operator::at(&daemon).await;
    call(&mut operator, "fake/held", json!({ "at_least": 1 })).await;

    let task = operator.result("tasks/get", json!({ "taskId": id })).await;
    assert_eq!((&task["script"], &task["status"]), (&json!(true), &json!("working")));
    assert!(task.get("server").is_none(), "{task}");
    assert_eq!(task["progress"], json!({ "progress": 1.0, "total": 4.0, "message": "soon" }));
    let listed = operator.result("tasks/list", json!({})).await;
    assert_eq!(listed, json!([{ "tasks": [task] }]));
    assert_eq!(operator.result("tasks/list", json!({ "server": "fake" })).await, json!([]));
    let error = operator.error("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(error["data"]["code"], "TASK_NOT_FINISHED");
    assert_eq!(n_records(state.path()), 1);

    call(&mut operator, "fake/release", json!({ "key": "a" })).await;
    let ended = result(&mut operator, &id).await;
    assert_eq!((&ended["value"], &ended["output"]), (&json!(["x"]), &json!("done\n")));
    assert_eq!(operator.result("tasks/result", json!({ "taskId": id })).await, ended);
    let error = operator.error("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(error["data"]["context"]["script"], true, "{error}");
    until(async || n_records(state.path()) == 0).await;
}

#[tokio::test]
async fn a_failed_background_script_reports_its_place_and_its_output() {
    let (fakes, state) = (Fakes::new(), tempfile::tempdir().expect("a directory"));
    let config = execute_section().to_owned() + &fakes.server("fake", &[]);
    let daemon = start(&config, state.path());
    let mut operator = Operator::at(&daemon).await;
    let code = "console.log('x'.repeat(20_000));\n  throw new Error('no')";
    let id = start_script(&mut operator, code).await;
    let error = operator.error("tasks/result", json!({ "taskId": id, "wait": true })).await;
    assert_eq!(
        (&error["data"]["code"], &error["message"]),
        (&json!("TASK_FAILED"), &json!("Error: no"))
    );
    let data = &error["data"]["context"]["data"];
    assert_eq!((&data["code"], &data["context"]["line"]), (&json!("SCRIPT_FAILED"), &json!(2)));
    assert_eq!(data["context"]["output"].as_str().map(str::len), Some(20_001));
    let task = operator.result("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(
        (&task["status"], &task["statusMessage"]),
        (&json!("failed"), &json!("line 2, column 13: Error: no"))
    );

    for params in [json!({}), json!({ "code": " ".repeat(51_201) })] {
        operator.error("scripts/run-async", params).await;
    }
    let listed = operator.result("tasks/list", json!({})).await;
    assert_eq!(listed[0]["tasks"].as_array().map(Vec::len), Some(1), "{listed}");
}

#[tokio::test]
async fn cancelling_a_background_script_cancels_its_calls_and_removes_its_record() {
    let (fakes, state) = (Fakes::new(), tempfile::tempdir().expect("a directory"));
    let config = execute_section().to_owned() + &fakes.server("fake", &[]);
    let daemon = start(&config, state.path());
    let mut operator = Operator::at(&daemon).await;
    let code = "await Promise.all(['a', 'b'].map(key => servers.fake.hold({ key })))";
    let id = start_script(&mut operator, code).await;
    call(&mut operator, "fake/held", json!({ "at_least": 2 })).await;
    let task = operator.result("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(task["status"], "cancelled");
    call(&mut operator, "fake/seen", json!({ "cancelled": 2 })).await;
    let error = operator.error("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(error["data"]["code"], "TASK_CANCELLED");
    assert_eq!(n_records(state.path()), 0);
}

/// A script with one call before the end of the service, and two when it ends.
const INTERRUPTED: &str = "
    const seed = Math.random();
    const first = await servers.fake.count({ key: 'done' });
    const settled = await Promise.allSettled([
        servers.fake.count({ key: 'once', then: 'hold' }),
        servers.fake.read_only({ key: 'again', then: 'hold' }),
    ]);
    const ends = settled.map(it => it.status === 'fulfilled' ? it.value.key : it.reason.code);
    return { first: first.n, ends, last: (await servers.fake.count({ key: 'last' })).n, args };";

#[tokio::test]
async fn a_script_goes_on_after_a_restart_and_repeats_only_calls_that_may_be_repeated() {
    for signal in [Signal::KILL, Signal::TERM] {
        let (fakes, state) = (Fakes::new(), tempfile::tempdir().expect("a directory"));
        let counted = fakes.path("counted");
        let config = "[service]\nshutdown_timeout = \"10ms\"\n".to_owned()
            + execute_section()
            + &fakes.server("fake", &["--state", counted.to_str().expect("UTF-8")]);
        let mut first = start(&config, state.path());
        let mut operator = Operator::at(&first).await;
        let id = start_script(&mut operator, INTERRUPTED).await;
        call(&mut operator, "fake/held", json!({ "at_least": 2 })).await;
        first.signal(signal);
        first.wait_exit();

        let second = start(&config, state.path());
        let mut operator = Operator::at(&second).await;
        let task = operator.result("tasks/get", json!({ "taskId": id })).await;
        assert_eq!(task["status"], "working", "{signal:?}: {task}");
        call(&mut operator, "fake/held", json!({ "at_least": 1 })).await;
        call(&mut operator, "fake/release", json!({ "key": "again" })).await;
        let expected =
            json!({ "first": 1, "ends": ["outcome_unknown", "again"], "last": 1, "args": ["x"] });
        let ended = result(&mut operator, &id).await;
        assert_eq!((&ended["value"], &ended["toolCalls"]), (&expected, &json!(4)), "{signal:?}");
        let n_runs = ["done", "once", "again", "last"].map(|key| executions(&counted)[key]);
        assert_eq!(n_runs, [1, 1, 2, 1], "{signal:?}");
        until(async || n_records(state.path()) == 0).await;
    }
}

#[tokio::test]
async fn a_script_that_cannot_go_on_after_a_restart_has_an_unknown_outcome() {
    let (fakes, state) = (Fakes::new(), tempfile::tempdir().expect("a directory"));
    let server = fakes.server("fake", &[]);
    let mut first = start(&(execute_section().to_owned() + &server), state.path());
    let mut operator = Operator::at(&first).await;
    let id = start_script(&mut operator, "await servers.fake.hold({ key: 'a' })").await;
    call(&mut operator, "fake/held", json!({ "at_least": 1 })).await;
    first.signal(Signal::KILL);
    first.wait_exit();

    let second = start(&("[execute]\nenabled = false\n".to_owned() + &server), state.path());
    let mut operator = Operator::at(&second).await;
    let error = operator.error("tasks/result", json!({ "taskId": id, "wait": true })).await;
    assert_eq!(error["data"]["code"], "OUTCOME_UNKNOWN", "{error}");
    assert!(error["message"].to_string().contains("`execute.enabled`"), "{error}");
    until(async || n_records(state.path()) == 0).await;
}

#[tokio::test]
async fn the_command_line_starts_a_background_script_and_waits_for_it_after_a_restart() {
    let (fakes, state) = (Fakes::new(), tempfile::tempdir().expect("a directory"));
    let counted = fakes.path("counted");
    let config = execute_section().to_owned()
        + &fakes.server("fake", &["--state", counted.to_str().expect("UTF-8")]);
    let run = |daemon: &Daemon, arguments: &[&str]| {
        let socket = daemon.control().display().to_string();
        let (command, rest) = arguments.split_first().expect("a command");
        daemon::run_with("", &[&[*command, "--socket", &socket], rest].concat())
    };
    let mut first = start(&config, state.path());
    let code = "const { n } = await servers.fake.count({ key: 'a' });
        await servers.fake.read_only({ key: 'b', then: 'hold' });
        console.log('after'); return `${n} ${args}`";
    let (exit, id, stderr) = run(&first, &["run", "--async", "-e", code, "--", "x", "y"]);
    assert_eq!((exit, stderr.as_str()), (0, ""));
    let id = id.trim();
    assert_eq!(run(&first, &["call", "fake/held", "{\"at_least\":1}"]).0, 0);
    let (exit, listed, _) = run(&first, &["tasks"]);
    assert!(exit == 0 && listed.contains(id) && listed.contains("<code>"), "{listed}");
    first.signal(Signal::KILL);
    first.wait_exit();

    let second = start(&config, state.path());
    assert_eq!(run(&second, &["call", "fake/held", "{\"at_least\":1}"]).0, 0);
    assert_eq!(run(&second, &["call", "fake/release", "{\"key\":\"b\"}"]).0, 0);
    let (exit, stdout, stderr) = run(&second, &["task", "--wait", id]);
    assert_eq!((exit, stdout.as_str(), stderr.as_str()), (0, "1 x,y\n", "after\n"));
    assert_eq!(executions(&counted)["a"], 1);

    let report = fakes.path("report.js");
    fs::write(&report, "console.log(1);\nthrow new Error('no')").expect("written");
    let report = report.to_str().expect("UTF-8");
    let (exit, failing, _) = run(&second, &["run", "--async", report]);
    assert_eq!(exit, 0);
    let (exit, task, _) = run(&second, &["task", failing.trim()]);
    assert!(exit == 0 && task.contains(report), "{task}");
    let (exit, stdout, stderr) = run(&second, &["task", "--wait", failing.trim()]);
    assert_eq!((exit, stdout.as_str()), (1, ""));
    assert!(stderr.starts_with(&format!("1\n{report}:2:")), "{stderr}");
    assert!(stderr.contains("no"), "{stderr}");

    let wrong = "await servers.fake.read_only({ kye: 'b' })";
    let (_, wrong, _) = run(&second, &["run", "--async", "-e", wrong]);
    let (exit, _, stderr) = run(&second, &["task", "--wait", wrong.trim()]);
    assert!(exit == 1 && stderr.contains("Field 'kye'"), "{stderr}");
}
