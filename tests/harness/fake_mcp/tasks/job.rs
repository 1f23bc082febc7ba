//! A job: how far it has come, as each era tells it.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::message::{self, Fault, Members};

/// For how many milliseconds a task is kept if nobody asks for more. Not that any is ever dropped.
const TTL_MS: u64 = 60_000;

/// After how many milliseconds a client is to ask again.
const POLL_MS: u64 = 10;

/// When everything happens.
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

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    Working,
    InputRequired,
    /// It has ended, maybe with an error.
    Completed,
    #[serde(skip)]
    Cancelled,
}

/// How a job fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Failure {
    /// The tool says so in its result.
    Tool,
    /// There is no result.
    Rpc,
}

/// A task.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) id: String,
    /// The present step and those to come.
    plan: Plan,
    ttl_ms: u64,
    /// What the client has answered, by the key of the question.
    answers: BTreeMap<String, Box<RawValue>>,
    /// The present question is answered, and nobody is to notice yet.
    is_lagging: bool,
}

impl Job {
    /// Returns a job that has no id until it is a task.
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

    /// Tells whether it stays here until somebody ends it.
    pub(super) fn is_stuck(&self) -> bool {
        self.step() == Step::Working && self.plan.steps.len() == 1
    }

    /// Moves on, unless this is the last step.
    pub(super) fn go_on(&mut self) {
        if self.plan.steps.len() > 1 {
            self.plan.steps.pop_front();
        }
    }

    /// Shows the present step and moves on, unless it is to be answered first.
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

    /// Takes the answer to the present question; anything else is ignored.
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

    /// Takes the answer to the present question, as the client wrote it.
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

    /// Returns the key of the present question, which no other one of this task has.
    fn key(&self) -> String {
        match self.answers.len() - usize::from(self.is_lagging) {
            0 => "who".to_owned(),
            n_before => format!("who_{}", n_before + 1),
        }
    }

    /// Returns the task at a step, in the words of an era.
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

    /// Returns what the job comes to; done at once it has no id.
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

/// Says of a result which kind it is.
pub(super) fn kinded(mut result: Value, kind: &str) -> String {
    result["resultType"] = json!(kind);
    result.to_string()
}

/// Returns what the client is asked.
pub(super) fn question() -> String {
    let name = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    json!({ "mode": "form", "message": "Who?", "requestedSchema": name }).to_string()
}
