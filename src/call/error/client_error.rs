//! The error for a client: its name, a hint, and its context.

use serde_json::json;

use super::{CallError, InputRefusal, TranslationError};
use crate::{
    compute_pool::ComputeError,
    config::defaults,
    connection::{RequestFailure, RetryAfter},
    error_report::chain,
    pool::SlotError,
    protocol::{
        LoggingLevel, RpcError,
        client_meta::TASKS,
        rpc_error::{
            CAPABILITY_REQUIRED, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND,
            NO_ROOM, REQUEST_TIMEOUT, RESOURCE_NOT_FOUND, SERVER_FAILED, SERVER_PAUSED,
        },
    },
    redact,
};

impl CallError {
    /// Returns the stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unqualified { .. } => "TOOL_NOT_FOUND",
            Self::UnknownServer { .. } => "SERVER_NOT_FOUND",
            Self::DisabledServer { .. } => "SERVER_DISABLED",
            Self::MissingParameter { .. } => "MISSING_PARAMETER",
            Self::UnknownResource(_) => "RESOURCE_NOT_FOUND",
            Self::UnknownCursor(_) => "INVALID_CURSOR",
            Self::NoList { .. } => "LIST_UNUSABLE",
            Self::TooManyWatched(_) => "TOO_MANY_SUBSCRIPTIONS",
            Self::UnknownLevel(_) => "INVALID_LEVEL",
            Self::UnknownMethod { .. } => "METHOD_NOT_FOUND",
            Self::NoSession(_) => "SESSION_REQUIRED",
            Self::Untranslatable(_, TranslationError::NoCounterpart(..)) => {
                "NOT_IN_SERVERS_VERSION"
            }
            Self::Untranslatable(
                _,
                TranslationError::UnknownState | TranslationError::OtherRequest,
            ) => "UNKNOWN_STATE",
            Self::Unanswered(
                _,
                InputRefusal::Refused(_)
                | InputRefusal::Undeclared(_)
                | InputRefusal::UrlNotDeclared,
            )
            | Self::Untranslatable(_, TranslationError::TaskRequired) => "CAPABILITY_REQUIRED",
            Self::Unanswered(_, InputRefusal::NotAllowed(_)) => "QUESTION_OUT_OF_PLACE",
            Self::Unanswered(_, InputRefusal::Error { .. }) => "CLIENT_REFUSED",
            Self::Unanswered(_, InputRefusal::Gone(_)) => "CLIENT_GONE",
            Self::Unanswered(_, InputRefusal::TooManyRounds(_) | InputRefusal::TooManyHeld) => {
                "TOO_MANY_QUESTIONS"
            }
            Self::Overloaded(source) | Self::NotComputed(_, source) => match source {
                ComputeError::Full => "SERVICE_BUSY",
                ComputeError::Panicked => "INTERNAL_ERROR",
            },
            Self::Tripped(..) => "SERVER_TRIPPED",
            Self::NotConnected(_, SlotError::Closing(_)) => "SERVER_CLOSED",
            Self::NotConnected(_, SlotError::Busy(..)) => "SERVER_BUSY",
            Self::NotConnected(_, SlotError::Exhausted { .. }) => "POOL_EXHAUSTED",
            Self::NotConnected(_, SlotError::SessionRequired(_)) => "SESSION_REQUIRED",
            Self::NotConnected(_, SlotError::SessionEnded(_)) => "SESSION_ENDED",
            Self::NotConnected(_, SlotError::Dial { error, .. }) => error.code(),
            Self::Failed(_, source) => source.code(),
        }
    }

    /// Returns a hint for the caller.
    pub fn hint(&self) -> String {
        // Longer than 60 lines: one `match` over all variants.
        let hint = match self {
            Self::Unqualified { similar, .. } | Self::UnknownServer { similar, .. } => {
                match similar.first() {
                    Some(nearest) => return format!("Did you mean `{nearest}`?"),
                    None => "Use a name from `tools/list`, in the form `SERVER__TOOL`.",
                }
            }
            Self::DisabledServer { server } => return enable(server),
            Self::MissingParameter { parameter, .. } => {
                return format!("Add `params.{parameter}`.");
            }
            Self::UnknownResource(_) => "See `resources/list`.",
            Self::UnknownCursor(_) => "Request the list without a cursor: it may have changed.",
            Self::NoList { server, .. } => {
                return format!(
                    "Request the list again. If this persists, run `metamcp doctor --server {server}`."
                );
            }
            Self::TooManyWatched(_) => "Unsubscribe from a resource first.",
            Self::UnknownLevel(_) => {
                let names = LoggingLevel::ALL.map(LoggingLevel::name).join(", ");
                return format!("Use one of {names}.");
            }
            Self::UnknownMethod { hint, .. } => hint,
            Self::Untranslatable(_, source) => match source {
                TranslationError::NoCounterpart(..) => {
                    "Use a server, or a client, of the other protocol version."
                }
                TranslationError::UnknownState | TranslationError::OtherRequest => {
                    "Send the request again without `requestState` and `inputResponses`."
                }
                TranslationError::TaskRequired => {
                    return format!(
                        "Declare the extension `{TASKS}` with the request, and poll `tasks/get`."
                    );
                }
            },
            Self::Unanswered(_, source) => match source {
                InputRefusal::Refused(_) => {
                    "Declare the capability in `initialize`, send the session id, and accept `text/event-stream`."
                }
                InputRefusal::Undeclared(capability) => {
                    return format!("Declare the capability `{capability}` with the request.");
                }
                InputRefusal::UrlNotDeclared => {
                    "Declare the capability `elicitation.url` with the request."
                }
                InputRefusal::NotAllowed(_) => {
                    "Report this to the authors of the server: it violates the protocol."
                }
                InputRefusal::TooManyHeld => "Call again when fewer calls wait for answers.",
                InputRefusal::Error { .. }
                | InputRefusal::Gone(_)
                | InputRefusal::TooManyRounds(_) => {
                    "Call again, and answer the questions of the server."
                }
            },
            Self::NotComputed(_, ComputeError::Full) => {
                "The server has executed the call: repeat it only if that does no harm. Request a smaller answer, or wait until fewer calls run."
            }
            Self::Overloaded(ComputeError::Full) => "Try again when fewer requests run.",
            Self::Overloaded(ComputeError::Panicked)
            | Self::NotComputed(_, ComputeError::Panicked) => {
                "This is a bug in metamcp: report it with its log."
            }
            Self::Tripped(server, _) => {
                return format!("Run `metamcp doctor --server {server}`, or call again then.");
            }
            Self::NoSession(_) => {
                "Send the `Mcp-Session-Id` header from the answer to `initialize`."
            }
            Self::NotConnected(_, error) => match error {
                SlotError::Dial { error, .. } => return error.hint().into_owned(),
                SlotError::Closing(_) => "List the tools again, then repeat the call.",
                SlotError::Busy(..) => {
                    "Call again later, or raise `max_connections` of this server."
                }
                SlotError::Exhausted { .. } => {
                    "Call again later, or raise `pool.size` or `pool.reserve_size`."
                }
                SlotError::SessionRequired(_) => {
                    "Send the `Mcp-Session-Id` header from the answer to `initialize`. For a client that cannot, the operator can set another `sharing` for this server."
                }
                SlotError::SessionEnded(_) => "Open another session with `initialize`.",
            },
            Self::Failed(server, source) => return source.hint(server).into_owned(),
        };
        hint.to_owned()
    }

    /// Returns the last stderr lines of a server that has ended, oldest first, each cut to
    /// [`defaults::QUOTE_BYTES_MAX`].
    fn last_lines(&self) -> Vec<&str> {
        let lines = match self {
            Self::NotConnected(_, SlotError::Dial { error, .. }) => error.last_lines(),
            Self::Failed(_, source) => source.last_lines(),
            _ => &[],
        };
        lines.iter().map(|line| redact::cut(line, defaults::QUOTE_BYTES_MAX)).collect()
    }

    /// Returns the wait that the server asks for, if that is the reason.
    fn retry_after(&self) -> Option<RetryAfter> {
        match self {
            Self::NotConnected(_, SlotError::Dial { error, .. }) => error.retry_after(),
            Self::Failed(_, RequestFailure::RetryAfter(asked)) => Some(*asked),
            _ => None,
        }
    }

    /// Returns the JSON-RPC code.
    fn rpc_code(&self) -> i64 {
        match self {
            Self::Unqualified { .. }
            | Self::UnknownServer { .. }
            | Self::DisabledServer { .. }
            | Self::MissingParameter { .. }
            | Self::TooManyWatched(_)
            | Self::UnknownLevel(_)
            | Self::Untranslatable(
                _,
                TranslationError::UnknownState | TranslationError::OtherRequest,
            )
            | Self::Unanswered(_, InputRefusal::Refused(_))
            | Self::UnknownCursor(_) => INVALID_PARAMS,
            Self::Unanswered(_, InputRefusal::UrlNotDeclared | InputRefusal::Undeclared(_))
            | Self::Untranslatable(_, TranslationError::TaskRequired) => CAPABILITY_REQUIRED,
            Self::UnknownResource(_) => RESOURCE_NOT_FOUND,
            Self::UnknownMethod { .. }
            | Self::Untranslatable(_, TranslationError::NoCounterpart(..)) => METHOD_NOT_FOUND,
            Self::NoSession(_)
            | Self::Failed(_, RequestFailure::TooDeep | RequestFailure::HeadersTooLarge(_)) => {
                INVALID_REQUEST
            }
            Self::Failed(_, RequestFailure::Timeout(_) | RequestFailure::ConnectTimeout(_)) => {
                REQUEST_TIMEOUT
            }
            Self::NotConnected(_, SlotError::Dial { error, .. }) if error.code() == "TIMEOUT" => {
                REQUEST_TIMEOUT
            }
            Self::NoList { .. }
            | Self::Unanswered(..)
            | Self::Overloaded(_)
            | Self::NotComputed(..)
            | Self::Tripped(..)
            | Self::NotConnected(..)
            | Self::Failed(..) => INTERNAL_ERROR,
        }
    }

    /// Returns the JSON-RPC code for operators, whose programs distinguish failures. Clients get an
    /// internal error for all of these, like from the MCP SDKs.
    fn operator_code(&self) -> i64 {
        let code = self.rpc_code();
        if code != INTERNAL_ERROR {
            return code;
        }
        match self {
            Self::Tripped(..) => SERVER_PAUSED,
            Self::Overloaded(_)
            | Self::NotConnected(_, SlotError::Busy(..) | SlotError::Exhausted { .. })
            | Self::Failed(_, RequestFailure::Saturated | RequestFailure::NoMemory(_)) => NO_ROOM,
            Self::NotConnected(..) | Self::Failed(..) => SERVER_FAILED,
            _ => code,
        }
    }

    /// Returns the error for an operator. If a server could not be connected, the name says so, and
    /// the context contains the detailed reason.
    pub fn to_operator(&self) -> RpcError {
        let mut error = self.to_rpc();
        error.code = self.operator_code();
        match self {
            Self::NotConnected(_, SlotError::Dial { .. } | SlotError::Closing(_)) => {
                error.context["reason"] = json!(error.name);
                error.name = "SERVER_NOT_CONNECTED";
            }
            Self::UnknownServer { similar, .. } if similar.is_empty() => {
                error.suggestion = Some("`metamcp servers` lists the servers.".to_owned());
            }
            _ => {}
        }
        error
    }

    /// Returns the error for a client.
    pub fn to_rpc(&self) -> RpcError {
        let context = match self {
            Self::Unqualified { name, similar } => json!({ "name": name, "similar": similar }),
            Self::UnknownServer { server, similar } => {
                json!({ "server": server, "similar": similar })
            }
            Self::DisabledServer { server } => json!({ "server": server }),
            Self::MissingParameter { method, parameter } => {
                json!({ "method": method, "parameter": parameter })
            }
            Self::UnknownResource(uri) => json!({ "uri": uri }),
            Self::UnknownCursor(cursor) => json!({ "cursor": cursor }),
            Self::NoList { server, method, .. } => json!({ "server": server, "method": method }),
            Self::TooManyWatched(max) => json!({ "max": max }),
            Self::UnknownLevel(level) => json!({ "level": level }),
            Self::Overloaded(_) => json!({}),
            Self::UnknownMethod { method, .. } | Self::NoSession(method) => {
                json!({ "method": method })
            }
            Self::NotConnected(server, SlotError::Exhausted { holders, .. }) => {
                json!({ "server": server, "holders": holders })
            }
            Self::Untranslatable(server, _)
            | Self::Unanswered(server, _)
            | Self::NotComputed(server, _) => {
                json!({ "server": server })
            }
            Self::Tripped(server, open) => {
                let retry_after_ms = u64::try_from(open.retry_in.as_millis()).unwrap_or(u64::MAX);
                // The second name is that of version 0.1. The next version removes it.
                let mut context = json!({ "server": server, "retryAfterMs": retry_after_ms, "retry_in_ms": retry_after_ms });
                if let Some(cause) = &open.cause {
                    context["cause"] = json!(**cause);
                }
                context
            }
            Self::Failed(server, RequestFailure::NoMemory(exhausted)) => {
                let mut context = exhausted.context();
                context["server"] = json!(server);
                context
            }
            Self::NotConnected(server, _) | Self::Failed(server, _) => {
                let mut context = json!({ "server": server });
                if let lines @ [_, ..] = self.last_lines().as_slice() {
                    context["stderr"] = json!(lines);
                }
                if let Some(asked) = self.retry_after() {
                    context["status"] = json!(asked.status.as_u16());
                    context["retryAfterMs"] = json!(asked.wait.as_millis());
                }
                context
            }
        };
        let error = RpcError::new(self.rpc_code(), self.code(), chain(self))
            .suggest(self.hint())
            .context(context);
        let required = match self {
            Self::Unanswered(_, InputRefusal::UrlNotDeclared) => {
                json!({ "elicitation": { "url": {} } })
            }
            Self::Unanswered(_, InputRefusal::Undeclared(capability)) => {
                json!({ *capability: {} })
            }
            Self::Untranslatable(_, TranslationError::TaskRequired) => {
                json!({ "extensions": { TASKS: {} } })
            }
            _ => return error,
        };
        error.detail("requiredCapabilities", required)
    }
}

