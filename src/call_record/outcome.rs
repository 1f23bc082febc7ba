//! The outcome of a call.

use std::sync::{Arc, LazyLock};

use memchr::memmem::Finder;

use crate::{
    fault_class::Fault,
    protocol::{Message, ObjectMembers, jsonrpc::MessagePart},
};

/// The member of a tool's result that marks a failure. Source: MCP, "Tools".
const IS_ERROR: &str = "isError";

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The server answered with a result.
    Ok,
    /// The tool reported a failure: its result has `isError`.
    ToolError,
    /// The server answered with a JSON-RPC error of this code.
    ServerError(i64),
    /// metamcp answered with an error.
    Failed {
        /// The stable name of the error.
        code: &'static str,
        /// The kind of failure.
        fault: Fault,
        /// The error and its causes.
        cause: Arc<str>,
    },
    /// The client went, or cancelled the call.
    Cancelled,
}

impl CallOutcome {
    /// Returns the outcome that an answer stands for.
    pub fn of_answer(answer: &Message) -> Self {
        if let Some(error) = answer.part(MessagePart::Error) {
            let code = ObjectMembers::one(error, "code").and_then(|code| code.parse().ok());
            return Self::ServerError(code.unwrap_or_default());
        }
        match is_tool_error(answer) {
            true => Self::ToolError,
            false => Self::Ok,
        }
    }

    /// Returns the word for records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::ServerError(_) | Self::Failed { .. } => "error",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns whether the call succeeded.
    pub fn is_ok(&self) -> bool {
        *self == Self::Ok
    }
}

/// Returns whether the result of an answer has `"isError": true`. Most answers have no such text, or
/// `false`: they are searched and not parsed.
fn is_tool_error(answer: &Message) -> bool {
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(IS_ERROR));
    let bytes = answer.bytes();
    let says_true = FINDER.find_iter(bytes).any(|at| {
        let is_between = |byte: &u8| b"\": \t\r\n".contains(byte);
        let mut rest = bytes[at + IS_ERROR.len()..].iter().skip_while(|byte| is_between(byte));
        b"true".iter().all(|byte| rest.next() == Some(byte))
    });
    let is_marked = |result| ObjectMembers::one(result, IS_ERROR) == Some("true");
    says_true && answer.part(MessagePart::Result).is_some_and(is_marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(answer: &str) -> CallOutcome {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":1,{answer}}}"#);
        CallOutcome::of_answer(&Message::parse(answer.into()).expect("a message"))
    }

    #[test]
    fn an_answer_is_a_success_a_failure_of_the_tool_or_an_error_of_the_server() {
        assert_eq!(outcome(r#""result":{"content":[]}"#), CallOutcome::Ok);
        assert_eq!(outcome(r#""result":{"content":[],"isError":false}"#), CallOutcome::Ok);
        assert_eq!(outcome(r#""result":{"isError" : true}"#), CallOutcome::ToolError);
        let error = outcome(r#""error":{"code":-32602,"message":"x"}"#);
        assert_eq!(error, CallOutcome::ServerError(-32602));
    }

    #[test]
    fn a_mark_inside_the_content_is_no_failure_of_the_tool() {
        for content in [
            r#""result":{"structuredContent":{"isError":true}}"#,
            r#""result":{"content":[{"text":"\"isError\": true"}],"isError":false}"#,
        ] {
            assert_eq!(outcome(content), CallOutcome::Ok, "{content}");
        }
        let failed = r#""result":{"structuredContent":{"isError":false},"isError":true}"#;
        assert_eq!(outcome(failed), CallOutcome::ToolError);
    }
}
