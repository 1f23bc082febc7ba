//! A job and its progress, as each era represents it.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::message::{self, Fault, Members};

/// The default lifetime of a task in milliseconds. No task is ever removed.
const TTL_MS: u64 = 60_000;

/// The poll interval for clients, in milliseconds.
const POLL_MS: u64 = 10;

/// The time of all events.
const NOW: &str = "2026-07-28T00:00:00Z";

/// The arguments of a job.
#[derive(Debug, Deserialize)]
#[serde(default)]
pub(super) struct Plan {
    pub(super) steps: VecDeque<Step>,
    fails: Option<Failure>,
    pub(super) at_once: bool,
    lags: bool,
    value: Value,
}

impl Default for Plan {
    fn default() -> Self {
        let steps = [Step::Working, Step::Completed].into();
        Self { steps, fails: None, at_once: false, lags: false, value: Value::Null }
    }
}

/// A step of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    Working,
    InputRequired,
    /// The job has ended, possibly with an error.
    Completed,
    #[serde(skip)]
    Cancelled,
}

/// A kind of failure of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Failure {
    /// The tool reports the error in its result.
    Tool,
    /// The request fails; there is no result.
    Rpc,
}

/// A task.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) id: String,
    /// The current step and the remaining ones.
    plan: Plan,
    ttl_ms: u64,
    /// The answers of the client, by the key of the question.
    answers: BTreeMap<String, Box<RawValue>>,
    /// The current question is answered, but this is not visible yet.
    is_lagging: bool,
}

impl Job {
    /// Returns a job, which gets its id when it becomes a task.
    pub(super) fn new(plan: Plan, ttl_ms: Option<u64>) -> Self {
        let ttl_ms = ttl_ms.unwrap_or(TTL_MS);
        Self { id: String::new(), plan, ttl_ms, answers: BTreeMap::new(), is_lagging: false }
    }

    pub(super) fn step(&self) -> Step {
        self.plan.steps.front().copied().unwrap_or(Step::Completed)
    }

    fn is_over(&self) -> bool {
        matches!(self.step(), Step::Completed | Step::Cancelled)
    }

    /// Returns whether only a cancellation ends the job.
    pub(super) fn is_stuck(&self) -> bool {
        self.step() == Step::Working && self.plan.steps.len() == 1
    }

    /// Advances, unless this is the last step.
    pub(super) fn go_on(&mut self) {
        if self.plan.steps.len() > 1 {
            self.plan.steps.pop_front();
        }
    }

    /// Returns the current step and advances, unless the client must answer first.
    pub(super) fn get(&mut self, is_modern: bool) -> String {
        let shown = self.told(is_modern, self.step());
        if self.is_lagging {
            self.settle();
        } else if !is_modern || self.step() != Step::InputRequired {
            self.go_on();
        }
        if is_modern { kinded(shown, "complete") } else { shown.to_string() }
    }

    pub(super) fn cancel(&mut self, is_modern: bool) -> Result<String, Fault> {
        if !self.is_over() {
            self.plan.steps = [Step::Cancelled].into();
        } else if !is_modern {
            return Err(Fault::invalid("The task has ended already"));
        }
        let told = self.told(is_modern, self.step()).to_string();
        Ok(if is_modern { "{}".to_owned() } else { told })
    }

    /// Accepts the answer to the current question; ignores anything else.
    pub(super) fn update(&mut self, params: &Members) -> Result<String, Fault> {
        let mut new: BTreeMap<String, Box<RawValue>> = params.required("inputResponses")?;
        let is_asked = self.step() == Step::InputRequired && !self.is_lagging;
        if let Some(answer) = new.remove(&self.key()).filter(|_| is_asked) {
            self.answer(format!(r#"{{"result":{answer}}}"#))?;
            if !self.plan.lags {
                self.settle();
            }
        }
        Ok("{}".to_owned())
    }

    /// Accepts the answer to the current question, in the client's notation.
    pub(super) fn answer(&mut self, answer: String) -> Result<(), Fault> {
        let answer = RawValue::from_string(answer);
        let answer = answer.map_err(|error| Fault::invalid(error.to_string()))?;
        self.answers.insert(self.key(), answer);
        self.is_lagging = true;
        Ok(())
    }

    /// Leaves the question that was answered.
    pub(super) fn settle(&mut self) {
        self.is_lagging = false;
        if self.step() != Step::InputRequired {
            return; // It was cancelled meanwhile.
        }
        if self.plan.steps.len() == 1 {
            self.plan.steps.push_back(Step::Completed);
        }
        self.go_on();
    }

    /// Returns the key of the current question, unique in this task.
    fn key(&self) -> String {
        match self.answers.len() - usize::from(self.is_lagging) {
            0 => "who".to_owned(),
            n_before => format!("who_{}", n_before + 1),
        }
    }

    /// Returns the task at a step, in the format of an era.
    pub(super) fn told(&self, is_modern: bool, step: Step) -> Value {
        let status = match (step, self.plan.fails) {
            (Step::Working, _) => "working",
            (Step::InputRequired, _) => "input_required",
            (Step::Cancelled, _) => "cancelled",
            (Step::Completed, Some(Failure::Rpc)) => "failed",
            (Step::Completed, Some(Failure::Tool)) if !is_modern => "failed",
            (Step::Completed, _) => "completed",
        };
        let mut told = json!({
            "taskId": self.id, "status": status, "createdAt": NOW, "lastUpdatedAt": NOW,
        });
        if status == "failed" {
            told["statusMessage"] = json!("the job failed");
        }
        let [ttl, poll] =
            if is_modern { ["ttlMs", "pollIntervalMs"] } else { ["ttl", "pollInterval"] };
        told[ttl] = json!(self.ttl_ms);
        told[poll] = json!(POLL_MS);
        match (step, self.result()) {
            _ if !is_modern => {}
            (Step::InputRequired, _) => {
                let params: Value = serde_json::from_str(&question()).unwrap_or_default();
                let question = json!({ "method": "elicitation/create", "params": params });
                told["inputRequests"] = json!({ (self.key()): question });
            }
            (Step::Completed, Ok(result)) => {
                told["result"] = serde_json::from_str(&result).unwrap_or_default();
            }
            (Step::Completed, Err(fault)) => {
                told["error"] = json!({ "code": fault.code, "message": fault.message });
            }
            (Step::Working | Step::Cancelled, _) => {}
        }
        told
    }

    /// Returns the result of the job; a job without a task has no id.
    pub(super) fn result(&self) -> Result<String, Fault> {
        let told = json!({
            "taskId": Some(&self.id).filter(|id| !id.is_empty()),
            "answers": self.answers,
            "value": self.plan.value,
        });
        let told = message::told(&told.to_string());
        match self.plan.fails {
            None => Ok(told),
            Some(Failure::Tool) => Ok(told.replacen('{', r#"{"isError":true,"#, 1)),
            Some(Failure::Rpc) => Err(Fault::new(-32050, "the job failed")),
        }
    }
}

/// Adds the kind to a result.
pub(super) fn kinded(mut result: Value, kind: &str) -> String {
    result["resultType"] = json!(kind);
    result.to_string()
}

/// Returns the question for the client.
pub(super) fn question() -> String {
    let name = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    json!({ "mode": "form", "message": "Who?", "requestedSchema": name }).to_string()
}
