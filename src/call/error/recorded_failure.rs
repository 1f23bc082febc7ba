//! The failures of requests as the records of their calls tell them.
//!
//! A record never has arguments or results. Text of a client or a server may repeat them: a body, an
//! error object, a URI, a journal. So each variant is decided here by name, and a new one must be.

use super::{CallError, InputRefusal, TranslationError};
use crate::{
    call_record::RecordedFailure,
    child::{ErrorOutput, StdioServerKind},
    connection::{ConnectError, RequestFailure},
    error_report::chain,
    oauth::{AuthorizationFailure, LoginRequired},
    pool::{BreakerOpen, SlotError},
    protocol::payloads::ServerProfileError,
};

impl CallError {
    /// Returns the failure as the record of its call tells it.
    pub fn to_record(&self) -> RecordedFailure {
        RecordedFailure { code: self.code(), fault: self.fault(), cause: self.recorded_cause() }
    }

    fn recorded_cause(&self) -> String {
        match self {
            // They name a server, a tool or a prompt, as the record does, and a known method.
            Self::Unqualified { .. }
            | Self::UnknownServer { .. }
            | Self::DisabledServer { .. }
            | Self::MissingParameter { .. }
            | Self::NoSession(_)
            | Self::TooManyWatched(_)
            | Self::UnknownMethod { .. }
            | Self::Overloaded(_)
            | Self::NotComputed(..) => chain(self),
            Self::UnknownResource(_) => "no server lists the resource".to_owned(),
            Self::UnknownCursor(_) => "the list has no such page".to_owned(),
            Self::UnknownLevel(_) => "there is no such log level".to_owned(),
            Self::NoList { server, method, .. } => {
                format!("server `{server}` did not answer `{method}` with a list")
            }
            // The cause is that of an earlier call, and in its record.
            Self::Tripped(server, open) => {
                let open = BreakerOpen { cause: None, ..open.clone() };
                Self::Tripped(server.clone(), open).to_string()
            }
            Self::NotConnected(_, error) => of_slot(error),
            Self::Untranslatable(_, source) => match source {
                // It names a known method.
                TranslationError::NoCounterpart(..)
                | TranslationError::UnknownState
                | TranslationError::OtherRequest
                | TranslationError::TaskRequired => chain(self),
            },
            Self::Unanswered(_, source) => format!("{self}: {}", of_refusal(source)),
            Self::Failed(_, source) => format!("{self}: {}", of_failure(source)),
        }
    }
}

fn of_slot(error: &SlotError) -> String {
    match error {
        SlotError::Dial { error, .. } => of_connecting(error),
        SlotError::Closing(_)
        | SlotError::Busy(..)
        | SlotError::Exhausted { .. }
        | SlotError::SessionRequired(_)
        | SlotError::SessionEnded(_) => error.to_string(),
    }
}

/// Returns the cause of a failure before a client's request was sent.
fn of_connecting(error: &ConnectError) -> String {
    match error {
        // Text of metamcp, of the configuration and of the system.
        ConnectError::Secret { .. }
        | ConnectError::Launch { .. }
        | ConnectError::Header { .. }
        | ConnectError::Connector { .. } => chain(error),
        ConnectError::Endpoint { server, .. } => format!(
            "cannot connect to server `{server}`: it names a message address of another origin"
        ),
        ConnectError::Handshake { source, .. } => format!("{error}: {}", of_failure(source)),
        ConnectError::Refused { server, request, .. } => {
            format!("cannot connect to server `{server}`: it refused `{request}`")
        }
        ConnectError::Profile { source, .. } => match source {
            ServerProfileError::NoVersion | ServerProfileError::NoVersions => chain(error),
            ServerProfileError::Version(_) => {
                format!(
                    "{error}: it answered with a protocol version that metamcp does not support"
                )
            }
        },
    }
}

fn of_failure(failure: &RequestFailure) -> String {
    match failure {
        // A process is quoted from before the first request of a client. The journal of a unit has
        // the lines of all of its instances.
        RequestFailure::Exited { kind: StdioServerKind::Process, .. }
        | RequestFailure::HungUp { kind: StdioServerKind::Process, .. } => failure.to_string(),
        RequestFailure::Exited { kind, exit, .. } => {
            let (kind, output) = (kind.clone(), ErrorOutput::default());
            RequestFailure::Exited { kind, exit: *exit, output }.to_string()
        }
        RequestFailure::HungUp { kind, pipe, exit, .. } => {
            let (kind, output) = (kind.clone(), ErrorOutput::default());
            RequestFailure::HungUp { kind, pipe: *pipe, exit: *exit, output }.to_string()
        }
        RequestFailure::Redirected(status, _) => {
            format!("the upstream answered HTTP {status}: it redirects to another address")
        }
        RequestFailure::Status(status, _) => format!("the upstream answered HTTP {status}"),
        RequestFailure::BrokenOff(_) => "the upstream's answer broke off".to_owned(),
        RequestFailure::Unauthorized(failure) => match failure {
            AuthorizationFailure::LoginRequired(LoginRequired { server, .. }) => {
                format!("server `{server}` requires a login")
            }
            AuthorizationFailure::Unavailable { server, .. } => {
                format!("cannot get a token for server `{server}`")
            }
        },
        // Text of metamcp, and of the system about a connection that was not made.
        RequestFailure::Closed
        | RequestFailure::Gone
        | RequestFailure::Connect(_)
        | RequestFailure::WebPage(_)
        | RequestFailure::SessionLost(_)
        | RequestFailure::EraLost(_)
        | RequestFailure::Unresponsive
        | RequestFailure::RetryAfter(_)
        | RequestFailure::Oversized(_)
        | RequestFailure::AnswerTooDeep
        | RequestFailure::HeadersTooLarge(_)
        | RequestFailure::TooDeep
        | RequestFailure::Timeout(_)
        | RequestFailure::ConnectTimeout(_)
        | RequestFailure::ClientTooSlow
        | RequestFailure::NoMemory(_)
        | RequestFailure::Saturated => failure.to_string(),
    }
}