/// Returns the remedy for a disabled server.
fn enable(server: &str) -> String {
    format!("Run `metamcp enable {server}`.")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::pool::BreakerOpen;

    use super::*;
    use crate::server_name::ServerName;

    #[test]
    fn the_error_names_the_capability_that_the_client_must_declare() {
        let server = ServerName::new("git").expect("a name");
        let source = InputRefusal::Undeclared("sampling");
        let rendered = CallError::Unanswered(server, source).to_rpc().render(Some("1"));
        let rendered: serde_json::Value = serde_json::from_slice(&rendered).expect("JSON");
        assert_eq!(rendered["error"]["code"], CAPABILITY_REQUIRED);
        let required = &rendered["error"]["data"]["requiredCapabilities"];
        assert_eq!(required, &json!({ "sampling": {} }));
    }

    #[test]
    fn the_error_of_an_open_breaker_states_the_cause_and_the_time_until_the_next_attempt() {
        let server = ServerName::new("git").expect("a name");
        let open = |cause: Option<&str>| BreakerOpen {
            retry_in: Duration::from_millis(12_300),
            cause: cause.map(Into::into),
        };
        let error = CallError::Tripped(server.clone(), open(None));
        assert_eq!(
            error.to_string(),
            "server `git` is not available: it failed repeatedly; next attempt in 13 s"
        );
        let error = CallError::Tripped(server, open(Some("its process exited with code 1")));
        let rendered = error.to_rpc().render(Some("1"));
        let rendered: serde_json::Value = serde_json::from_slice(&rendered).expect("JSON");
        assert_eq!(
            rendered["error"]["message"],
            "server `git` is not available: its process exited with code 1; next attempt in 13 s"
        );
        assert_eq!(rendered["error"]["data"]["code"], "SERVER_TRIPPED");
        assert_eq!(rendered["error"]["data"]["context"]["retryAfterMs"], 12_300);
    }

    #[test]
    fn the_error_of_an_upstream_that_asks_for_a_wait_states_it() {
        let server = ServerName::new("git").expect("a name");
        let status = hyper::StatusCode::TOO_MANY_REQUESTS;
        let asked = RetryAfter { status, wait: Duration::from_secs(90) };
        let error = CallError::Failed(server, RequestFailure::RetryAfter(asked)).to_rpc();
        assert_eq!(
            error.message,
            "request to server `git` failed: the upstream asks to wait 90 s (HTTP 429), and the request can wait no longer"
        );
        assert_eq!(
            (error.name, error.context["retryAfterMs"].as_u64()),
            ("UPSTREAM_BUSY", Some(90_000))
        );
    }

    #[test]
    fn operators_get_different_codes_for_a_pause_a_lack_of_room_and_a_failure() {
        let server = || ServerName::new("git").expect("a name");
        let code = |error: CallError| (error.to_rpc().code, error.to_operator().code);
        let open = BreakerOpen { retry_in: Duration::from_secs(1), cause: None };
        let tripped = CallError::Tripped(server(), open);
        assert_eq!(code(tripped), (INTERNAL_ERROR, SERVER_PAUSED));
        let failed = |source| CallError::Failed(server(), source);
        assert_eq!(code(failed(RequestFailure::Saturated)), (INTERNAL_ERROR, NO_ROOM));
        assert_eq!(code(failed(RequestFailure::Unresponsive)), (INTERNAL_ERROR, SERVER_FAILED));
        let busy = SlotError::Busy(server(), 1);
        let busy = CallError::NotConnected(server(), busy);
        assert_eq!(code(busy), (INTERNAL_ERROR, NO_ROOM));
        let closing = SlotError::Closing(server());
        let closing = CallError::NotConnected(server(), closing);
        assert_eq!(code(closing), (INTERNAL_ERROR, SERVER_FAILED));
        let late = failed(RequestFailure::Timeout(Duration::from_secs(1)));
        assert_eq!(code(late), (REQUEST_TIMEOUT, REQUEST_TIMEOUT), "it has a code of its own");
    }
}
