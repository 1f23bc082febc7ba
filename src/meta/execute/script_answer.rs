//! The answer of a tool that runs code, made from the end of its script. Pure.

use std::time::Duration;

use serde_json::json;

use super::super::definitions::MetaTool;
use crate::{
    protocol::{ObjectMembers, RpcError},
    redact,
    sandbox::message::{CodePlace, FailureKind, OperationFailure, ScriptFailure},
    script::{ScriptEnd, ScriptOutcome},
    tool::{ErrorCode, ErrorObject, text_block},
};

/// The most bytes of console output beside an error.
const ERROR_OUTPUT_BYTES_MAX: usize = 8 << 10;

/// The lines of a trace that an error shows.
const STACK_LINES_MAX: usize = 8;

/// The party that reads the error of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorReader {
    /// A model, which called a tool. It reads the place in the script as text.
    Model,
    /// An operator, whose program shows the place.
    Operator,
}

impl ErrorReader {
    /// Returns the name of the parameter for the longest duration.
    fn timeout(self) -> &'static str {
        match self {
            Self::Model => "timeout_ms",
            Self::Operator => "timeout",
        }
    }

    /// Returns the place in the script as text, after a message.
    fn place(self, place: Option<CodePlace>) -> String {
        match (self, place) {
            (Self::Model, Some(place)) => {
                format!(" (line {}, column {})", place.line, place.column)
            }
            (Self::Model, None) | (Self::Operator, _) => String::new(),
        }
    }
}

/// Returns the result of an operator's script, JSON text.
///
/// # Errors
///
/// [`RpcError`] if the script has not returned, with its output so far.
pub(super) fn operator_answer(outcome: ScriptOutcome) -> Result<String, Box<RpcError>> {
    let ScriptOutcome { end, output, n_calls, spent, is_kept } = outcome;
    let output = (!output.is_empty()).then(|| json!(output));
    let value = match end {
        ScriptEnd::Returned(value) => value,
        end => {
            let mut error = error_of(end, is_kept, ErrorReader::Operator);
            let tool = error.tool_id.take().map(|tool| json!(tool));
            for (name, value) in [("tool", tool), ("output", output)] {
                if let Some(value) = value {
                    error = error.detail(name, value);
                }
            }
            let error = error.to_rpc();
            let has_remedy = error.suggestion.as_ref().is_some_and(|remedy| !remedy.is_empty());
            return Err(Box::new(match has_remedy {
                true => error,
                false => error.suggest("Correct the script, or catch the error in it."),
            }));
        }
    };
    let mut members = ObjectMembers::default();
    members.set("value", value.get().to_owned());
    if let Some(output) = output {
        members.set("output", output.to_string());
    }
    members.set("durationMs", spent.as_millis().to_string());
    members.set("toolCalls", n_calls.to_string());
    Ok(members.to_string())
}

