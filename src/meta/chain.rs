//! Chains of tools that run one after the other.
//!
//! ```text
//!   next ──▶ a step ── record_result ──▶ next … ──▶ no more steps: to_result
//!                          └─ a failure ──▶ no more steps: to_result
//! ```
//!
//! Pure: the caller runs the steps. A chain ends with its first failure. The answer then has the
//! results so far, the step that failed, and its error.

use serde_json::{Value, json};

use super::{
    arguments::StepArguments,
    backend::MetaBackend,
    call_outcome::ToolOutcome,
    definitions::MetaTool,
    error::{ErrorCode, ErrorObject},
    progress::ProgressReport,
    result_document,
    tool_id::{RequestedTool, ToolId},
};
use crate::{config::defaults, protocol::ObjectMembers, redact};

/// The argument for the result of the previous step.
const PREVIOUS: &str = "previous";

/// A chain that is running or has ended.
#[derive(Clone, Debug)]
pub struct ToolChain {
    steps: Vec<StepArguments>,
    includes: ChainIncludes,
    done: Vec<Done>,
}

/// The additions to the results of the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainIncludes {
    /// The server that ran the step.
    pub backends: bool,
    /// The definition of the tool.
    pub tools: bool,
}

/// The error for a chain with too many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{n_steps} steps are more than the {steps_max} of a chain")]
pub struct TooManySteps {
    n_steps: usize,
    steps_max: usize,
}

impl TooManySteps {
    /// Returns the error as the model sees it.
    pub fn to_error(self) -> ErrorObject {
        let remedy = "Run the first of them, then the others in another chain.";
        ErrorObject::new(ErrorCode::ValidationInput, self.to_string(), remedy)
            .during(MetaTool::RunChain)
            .detail("reason", json!("too_many_steps"))
            .detail("limit", json!(self.steps_max))
    }
}

/// The step to run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainStep {
    /// The tool.
    pub tool: RequestedTool,
    /// Its arguments, as the JSON text of an object.
    pub args: String,
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepResult {
    /// The tool, if it was found.
    pub id: Option<ToolId>,
    /// Its definition, as JSON text, if it is known.
    pub definition: Option<String>,
    /// The value, or the error.
    pub outcome: ToolOutcome,
    /// The reason that its arguments were not checked, if any.
    pub warning: Option<String>,
}

#[derive(Clone, Debug)]
struct Done {
    tool_id: String,
    server: Option<String>,
    definition: Option<String>,
    /// The value, as JSON text.
    structured: Option<String>,
    warning: Option<String>,
    error: Option<ErrorObject>,
}

impl ToolChain {
    /// Returns a chain of `steps`, at most `steps_max`.
    ///
    /// # Errors
    ///
    /// [`TooManySteps`] if there are more.
    pub fn new(
        steps: Vec<StepArguments>,
        steps_max: usize,
        includes: ChainIncludes,
    ) -> Result<Self, TooManySteps> {
        if steps.len() > steps_max {
            return Err(TooManySteps { n_steps: steps.len(), steps_max });
        }
        Ok(Self { steps, includes, done: Vec::new() })
    }

    /// Returns whether a step has been done, successfully or not.
    pub fn has_started(&self) -> bool {
        !self.done.is_empty()
    }

    /// Returns the progress of the chain.
    pub fn progress(&self) -> ProgressReport {
        let message = match self.done.last() {
            None => "started",
            Some(Done { error: None, .. }) => "step_completed",
            Some(Done { error: Some(_), .. }) => "step_error",
        };
        ProgressReport { done: self.done.len(), total: self.steps.len(), message }
    }

    /// Returns the arguments of the step to run now, if any.
    fn current(&self) -> Option<&StepArguments> {
        let is_over = self.done.last().is_some_and(|done| done.error.is_some());
        self.steps.get(self.done.len()).filter(|_| !is_over)
    }

    /// Returns the structured value of the last step that succeeded, as JSON text.
    fn last(&self) -> Option<&str> {
        self.done.iter().rev().find_map(|done| done.structured.as_deref())
    }

    /// Returns the tool of the step to run now, if any.
    pub fn tool(&self) -> Option<&RequestedTool> {
        self.current().map(|step| &step.tool)
    }

