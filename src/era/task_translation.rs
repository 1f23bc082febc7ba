//! Tasks between the eras: one era needs several steps for some requests of the other.
//!
//! | client request | legacy client, modern server | modern client, legacy server |
//! |---|---|---|
//! | call | `task` declares the extension; the server decides | `task` if the tool requires it |
//! | `tasks/get` | the same | the same; then the result of a task that has ended |
//! | `tasks/result` | `tasks/get` until the end, `tasks/update` with input | unknown |
//! | `tasks/update` | unknown | `tasks/get`: such a server asks for no input |
//! | `tasks/cancel` | the same between two `tasks/get`, unless ended | the same, even if ended |
//! | `tasks/list` | refused: the extension has no list | unknown |

use std::{borrow::Cow, collections::BTreeSet, time::Duration};

use serde_json::json;

use super::{
    InputRequired, decorate,
    input_required::set_responses,
    result_translation::{legacy_error, narrow},
};
use crate::protocol::{
    Era, Message, ObjectMembers, RpcError,
    client_meta::{CAPABILITIES, SERVER_INFO, TASKS},
    jsonrpc::MessagePart,
    payloads::method,
    rpc_error::{INTERNAL_ERROR, INVALID_PARAMS},
    task,
};

/// The polling interval for a task whose server states none.
const POLL: Duration = Duration::from_secs(1);

/// The shortest polling interval, even if a server states a shorter one.
const POLL_MIN: Duration = Duration::from_millis(50);

/// The ways in which a call can be a task of a server of the other era.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// No tasks: the server has none, or the client could not find them again.
    #[default]
    Forbidden,
    /// A task if the client asks for it.
    Optional,
    /// A task always: the tool requires it.
    Required,
}

/// A request about a task, translated for a server of the other era.
#[derive(Debug)]
pub struct TaskRequest {
    client_method: TaskMethod,
    /// The id of the task, JSON text.
    id: String,
    /// The method of the current step.
    step: &'static str,
    /// `true` once the server was asked to cancel the task.
    is_cancelled: bool,
    /// The answer to an earlier step that the last step needs.
    kept: Option<Message>,
    /// The keys of answered questions, which the server may not have processed yet.
    answered: BTreeSet<String>,
}

/// The request of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskMethod {
    LegacyGet,
    LegacyResult,
    LegacyCancel,
    ModernGet,
    ModernUpdate,
    ModernCancel,
}

/// The outcome of a step.
#[derive(Debug)]
pub enum TaskTurn {
    /// The final answer for the client.
    Answer(Message),
    /// Another step after a pause, with the answers to these questions.
    Next {
        /// The server's questions.
        questions: InputRequired,
        /// The time to wait before the step.
        pause: Duration,
    },
}

impl TaskRequest {
    /// Returns the state for a client's request about a task, if the other era has an equivalent.
    pub fn of(request: &Message, client: Era) -> Option<Self> {
        let (client_method, step) = match (client, request.method()?) {
            (Era::Legacy, task::GET) => (TaskMethod::LegacyGet, task::GET),
            (Era::Legacy, task::RESULT) => (TaskMethod::LegacyResult, task::GET),
            (Era::Legacy, task::CANCEL) => (TaskMethod::LegacyCancel, task::GET),
            (Era::Modern, task::GET) => (TaskMethod::ModernGet, task::GET),
            (Era::Modern, task::UPDATE) => (TaskMethod::ModernUpdate, task::GET),
            (Era::Modern, task::CANCEL) => (TaskMethod::ModernCancel, task::CANCEL),
            _ => return None,
        };
        let id = json!(task::id_of(request)).to_string();
        let (is_cancelled, kept, answered) = (false, None, BTreeSet::new());
        Some(Self { client_method, id, step, is_cancelled, kept, answered })
    }

    /// Returns the next step of `request`, in the format of the client's era with a method of the
    /// server's. `responses` are the answers to the server's questions, by key.
    pub fn step(&mut self, request: &Message, responses: &[(String, String)]) -> Message {
        if !responses.is_empty() {
            self.step = task::UPDATE;
        }
        let mut whole = ObjectMembers::read(request.text()).unwrap_or_default();
        whole.set("method", json!(self.step).to_string());
        let step = whole.to_string();
        let step = Message::parse_own(step.into()).unwrap_or_else(|_| request.clone());
        self.answered.extend(responses.iter().map(|(key, _)| key.clone()));
        step.with_params(|params| set_responses(params, responses))
    }

