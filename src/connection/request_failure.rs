//! The reasons why a request got no answer from its server.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use hyper::StatusCode;

use super::RetryAfter;
use crate::{
    child::{ChildExit, ErrorOutput, StdioServerKind},
    config::defaults,
    error_report::{appended, chain},
    fault_class::Fault,
    http_client::{DialError, HttpSendError},
    memory_budget::{MEMORY_EXHAUSTED, MemoryExhausted},
    oauth::AuthorizationFailure,
    protocol::nesting_depth::DEPTH_MAX,
    server_name::ServerName,
    time_format::to_the_millisecond,
};

/// The reason why a request got no answer from its server.
///
/// Cheap to clone: when a link goes down, each waiter receives it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RequestFailure {
    /// The stdio server ended.
    #[error("the server's {kind} {exit}{}", quote(.kind, .output))]
    Exited {
        /// The kind of server.
        kind: StdioServerKind,
        /// Its exit status, if it is known.
        exit: ChildExit,
        /// Its output on standard error, or the end of its journal.
        output: ErrorOutput,
    },
    /// The stdio server closed one of its pipes and kept running: metamcp ended it.
    #[error("the server's {kind} closed its {pipe} {}{}", and_then(*.exit), quote(.kind, .output))]
    HungUp {
        /// The kind of server.
        kind: StdioServerKind,
        /// The pipe that it closed.
        pipe: StdioPipe,
        /// Its exit status afterwards, if it is known.
        exit: ChildExit,
        /// Its output on standard error.
        output: ErrorOutput,
    },
    /// metamcp closed the connection: a stop, or a reload that changed the server.
    #[error("metamcp closed the connection to stop, or to reload its configuration")]
    Closed,
    /// The connection ended just before the request was sent.
    #[error("the connection ended before the request was sent")]
    Gone,
    /// The upstream cannot be reached.
    #[error("the upstream cannot be reached: {}", chain(&**.0))]
    Connect(Arc<DialError>),
    /// The upstream answers with a redirect, which metamcp does not follow: its status, and the
    /// origin that it names.
    #[error("the upstream answered HTTP {}: it redirects to {}", .0, .1)]
    Redirected(StatusCode, Arc<str>),
    /// The upstream answers with a web page, as portals do that want a login.
    #[error("the upstream answered with a web page (HTTP {0}), and not with a message of MCP")]
    WebPage(StatusCode),
    /// The upstream requires a token that metamcp does not have.
    #[error("{0}")]
    Unauthorized(AuthorizationFailure),
    /// The upstream no longer knows the session of metamcp.
    #[error("the upstream no longer knows the session of metamcp (HTTP {0})")]
    SessionLost(StatusCode),
    /// The upstream no longer speaks the protocol version of the request.
    #[error("the upstream no longer speaks the protocol version of the request (HTTP {0})")]
    EraLost(StatusCode),
    /// The server does not answer pings.
    #[error("the server does not answer pings")]
    Unresponsive,
    /// The upstream's answer is not a JSON-RPC response: its status, and the start of its body.
    #[error("the upstream answered HTTP {}{}", .0, appended(.1))]
    Status(StatusCode, Arc<str>),
    /// The upstream asks for a wait that does not fit into the time of the request.
    #[error("the upstream {0}, and the request can wait no longer")]
    RetryAfter(RetryAfter),
    /// The answer broke off.
    #[error("the upstream's answer broke off: {0}")]
    BrokenOff(Arc<str>),
    /// The answer is larger than metamcp accepts: its length in bytes, as far as it was read.
    #[error("the answer has {} bytes, and metamcp accepts {}", .0, defaults::MESSAGE_BYTES_MAX)]
    Oversized(usize),
    /// The answer is nested deeper than metamcp accepts.
    #[error("the answer is nested deeper than the {DEPTH_MAX} levels that metamcp accepts")]
    AnswerTooDeep,
    /// The headers to pass on are larger than metamcp passes on: their size in bytes.
    #[error(
        "the headers to pass on have {} bytes, and metamcp passes on {}",
        .0,
        defaults::FORWARDED_HEADER_BYTES_MAX
    )]
    HeadersTooLarge(usize),
    /// The request is nested deeper than metamcp sends.
    #[error("the request is nested deeper than the {DEPTH_MAX} levels that metamcp sends")]
    TooDeep,
    /// The answer did not come within this time.
    #[error("no answer within {}", to_the_millisecond(*.0))]
    Timeout(Duration),
    /// The connection was not made within this time; the request was not sent.
    #[error("the server was not connected within {}", to_the_millisecond(*.0))]
    ConnectTimeout(Duration),
    /// The client does not read the messages that come before the answer.
    #[error("the client does not read its stream, and too many messages wait for it")]
    ClientTooSlow,
    /// The memory budget has no room for the answer.
    #[error("the answer was dropped: {0}")]
    NoMemory(MemoryExhausted),
    /// The connection has as many requests in flight as it may have.
    #[error(
        "the connection has {} requests in flight, the maximum, and none of them ended in time",
        defaults::IN_FLIGHT_MAX
    )]
    Saturated,
}

