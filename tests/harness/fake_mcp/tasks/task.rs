//! A task and its progress, as each era represents it.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::message::{self, Members, RpcError};

/// The default lifetime of a task in milliseconds. No task is ever removed.
const TTL_MS: u64 = 60_000;

/// The poll interval for clients, in milliseconds.
const POLL_MS: u64 = 10;

/// The time of all events.
const NOW: &str = "2026-07-28T00:00:00Z";

/// The arguments of a task.
#[derive(Debug, Deserialize)]
#[serde(default)]
pub(super) struct TaskArguments {
    pub(super) steps: VecDeque<TaskStep>,
    fails: Option<TaskFailure>,
    pub(super) at_once: bool,
    lags: bool,
    value: Value,
}

impl Default for TaskArguments {
    fn default() -> Self {
        let steps = [TaskStep::Working, TaskStep::Completed].into();
        Self { steps, fails: None, at_once: false, lags: false, value: Value::Null }
    }
}

/// A step of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TaskStep {
    Working,
    InputRequired,
    /// The task has ended, possibly with an error.
    Completed,
    #[serde(skip)]
    Cancelled,
}

/// A kind of failure of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TaskFailure {
    /// The tool reports the error in its result.
    Tool,
    /// The request fails; there is no result.
    Rpc,
}

/// A task, or a call that runs as one.
#[derive(Debug)]
pub(crate) struct Task {
    pub(super) id: String,
    /// The current step and the remaining ones.
    plan: TaskArguments,
    ttl_ms: u64,
    /// The answers of the client, by the key of the question.
    answers: BTreeMap<String, Box<RawValue>>,
    /// The current question is answered, but this is not visible yet.
    is_lagging: bool,
}

impl Task {
    /// Returns a task without an id, which it gets when the client wants a task.
    pub(super) fn new(plan: TaskArguments, ttl_ms: Option<u64>) -> Self {
        let ttl_ms = ttl_ms.unwrap_or(TTL_MS);
        Self { id: String::new(), plan, ttl_ms, answers: BTreeMap::new(), is_lagging: false }
    }

    pub(super) fn step(&self) -> TaskStep {
        self.plan.steps.front().copied().unwrap_or(TaskStep::Completed)
    }

    fn is_over(&self) -> bool {
        matches!(self.step(), TaskStep::Completed | TaskStep::Cancelled)
    }

    /// Returns whether only a cancellation ends the task.
    pub(super) fn is_stuck(&self) -> bool {
        self.step() == TaskStep::Working && self.plan.steps.len() == 1
    }

    /// Advances, unless this is the last step.
    pub(super) fn advance(&mut self) {
        if self.plan.steps.len() > 1 {
            self.plan.steps.pop_front();
        }
    }

    /// Returns the current step and advances, unless the client must answer first.
    pub(super) fn get(&mut self, is_modern: bool) -> String {
        let shown = self.report(is_modern, self.step());
        if self.is_lagging {
            self.settle();
        } else if !is_modern || self.step() != TaskStep::InputRequired {
            self.advance();
        }
        if is_modern { with_result_type(shown, "complete") } else { shown.to_string() }
    }

    pub(super) fn cancel(&mut self, is_modern: bool) -> Result<String, RpcError> {
        if !self.is_over() {
            self.plan.steps = [TaskStep::Cancelled].into();
        } else if !is_modern {
            return Err(RpcError::invalid("The task has ended already"));
        }
        let report = self.report(is_modern, self.step()).to_string();
        Ok(if is_modern { "{}".to_owned() } else { report })
    }

