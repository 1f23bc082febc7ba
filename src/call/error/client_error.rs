//! The error for a client: its name, a hint, and its context.

use serde_json::json;

use super::{CallError, InputRefusal, TranslationError};
use crate::{
    compute_pool::ComputeError,
    config::defaults,
    connection::RequestFailure,
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
            Self::MissingParameter { .. } => "MISSING_PARAMETER",
            Self::UnknownResource { .. } => "RESOURCE_NOT_FOUND",
            Self::UnknownCursor { .. } => "INVALID_CURSOR",
            Self::NoList { .. } => "LIST_UNUSABLE",
            Self::TooManyWatched { .. } => "TOO_MANY_SUBSCRIPTIONS",
            Self::UnknownLevel { .. } => "INVALID_LEVEL",
            Self::UnknownMethod { .. } => "METHOD_NOT_FOUND",
            Self::NoSession { .. } => "SESSION_REQUIRED",
            Self::Untranslatable { source: TranslationError::NoCounterpart { .. }, .. } => {
                "NOT_IN_SERVERS_VERSION"
            }
            Self::Untranslatable {
                source: TranslationError::UnknownState | TranslationError::OtherRequest,
                ..
            } => "UNKNOWN_STATE",
            Self::Unanswered {
                source:
                    InputRefusal::Refused { .. }
                    | InputRefusal::Undeclared { .. }
                    | InputRefusal::NoVisits,
                ..
            }
            | Self::Untranslatable { source: TranslationError::TaskRequired, .. } => {
                "CAPABILITY_REQUIRED"
            }
            Self::Unanswered { source: InputRefusal::OutOfPlace { .. }, .. } => {
                "QUESTION_OUT_OF_PLACE"
            }
            Self::Unanswered { source: InputRefusal::Error { .. }, .. } => "CLIENT_REFUSED",
            Self::Unanswered { source: InputRefusal::Gone { .. }, .. } => "CLIENT_GONE",
            Self::Unanswered {
                source: InputRefusal::TooMany { .. } | InputRefusal::Full, ..
            } => "TOO_MANY_QUESTIONS",
            Self::Overloaded { source } | Self::NotComputed { source, .. } => match source {
                ComputeError::Full => "SERVICE_BUSY",
                ComputeError::Panicked => "INTERNAL_ERROR",
            },
            Self::Tripped { .. } => "SERVER_TRIPPED",
            Self::NotConnected { source: SlotError::Closing(_), .. } => "SERVER_CLOSED",
            Self::NotConnected { source: SlotError::Busy { .. }, .. } => "SERVER_BUSY",
            Self::NotConnected { source: SlotError::Exhausted { .. }, .. } => "POOL_EXHAUSTED",
            Self::NotConnected { source: SlotError::SessionRequired(_), .. } => "SESSION_REQUIRED",
            Self::NotConnected { source: SlotError::SessionEnded(_), .. } => "SESSION_ENDED",
            Self::NotConnected { source: SlotError::Dial { error, .. }, .. } => error.code(),
            Self::Failed { source, .. } => source.code(),
        }
    }

    /// Returns a hint for the caller.
    pub fn hint(&self) -> String {
        // Longer than 60 lines: one `match` over all variants.
        match self {
            Self::Unqualified { similar, .. } | Self::UnknownServer { similar, .. } => {
                match similar.first() {
                    Some(nearest) => format!("Did you mean `{nearest}`?"),
                    None => "Names have the form `server__tool`: see `tools/list`.".to_owned(),
                }
            }
            Self::MissingParameter { parameter, .. } => format!("Add `params.{parameter}`."),
            Self::UnknownResource { .. } => "See `resources/list`.".to_owned(),
            Self::UnknownCursor { .. } => {
                "Ask for the list without a cursor: it may have changed.".to_owned()
            }
            Self::NoList { .. } => "Ask again: the list is read anew.".to_owned(),
            Self::TooManyWatched { .. } => "Unsubscribe from some first.".to_owned(),
            Self::UnknownLevel { .. } => {
                let names = LoggingLevel::ALL.map(LoggingLevel::name).join(", ");
                format!("Use one of {names}.")
            }
            Self::UnknownMethod { hint, .. } => (*hint).to_owned(),
            Self::Untranslatable { source: TranslationError::NoCounterpart { .. }, .. } => {
                "Use a server, or a client, of the other protocol version.".to_owned()
            }
            Self::Untranslatable {
                source: TranslationError::UnknownState | TranslationError::OtherRequest,
                ..
            } => {
                "Send the request again without `requestState` and `inputResponses`.".to_owned()
            }
            Self::Untranslatable { source: TranslationError::TaskRequired, .. } => {
                format!("Declare the extension `{TASKS}` with the request, and poll `tasks/get`.")
            }
            Self::Unanswered { source: InputRefusal::Refused { .. }, .. } => {
                "Declare the capability in `initialize`, send the session id, and accept \
                 `text/event-stream`."
                    .to_owned()
            }
            Self::Unanswered { source: InputRefusal::Undeclared { capability }, .. } => {
                format!("Declare the capability `{capability}` with the request.")
            }
            Self::Unanswered { source: InputRefusal::NoVisits, .. } => {
                "Declare the capability `elicitation.url` with the request.".to_owned()
            }
            Self::Unanswered { source: InputRefusal::OutOfPlace { .. }, .. } => {
                "Tell whoever maintains the server: it breaks the protocol.".to_owned()
            }
            Self::Unanswered { .. } => "Call again, and answer what the server asks.".to_owned(),
            Self::NotComputed { source: ComputeError::Full, .. } => {
                "The server has done what it was asked: call it again only if it may do that twice. \
                 Ask for a smaller answer, or when fewer calls run."
                    .to_owned()
            }
            Self::Overloaded { source: ComputeError::Full } => {
                "Ask again when fewer requests run.".to_owned()
            }
            Self::Overloaded { source: ComputeError::Panicked }
            | Self::NotComputed { source: ComputeError::Panicked, .. } => {
                "This is a bug of metamcp: report it, with what its log says.".to_owned()
            }
            Self::Tripped { .. } => {
                "Call again after that time. `metamcp status` shows what is wrong with the server."
                    .to_owned()
            }
            Self::NotConnected { source: SlotError::Closing(_), .. } => {
                "The service stops, or no longer has this server: list the tools anew, then call again."
                    .to_owned()
            }
            Self::NotConnected { source: SlotError::Busy { .. }, .. } => {
                "Call again when others are done, or raise `max_connections` of this server."
                    .to_owned()
            }
            Self::NotConnected { source: SlotError::Exhausted { .. }, .. } => {
                "Call again when others are done, or raise `pool.size` or `pool.reserve_size`."
                    .to_owned()
            }
            Self::NoSession { .. } => {
                "Send the `Mcp-Session-Id` that `initialize` answers with.".to_owned()
            }
            Self::NotConnected { source: SlotError::SessionRequired(_), .. } => {
                "The client must send the `Mcp-Session-Id` that `initialize` answers with. For one \
                 that cannot, the operator can set another `sharing` for this server."
                    .to_owned()
            }
            Self::NotConnected { source: SlotError::SessionEnded(_), .. } => {
                "Open another session with `initialize`.".to_owned()
            }
            Self::NotConnected { source: SlotError::Dial { error, .. }, .. } => {
                error.hint().into_owned()
            }
            Self::Failed { source, .. } => source.hint().into_owned(),
        }
    }

    /// Returns the last stderr lines of a server that has ended, oldest first, each cut to
    /// [`defaults::QUOTE_BYTES_MAX`].
    fn last_words(&self) -> Vec<&str> {
        let lines = if let Self::NotConnected { source: SlotError::Dial { error, .. }, .. } = self {
            error.last_lines()
        } else if let Self::Failed { source, .. } = self {
            source.last_lines()
        } else {
            &[]
        };
        lines.iter().map(|line| redact::cut(line, defaults::QUOTE_BYTES_MAX)).collect()
    }

    /// Returns the JSON-RPC code.
    fn rpc_code(&self) -> i64 {
        match self {
            Self::Unqualified { .. }
            | Self::UnknownServer { .. }
            | Self::MissingParameter { .. }
            | Self::TooManyWatched { .. }
            | Self::UnknownLevel { .. }
            | Self::Untranslatable {
                source: TranslationError::UnknownState | TranslationError::OtherRequest,
                ..
            }
            | Self::Unanswered { source: InputRefusal::Refused { .. }, .. }
            | Self::UnknownCursor { .. } => INVALID_PARAMS,
            Self::Unanswered {
                source: InputRefusal::NoVisits | InputRefusal::Undeclared { .. },
                ..
            }
            | Self::Untranslatable { source: TranslationError::TaskRequired, .. } => {
                CAPABILITY_REQUIRED
            }
            Self::UnknownResource { .. } => RESOURCE_NOT_FOUND,
            Self::UnknownMethod { .. }
            | Self::Untranslatable { source: TranslationError::NoCounterpart { .. }, .. } => {
                METHOD_NOT_FOUND
            }
            Self::NoSession { .. } | Self::Failed { source: RequestFailure::TooDeep, .. } => {
                INVALID_REQUEST
            }
            Self::Failed {
                source: RequestFailure::Timeout { .. } | RequestFailure::NotInTime { .. },
                ..
            } => REQUEST_TIMEOUT,
            Self::NotConnected { source: SlotError::Dial { error, .. }, .. }
                if error.code() == "TIMEOUT" =>
            {
                REQUEST_TIMEOUT
            }
            Self::NoList { .. }
            | Self::Unanswered { .. }
            | Self::Overloaded { .. }
            | Self::NotComputed { .. }
            | Self::Tripped { .. }
            | Self::NotConnected { .. }
            | Self::Failed { .. } => INTERNAL_ERROR,
        }
    }

    /// Returns the JSON-RPC code for operators, whose programs distinguish failures. Clients get an
    /// internal error for all of these, like from the MCP SDKs.
    fn operator_code(&self) -> i64 {
        match (self.rpc_code(), self) {
            (INTERNAL_ERROR, Self::Tripped { .. }) => SERVER_PAUSED,
            (INTERNAL_ERROR, Self::Overloaded { .. })
            | (
                INTERNAL_ERROR,
                Self::NotConnected {
                    source: SlotError::Busy { .. } | SlotError::Exhausted { .. },
                    ..
                }
                | Self::Failed {
                    source: RequestFailure::Saturated | RequestFailure::NoMemory(_),
                    ..
                },
            ) => NO_ROOM,
            (INTERNAL_ERROR, Self::NotConnected { .. } | Self::Failed { .. }) => SERVER_FAILED,
            (code, _) => code,
        }
    }

    /// Returns the error for an operator. If a server could not be connected, the name says so, and
    /// the context contains the detailed reason.
    pub fn to_operator(&self) -> RpcError {
        let mut error = self.to_rpc();
        error.code = self.operator_code();
        match self {
            Self::NotConnected {
                source: SlotError::Dial { .. } | SlotError::Closing(_), ..
            } => {
                error.context["reason"] = json!(error.name);
                error.name = "SERVER_NOT_CONNECTED";
            }
            Self::UnknownServer { similar, .. } if similar.is_empty() => {
                error.suggestion = Some("See `servers/list`.".to_owned());
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
            Self::MissingParameter { method, parameter } => {
                json!({ "method": method, "parameter": parameter })
            }
            Self::UnknownResource { uri } => json!({ "uri": uri }),
            Self::UnknownCursor { cursor } => json!({ "cursor": cursor }),
            Self::NoList { server, method, .. } => json!({ "server": server, "method": method }),
            Self::TooManyWatched { max } => json!({ "max": max }),
            Self::UnknownLevel { level } => json!({ "level": level }),
            Self::Overloaded { .. } => json!({}),
            Self::UnknownMethod { method, .. } | Self::NoSession { method } => {
                json!({ "method": method })
            }
            Self::NotConnected { server, source: SlotError::Exhausted { holders, .. } } => {
                json!({ "server": server, "holders": holders })
            }
            Self::Untranslatable { server, .. }
            | Self::Unanswered { server, .. }
            | Self::NotComputed { server, .. } => {
                json!({ "server": server })
            }
            Self::Tripped { server, retry_in } => {
                let retry_after_ms = u64::try_from(retry_in.as_millis()).unwrap_or(u64::MAX);
                // The second name is that of version 0.1. The next version removes it.
                json!({ "server": server, "retryAfterMs": retry_after_ms, "retry_in_ms": retry_after_ms })
            }
            Self::Failed { server, source: RequestFailure::NoMemory(exhausted) } => {
                let mut context = exhausted.context();
                context["server"] = json!(server);
                context
            }
            Self::NotConnected { server, .. } | Self::Failed { server, .. } => {
                match self.last_words().as_slice() {
                    [] => json!({ "server": server }),
                    lines => json!({ "server": server, "stderr": lines }),
                }
            }
        };
        let error = RpcError::new(self.rpc_code(), self.code(), chain(self))
            .suggest(self.hint())
            .context(context);
        let required = match self {
            Self::Unanswered { source: InputRefusal::NoVisits, .. } => {
                json!({ "elicitation": { "url": {} } })
            }
            Self::Unanswered { source: InputRefusal::Undeclared { capability }, .. } => {
                json!({ *capability: {} })
            }
            Self::Untranslatable { source: TranslationError::TaskRequired, .. } => {
                json!({ "extensions": { TASKS: {} } })
            }
            _ => return error,
        };
        error.detail("requiredCapabilities", required)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::server_name::ServerName;

    #[test]
    fn a_client_is_told_which_capability_it_takes() {
        let server = ServerName::new("git").expect("a name");
        let source = InputRefusal::Undeclared { capability: "sampling" };
        let shown = CallError::Unanswered { server, source }.to_rpc().render(Some("1"));
        let shown: serde_json::Value = serde_json::from_slice(&shown).expect("JSON");
        assert_eq!(shown["error"]["code"], CAPABILITY_REQUIRED);
        let required = &shown["error"]["data"]["requiredCapabilities"];
        assert_eq!(required, &json!({ "sampling": {} }));
    }

    #[test]
    fn a_server_that_is_left_alone_is_told_with_the_time_until_its_probe() {
        let server = ServerName::new("git").expect("a name");
        let error = CallError::Tripped { server, retry_in: Duration::from_millis(12_300) };
        let shown = error.to_rpc().render(Some("1"));
        let shown: serde_json::Value = serde_json::from_slice(&shown).expect("JSON");
        assert_eq!(
            shown["error"]["message"],
            "server `git` is temporarily unavailable: breaker open, next probe in 13 s"
        );
        assert_eq!(shown["error"]["data"]["code"], "SERVER_TRIPPED");
        assert_eq!(shown["error"]["data"]["context"]["retryAfterMs"], 12_300);
    }

    #[test]
    fn an_operator_tells_a_pause_from_a_lack_of_room_and_from_a_failure() {
        let server = || ServerName::new("git").expect("a name");
        let code = |error: CallError| (error.to_rpc().code, error.to_operator().code);
        let tripped = CallError::Tripped { server: server(), retry_in: Duration::from_secs(1) };
        assert_eq!(code(tripped), (INTERNAL_ERROR, SERVER_PAUSED));
        let failed = |source| CallError::Failed { server: server(), source };
        assert_eq!(code(failed(RequestFailure::Saturated)), (INTERNAL_ERROR, NO_ROOM));
        assert_eq!(code(failed(RequestFailure::Unresponsive)), (INTERNAL_ERROR, SERVER_FAILED));
        let busy = SlotError::Busy { server: server(), max: 1 };
        let busy = CallError::NotConnected { server: server(), source: busy };
        assert_eq!(code(busy), (INTERNAL_ERROR, NO_ROOM));
        let closing = SlotError::Closing(server());
        let closing = CallError::NotConnected { server: server(), source: closing };
        assert_eq!(code(closing), (INTERNAL_ERROR, SERVER_FAILED));
        let late = failed(RequestFailure::Timeout { after: Duration::from_secs(1) });
        assert_eq!(code(late), (REQUEST_TIMEOUT, REQUEST_TIMEOUT), "it has a code of its own");
    }
}