    /// Handles the server's answer to the current step. `server_info` is the server's description
    /// of itself, JSON text.
    pub fn advance(&mut self, answer: &Message, server_info: Option<&str>) -> TaskTurn {
        let result = answer.part(MessagePart::Result).and_then(ObjectMembers::read);
        let Some(result) = result else { return self.failed(answer) };
        let status = result.string("status");
        let has_ended = matches!(status.as_deref(), Some("completed" | "failed"));
        match (self.client_method, self.step) {
            (TaskMethod::LegacyResult, task::UPDATE) => self.again(task::GET, POLL_MIN),
            (TaskMethod::LegacyResult, _) => self.poll(answer, &result),
            (TaskMethod::LegacyCancel, task::CANCEL) => {
                self.is_cancelled = true;
                self.again(task::GET, Duration::ZERO)
            }
            // A task that was cancelled before cannot be cancelled again.
            (TaskMethod::LegacyCancel, _)
                if has_ended || status.as_deref() == Some("cancelled") && !self.is_cancelled =>
            {
                refusal(&task::ended(&status.unwrap_or_default()))
            }
            (TaskMethod::LegacyCancel, _) if !self.is_cancelled => {
                self.again(task::CANCEL, Duration::ZERO)
            }
            (TaskMethod::LegacyGet | TaskMethod::LegacyCancel, _) => {
                TaskTurn::Answer(answer.with(MessagePart::Result, &legacy_task(result).to_string()))
            }
            (TaskMethod::ModernGet, task::GET) if has_ended => {
                self.kept = Some(answer.clone());
                self.again(task::RESULT, Duration::ZERO)
            }
            (TaskMethod::ModernGet, task::GET) => {
                let translated = modern_task(result).to_string();
                let translated = decorate(&translated, task::GET, server_info);
                TaskTurn::Answer(answer.with(MessagePart::Result, &translated))
            }
            (TaskMethod::ModernGet, _) => self.ended(answer, server_info),
            (TaskMethod::ModernUpdate | TaskMethod::ModernCancel, _) => {
                let acknowledged = decorate("{}", self.step, server_info);
                TaskTurn::Answer(answer.with(MessagePart::Result, &acknowledged))
            }
        }
    }

    fn again(&mut self, step: &'static str, pause: Duration) -> TaskTurn {
        self.step = step;
        TaskTurn::Next { questions: InputRequired::default(), pause }
    }

    /// Handles an error, or a result that is not an object.
    fn failed(&mut self, answer: &Message) -> TaskTurn {
        let code = answer.part(MessagePart::Error).and_then(RpcError::code_of);
        match (self.client_method, self.step) {
            // The call has failed, and its error is the requested outcome.
            (TaskMethod::ModernGet, task::RESULT) if code.is_some() => self.ended(answer, None),
            // The task is unknown or has ended; the latter is not an error in the client's era.
            (TaskMethod::ModernCancel, task::CANCEL) if code == Some(INVALID_PARAMS) => {
                self.kept = Some(answer.clone());
                self.again(task::GET, Duration::ZERO)
            }
            (TaskMethod::LegacyGet | TaskMethod::LegacyResult | TaskMethod::LegacyCancel, _) => {
                TaskTurn::Answer(legacy_failure(answer))
            }
            _ => TaskTurn::Answer(self.kept.take().unwrap_or_else(|| answer.clone())),
        }
    }

    /// Handles the state of a modern server's task for whose result a legacy client waits.
    fn poll(&mut self, answer: &Message, doing: &ObjectMembers<'_>) -> TaskTurn {
        let part = |name| doing.get(name).unwrap_or("{}").to_owned();
        match doing.string("status").as_deref() {
            Some("completed") => {
                let result = part("result");
                let mut result = ObjectMembers::read(&result).unwrap_or_default();
                narrow(&mut result, method::TOOLS_CALL);
                task::relate(&mut result, &self.id);
                TaskTurn::Answer(answer.with(MessagePart::Result, &result.to_string()))
            }
            Some("failed") => {
                let id = answer.part(MessagePart::Id).unwrap_or("null");
                let error = part("error");
                if RpcError::code_of(&error).is_none() {
                    let text = "the task failed, and its server gave no reason";
                    return refusal(&RpcError::new(INTERNAL_ERROR, "TASK_FAILED", text));
                }
                let error = Message::parse_own(Message::error(id, &error));
                let error = error.unwrap_or_else(|_| answer.clone());
                TaskTurn::Answer(legacy_failure(&error))
            }
            Some("cancelled") => {
                let text = "the task was cancelled: it has no result";
                refusal(&RpcError::new(INTERNAL_ERROR, "TASK_CANCELLED", text))
            }
            Some("input_required") => {
                let mut questions = InputRequired::read(doing);
                questions.questions.retain(|(key, _)| !self.answered.contains(key));
                for (_, question) in &mut questions.questions {
                    *question = question.with_params(|params| task::relate(params, &self.id));
                }
                let pause =
                    if questions.questions.is_empty() { interval(doing) } else { Duration::ZERO };
                TaskTurn::Next { questions, pause }
            }
            Some(_) | None => self.again(task::GET, interval(doing)),
        }
    }

