use serde_json::Value;

use super::*;
use crate::era::{TranslatedResult, for_legacy};

fn request(method: &str) -> Message {
    Message::request(method, Some(r#"{"taskId":"t","x":1e400,"_meta":{"a":1}}"#))
}

fn answer(result: &str) -> Message {
    let text = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#);
    Message::parse(text.into()).expect("a message")
}

fn error(code: i64) -> Message {
    let error = format!(r#"{{"code":{code},"message":"m"}}"#);
    Message::parse(Message::error("7", &error)).expect("a message")
}

/// A request of a client, and its steps.
struct Steps {
    request: Message,
    task: TaskRequest,
    step: Message,
}

impl Steps {
    fn of(client: Era, method: &str) -> Self {
        let request = request(method);
        let mut task = TaskRequest::of(&request, client).expect(method);
        let step = task.step(&request, &[]);
        Self { request, task, step }
    }

    fn method(&self) -> &str {
        self.step.method().expect("a request")
    }

    /// Passes in an answer that leads to another step; returns the questions and the pause.
    fn goes_on(&mut self, answer: &Message, responses: &[(&str, &str)]) -> (Vec<String>, Duration) {
        match self.task.advance(answer, None) {
            TaskTurn::Next { questions, pause } => {
                for (_, question) in &questions.questions {
                    let meta = question.part(MessagePart::Meta);
                    assert_eq!(
                        meta,
                        Some(r#"{"io.modelcontextprotocol/related-task":{"taskId":"t"}}"#)
                    );
                }
                let responses: Vec<_> = responses
                    .iter()
                    .map(|(key, result)| ((*key).to_owned(), (*result).to_owned()))
                    .collect();
                self.step = self.task.step(&self.request, &responses);
                (questions.questions.into_iter().map(|(key, _)| key).collect(), pause)
            }
            TaskTurn::Answer(answer) => panic!("{answer:?}"),
        }
    }

    /// Passes in the last answer and returns the client's answer.
    fn ends(&mut self, answer: &Message) -> Value {
        match self.task.advance(answer, Some(r#"{"name":"s"}"#)) {
            TaskTurn::Answer(answer) => serde_json::from_slice(answer.bytes()).expect("JSON"),
            TaskTurn::Next { .. } => panic!("another step"),
        }
    }
}

#[test]
fn a_step_is_the_request_with_another_method() {
    let steps = Steps::of(Era::Legacy, task::RESULT);
    assert_eq!(
        steps.step.bytes(),
        r#"{"jsonrpc":"2.0","id":0,"method":"tasks/get","params":{"taskId":"t","x":1e400,"_meta":{"a":1}}}"#
    );
}

#[test]
fn a_method_without_a_counterpart_in_the_other_era_is_not_a_task_request() {
    for (client, method) in [
        (Era::Legacy, task::LIST),
        (Era::Legacy, task::UPDATE),
        (Era::Modern, task::LIST),
        (Era::Modern, task::RESULT),
        (Era::Modern, "tasks/other"),
    ] {
        assert!(TaskRequest::of(&request(method), client).is_none(), "{method}");
    }
}

#[test]
fn a_legacy_client_receives_the_state_of_a_task_without_its_result() {
    for (task, expected) in [
        (
            r#"{"resultType":"complete","taskId":"t","status":"working","createdAt":"a","lastUpdatedAt":"b","ttlMs":5,"pollIntervalMs":7,"_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#,
            r#"{"taskId":"t","status":"working","createdAt":"a","lastUpdatedAt":"b","ttl":5,"pollInterval":7}"#,
        ),
        (
            r#"{"taskId":"t","status":"completed","ttlMs":null,"result":{"content":[]}}"#,
            r#"{"taskId":"t","status":"completed","ttl":null}"#,
        ),
        (
            r#"{"taskId":"t","status":"completed","result":{"isError":true}}"#,
            r#"{"taskId":"t","status":"failed","ttl":null}"#,
        ),
        (
            r#"{"taskId":"t","status":"input_required","ttlMs":1,"inputRequests":{"a":{}},"_meta":{"x":1}}"#,
            r#"{"taskId":"t","status":"input_required","_meta":{"x":1},"ttl":1}"#,
        ),
    ] {
        let seen = Steps::of(Era::Legacy, task::GET).ends(&answer(task));
        assert_eq!(seen["result"].to_string(), sorted(expected), "{task}");
    }
}

/// Returns JSON text with its members in the order of a [`Value`].
fn sorted(text: &str) -> String {
    serde_json::from_str::<Value>(text).expect("JSON").to_string()
}

#[test]
fn a_legacy_client_waits_for_a_task_result_while_metamcp_polls() {
    let mut steps = Steps::of(Era::Legacy, task::RESULT);
    let working = |rest: &str| answer(&format!(r#"{{"taskId":"t","status":"working"{rest}}}"#));
    assert_eq!(steps.goes_on(&working(""), &[]), (vec![], POLL));
    let soon = working(r#","pollIntervalMs":0"#);
    assert_eq!(steps.goes_on(&soon, &[]), (vec![], POLL_MIN));
    let late = working(r#","pollIntervalMs":90000"#);
    assert_eq!(steps.goes_on(&late, &[]), (vec![], Duration::from_secs(90)));
    assert_eq!(steps.method(), task::GET);

    let done = answer(
        r#"{"status":"completed","result":{"resultType":"complete","content":[],"structuredContent":[1],"_meta":{"x":1}}}"#,
    );
    assert_eq!(
        steps.ends(&done)["result"],
        serde_json::json!({
            "content": [{ "type": "text", "text": "[1]" }],
            "_meta": { "x": 1, "io.modelcontextprotocol/related-task": { "taskId": "t" } },
        })
    );
}

#[test]
fn waiting_for_the_result_of_a_failed_or_cancelled_task_returns_an_error() {
    let ended = |rest: &str| {
        Steps::of(Era::Legacy, task::RESULT)
            .ends(&answer(&format!(r#"{{"taskId":"t","status":{rest}}}"#)))
    };
    let failed = ended(r#""failed","error":{"code":-32050,"message":"m","data":[1]}"#);
    assert_eq!(
        (&failed["error"]["code"], &failed["error"]["data"]),
        (&(-32050).into(), &json!([1]))
    );
    for nothing in ["", r#","error":7"#, r#","error":{}"#] {
        let failed = ended(&format!(r#""failed"{nothing}"#));
        assert_eq!(failed["error"]["data"]["code"], "TASK_FAILED", "{nothing}");
    }
    let lacking = r#""failed","error":{"code":-32021,"message":"m","data":{"a":1}}"#;
    let lacking = &ended(lacking)["error"];
    assert_eq!((&lacking["code"], &lacking["data"]), (&(-32602).into(), &json!({ "a": 1 })));
    for method in [task::GET, task::RESULT, task::CANCEL] {
        let lacking = Steps::of(Era::Legacy, method).ends(&error(-32021));
        assert_eq!(lacking["error"]["code"], -32602, "{method}");
    }
    assert_eq!(ended(r#""cancelled""#)["error"]["data"]["code"], "TASK_CANCELLED");
    assert_eq!(Steps::of(Era::Legacy, task::RESULT).ends(&error(-32602))["error"]["code"], -32602);
}

#[test]
fn each_question_of_a_task_is_asked_once_even_if_its_server_repeats_it() {
    const ASKS: &str =
        r#"{"taskId":"t","status":"input_required","pollIntervalMs":80,"inputRequests":{"KEYS"}}"#;
    let asks = |keys: &[&str]| {
        let all = keys.iter().map(|key| format!(r#""{key}":{{"method":"roots/list"}}"#));
        answer(&ASKS.replace("\"KEYS\"", &all.collect::<Vec<_>>().join(",")))
    };
    let mut steps = Steps::of(Era::Legacy, task::RESULT);

    let asked = steps.goes_on(&asks(&["who"]), &[("who", r#"{"a":1e400}"#)]);
    assert_eq!(asked, (vec!["who".to_owned()], Duration::ZERO));
    let sent = String::from_utf8_lossy(steps.step.bytes()).into_owned();
    assert_eq!(steps.method(), task::UPDATE);
    assert!(sent.contains(r#""inputResponses":{"who":{"a":1e400}}"#), "{sent}");

    steps.goes_on(&answer(r#"{"resultType":"complete"}"#), &[]);
    assert_eq!(steps.method(), task::GET);
    assert!(!String::from_utf8_lossy(steps.step.bytes()).contains("inputResponses"));
    let lags = steps.goes_on(&asks(&["who"]), &[]);
    assert_eq!(lags, (vec![], Duration::from_millis(80)));
    assert_eq!(steps.method(), task::GET);
    let another = steps.goes_on(&asks(&["who", "where"]), &[("where", "{}")]);
    assert_eq!(another.0, ["where"]);
}

#[test]
fn cancelling_a_task_returns_its_state_to_a_legacy_client() {
    let is = |status: &str| answer(&format!(r#"{{"taskId":"t","status":"{status}"}}"#));
    for (status, expected) in [("cancelled", "cancelled"), ("working", "working")] {
        let mut steps = Steps::of(Era::Legacy, task::CANCEL);
        assert_eq!(steps.method(), task::GET);
        steps.goes_on(&is("working"), &[]);
        assert_eq!(steps.method(), task::CANCEL);
        steps.goes_on(&answer(r#"{"resultType":"complete"}"#), &[]);
        assert_eq!(steps.method(), task::GET);
        assert_eq!(steps.ends(&is(status))["result"]["status"], expected);
    }
    for status in ["completed", "failed", "cancelled"] {
        let seen = Steps::of(Era::Legacy, task::CANCEL).ends(&is(status));
        assert_eq!(seen["error"]["code"], -32602, "{status} before");
    }
    let mut steps = Steps::of(Era::Legacy, task::CANCEL);
    steps.goes_on(&is("working"), &[]);
    steps.goes_on(&answer("{}"), &[]);
    assert_eq!(steps.ends(&is("completed"))["error"]["code"], -32602, "meanwhile");
    assert_eq!(Steps::of(Era::Legacy, task::CANCEL).ends(&error(-32602))["error"]["code"], -32602);
}

#[test]
fn a_modern_client_finds_the_result_in_an_ended_task() {
    const ENDED: &str =
        r#"{"taskId":"t","status":"STATUS","createdAt":"a","ttl":5,"pollInterval":7}"#;
    for (status, outcome, expected, value) in [
        (
            "completed",
            answer(r#"{"content":[]}"#),
            "completed",
            r#"{"content":[],"resultType":"complete"}"#,
        ),
        (
            "failed",
            answer(r#"{"isError":true}"#),
            "completed",
            r#"{"isError":true,"resultType":"complete"}"#,
        ),
        ("failed", error(-32050), "failed", r#"{"code":-32050,"message":"m"}"#),
    ] {
        let mut steps = Steps::of(Era::Modern, task::GET);
        steps.goes_on(&answer(&ENDED.replace("STATUS", status)), &[]);
        assert_eq!(steps.method(), task::RESULT);
        let seen = steps.ends(&outcome)["result"].clone();
        let name = if expected == "failed" { "error" } else { "result" };
        assert_eq!((&seen["status"], seen[name].to_string()), (&expected.into(), sorted(value)));
        assert_eq!(
            (&seen["resultType"], &seen["ttlMs"], &seen["pollIntervalMs"], &seen["ttl"]),
            (&"complete".into(), &5.into(), &7.into(), &Value::Null)
        );
    }
}

#[test]
fn a_modern_client_finds_the_state_of_a_running_task() {
    for (status, has_questions) in
        [("working", false), ("cancelled", false), ("input_required", true)]
    {
        let doing = answer(&format!(r#"{{"taskId":"t","status":"{status}","statusMessage":"m"}}"#));
        let seen = Steps::of(Era::Modern, task::GET).ends(&doing)["result"].clone();
        assert_eq!((&seen["status"], &seen["statusMessage"]), (&status.into(), &"m".into()));
        assert_eq!((&seen["ttlMs"], &seen["resultType"]), (&Value::Null, &"complete".into()));
        assert_eq!(seen.get("inputRequests").is_some(), has_questions);
        assert_eq!(seen["_meta"][SERVER_INFO]["name"], "s");
    }
    assert_eq!(Steps::of(Era::Modern, task::GET).ends(&error(-32602))["error"]["code"], -32602);
}

#[test]
fn a_modern_client_gets_an_acknowledgement_for_every_known_task() {
    let known = answer(r#"{"taskId":"t","status":"working"}"#);
    let mut updating = Steps::of(Era::Modern, task::UPDATE);
    assert_eq!(updating.method(), task::GET);
    for seen in [updating.ends(&known), Steps::of(Era::Modern, task::CANCEL).ends(&known)] {
        assert_eq!(
            seen["result"],
            json!({ "resultType": "complete", "_meta": { SERVER_INFO: { "name": "s" } } })
        );
    }
    // Cancelling an ended task fails in the legacy era and succeeds in the modern one.
    let mut cancelling = Steps::of(Era::Modern, task::CANCEL);
    cancelling.goes_on(&error(-32602), &[]);
    assert_eq!(cancelling.method(), task::GET);
    assert_eq!(cancelling.ends(&known)["result"]["resultType"], "complete");

    let mut unknown = Steps::of(Era::Modern, task::CANCEL);
    unknown.goes_on(&error(-32602), &[]);
    assert_eq!(unknown.ends(&error(-32602))["error"]["code"], -32602);
    for method in [task::UPDATE, task::CANCEL] {
        assert_eq!(Steps::of(Era::Modern, method).ends(&error(-32601))["error"]["code"], -32601);
    }
}

#[test]
fn a_created_task_is_reported_in_the_form_of_the_clients_era() {
    let created = r#"{"resultType":"task","taskId":"t","status":"working","ttlMs":5,"pollIntervalMs":7,"_meta":{"x":1}}"#;
    let result = ObjectMembers::read(created).expect("an object");
    assert_eq!(
        legacy_created(&result).as_deref(),
        Some(
            r#"{"task":{"taskId":"t","status":"working","ttl":5,"pollInterval":7},"_meta":{"x":1}}"#
        )
    );
    let seen = |text| for_legacy(&answer(text), method::TOOLS_CALL, TaskSupport::Optional);
    assert!(matches!(seen(created), TranslatedResult::Task(_)));
    let direct = r#"{"resultType":"complete","content":[]}"#;
    assert_eq!(legacy_created(&ObjectMembers::read(direct).expect("an object")), None);
    assert!(matches!(seen(direct), TranslatedResult::Final(_)));

    assert_eq!(
        modern_created(r#"{"task":{"taskId":"t","status":"working","ttl":5},"_meta":{"x":1}}"#)
            .as_deref(),
        Some(r#"{"taskId":"t","status":"working","ttlMs":5,"_meta":{"x":1},"resultType":"task"}"#)
    );
    assert_eq!(modern_created(r#"{"content":[]}"#), None);
}

#[test]
fn removing_tasks_from_a_call_changes_nothing_else() {
    let without = |text: &str| {
        let call = Message::parse(text.to_owned().into()).expect("a message");
        String::from_utf8_lossy(without_tasks(call).bytes()).into_owned()
    };
    let plain = r#"{ "jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"task" ,"arguments":{"task":{}}}}"#;
    assert_eq!(without(plain), plain, "byte for byte");
    assert_eq!(
        without(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","task":{"ttl":1},"x":1e400}}"#
        ),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","x":1e400}}"#
    );
    let taking = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}"#;
    for taking in [taking.to_owned(), taking.replace('/', r"\/")] {
        let left = without(&taking).replace(r"\/", "/");
        assert_eq!(
            left,
            taking
                .replace(r"\/", "/")
                .replace(r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#, "")
        );
    }
}
