//! The errors of tools as the records of calls tell them.
//!
//! The messages are for the model: they quote arguments and servers. A record does neither.

use super::{ErrorCode, ErrorObject};
use crate::call_record::RecordedFailure;

impl ErrorObject {
    /// Returns the failure as the record of its call tells it.
    pub fn to_record(&self) -> RecordedFailure {
        if let Some(record) = &self.record {
            return (**record).clone();
        }
        RecordedFailure::own(self.to_rpc().name, self.recorded_cause())
    }

    fn recorded_cause(&self) -> &'static str {
        let is_because = |word| self.details.get("reason").is_some_and(|reason| reason == word);
        match self.code {
            ErrorCode::ToolNotFound => "the server has no such tool",
            ErrorCode::NoBackends if is_because("server_disabled") => "the server is disabled",
            ErrorCode::NoBackends => "there is no such server",
            ErrorCode::BackendOverrideInvalid => "a tool runs only on its own server",
            ErrorCode::ValidationInput if is_because("invalid_format") => {
                "the call names no tool of a server"
            }
            ErrorCode::ValidationInput => "the arguments are not valid",
            ErrorCode::ValidationOutput => "the answer is not a tool result",
            ErrorCode::ExecutionFailed if is_because("execution_unavailable") => {
                "no script can run"
            }
            ErrorCode::ExecutionFailed if is_because("service_busy") => {
                "too many computations are waiting"
            }
            ErrorCode::ExecutionFailed => "the call failed",
            ErrorCode::StreamNotSupported => "metamcp does not stream results",
            ErrorCode::ChainStepFailed => "a step of the chain failed",
            ErrorCode::ScriptFailed => "the script failed",
            ErrorCode::LimitExceeded => "a limit was exceeded",
            ErrorCode::SandboxFailed => "the process of the script failed",
            ErrorCode::ScriptDiverged => "the script did something else when it was repeated",
            ErrorCode::OutcomeUnknown => "the call may have been executed, or not",
            ErrorCode::Timeout => "the call took too long",
            ErrorCode::Internal => "metamcp itself failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        call::CallError, connection::RequestFailure, server_name::ServerName, tool::ToolId,
    };

    #[test]
    fn the_record_of_an_error_for_a_model_has_its_code_and_no_text_of_the_call() {
        let git = ServerName::new("git").expect("a name");
        let status = RequestFailure::Status(hyper::StatusCode::BAD_GATEWAY, "CANARY".into());
        let failed = CallError::Failed(git, status);
        let misfit = ErrorObject::new(ErrorCode::ValidationInput, "`CANARY` is no number", "");
        for (error, code) in [
            (misfit, "INVALID_ARGUMENTS"),
            (ErrorObject::unknown_tool(&ToolId::new("git", "CANARY"), &[]), "TOOL_NOT_FOUND"),
            (ErrorObject::unknown_server("CANARY", &[], &[]), "SERVER_NOT_FOUND"),
            (ErrorObject::of_server("git", r#"{"message":"CANARY"}"#), "EXECUTION_FAILED"),
            (ErrorObject::of_tool("CANARY"), "EXECUTION_FAILED"),
            (ErrorObject::from(&failed), "UPSTREAM_STATUS"),
        ] {
            assert!(error.text().contains("CANARY"), "{error:?}");
            let failure = error.to_record();
            assert_eq!(failure.code, code);
            assert!(!failure.cause.contains("CANARY") && !failure.cause.is_empty(), "{failure:?}");
        }
        assert_eq!(ErrorObject::from(&failed).to_record(), failed.to_record());
    }
}