    /// Returns a legacy server's completed task together with its outcome.
    fn ended(&mut self, answer: &Message, server_info: Option<&str>) -> TaskTurn {
        let task = self.kept.take().unwrap_or_else(|| answer.clone());
        let Some(members) = task.part(MessagePart::Result).and_then(ObjectMembers::read) else {
            return TaskTurn::Answer(answer.clone());
        };
        let mut translated = modern_task(members);
        // A tool that reports a failure has a result, but in the legacy era its task has failed.
        // Source: MCP 2025-11-25 and SEP-2663, "Task Status".
        let (status, name, value) =
            match (answer.part(MessagePart::Result), answer.part(MessagePart::Error)) {
                (Some(result), _) => {
                    ("completed", "result", decorate(result, method::TOOLS_CALL, None))
                }
                (None, error) => ("failed", "error", error.unwrap_or("{}").to_owned()),
            };
        translated.set("status", json!(status).to_string());
        translated.set(name, value);
        let translated = decorate(&translated.to_string(), task::GET, server_info);
        TaskTurn::Answer(task.with(MessagePart::Result, &translated))
    }
}

/// Returns the polling interval that a server requests.
fn interval(task: &ObjectMembers<'_>) -> Duration {
    let ms = task.get("pollIntervalMs").and_then(|ms| ms.parse().ok());
    ms.map_or(POLL, Duration::from_millis).max(POLL_MIN)
}

/// Translates a modern server's error to the legacy era.
fn legacy_failure(answer: &Message) -> Message {
    match answer.part(MessagePart::Error) {
        Some(error) => legacy_error(answer, error, method::TOOLS_CALL),
        None => answer.clone(),
    }
}

fn refusal(error: &RpcError) -> TaskTurn {
    // The caller replaces the id by that of the client.
    let answer = Message::parse_own(error.render(Some("0")));
    TaskTurn::Answer(answer.unwrap_or_else(|_| Message::request(task::GET, None)))
}

/// Translates the state of a modern server's task to the legacy era.
fn legacy_task(mut task: ObjectMembers<'_>) -> ObjectMembers<'_> {
    if task.get("result").is_some_and(task::has_failed)
        && task.string("status").as_deref() == Some("completed")
    {
        task.set("status", "\"failed\"");
    }
    for name in ["resultType", "result", "error", "inputRequests"] {
        task.take(name);
    }
    task.edit_object("_meta", |meta| drop(meta.take(SERVER_INFO)));
    rename(&mut task, "ttlMs", "ttl");
    rename(&mut task, "pollIntervalMs", "pollInterval");
    if task.get("ttl").is_none() {
        task.set("ttl", "null");
    }
    task
}

/// Translates the state of a legacy server's task to the modern era.
fn modern_task(mut task: ObjectMembers<'_>) -> ObjectMembers<'_> {
    rename(&mut task, "ttl", "ttlMs");
    rename(&mut task, "pollInterval", "pollIntervalMs");
    if task.get("ttlMs").is_none() {
        task.set("ttlMs", "null");
    }
    if task.string("status").as_deref() == Some("input_required") {
        // The questions are sent as requests, and only to a client with its own connection.
        task.set("inputRequests", "{}");
    }
    task
}

fn rename(members: &mut ObjectMembers<'_>, from: &str, to: &str) {
    if let Some(value) = members.take(from).map(Cow::into_owned) {
        members.set(to, value);
    }
}

/// Returns a call without any mention of tasks, for a client that could not find them again.
pub fn without_tasks(call: Message) -> Message {
    // The slash may be escaped as `\/`, which ends in a slash as well.
    let is_taking = call.part(MessagePart::Meta).is_some_and(|meta| meta.contains("/tasks"));
    if !is_taking && !task::is_task_call(&call) {
        return call;
    }
    call.with_params(|params| {
        params.take("task");
        params.edit_object("_meta", |meta| {
            let Some(capabilities) = meta.get(CAPABILITIES).map(str::to_owned) else { return };
            let Some(mut capabilities) = ObjectMembers::read(&capabilities) else { return };
            capabilities.edit_object("extensions", |extensions| drop(extensions.take(TASKS)));
            // A request must declare capabilities, even if there are none.
            meta.set(CAPABILITIES, capabilities.to_string());
        });
    })
}

/// Returns the result of a call that a modern server turned into a task, for a legacy client.
/// Returns `None` if the server answered at once.
pub(super) fn legacy_created(result: &ObjectMembers<'_>) -> Option<String> {
    if result.string("resultType").as_deref() != Some("task") {
        return None;
    }
    let mut task = legacy_task(result.clone());
    let meta = task.take("_meta");
    let mut created = ObjectMembers::default();
    created.set("task", task.to_string());
    if let Some(meta) = meta {
        created.set("_meta", meta.into_owned());
    }
    Some(created.to_string())
}

/// Returns the result of a call that a legacy server turned into a task, for a modern client.
/// Returns `None` if the server answered at once.
pub(super) fn modern_created(result: &str) -> Option<String> {
    let mut result = ObjectMembers::read(result)?;
    let task = result.take("task")?;
    let mut created = modern_task(ObjectMembers::read(&task)?);
    for (name, value) in result.iter() {
        created.set(name, value.to_owned());
    }
    created.set("resultType", "\"task\"");
    Some(created.to_string())
}

#[cfg(test)]
mod tests;
