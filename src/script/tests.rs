//! Scripts in sandboxes that are threads, over a runner that is told what to answer.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use serde_json::{Value, json, value::RawValue};
use tokio::sync::{Barrier, Notify, mpsc};

use super::{driver::SCRIPTS_RUNNING_MAX, *};
use crate::{
    capacity_holder::Holder,
    fair_share::Admission,
    sandbox::message::{FailureKind, OperationFailure, OperationOutcome, ScriptOperation},
};

const REQUEST: &str = "the digest of the request";

/// The number of calls that `meet` waits for.
const MEETING: usize = 3;

/// A runner whose tools do as their names say.
struct FakeRunner {
    /// The number of times that each tool ran.
    runs: Mutex<HashMap<String, usize>>,
    n_running: AtomicUsize,
    n_running_max: AtomicUsize,
    gate: Notify,
    meeting: Barrier,
}

impl Default for FakeRunner {
    fn default() -> Self {
        Self {
            runs: Mutex::default(),
            n_running: AtomicUsize::new(0),
            n_running_max: AtomicUsize::new(0),
            gate: Notify::new(),
            meeting: Barrier::new(MEETING),
        }
    }
}

impl FakeRunner {
    fn n_runs(&self, tool: &str) -> usize {
        self.runs.lock().expect("no panic").get(tool).copied().unwrap_or_default()
    }
}

fn value(value: &Value) -> OperationEnd {
    let value = RawValue::from_string(value.to_string()).expect("JSON");
    OperationEnd::Settled(OperationOutcome::Value(value))
}

impl OperationRunner for FakeRunner {
    fn run(
        self: Arc<Self>,
        operation: ScriptOperation,
        attempt: OperationAttempt,
        _: OperationEvents,
    ) -> BoxFuture<'static, OperationEnd> {
        Box::pin(async move {
            let ScriptOperation::Tool { server, tool, args } = operation else {
                return value(&json!("another operation"));
            };
            *self.runs.lock().expect("no panic").entry(tool.clone()).or_default() += 1;
            let n = self.n_running.fetch_add(1, Ordering::Relaxed) + 1;
            self.n_running_max.fetch_max(n, Ordering::Relaxed);
            let end = match (tool.as_str(), &attempt) {
                ("fail", _) => OperationEnd::Settled(OperationOutcome::Failure(OperationFailure {
                    code: "execution_failed".into(),
                    message: "no such branch".into(),
                    hint: "Use another one.".into(),
                    server: Some(server),
                    tool: Some(tool),
                    details: serde_json::Map::new(),
                })),
                ("ask", OperationAttempt::First) => OperationEnd::Asked(
                    json!({
                        "resultType": "input_required",
                        "inputRequests": { "name": { "method": "elicitation/create", "params": {} } },
                        "requestState": "of the server",
                    })
                    .to_string(),
                ),
                ("ask", OperationAttempt::Answered { answers, .. }) => {
                    value(&serde_json::from_str(answers).expect("JSON"))
                }
                (_, OperationAttempt::OutcomeUnknown) => value(&json!("outcome unknown")),
                ("wait", _) => {
                    self.gate.notified().await;
                    value(&json!("waited"))
                }
                ("meet", _) => {
                    self.meeting.wait().await;
                    value(&serde_json::from_str(args.get()).expect("JSON"))
                }
                _ => value(&serde_json::from_str(args.get()).expect("JSON")),
            };
            self.n_running.fetch_sub(1, Ordering::Relaxed);
            end
        })
    }
}

fn limits() -> ScriptLimits {
    ScriptLimits {
        wall: Duration::from_secs(20),
        wall_is_callers: true,
        sleep_max: Duration::from_secs(30),
        output_bytes_max: 1000,
        calls_max: 64,
        parallel_max: 16,
        memory_bytes_max: 64 << 20,
    }
}

struct Rig {
    runner: Arc<FakeRunner>,
    records: Arc<ScriptRecords>,
    places: Arc<Admission>,
}

impl Rig {
    fn new() -> Self {
        Self {
            runner: Arc::default(),
            records: ScriptRecords::in_directory(None),
            places: Admission::new(SCRIPTS_RUNNING_MAX),
        }
    }

