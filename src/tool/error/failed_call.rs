//! The errors of failed calls, as models see them.

use serde_json::{Value, json};

use super::{ErrorCode, ErrorObject};
use crate::{
    call::CallError, connection::RequestFailure, era::TranslationError, error_report::chain,
    pool::SlotError,
};

/// The kind of a failure, its name in the details, and whether the same call may succeed later.
struct FailureKind {
    code: ErrorCode,
    reason: &'static str,
    is_retryable: bool,
}

impl FailureKind {
    fn lasting(code: ErrorCode, reason: &'static str) -> Self {
        Self { code, reason, is_retryable: false }
    }

    fn transient(reason: &'static str) -> Self {
        Self { code: ErrorCode::ExecutionFailed, reason, is_retryable: true }
    }

    fn of(error: &CallError) -> Self {
        use ErrorCode::{ExecutionFailed, NoBackends, Timeout, ToolNotFound, ValidationInput};
        match error {
            CallError::Unqualified { .. } => Self::lasting(ToolNotFound, "tool_not_found"),
            CallError::UnknownServer { .. } => Self::lasting(NoBackends, "server_not_found"),
            CallError::DisabledServer { .. } => Self::lasting(NoBackends, "server_disabled"),
            CallError::MissingParameter { .. } => {
                Self::lasting(ValidationInput, "missing_parameter")
            }
            CallError::UnknownResource(_) => Self::lasting(ValidationInput, "resource_not_found"),
            CallError::UnknownCursor(_) => Self::lasting(ValidationInput, "invalid_cursor"),
            CallError::UnknownLevel(_) => Self::lasting(ValidationInput, "invalid_level"),
            CallError::UnknownMethod { .. } => Self::lasting(ExecutionFailed, "method_not_found"),
            CallError::NoSession(_) => Self::lasting(ExecutionFailed, "session_required"),
            CallError::TooManyWatched(_) => {
                Self::lasting(ExecutionFailed, "too_many_subscriptions")
            }
            CallError::NoList { .. } => Self::transient("list_unusable"),
            CallError::Overloaded(_) => Self::transient("service_busy"),
            CallError::NotComputed(..) => Self::lasting(ExecutionFailed, "answer_not_read"),
            CallError::Tripped(..) => Self::transient("circuit_open"),
            CallError::NotConnected(_, error) => match error {
                SlotError::Exhausted { .. } => Self::transient("pool_exhausted"),
                SlotError::Busy(..) => Self::transient("server_busy"),
                SlotError::Closing(_) => Self::transient("server_closed"),
                SlotError::SessionRequired(_) => Self::lasting(ExecutionFailed, "session_required"),
                SlotError::SessionEnded(_) => Self::lasting(ExecutionFailed, "session_ended"),
                SlotError::Dial { error, .. } if error.is_login_required() => {
                    Self::lasting(ExecutionFailed, "login_required")
                }
                late if late.is_timeout() => Self::lasting(Timeout, "server_not_connected"),
                SlotError::Dial { .. } => Self::transient("server_not_connected"),
            },
            CallError::Untranslatable(_, source) => match source {
                TranslationError::NoCounterpart(..) => {
                    Self::lasting(ExecutionFailed, "not_in_servers_version")
                }
                TranslationError::UnknownState | TranslationError::OtherRequest => {
                    Self::lasting(ValidationInput, "unknown_state")
                }
                TranslationError::TaskRequired => {
                    Self::lasting(ExecutionFailed, "capability_required")
                }
            },
            CallError::Unanswered(..) => Self::lasting(ExecutionFailed, "question_unanswered"),
            CallError::Failed(_, source) => Self::of_failure(source),
        }
    }

    fn of_failure(failure: &RequestFailure) -> Self {
        use ErrorCode::{ExecutionFailed, Timeout, ValidationInput};
        match failure {
            RequestFailure::Timeout(_) => Self::lasting(Timeout, "timeout"),
            RequestFailure::ConnectTimeout(_) => Self::lasting(Timeout, "server_not_connected"),
            RequestFailure::Oversized(_) => Self::lasting(ExecutionFailed, "answer_too_large"),
            RequestFailure::AnswerTooDeep => Self::lasting(ExecutionFailed, "answer_too_deep"),
            RequestFailure::HeadersTooLarge(_) => {
                Self::lasting(ValidationInput, "headers_too_large")
            }
            RequestFailure::TooDeep => Self::lasting(ValidationInput, "too_deep"),
            RequestFailure::Exited { .. } | RequestFailure::HungUp { .. } => {
                Self::transient("server_exited")
            }
            RequestFailure::Closed | RequestFailure::Gone => Self::transient("server_closed"),
            login if login.is_login_required() => Self::lasting(ExecutionFailed, "login_required"),
            RequestFailure::Unauthorized(_) => Self::transient("token_unavailable"),
            RequestFailure::Connect(_) => Self::transient("server_not_connected"),
            RequestFailure::SessionLost(_) | RequestFailure::EraLost(_) => {
                Self::transient("session_lost")
            }
            RequestFailure::Unresponsive => Self::transient("server_unresponsive"),
            RequestFailure::Status(..) => Self::transient("upstream_status"),
            RequestFailure::Redirected(..) => Self::lasting(ExecutionFailed, "upstream_redirect"),
            RequestFailure::WebPage(_) => Self::lasting(ExecutionFailed, "upstream_web_page"),
            RequestFailure::RetryAfter(_) => Self::transient("upstream_busy"),
            RequestFailure::BrokenOff(_) => Self::transient("answer_broken_off"),
            RequestFailure::ClientTooSlow => Self::transient("client_too_slow"),
            RequestFailure::NoMemory(_) => Self::transient("memory_exhausted"),
            RequestFailure::Saturated => Self::transient("server_saturated"),
        }
    }
}

impl From<&CallError> for ErrorObject {
    fn from(error: &CallError) -> Self {
        let FailureKind { code, reason, is_retryable } = FailureKind::of(error);
        let mut object = Self::new(code, chain(error), &error.hint()).on_server();
        object.retryable = is_retryable;
        object.cause = Some(Box::new(error.to_operator()));
        object.record = Some(Box::new(error.to_record()));
        if let Value::Object(context) = error.to_rpc().context {
            object.details = context;
        }
        if let Some(wait) = object.details.remove("retry_in_ms") {
            // The name in version 0.1; the next version drops it.
            object = object.detail("retry_after_ms", wait);
        }
        object.detail("reason", json!(reason)).detail("cause", json!(error.code()))
    }
}