/// A pipe of a stdio server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdioPipe {
    /// Its standard input.
    Input,
    /// Its standard output.
    Output,
}

impl fmt::Display for StdioPipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "standard input",
            Self::Output => "standard output",
        })
    }
}

/// Describes the end of a server that had hung up: mostly a signal of metamcp.
fn and_then(exit: ChildExit) -> String {
    match exit {
        ChildExit::Status(status) if status.code().is_some() => format!("and then {exit}"),
        ChildExit::Status(_) | ChildExit::Unknown => "and was ended".to_owned(),
        ChildExit::Pending => "and has not ended yet".to_owned(),
    }
}

fn quote(kind: &StdioServerKind, output: &ErrorOutput) -> String {
    let quoted = output.quoted();
    match kind {
        _ if quoted.is_empty() => String::new(),
        StdioServerKind::Process if output.is_of_start => format!(" (first output: `{quoted}`)"),
        StdioServerKind::Process => format!(" (last output: `{quoted}`)"),
        StdioServerKind::Unit(_) => format!(" (end of its journal: `{quoted}`)"),
    }
}

impl From<HttpSendError> for RequestFailure {
    fn from(error: HttpSendError) -> Self {
        match error {
            HttpSendError::Dial(error) => Self::Connect(error),
            HttpSendError::BrokenOff(error) => Self::BrokenOff(chain(&error).into()),
        }
    }
}

impl RequestFailure {
    /// Returns the last lines of an ended server that clients may read, oldest first.
    pub fn last_lines(&self) -> &[String] {
        match self {
            Self::Exited { output, .. } | Self::HungUp { output, .. } => &output.lines,
            _ => &[],
        }
    }

    /// Returns the cause as a statement about the server: "its process exited with code 1". It has
    /// nothing of the answer to one client, so that other clients may read it.
    pub fn cause(&self) -> String {
        match self {
            Self::Status(status, _) => format!("the upstream answered HTTP {status}"),
            _ => match self.to_string() {
                text if text.starts_with("the server's ") => {
                    text.replacen("the server's ", "its ", 1)
                }
                text if text.starts_with("the server ") => text.replacen("the server ", "it ", 1),
                text => text,
            },
        }
    }

    /// Returns whether metamcp ended the connection itself.
    pub fn is_by_metamcp(&self) -> bool {
        matches!(self, Self::Closed)
    }

    /// Returns whether the request was certainly not executed, so that it may be sent again.
    pub fn is_unexecuted(&self) -> bool {
        matches!(
            self,
            Self::Gone
                | Self::Connect(_)
                | Self::Unauthorized(_)
                | Self::SessionLost(_)
                | Self::EraLost(_)
                | Self::HeadersTooLarge(_)
                | Self::TooDeep
                | Self::ConnectTimeout(_)
                | Self::Saturated
        )
    }