    fn context(&self) -> ScriptContext {
        ScriptContext {
            launcher: SandboxLauncher::Thread,
            runner: Arc::clone(&self.runner) as Arc<dyn OperationRunner>,
            records: Arc::clone(&self.records),
            places: Arc::clone(&self.places),
            can_suspend: true,
            token: None,
            holder: Holder::SERVICE,
        }
    }

    fn task(&self, code: &str, limits: ScriptLimits) -> PreparedScript {
        self.task_with(code, None, limits)
    }

    fn task_with(
        &self,
        code: &str,
        args: Option<Vec<String>>,
        limits: ScriptLimits,
    ) -> PreparedScript {
        PreparedScript::new(code.to_owned(), args, limits, REQUEST.to_owned(), self.context())
    }

    async fn run_within(&self, code: &str, limits: ScriptLimits) -> ScriptOutcome {
        finish(self.task(code, limits)).await
    }

    async fn run(&self, code: &str) -> ScriptOutcome {
        self.run_within(code, limits()).await
    }

    async fn resume(
        &self,
        question: &str,
        responses: &Value,
    ) -> Result<PreparedScript, ResumeError> {
        let question: Value = serde_json::from_str(question).expect("JSON");
        let state = question["requestState"].as_str().expect("a state");
        PreparedScript::resume(state, REQUEST, &responses.to_string(), self.context()).await
    }
}

async fn finish(task: PreparedScript) -> ScriptOutcome {
    let (sender, mut events) = mpsc::channel(1);
    let drain = async { while events.recv().await.is_some() {} };
    tokio::join!(task.run(sender), drain).0
}

