//! The kinds of failures, and which of them count against a server.
//!
//! The kind follows from the type of an error, never from a text, which a tool could have chosen.
//! Each error type reports its kind, as `connection::RequestFailure::fault` does.

use hyper::StatusCode;
use serde::Serialize;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The server requires other credentials: the operator must act, waiting does not help.
    Auth,
    /// The server is unreachable, or does not answer.
    Offline,
    /// The server answered with an HTTP error status.
    Http,
    /// The server asks to be left alone for a while: HTTP 429 or 503 with `Retry-After`.
    Throttled,
    /// The server's process ended.
    StdioExit,
    /// Another failure.
    Other,
    /// The server gave an invalid answer.
    Protocol,
    /// The caller or the service itself is the cause.
    Cancelled,
}

impl Fault {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Auth,
        Self::Offline,
        Self::Http,
        Self::Throttled,
        Self::StdioExit,
        Self::Other,
        Self::Protocol,
        Self::Cancelled,
    ];

    /// Returns the kind of an unexpected HTTP status.
    pub fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Self::Auth,
            failed if failed.is_client_error() || failed.is_server_error() => Self::Http,
            _ => Self::Other,
        }
    }

    /// Returns whether this kind counts against the server.
    pub fn counts(self) -> bool {
        match self {
            Self::Offline | Self::Http | Self::StdioExit | Self::Other => true,
            Self::Auth | Self::Throttled | Self::Protocol | Self::Cancelled => false,
        }
    }

    /// Returns the name in logs and status output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Offline => "offline",
            Self::Http => "http",
            Self::Throttled => "throttled",
            Self::StdioExit => "stdio-exit",
            Self::Other => "other",
            Self::Protocol => "protocol",
            Self::Cancelled => "cancelled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_of_the_eight_fault_classes_count() {
        let counting: Vec<&str> =
            Fault::ALL.into_iter().filter(|fault| fault.counts()).map(Fault::name).collect();
        assert_eq!(counting, ["offline", "http", "stdio-exit", "other"]);
    }

    #[test]
    fn a_fault_serializes_as_its_name() {
        for fault in Fault::ALL {
            let written = serde_json::to_value(fault).expect("a word");
            assert_eq!(written, fault.name());
        }
    }

    #[test]
    fn a_status_belongs_to_the_auth_http_or_other_class() {
        let faults = [401, 403, 400, 404, 429, 500, 502, 503, 204, 302]
            .map(|status| Fault::of_status(StatusCode::from_u16(status).expect("a status")).name());
        let expected =
            ["auth", "auth", "http", "http", "http", "http", "http", "http", "other", "other"];
        assert_eq!(faults, expected);
    }
}