    /// Accepts the answer to the current question; ignores anything else.
    pub(super) fn update(&mut self, params: &Members) -> Result<String, RpcError> {
        let mut new: BTreeMap<String, Box<RawValue>> = params.required("inputResponses")?;
        let is_asked = self.step() == TaskStep::InputRequired && !self.is_lagging;
        if let Some(answer) = new.remove(&self.key()).filter(|_| is_asked) {
            self.answer(format!(r#"{{"result":{answer}}}"#))?;
            if !self.plan.lags {
                self.settle();
            }
        }
        Ok("{}".to_owned())
    }

    /// Accepts the answer to the current question, in the client's notation.
    pub(super) fn answer(&mut self, answer: String) -> Result<(), RpcError> {
        let answer = RawValue::from_string(answer);
        let answer = answer.map_err(|error| RpcError::invalid(error.to_string()))?;
        self.answers.insert(self.key(), answer);
        self.is_lagging = true;
        Ok(())
    }

    /// Leaves the answered question.
    pub(super) fn settle(&mut self) {
        self.is_lagging = false;
        if self.step() != TaskStep::InputRequired {
            return; // The task was cancelled meanwhile.
        }
        if self.plan.steps.len() == 1 {
            self.plan.steps.push_back(TaskStep::Completed);
        }
        self.advance();
    }

    /// Returns the key of the current question, unique in this task.
    fn key(&self) -> String {
        match self.answers.len() - usize::from(self.is_lagging) {
            0 => "who".to_owned(),
            n_before => format!("who_{}", n_before + 1),
        }
    }

    /// Returns the task at a step, in the format of an era.
    pub(super) fn report(&self, is_modern: bool, step: TaskStep) -> Value {
        let status = match (step, self.plan.fails) {
            (TaskStep::Working, _) => "working",
            (TaskStep::InputRequired, _) => "input_required",
            (TaskStep::Cancelled, _) => "cancelled",
            (TaskStep::Completed, Some(TaskFailure::Rpc)) => "failed",
            (TaskStep::Completed, Some(TaskFailure::Tool)) if !is_modern => "failed",
            (TaskStep::Completed, _) => "completed",
        };
        let mut report = json!({
            "taskId": self.id, "status": status, "createdAt": NOW, "lastUpdatedAt": NOW,
        });
        if status == "failed" {
            report["statusMessage"] = json!("the job failed");
        }
        let [ttl, poll] =
            if is_modern { ["ttlMs", "pollIntervalMs"] } else { ["ttl", "pollInterval"] };
        report[ttl] = json!(self.ttl_ms);
        report[poll] = json!(POLL_MS);
        match (step, self.result()) {
            _ if !is_modern => {}
            (TaskStep::InputRequired, _) => {
                let params: Value = serde_json::from_str(&question()).unwrap_or_default();
                let question = json!({ "method": "elicitation/create", "params": params });
                report["inputRequests"] = json!({ (self.key()): question });
            }
            (TaskStep::Completed, Ok(result)) => {
                report["result"] = serde_json::from_str(&result).unwrap_or_default();
            }
            (TaskStep::Completed, Err(error)) => {
                report["error"] = json!({ "code": error.code, "message": error.message });
            }
            (TaskStep::Working | TaskStep::Cancelled, _) => {}
        }
        report
    }

    /// Returns the result; without a task for the client, it has no id.
    pub(super) fn result(&self) -> Result<String, RpcError> {
        let report = json!({
            "taskId": Some(&self.id).filter(|id| !id.is_empty()),
            "answers": self.answers,
            "value": self.plan.value,
        });
        let report = message::data_result(&report.to_string());
        match self.plan.fails {
            None => Ok(report),
            Some(TaskFailure::Tool) => Ok(report.replacen('{', r#"{"isError":true,"#, 1)),
            Some(TaskFailure::Rpc) => Err(RpcError::new(-32050, "the job failed")),
        }
    }
}

/// Adds `resultType` to a result.
pub(super) fn with_result_type(mut result: Value, kind: &str) -> String {
    result["resultType"] = json!(kind);
    result.to_string()
}

/// Returns the question for the client.
pub(super) fn question() -> String {
    let name = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    json!({ "mode": "form", "message": "Who?", "requestedSchema": name }).to_string()
}