    /// Returns the step to run now, if any.
    pub fn next(&self) -> Option<ChainStep> {
        let step = self.current()?;
        let args = match (self.last(), step.use_previous) {
            (Some(previous), true) => {
                let mut args = ObjectMembers::read(&step.args).unwrap_or_default();
                args.set(PREVIOUS, previous);
                args.to_string()
            }
            _ => step.args.clone(),
        };
        Some(ChainStep { tool: step.tool.clone(), args })
    }

    /// Records the result of the current step.
    pub fn record_result(&mut self, ran: StepResult) {
        let index = self.done.len();
        let Some(step) = self.current() else { return };
        let shown = redact::cut(&step.tool.tool, defaults::SUGGESTION_BYTES_MAX);
        let mut done = Done {
            tool_id: ran.id.as_ref().map_or_else(|| shown.to_owned(), ToolId::to_string),
            server: ran.id.map(|id| id.server),
            definition: ran.definition,
            structured: None,
            warning: ran.warning,
            error: None,
        };
        match ran.outcome {
            ToolOutcome::Value(value) => done.structured = Some(value),
            ToolOutcome::Failed(error) => {
                done.error = Some(ErrorObject { step_index: Some(index), ..*error });
            }
        }
        self.done.push(done);
    }

    /// Returns the result of the chain, JSON text. If the values do not fit into `bytes_max`
    /// together, the large ones are cut, and are text then.
    pub fn to_result(&self, bytes_max: usize) -> String {
        let share = bytes_max / self.done.len().saturating_add(1);
        let results: Vec<String> =
            self.done.iter().map(|done| done.to_json(self.includes, share)).collect();
        let mut structured = ObjectMembers::default();
        structured.set("results", format!("[{}]", results.join(",")));
        if let Some(last) = self.last() {
            structured.set("final", fitted(last, share));
        }
        let error = self.done.last().and_then(|done| Some((done, done.error.as_ref()?)));
        let error = error.map(|(done, cause)| self.error(done, cause));
        let mut blocks = Vec::new();
        if let Some(error) = &error {
            blocks.push(result_document::text_block(&error.text()));
            structured.set("error", json!(error).to_string());
        }
        let structured = structured.to_string();
        blocks.push(result_document::text_block(&structured));
        let (content, is_error) = (blocks.join(","), error.is_some());
        format!(
            r#"{{"content":[{content}],"structuredContent":{structured},"isError":{is_error}}}"#
        )
    }

    /// Returns the error of a chain after its last step failed.
    fn error(&self, done: &Done, cause: &ErrorObject) -> ErrorObject {
        let index = self.done.len() - 1;
        let number = index + 1;
        let message = format!(
            "step {number} of {}, `{}`, has failed: {}",
            self.steps.len(),
            done.tool_id,
            cause.text()
        );
        let mut error = ErrorObject::new(ErrorCode::ChainStepFailed, message, "")
            .during(MetaTool::RunChain)
            .detail("cause_code", json!(cause.code));
        error.tool_id = Some(done.tool_id.clone());
        error.step_index = Some(index);
        if let Some(op) = cause.op {
            error = error.detail("cause_op", json!(op));
        }
        if let Some(kind) = cause.backend_kind {
            error = error.detail("cause_backend_kind", json!(kind));
        }
        error
    }
}

impl Done {
    fn to_json(&self, includes: ChainIncludes, bytes_max: usize) -> String {
        let mut members = ObjectMembers::default();
        members.set("tool_id", Value::from(self.tool_id.as_str()).to_string());
        if let Some(value) = &self.structured {
            members.set("structured", fitted(value, bytes_max));
        }
        if let Some(server) = self.server.as_ref().filter(|_| includes.backends) {
            members.set("backend", json!(MetaBackend::of(server)).to_string());
        }
        if let Some(definition) = self.definition.as_ref().filter(|_| includes.tools) {
            members.set("tool", definition.as_str());
        }
        if let Some(warning) = &self.warning {
            members.set("warning", json!(warning).to_string());
        }
        if let Some(error) = &self.error {
            members.set("error", json!(error).to_string());
        }
        members.to_string()
    }
}

/// Returns JSON text, or its beginning as a string if it is longer than `bytes_max`.
fn fitted(value: &str, bytes_max: usize) -> String {
    if value.len() <= bytes_max {
        return value.to_owned();
    }
    let shown = result_document::head(value, bytes_max);
    let left_out = value.len() - shown.len();
    let words =
        format!("{shown}\n[… {left_out} bytes left out: run this step alone for all of it]");
    Value::from(words).to_string()
}

#[cfg(test)]
mod tests;
