//! The exception that ended a script, as a failure with its place in the code. Pure.

use serde::Deserialize;

use super::{
    call_place::call_place,
    message::{CodePlace, FailureKind, OperationFailure, ScriptFailure},
};
use crate::protocol::nesting_depth::is_too_deep_within;

/// The name of the script in traces.
pub(super) const SCRIPT: &str = "script.js";

/// The levels of an answer above the details of an error, and some more.
const DETAILS_LEVELS: usize = 8;

/// An exception, as the prelude describes it. Each text is short.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThrownValue {
    name: String,
    message: String,
    stack: String,
    #[serde(default)]
    is_tool_error: bool,
    code: Option<String>,
    server: Option<String>,
    tool: Option<String>,
    hint: Option<String>,
    /// JSON text, of an object if it is the server's.
    details: Option<String>,
}

impl ThrownValue {
    /// Returns the failure of the script with this `code`.
    pub(super) fn into_failure(self, kind: FailureKind, code: &str) -> ScriptFailure {
        let frame = |frame| frame_of_script(frame, code);
        let mut stack: Vec<String> = self.stack.lines().filter_map(frame).collect();
        let mut place = stack.first().and_then(|frame| place_of(frame));
        if self.is_tool_error
            && let (Some(found), Some(tool)) = (place, &self.tool)
            && let Some(call) = call_place(code, found, tool)
        {
            place = Some(call);
            if let Some((function, _)) = stack[0].rsplit_once('(') {
                stack[0] = format!("{function}({}:{})", call.line, call.column);
            }
        }
        let details =
            self.details.filter(|text| !is_too_deep_within(text.as_bytes(), DETAILS_LEVELS));
        let details = details.and_then(|text| serde_json::from_str(&text).ok());
        let cause = self.is_tool_error.then(|| OperationFailure {
            code: self.code.unwrap_or_default(),
            message: self.message.clone(),
            hint: self.hint.unwrap_or_default(),
            server: self.server,
            tool: self.tool,
            details: details.unwrap_or_default(),
        });
        let message = match (self.name.as_str(), self.message.as_str()) {
            (name, "") => name.to_owned(),
            (_, message) if self.is_tool_error => message.to_owned(),
            (name, message) => format!("{name}: {message}"),
        };
        ScriptFailure { kind, message, place, stack: stack.join("\n"), cause }
    }
}

/// Returns a line of a trace if it is about the script, with the place in the code as written. The
/// engine counts the line before the code, and columns in bytes.
fn frame_of_script(frame: &str, code: &str) -> Option<String> {
    let (before, place) = frame.trim().split_once(SCRIPT)?;
    let mut numbers = place.trim_end_matches(')').split(':').skip(1);
    let line = numbers.next()?.parse::<usize>().ok()?.checked_sub(1)?;
    let n_bytes = numbers.next().and_then(|column| column.parse::<usize>().ok()).unwrap_or(1);
    let text = code.lines().nth(line.checked_sub(1)?).unwrap_or_default();
    let column = text.char_indices().take_while(|(at, _)| at + 1 < n_bytes).count() + 1;
    let function = before.trim_start_matches("at ").trim_end_matches(['(', ' ']);
    let function = if function.is_empty() { "<anonymous>" } else { function };
    Some(format!("at {function} ({line}:{column})"))
}

/// Returns the place that a line of a trace names.
fn place_of(frame: &str) -> Option<CodePlace> {
    let (_, place) = frame.rsplit_once('(')?;
    let (line, column) = place.trim_end_matches(')').split_once(':')?;
    Some(CodePlace { line: line.parse().ok()?, column: column.parse().ok()? })
}
