//! What kinds of failures there are, and which of them count against a server.
//!
//! A kind is read from the type of an error, never from a text: one that a tool has printed may say
//! anything. Each type of error tells its own kind, as `connection::RequestFailure::fault` does.

use hyper::StatusCode;
use serde::Serialize;

/// What kind of failure it was. Source: seed 004, the five classes that it has; `protocol` and
/// `cancelled` are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The server wants other credentials: waiting does not help, an operator does.
    Auth,
    /// The server cannot be reached, or does not say anything.
    Offline,
    /// The server answered with an HTTP status that says it cannot.
    Http,
    /// The server's process ended.
    StdioExit,
    /// Nothing of the above.
    Other,
    /// The server is there and said something that is of no use.
    Protocol,
    /// It was not the server's doing: the caller, or the service itself.
    Cancelled,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Auth,
        Self::Offline,
        Self::Http,
        Self::StdioExit,
        Self::Other,
        Self::Protocol,
        Self::Cancelled,
    ];

    /// Returns the kind of an HTTP answer with this status that is not the answer.
    pub fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Self::Auth,
            failed if failed.is_client_error() || failed.is_server_error() => Self::Http,
            _ => Self::Other,
        }
    }

    /// Tells whether it speaks against the server.
    pub fn counts(self) -> bool {
        match self {
            Self::Offline | Self::Http | Self::StdioExit | Self::Other => true,
            Self::Auth | Self::Protocol | Self::Cancelled => false,
        }
    }

    /// Returns its name, as logs and status output show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Offline => "offline",
            Self::Http => "http",
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
    fn four_of_the_seven_count() {
        let counting: Vec<&str> =
            Fault::ALL.into_iter().filter(|fault| fault.counts()).map(Fault::name).collect();
        assert_eq!(counting, ["offline", "http", "stdio-exit", "other"]);
    }

    #[test]
    fn a_fault_is_written_as_it_is_named() {
        for fault in Fault::ALL {
            let written = serde_json::to_value(fault).expect("a word");
            assert_eq!(written, fault.name());
        }
    }

    #[test]
    fn a_status_is_a_matter_of_credentials_of_http_or_of_neither() {
        let faults = [401, 403, 400, 404, 429, 500, 502, 503, 204, 302]
            .map(|status| Fault::of_status(StatusCode::from_u16(status).expect("a status")).name());
        let expected =
            ["auth", "auth", "http", "http", "http", "http", "http", "http", "other", "other"];
        assert_eq!(faults, expected);
    }
}