/// Returns the answer of `tool` as the result of a tool, JSON text.
pub(super) fn script_answer(tool: MetaTool, outcome: ScriptOutcome) -> String {
    let ScriptOutcome { end, mut output, spent, is_kept, .. } = outcome;
    let mut members = ObjectMembers::default();
    let error = match end {
        ScriptEnd::Suspended(question) => return question,
        ScriptEnd::Returned(value) => {
            members.set("value", value.get().to_owned());
            None
        }
        end => {
            // An error has no preview.
            let shown = redact::cut(&output, ERROR_OUTPUT_BYTES_MAX);
            if shown.len() < output.len() {
                output = format!("{shown}\n[… {} bytes left out …]", output.len() - shown.len());
            }
            Some(error_of(end, is_kept, ErrorReader::Model).during(tool.name()))
        }
    };
    if let Some(error) = &error {
        members.set("error", json!(error).to_string());
    }
    let printed = || json!(output).to_string();
    match tool {
        MetaTool::ExecuteCode => {
            members.set("stdout", printed());
            members.set("stderr", "\"\"");
            members.set("durationMs", spent.as_millis().to_string());
        }
        _ if output.is_empty() => {}
        _ => members.set("output", printed()),
    }
    let (value, is_error) = (members.to_string(), error.is_some());
    let mut blocks = vec![text_block(&error.map_or_else(|| value.clone(), |it| it.text()))];
    if is_error && !output.is_empty() {
        blocks.push(text_block(&format!("It printed before:\n{output}")));
    }
    let blocks = blocks.join(",");
    format!(r#"{{"content":[{blocks}],"structuredContent":{value},"isError":{is_error}}}"#)
}

/// Returns the error for a script that has not returned. With `is_kept`, the same request can still
/// go on with it.
fn error_of(end: ScriptEnd, is_kept: bool, reader: ErrorReader) -> ErrorObject {
    let again = match is_kept {
        true => "Send the same request again later: the script goes on.",
        false => "Run it again later.",
    };
    match end {
        ScriptEnd::Failed(failure) => of_failure(*failure, reader),
        ScriptEnd::Limit(limit) => {
            let remedy = match limit.name() {
                "output" => "Print and return less.",
                "memory" => "Keep less at a time: process each result before the next call.",
                "arguments" => "Await some calls before you make the next ones.",
                "results" => "Ask tools for less at a time, or split the script.",
                _ => "Do less in one script.",
            };
            limit_error(&limit.to_string(), limit.name(), limit.value(), remedy)
        }
        ScriptEnd::Timeout { wall, is_callers } => {
            let name = if is_callers { reader.timeout() } else { "execute.timeout" };
            let message =
                format!("the script did not end within {} ms and was stopped", wall.as_millis());
            let more =
                if is_callers { format!(", or allow more with `{name}`") } else { String::new() };
            let remedy = format!("Its calls were cancelled. Do less at a time{more}.");
            ErrorObject::new(ErrorCode::Timeout, message, &remedy)
                .detail("limit", json!(name))
                .detail("value", json!(milliseconds(wall)))
        }
        ScriptEnd::Unanswered(limit) => {
            let message = format!("no person has answered within {} s", limit.as_secs());
            let remedy = "Its calls were cancelled. Run it again when a person can answer.";
            ErrorObject::new(ErrorCode::Timeout, message, remedy)
                .detail("limit", json!("answer"))
                .detail("value", json!(milliseconds(limit)))
        }
        ScriptEnd::Diverged(operation) => {
            let message = format!(
                "the script did not repeat its earlier run: operation {operation} is another one"
            );
            ErrorObject::new(ErrorCode::ScriptDiverged, message, "Run it again from the start.")
        }
        ScriptEnd::NoMemory(exhausted) => {
            ErrorObject::new(ErrorCode::LimitExceeded, exhausted.to_string(), again)
        }
        ScriptEnd::NotStarted(reason) => {
            let message = format!("the script did not start: {reason}");
            ErrorObject::new(ErrorCode::SandboxFailed, message, again)
        }
        ScriptEnd::Broken(reason) => {
            let message = format!("the sandbox of the script failed: {reason}");
            let remedy = "Its calls were cancelled. Simplify the script.";
            ErrorObject::new(ErrorCode::SandboxFailed, message, remedy)
        }
        ScriptEnd::Returned(_) | ScriptEnd::Suspended(_) => {
            ErrorObject::new(ErrorCode::Internal, "the script has ended", "")
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the error for a limit that a script has reached.
pub(super) fn limit_error(message: &str, name: &str, value: usize, remedy: &str) -> ErrorObject {
    ErrorObject::new(ErrorCode::LimitExceeded, message, remedy)
        .detail("limit", json!(name))
        .detail("value", json!(value))
}

fn of_failure(failure: ScriptFailure, reader: ErrorReader) -> ErrorObject {
    let ScriptFailure { kind, message, place, stack, cause } = failure;
    let place_text = reader.place(place);
    let what = match kind {
        FailureKind::Syntax => "the code cannot be read: ",
        FailureKind::Stuck => "the script never ends: ",
        FailureKind::Value => "the returned value is not plain data: ",
        FailureKind::Exception | FailureKind::Memory | FailureKind::Output => "",
    };
    let text = format!("{what}{message}{place_text}");
    let mut error = match cause {
        Some(cause) => of_cause(cause, text),
        None => ErrorObject::new(ErrorCode::ScriptFailed, text, hint(kind, &message)),
    };
    error = error.detail("kind", json!(kind));
    if let Some(place) = place {
        error = error.detail("line", json!(place.line)).detail("column", json!(place.column));
    }
    if !stack.is_empty() {
        let lines: Vec<&str> = stack.lines().take(STACK_LINES_MAX).collect();
        error = error.detail("stack", json!(lines));
    }
    error
}

/// Returns the error for a failed tool that the script did not catch.
fn of_cause(cause: OperationFailure, text: String) -> ErrorObject {
    let code = ErrorCode::named(&cause.code).unwrap_or(ErrorCode::ScriptFailed);
    let mut error = ErrorObject::new(code, text, &cause.hint);
    error.details = cause.details;
    if let (Some(server), Some(tool)) = (cause.server, cause.tool) {
        error.tool_id = Some(format!("{server}/{tool}"));
    }
    error
}

/// Returns the remedy for a common mistake.
fn hint(kind: FailureKind, message: &str) -> &'static str {
    let missing = |names: &[&str]| {
        names.iter().any(|name| {
            message.contains(&format!("'{name}'"))
                || message.contains(&format!("{name} is not defined"))
        })
    };
    match kind {
        FailureKind::Syntax => {
            "The code is the body of an async function: no import and no export. If it has types, the error may be further down: types are only removed from code without another error."
        }
        FailureKind::Value => {
            "Return JSON values: objects, arrays, texts, numbers, true, false, null."
        }
        FailureKind::Stuck => "Await only calls of tools and `sleep`.",
        FailureKind::Exception if missing(&["setTimeout", "setInterval"]) => {
            "Use `await sleep(ms)`."
        }
        FailureKind::Exception
            if missing(&["fetch", "require", "process", "Buffer", "XMLHttpRequest"]) =>
        {
            "A script has no network, files or modules: call a tool of a server."
        }
        FailureKind::Exception if message == "TypeError: not a function" => {
            "Print the value whose method is called: a tool may return an object where a text is expected."
        }
        FailureKind::Exception | FailureKind::Memory | FailureKind::Output => "",
    }
}
