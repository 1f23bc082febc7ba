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

use super::super::{
    arguments::{ArgumentError, FieldReader},
    call_outcome::{ToolOutcome, backend_of},
    definitions::MetaTool,
    progress::ProgressReport,
    result_document,
};
use crate::{
    config::defaults,
    protocol::ObjectMembers,
    redact,
    tool::{ErrorCode, ErrorObject, RequestedTool, ToolId, text_block},
};

/// The argument for the result of the previous step.
const PREVIOUS: &str = "previous";

/// A chain that is running or has ended.
#[derive(Clone, Debug)]
pub struct ToolChain {
    steps: Vec<StepArguments>,
    includes: ChainIncludes,
    done: Vec<StepResult>,
}

/// The additions to the results of the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainIncludes {
    /// The server that ran the step.
    pub backends: bool,
    /// The definition of the tool.
    pub tools: bool,
}

/// A step of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepArguments {
    /// The tool.
    pub tool: RequestedTool,
    /// Its arguments, as the JSON text of an object.
    pub args: String,
    /// `true` to add the result of the previous step as the argument `previous`.
    pub use_previous: bool,
}

impl StepArguments {
    /// Reads the steps.
    pub(in crate::meta) fn read_all(fields: &FieldReader<'_>) -> Result<Vec<Self>, ArgumentError> {
        let steps = fields.items("steps", |step| {
            Ok(Self {
                tool: step.tool_id()?,
                args: step.object("args")?,
                use_previous: step.flag("use_previous", false)?,
            })
        })?;
        if steps.is_empty() {
            return Err(fields.missing("steps"));
        }
        Ok(steps)
    }
}

impl ChainIncludes {
    /// Reads the additions.
    pub(in crate::meta) fn read(fields: &FieldReader<'_>) -> Result<Self, ArgumentError> {
        Ok(Self {
            backends: fields.flag("include_backends", true)?,
            tools: fields.flag("include_tools", false)?,
        })
    }
}

/// The error for a chain with too many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a chain has at most {steps_max} steps, not {n_steps}")]
pub struct TooManySteps {
    n_steps: usize,
    steps_max: usize,
}

impl TooManySteps {
    /// Returns the error as the model sees it.
    pub fn to_error(self) -> ErrorObject {
        let remedy = "Run the first steps, then the others in another chain.";
        ErrorObject::new(ErrorCode::ValidationInput, self.to_string(), remedy)
            .during(MetaTool::RunChain.name())
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
        let message = match self.done.last().map(|done| &done.outcome) {
            None => "started",
            Some(ToolOutcome::Value(_)) => "step_completed",
            Some(ToolOutcome::Failed(_)) => "step_error",
        };
        ProgressReport { done: self.done.len(), total: self.steps.len(), message }
    }

    /// Returns the arguments of the step to run now, if any.
    fn current(&self) -> Option<&StepArguments> {
        self.steps.get(self.done.len()).filter(|_| self.failure().is_none())
    }

    /// Returns the error of the last step, if it failed.
    fn failure(&self) -> Option<&ErrorObject> {
        match &self.done.last()?.outcome {
            ToolOutcome::Failed(error) => Some(error),
            ToolOutcome::Value(_) => None,
        }
    }

    /// Returns the structured value of the last step that succeeded, as JSON text.
    fn last_value(&self) -> Option<&str> {
        self.done.iter().rev().find_map(|done| match &done.outcome {
            ToolOutcome::Value(value) => Some(value.as_str()),
            ToolOutcome::Failed(_) => None,
        })
    }

    /// Returns the tool of the step to run now, if any.
    pub fn tool(&self) -> Option<&RequestedTool> {
        self.current().map(|step| &step.tool)
    }

    /// Returns the step to run now, if any.
    pub fn next(&self) -> Option<ChainStep> {
        let step = self.current()?;
        let args = match (self.last_value(), step.use_previous) {
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
    pub fn record_result(&mut self, mut result: StepResult) {
        if self.current().is_none() {
            return;
        }
        if let ToolOutcome::Failed(error) = &mut result.outcome {
            error.step_index = Some(self.done.len());
        }
        self.done.push(result);
    }

    /// Returns the result of the chain, JSON text. If the values do not fit into `bytes_max`
    /// together, the large ones are cut, and are text then.
    pub fn to_result(&self, bytes_max: usize) -> String {
        let share = bytes_max / self.done.len().saturating_add(1);
        let results: Vec<String> =
            (0..self.done.len()).map(|index| self.step_result(index, share)).collect();
        let mut structured = ObjectMembers::default();
        structured.set("results", format!("[{}]", results.join(",")));
        if let Some(last) = self.last_value() {
            structured.set("final", fitted(last, share));
        }
        let error = self.failure().map(|cause| self.error(cause));
        let mut blocks = Vec::new();
        if let Some(error) = &error {
            blocks.push(text_block(&error.text()));
            structured.set("error", json!(error).to_string());
        }
        let structured = structured.to_string();
        blocks.push(text_block(&structured));
        let (content, is_error) = (blocks.join(","), error.is_some());
        format!(
            r#"{{"content":[{content}],"structuredContent":{structured},"isError":{is_error}}}"#
        )
    }

    /// Returns the error of a chain after its last step failed.
    fn error(&self, cause: &ErrorObject) -> ErrorObject {
        let index = self.done.len() - 1;
        let tool_id = self.tool_id(index);
        let (number, n_steps, text) = (index + 1, self.steps.len(), cause.text());
        let message = format!("step {number} of {n_steps}, `{tool_id}`, failed: {text}");
        let mut error = ErrorObject::new(ErrorCode::ChainStepFailed, message, "")
            .during(MetaTool::RunChain.name())
            .detail("cause_code", json!(cause.code));
        error.tool_id = Some(tool_id);
        error.step_index = Some(index);
        if let Some(op) = cause.op {
            error = error.detail("cause_op", json!(op));
        }
        if let Some(kind) = cause.backend_kind {
            error = error.detail("cause_backend_kind", json!(kind));
        }
        error
    }

    /// Returns the id of the tool of a step that ran; without one, its name in the request.
    fn tool_id(&self, index: usize) -> String {
        let name = &self.steps[index].tool.tool;
        let name = || redact::cut(name, defaults::SUGGESTION_BYTES_MAX).to_owned();
        self.done[index].id.as_ref().map_or_else(name, ToolId::to_string)
    }

    /// Returns the result of a step that ran, as JSON text.
    fn step_result(&self, index: usize, bytes_max: usize) -> String {
        let done = &self.done[index];
        let mut members = ObjectMembers::default();
        members.set("tool_id", Value::from(self.tool_id(index)).to_string());
        if let ToolOutcome::Value(value) = &done.outcome {
            members.set("structured", fitted(value, bytes_max));
        }
        if let Some(id) = done.id.as_ref().filter(|_| self.includes.backends) {
            members.set("backend", backend_of(&id.server));
        }
        if let Some(definition) = done.definition.as_ref().filter(|_| self.includes.tools) {
            members.set("tool", definition.as_str());
        }
        if let Some(warning) = &done.warning {
            members.set("warning", json!(warning).to_string());
        }
        if let ToolOutcome::Failed(error) = &done.outcome {
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
    let note = "run this step alone to get the whole value";
    Value::from(format!("{shown}\n[… {left_out} bytes left out: {note}]")).to_string()
}

#[cfg(test)]
mod tests;