    /// Returns whether sending the request again on a new connection is safe and can help.
    pub fn is_replayable(&self) -> bool {
        self.is_unexecuted()
            && !matches!(
                self,
                Self::HeadersTooLarge(_)
                    | Self::TooDeep
                    | Self::Saturated
                    | Self::ConnectTimeout(_)
                    | Self::Unauthorized(_)
            )
            && !self.is_busy()
    }

    /// Returns whether the upstream has no room for the request. Its connections and its session
    /// are not affected.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Connect(error) if error.is_busy())
    }

    /// Returns whether the server was lost during the request, which may have been executed or not.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Exited { .. } | Self::HungUp { .. } | Self::BrokenOff(_))
    }

    /// Returns whether the upstream requires a login.
    pub fn is_login_required(&self) -> bool {
        matches!(self, Self::Unauthorized(AuthorizationFailure::LoginRequired(_)))
    }

    /// Returns the kind of failure.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Exited { .. } | Self::HungUp { .. } => Fault::StdioExit,
            Self::Gone
            | Self::Connect(_)
            | Self::Unresponsive
            | Self::BrokenOff(_)
            | Self::Timeout(_)
            | Self::ConnectTimeout(_) => Fault::Offline,
            Self::Unauthorized(_) => Fault::Auth,
            Self::Redirected(..) | Self::WebPage(_) => Fault::Other,
            Self::SessionLost(_) | Self::EraLost(_) => Fault::Http,
            Self::Status(status, _) => Fault::of_status(*status),
            Self::RetryAfter(_) => Fault::Throttled,
            Self::Oversized(_) | Self::AnswerTooDeep => Fault::Protocol,
            Self::Closed
            | Self::HeadersTooLarge(_)
            | Self::TooDeep
            | Self::ClientTooSlow
            | Self::NoMemory(_)
            | Self::Saturated => Fault::Cancelled,
        }
    }

    /// Returns whether the cause of this failure ends other requests on the connection too.
    pub fn is_shared(&self) -> bool {
        matches!(
            self,
            Self::Exited { .. }
                | Self::HungUp { .. }
                | Self::Closed
                | Self::Gone
                | Self::Connect(_)
                | Self::SessionLost(_)
                | Self::EraLost(_)
                | Self::Unresponsive
                | Self::BrokenOff(_)
        )
    }

    /// Returns the stable code of the failure.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Exited { .. } => "SERVER_EXITED",
            Self::HungUp { .. } => "SERVER_HUNG_UP",
            Self::Closed => "SERVER_CLOSED",
            Self::Gone => "SERVER_GONE",
            Self::Connect(_) => "SERVER_UNREACHABLE",
            Self::Unauthorized(failure) => failure.code(),
            Self::Redirected(..) => "UPSTREAM_REDIRECT",
            Self::WebPage(_) => "UPSTREAM_WEB_PAGE",
            Self::SessionLost(_) => "SESSION_LOST",
            Self::EraLost(_) => "ERA_LOST",
            Self::Unresponsive => "SERVER_UNRESPONSIVE",
            Self::Status(..) => "UPSTREAM_STATUS",
            Self::RetryAfter(_) => "UPSTREAM_BUSY",
            Self::BrokenOff(_) => "ANSWER_BROKEN_OFF",
            Self::Oversized(_) => "ANSWER_TOO_LARGE",
            Self::AnswerTooDeep => "ANSWER_TOO_DEEP",
            Self::HeadersTooLarge(_) => "HEADERS_TOO_LARGE",
            Self::TooDeep => "TOO_DEEP",
            Self::Timeout(_) | Self::ConnectTimeout(_) => "TIMEOUT",
            Self::ClientTooSlow => "CLIENT_TOO_SLOW",
            Self::NoMemory(_) => MEMORY_EXHAUSTED,
            Self::Saturated => "SERVER_SATURATED",
        }
    }

    /// Returns the next step for the caller of `server`.
    pub fn hint(&self, server: &ServerName) -> Cow<'static, str> {
        let hint = match self {
            Self::Exited { kind: StdioServerKind::Process, .. } => {
                return format!(
                    "Call again: metamcp starts the server again. See its log: `metamcp logs --server {server}`."
                )
                .into();
            }
            Self::Exited { kind: StdioServerKind::Unit(name), .. } => {
                return format!(
                    "Call again: systemd starts the server again. See its log: `journalctl -u '{name}@*'`."
                )
                .into();
            }
            Self::HungUp { .. } => {
                "Call again: metamcp starts the server again. A server must keep its pipes open while it serves: see its log."
            }
            Self::Closed | Self::Gone => {
                "List the tools again, then call: metamcp is stopping, or no longer has this server."
            }
            Self::Unauthorized(failure) => return failure.hint(),
            Self::Connect(error) => error.hint(),
            Self::Redirected(..) => {
                "Set `url` to the address that the redirect leads to, if that is an MCP endpoint. A page for logins means that the upstream wants other credentials."
            }
            Self::WebPage(_) => {
                "Check the path of `url`. A page for logins means that the upstream wants other credentials, or that this host is not allowed."
            }
            Self::SessionLost(_) => "Call again: metamcp opens a new session.",
            Self::EraLost(_) => {
                "Call again: metamcp connects in the version that the upstream speaks now."
            }
            Self::Unresponsive => "Call again: metamcp reconnects to the server. See its log.",
            Self::Status(status, _) if matches!(status.as_u16(), 401 | 403) => {
                "Check the credentials in `headers` of this server."
            }
            Self::Status(..) => "Check `url`, and see the log of the upstream.",
            Self::RetryAfter(_) => {
                "Call again after that time. With a longer `request_timeout`, metamcp waits itself."
            }
            Self::BrokenOff(_) => "The call may have been executed: check before you repeat it.",
            Self::Oversized(_) => "Ask the tool for less at a time.",
            Self::AnswerTooDeep => "Ask the tool for a part of it with fewer levels.",
            Self::HeadersTooLarge(_) => {
                "Send shorter values in the headers that `forward_headers` of this server names."
            }
            Self::TooDeep => "Use fewer levels, or send the inner part as a string.",
            Self::Timeout(_) => {
                "The call may still be running: check before you repeat it, or raise `request_timeout`."
            }
            Self::ConnectTimeout(_) => {
                "Call again: the server is still starting. Set `start = \"eager\"` to start it with the service."
            }
            Self::ClientTooSlow => {
                "Read the stream of a request while it runs, or ask for no progress."
            }
            Self::NoMemory(_) => {
                "The call was executed: check before you repeat it. Try later, or ask for less at a time. The operator can raise `service.memory_max`."
            }
            Self::Saturated => "Wait for running calls to finish.",
        };
        hint.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16) -> RequestFailure {
        let status = StatusCode::from_u16(code).expect("a status");
        RequestFailure::Status(status, "".into())
    }

    #[test]
    fn a_timeout_is_written_in_seconds_or_milliseconds() {
        for (after, words) in [
            (Duration::from_nanos(295_452_476), "295 ms"),
            (Duration::from_secs(60), "60 s"),
            (Duration::from_nanos(1_500_400_000), "1.5 s"),
        ] {
            let text = RequestFailure::Timeout(after).to_string();
            assert_eq!(text, format!("no answer within {words}"));
        }
    }

    #[test]
    fn each_request_failure_has_one_fault_class() {
        let after = Duration::from_secs(1);
        let lost = StatusCode::NOT_FOUND;
        let connect = HttpSendError::Dial(Arc::new(DialError::Pending(after)));
        let asked = RetryAfter { status: StatusCode::TOO_MANY_REQUESTS, wait: after };
        for (failure, fault) in [
            (RequestFailure::Closed, Fault::Cancelled),
            (RequestFailure::Gone, Fault::Offline),
            (connect.into(), Fault::Offline),
            (RequestFailure::Redirected(StatusCode::FOUND, "`https://a`".into()), Fault::Other),
            (RequestFailure::WebPage(StatusCode::OK), Fault::Other),
            (RequestFailure::SessionLost(lost), Fault::Http),
            (RequestFailure::Unresponsive, Fault::Offline),
            (status(401), Fault::Auth),
            (status(403), Fault::Auth),
            (status(404), Fault::Http),
            (status(503), Fault::Http),
            (status(200), Fault::Other),
            (RequestFailure::RetryAfter(asked), Fault::Throttled),
            (RequestFailure::BrokenOff("reset".into()), Fault::Offline),
            (RequestFailure::Oversized(1), Fault::Protocol),
            (RequestFailure::AnswerTooDeep, Fault::Protocol),
            (RequestFailure::HeadersTooLarge(1), Fault::Cancelled),
            (RequestFailure::TooDeep, Fault::Cancelled),
            (RequestFailure::Timeout(after), Fault::Offline),
            (RequestFailure::ConnectTimeout(after), Fault::Offline),
            (RequestFailure::ClientTooSlow, Fault::Cancelled),
            (RequestFailure::Saturated, Fault::Cancelled),
        ] {
            assert_eq!(failure.fault(), fault, "{failure}");
        }
    }

    #[test]
    fn a_credential_failure_mentioned_only_in_text_is_not_believed() {
        let page = RequestFailure::Status(
            StatusCode::INTERNAL_SERVER_ERROR,
            "401 Unauthorized: invalid_token".into(),
        );
        assert_eq!(page.fault(), Fault::Http);
        assert_eq!(RequestFailure::BrokenOff("403 forbidden".into()).fault(), Fault::Offline);
    }

    fn exited(lines: &[String]) -> String {
        let output = ErrorOutput { lines: lines.to_vec(), is_of_start: false };
        RequestFailure::Exited { kind: StdioServerKind::Process, exit: ChildExit::Unknown, output }
            .to_string()
    }

    #[test]
    fn the_last_lines_of_a_server_are_quoted_on_one_line() {
        assert_eq!(exited(&[]), "the server's process ended");
        let lines = ["Error: no\tlicence", "  at main", "Node.js v20"].map(str::to_owned);
        assert_eq!(
            exited(&lines),
            "the server's process ended (last output: `Error: no licence | at main | Node.js v20`)"
        );
    }

    #[test]
    fn the_signal_of_metamcp_is_not_reported_as_the_exit_of_a_server_that_hung_up() {
        use std::{os::unix::process::ExitStatusExt as _, process::ExitStatus};
        let status = |raw| ChildExit::Status(ExitStatus::from_raw(raw));
        for (exit, outcome) in [
            (status(15), "closed its standard output and was ended"),
            (status(3 << 8), "closed its standard output and then exited with code 3"),
            (ChildExit::Unknown, "closed its standard output and was ended"),
            (ChildExit::Pending, "closed its standard output and has not ended yet"),
        ] {
            let failure = RequestFailure::HungUp {
                kind: StdioServerKind::Process,
                pipe: StdioPipe::Output,
                exit,
                output: ErrorOutput { lines: vec!["bye".to_owned()], is_of_start: false },
            };
            assert_eq!(
                failure.to_string(),
                format!("the server's process {outcome} (last output: `bye`)")
            );
            assert_eq!((failure.fault(), failure.code()), (Fault::StdioExit, "SERVER_HUNG_UP"));
            assert!(failure.is_shared() && failure.is_interruption() && !failure.is_replayable());
        }
    }

    #[test]
    fn a_unit_failure_quotes_the_end_of_the_journal() {
        let output = ErrorOutput { lines: vec!["no licence".to_owned()], is_of_start: false };
        let failure = RequestFailure::Exited {
            kind: StdioServerKind::Unit("git".into()),
            exit: ChildExit::Unknown,
            output,
        };
        assert_eq!(
            failure.to_string(),
            "the server's unit `git` ended (end of its journal: `no licence`)"
        );
    }
}