fn of_refusal(refusal: &InputRefusal) -> String {
    let text = match refusal {
        InputRefusal::Undeclared(_)
        | InputRefusal::UrlNotDeclared
        | InputRefusal::TooManyHeld
        | InputRefusal::TooManyRounds(_) => return refusal.to_string(),
        // A server chooses the method of its question, and a client the text of its error.
        InputRefusal::Refused(_) => {
            "the client did not declare support for the question, or has no event stream for it"
        }
        InputRefusal::Error { .. } => "the client answered with an error",
        InputRefusal::Gone(_) => "the client did not answer",
        InputRefusal::NotAllowed(_) => "the protocol allows no question before the answer",
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use hyper::StatusCode;
    use proptest::prelude::*;

    use super::*;
    use crate::{child::ChildExit, era::TranslationError, server_name::ServerName};

    fn git() -> ServerName {
        ServerName::new("git").expect("a name")
    }

    fn not_connected(error: ConnectError) -> CallError {
        CallError::NotConnected(git(), SlotError::Dial { attempt: 1, error: Arc::new(error) })
    }

    /// Returns the errors that quote `text` of a client or a server.
    fn quoting(text: &str) -> Vec<CallError> {
        let failed = |failure| CallError::Failed(git(), failure);
        let output = || ErrorOutput { lines: vec![text.to_owned()], is_of_start: false };
        let unit = || StdioServerKind::Unit("git".into());
        let login = LoginRequired { server: git(), why: text.into() };
        let open = BreakerOpen { retry_in: Duration::ZERO, cause: Some(text.into()) };
        let request = "initialize";
        let handshake = RequestFailure::Status(StatusCode::BAD_GATEWAY, text.into());
        let version = ServerProfileError::Version(text.to_owned());
        let refused = InputRefusal::Error { method: "x".to_owned(), error: text.to_owned() };
        vec![
            failed(RequestFailure::Status(StatusCode::INTERNAL_SERVER_ERROR, text.into())),
            failed(RequestFailure::Status(StatusCode::OK, text.into())),
            failed(RequestFailure::Redirected(StatusCode::FOUND, text.into())),
            failed(RequestFailure::BrokenOff(text.into())),
            failed(RequestFailure::Unauthorized(login.into())),
            failed(RequestFailure::Unauthorized(AuthorizationFailure::Unavailable {
                server: git(),
                why: text.into(),
            })),
            failed(RequestFailure::Exited {
                kind: unit(),
                exit: ChildExit::Unknown,
                output: output(),
            }),
            CallError::UnknownResource(text.to_owned()),
            CallError::UnknownCursor(text.to_owned()),
            CallError::UnknownLevel(text.to_owned()),
            CallError::NoList { server: git(), method: "tools/list", answer: text.to_owned() },
            CallError::Tripped(git(), open),
            CallError::Unanswered(git(), refused),
            CallError::Unanswered(git(), InputRefusal::Gone(text.to_owned())),
            CallError::Unanswered(git(), InputRefusal::Refused(text.to_owned())),
            not_connected(ConnectError::Refused {
                server: git(),
                request,
                answer: text.to_owned(),
            }),
            not_connected(ConnectError::Endpoint { server: git(), endpoint: text.to_owned() }),
            not_connected(ConnectError::Profile { server: git(), request, source: version }),
            not_connected(ConnectError::Handshake { server: git(), request, source: handshake }),
        ]
    }

    #[test]
    fn the_answer_to_a_client_quotes_a_server_and_the_record_of_the_call_does_not() {
        for error in quoting("error handling {\"p\": \"CANARY\"}") {
            assert!(error.to_rpc().message.contains("CANARY"), "{error:?}");
            let failure = error.to_record();
            assert!(!failure.cause.contains("CANARY"), "{failure:?}");
            assert_eq!((failure.code, failure.fault), (error.code(), error.fault()));
            assert!(failure.cause.len() > 10, "{failure:?}");
        }
    }

    #[test]
    fn a_record_tells_the_status_of_an_upstream_and_the_output_before_the_first_request() {
        let status = RequestFailure::Status(StatusCode::INTERNAL_SERVER_ERROR, "no".into());
        let cause = |failure| CallError::Failed(git(), failure).to_record().cause;
        assert_eq!(
            cause(status),
            "request to server `git` failed: the upstream answered HTTP 500 Internal Server Error"
        );
        let output = ErrorOutput { lines: vec!["no token".to_owned()], is_of_start: true };
        let exited = RequestFailure::Exited {
            kind: StdioServerKind::Process,
            exit: ChildExit::Unknown,
            output,
        };
        assert!(cause(exited).contains("no token"));
        let state = CallError::Untranslatable(git(), TranslationError::UnknownState);
        assert!(state.to_record().cause.contains("requestState"));
    }

    proptest! {
        #[test]
        fn a_record_has_nothing_of_a_uri_of_any_length(
            scheme in "[a-z]{3,8}://",
            rest in "[A-Z0-9\"\\\\\u{1}\u{e9}%/?=]{12,40}",
            repeated in 1..200usize,
        ) {
            let uri = scheme + &rest.repeat(repeated);
            let shown = crate::redact::cut(&uri, 256).to_owned();
            for error in quoting(&uri).into_iter().chain(quoting(&shown)) {
                let cause = error.to_record().cause;
                let start: String = rest.chars().take(9).collect();
                prop_assert!(!cause.contains(&start), "{}", cause);
            }
        }
    }
}