#[track_caller]
fn returned(outcome: &ScriptOutcome) -> Value {
    match &outcome.end {
        ScriptEnd::Returned(value) => serde_json::from_str(value.get()).expect("JSON"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_script_returns_its_value_and_what_it_prints() {
    let code = "console.log('n', [1]); return (await servers.git.log({ n: 2 })).n + 1";
    let outcome = Rig::new().run(code).await;
    assert_eq!(returned(&outcome), 3);
    assert_eq!((outcome.output.as_str(), outcome.n_calls), ("n [1]\n", 1));
}

#[tokio::test]
async fn only_a_script_with_arguments_sees_them_and_its_own_names_come_first() {
    let rig = Rig::new();
    let args = || Some(vec!["a\"\u{2028}ä".to_owned(), String::new()]);
    let code = "try { args.push(1) } catch (e) { return [e.name, args] }";
    let outcome = finish(rig.task_with(code, args(), limits())).await;
    assert_eq!(returned(&outcome), json!(["TypeError", ["a\"\u{2028}ä", ""]]));
    let own = finish(rig.task_with("const args = 7; return args", args(), limits())).await;
    assert_eq!(returned(&own), 7);
    assert_eq!(returned(&rig.run("return typeof args").await), "undefined");
}

#[tokio::test]
async fn a_failed_tool_is_an_exception_with_its_code_server_and_tool() {
    let code = "try { await servers.git.fail() } catch (e) { return [e.code, e.server, e.tool, e.message, e instanceof ToolError, e instanceof Error] }";
    let outcome = Rig::new().run(code).await;
    let expected = json!(["execution_failed", "git", "fail", "no such branch", true, true]);
    assert_eq!(returned(&outcome), expected);
}

#[tokio::test]
async fn an_uncaught_failure_has_its_line_and_column_in_the_code_as_written() {
    let code = "const a = 1;\n  await servers.git.fail({\n a: Math.max(a, 2) });";
    let outcome = Rig::new().run(code).await;
    let ScriptEnd::Failed(failure) = outcome.end else { panic!("{outcome:?}") };
    let place = failure.place.expect("a place");
    assert_eq!((failure.kind, place.line, place.column), (FailureKind::Exception, 2, 21));
    let cause = failure.cause.expect("a cause");
    assert_eq!(
        (cause.code.as_str(), cause.hint.as_str()),
        ("execution_failed", "Use another one.")
    );
}

#[tokio::test]
async fn calls_run_in_parallel_up_to_the_limit() {
    let rig = Rig::new();
    let limits = ScriptLimits { parallel_max: MEETING, ..limits() };
    let code =
        "return (await Promise.all([1,2,3,4,5,6].map(n => servers.a.meet({ n })))).map(it => it.n)";
    let outcome = rig.run_within(code, limits).await;
    assert_eq!(returned(&outcome), json!([1, 2, 3, 4, 5, 6]));
    assert_eq!(rig.runner.n_running_max.load(Ordering::Relaxed), MEETING);
}

#[tokio::test]
async fn a_script_reports_the_calls_that_its_end_cancels() {
    let code = "servers.a.wait({}); servers.a.wait({}); sleep(1000);
        await servers.a.count({}); return 1";
    let outcome = Rig::new().run(code).await;
    assert_eq!(returned(&outcome), json!(1));
    assert_eq!(
        outcome.output,
        "[calls that were cancelled, because the script did not await them: 2]\n"
    );
}

#[tokio::test]
async fn a_script_reports_failures_that_it_did_not_see() {
    let code = "servers.git.fail({}); servers.git.fail({}).catch(() => {});
        [1, 2].forEach(async () => { await servers.git.fail({}) });
        const late = servers.git.fail({}); await servers.a.count({});
        try { await late } catch {}
        return 1";
    let outcome = Rig::new().run(code).await;
    assert_eq!(returned(&outcome), json!(1));
    let seen = "[failures that were not seen, because the script did not await them: 3]\n";
    assert_eq!(outcome.output, seen);
}

#[tokio::test]
async fn a_script_that_calls_too_often_gets_a_typed_failure() {
    let limits = ScriptLimits { calls_max: 2, ..limits() };
    let code = "for (;;) await servers.a.b({})";
    let outcome = Rig::new().run_within(code, limits).await;
    let ScriptEnd::Failed(failure) = outcome.end else { panic!("{outcome:?}") };
    let cause = failure.cause.expect("a cause");
    assert_eq!(cause.code, "limit_exceeded");
    assert_eq!(cause.details["value"], 2);
}

#[tokio::test]
async fn each_limit_ends_a_script() {
    let rig = Rig::new();
    let outcome = rig.run("for (;;) console.log('x'.repeat(100))").await;
    assert!(matches!(outcome.end, ScriptEnd::Limit(ScriptLimit::Output(1000))), "{outcome:?}");
    let outcome = rig.run("return 'x'.repeat(1 << 29).length").await;
    assert!(matches!(outcome.end, ScriptEnd::Limit(ScriptLimit::Memory(_))), "{outcome:?}");
    let outcome = rig.run("for (;;) await sleep(0)").await;
    assert!(matches!(outcome.end, ScriptEnd::Limit(ScriptLimit::Operations(_))), "{outcome:?}");
    let outcome = rig.run("await new Promise(() => {})").await;
    let ScriptEnd::Failed(failure) = outcome.end else { panic!("{outcome:?}") };
    assert_eq!(failure.kind, FailureKind::Stuck);
}

#[tokio::test]
async fn a_script_ends_at_its_time_limit_with_what_it_has_printed() {
    let limits = ScriptLimits { wall: Duration::from_millis(200), ..limits() };
    let outcome = Rig::new().run_within("console.log('a'); await sleep(10_000)", limits).await;
    assert!(matches!(outcome.end, ScriptEnd::Timeout { .. }), "{outcome:?}");
    assert_eq!(outcome.output, "a\n");
}

#[tokio::test]
async fn all_events_of_a_script_precede_its_answer() {
    let rig = Rig::new();
    let context = ScriptContext { token: Some("7".to_owned()), ..rig.context() };
    let code = "await servers.a.count({}); for (let n = 2; n < 9; n++) progress(n); return 0";
    let task = PreparedScript::new(code.to_owned(), None, limits(), REQUEST.to_owned(), context);
    let mut exchange = ScriptExchange::new(task, async |outcome| outcome);
    let mut reported = Vec::new();
    let outcome = loop {
        match exchange.next().await {
            ScriptStep::Event(event) => {
                let ScriptEvent::Progress(notice) = *event else { panic!("{event:?}") };
                let params: Value =
                    serde_json::from_str(notice.params().expect("parameters")).expect("JSON");
                reported.push(params["progress"].as_f64().expect("a number"));
            }
            ScriptStep::Answer(outcome) => break outcome,
        }
    };
    assert_eq!(returned(&outcome), 0);
    assert_eq!(reported, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
}

const ASKING: &str =
    "const [a, who, t] = [await servers.a.count({ n: 1 }), await servers.a.ask({}), Date.now()];
    console.log('twice?'); const r = Math.random(); const b = await servers.a.count({ r, t });
    return [a.n, who.name, b.r === r, b.t === t]";

#[tokio::test]
async fn a_suspended_script_goes_on_with_the_answer_and_calls_nothing_again() {
    let rig = Rig::new();
    let outcome = rig.run(ASKING).await;
    let ScriptEnd::Suspended(question) = outcome.end else { panic!("{outcome:?}") };
    assert!(question.contains(r#""2.name":{"method":"elicitation/create""#), "{question}");

    let answered = rig.resume(&question, &json!({ "2.name": "Ada" })).await.expect("a script");
    let outcome = finish(answered).await;
    assert_eq!(returned(&outcome), json!([1, "Ada", true, true]));
    assert_eq!(outcome.output, "twice?\n");
    assert_eq!((rig.runner.n_runs("count"), rig.runner.n_runs("ask")), (2, 2));

    let again = rig.resume(&question, &json!({})).await;
    assert!(matches!(again, Err(ResumeError::Unknown)), "the record is deleted at the end");
}

#[tokio::test]
async fn a_script_without_an_answer_asks_again() {
    let rig = Rig::new();
    let outcome = rig.run(ASKING).await;
    let ScriptEnd::Suspended(question) = outcome.end else { panic!("{outcome:?}") };
    let unanswered = rig.resume(&question, &json!({})).await.expect("a script");
    let outcome = finish(unanswered).await;
    let ScriptEnd::Suspended(second) = outcome.end else { panic!("{outcome:?}") };
    assert_eq!(second, question);
    let answered = rig.resume(&second, &json!({ "2.name": "Bo" })).await.expect("a script");
    assert_eq!(returned(&finish(answered).await)[1], "Bo");
    assert_eq!(rig.runner.n_runs("ask"), 2);
}

#[tokio::test]
async fn a_question_to_a_caller_that_cannot_answer_fails_its_call() {
    let rig = Rig::new();
    let context = ScriptContext { can_suspend: false, ..rig.context() };
    let code = "try { await servers.a.ask({}) } catch (e) { return e.message }".to_owned();
    let task = PreparedScript::new(code, None, limits(), REQUEST.to_owned(), context);
    let value = returned(&finish(task).await);
    assert_eq!(value, "the tool asks for input, which the caller of this script cannot give");
}

#[tokio::test]
async fn only_the_same_request_goes_on_with_a_script_and_only_one_at_a_time() {
    let rig = Rig::new();
    let outcome = rig.run(ASKING).await;
    let ScriptEnd::Suspended(question) = outcome.end else { panic!("{outcome:?}") };
    let state: Value = serde_json::from_str(&question).expect("JSON");
    let state = state["requestState"].as_str().expect("a state");
    let other = PreparedScript::resume(state, "another", "{}", rig.context()).await;
    assert!(matches!(other, Err(ResumeError::OtherRequest)));
    let first = rig.resume(&question, &json!({})).await.expect("a script");
    let second = rig.resume(&question, &json!({})).await;
    assert!(matches!(second, Err(ResumeError::Running)));
    drop(first);
    assert!(rig.resume(&question, &json!({})).await.is_ok());
}

#[tokio::test]
async fn a_script_that_finds_no_place_to_go_on_can_go_on_later() {
    let rig = Rig { places: Admission::new(1), ..Rig::new() };
    let outcome = rig.run(ASKING).await;
    let ScriptEnd::Suspended(question) = outcome.end else { panic!("{outcome:?}") };
    let place = rig.places.admit(Holder::unknown()).await.expect("it is open");
    let answers = json!({ "2.name": "Ada" });
    let mut answered = rig.resume(&question, &answers).await.expect("a script");
    answered.set_admission_timeout(Duration::ZERO);
    let outcome = finish(answered).await;
    assert!(matches!(outcome.end, ScriptEnd::NotStarted(_)) && outcome.is_kept, "{outcome:?}");
    drop(place);
    let answered = rig.resume(&question, &answers).await.expect("it is kept");
    assert_eq!(returned(&finish(answered).await), json!([1, "Ada", true, true]));
    assert_eq!(rig.runner.n_runs("count"), 2);
}

#[tokio::test]
async fn only_the_calls_that_are_made_count() {
    let code = "const steps = Array(100).fill({ tool_id: 'a/count' });
        try { await runChain(steps) } catch (e) { return [e.code, await servers.a.count({ n: 1 })] }";
    let outcome = Rig::new().run(code).await;
    assert_eq!(returned(&outcome), json!(["limit_exceeded", { "n": 1 }]));
    assert_eq!(outcome.n_calls, 1);
}

#[tokio::test]
async fn a_record_survives_its_process_and_only_its_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().expect("a directory");
    let records = || ScriptRecords::in_directory(Some(directory.path()));
    let rig = Rig { records: records(), ..Rig::new() };
    let outcome = rig.run(ASKING).await;
    let ScriptEnd::Suspended(question) = outcome.end else { panic!("{outcome:?}") };
    let files = || std::fs::read_dir(directory.path().join("scripts")).expect("there").flatten();
    let modes: Vec<u32> =
        files().map(|file| file.metadata().expect("there").permissions().mode() & 0o777).collect();
    assert_eq!(modes, [0o600]);

    let rig = Rig { records: records(), ..rig };
    let answered = rig.resume(&question, &json!({ "2.name": "Ada" })).await.expect("a script");
    assert_eq!(returned(&finish(answered).await), json!([1, "Ada", true, true]));
    assert_eq!(rig.runner.n_runs("count"), 2);
    assert_eq!(files().count(), 0, "the record is deleted at the end");
}

#[tokio::test]
async fn a_call_that_was_in_flight_when_its_process_ended_is_of_unknown_outcome() {
    let directory = tempfile::tempdir().expect("a directory");
    let records = || ScriptRecords::in_directory(Some(directory.path()));
    let rig = Rig { records: records(), ..Rig::new() };
    let mut task =
        rig.task("return [await servers.a.count({}), await servers.a.wait({})]", limits());
    let state = task.record_from_start().await.expect("written");
    let (sender, _events) = mpsc::channel(1);
    let mut run = Box::pin(task.run(sender));
    while rig.runner.n_runs("wait") == 0 {
        tokio::select! {
            _ = &mut run => panic!("it waits"),
            () = tokio::task::yield_now() => {}
        }
    }
    drop(run);

    let rig = Rig { records: records(), ..rig };
    let resumed =
        PreparedScript::resume(&state, REQUEST, "{}", rig.context()).await.expect("a script");
    assert_eq!(returned(&finish(resumed).await), json!([{}, "outcome unknown"]));
    assert_eq!(rig.runner.n_runs("count"), 1);
}

#[tokio::test]
async fn a_script_that_diverges_from_its_record_is_ended() {
    let rig = Rig::new();
    let outcome = rig.run(ASKING).await;
    let ScriptEnd::Suspended(question) = outcome.end else { panic!("{outcome:?}") };
    let state: Value = serde_json::from_str(&question).expect("JSON");
    let state = state["requestState"].as_str().expect("a state");
    let (file, text) = rig.records.take(state).await.expect("a record");
    let text = String::from_utf8(text).expect("text").replace("count({ n: 1 })", "count({ n: 2 })");
    let changed = rig.records.create(text.into_bytes()).await.expect("room");
    let state = changed.state();
    drop((file, changed));
    let task =
        PreparedScript::resume(&state, REQUEST, "{}", rig.context()).await.expect("a script");
    let outcome = finish(task).await;
    assert!(matches!(outcome.end, ScriptEnd::Diverged(1)), "{outcome:?}");
}
