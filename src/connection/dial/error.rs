//! The reasons why a server could not be connected, for clients and operators.

use std::borrow::Cow;

use hyper::StatusCode;

use crate::{
    child::{LaunchError, StdioServerKind},
    config::{defaults, secret::SecretError},
    connection::RequestFailure,
    fault_class::Fault,
    protocol::payloads::{ServerProfileError, method},
    server_name::ServerName,
};

/// The reason why a server could not be connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A credential or variable that the server needs is missing.
    #[error("connect to server `{server}`: its `{key}` cannot be read")]
    Secret {
        /// The server.
        server: ServerName,
        /// The variable or header.
        key: String,
        /// The reason.
        source: SecretError,
    },
    /// The server did not start.
    #[error("connect to server `{server}`")]
    Launch {
        /// The server.
        server: ServerName,
        /// The reason.
        source: LaunchError,
    },
    /// A header's value has characters that HTTP forbids.
    #[error("connect to server `{server}`: the value of header `{header}` cannot be sent")]
    Header {
        /// The server.
        server: ServerName,
        /// The header.
        header: String,
    },
    /// The server names a message address that is not its own.
    #[error("connect to server `{server}`: it wants messages sent to `{endpoint}`")]
    Endpoint {
        /// The server.
        server: ServerName,
        /// The address.
        endpoint: String,
    },
    /// The server did not answer in the handshake.
    #[error("connect to server `{server}`: it did not answer `{asked}`")]
    Handshake {
        /// The server.
        server: ServerName,
        /// The method that it was sent.
        asked: &'static str,
        /// The reason.
        source: RequestFailure,
    },
    /// The server refused the handshake.
    #[error("connect to server `{server}`: it refused `{asked}`: {answer}")]
    Refused {
        /// The server.
        server: ServerName,
        /// The method that it was sent.
        asked: &'static str,
        /// Its error object.
        answer: String,
    },
    /// The answer of the server is unusable.
    #[error("connect to server `{server}`: its answer to `{asked}` is of no use")]
    Profile {
        /// The server.
        server: ServerName,
        /// The method that it was sent.
        asked: &'static str,
        /// The reason.
        source: ServerProfileError,
    },
}

impl ConnectError {
    /// Returns the stable code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Secret { .. } => "SECRET_MISSING",
            Self::Launch { .. } => "SERVER_NOT_STARTED",
            Self::Header { .. } => "HEADER_INVALID",
            Self::Endpoint { .. } => "ENDPOINT_FOREIGN",
            Self::Handshake { source, .. } => source.code(),
            Self::Refused { .. } => "HANDSHAKE_REFUSED",
            Self::Profile { .. } => "HANDSHAKE_UNUSABLE",
        }
    }

    /// Returns the next step for the operator.
    pub fn hint(&self) -> Cow<'static, str> {
        let hint = match self {
            Self::Secret { source, .. } => source.hint(),
            Self::Launch { source, .. } => return source.hint(),
            Self::Header { .. } => {
                "Remove line breaks and other control characters from the value."
            }
            Self::Endpoint { .. } => {
                "Only an address of the same origin is used, or credentials would go elsewhere: set `url` to the one that clients are to use."
            }
            Self::Handshake {
                source: RequestFailure::Exited { kind: StdioServerKind::Unit(name), .. },
                ..
            } => {
                return format!(
                    "See `journalctl -u '{name}@*' -u {name}.socket`: it ended before it answered, or as many of it run as `MaxConnections=` of its socket unit allows, of which `systemctl stop '{name}@*'` ends those that stayed."
                )
                .into();
            }
            Self::Handshake {
                source: RequestFailure::Exited { kind: StdioServerKind::Process, .. },
                ..
            } => {
                "Run its command in a shell: it ended before it answered. Its own log is in the journal under MCP_SERVER."
            }
            Self::Handshake { source: RequestFailure::HungUp { .. }, .. } => {
                "Run its command in a shell: it closed a pipe before it answered, as programs do that go to the background."
            }
            Self::Handshake { source: RequestFailure::Timeout { .. }, .. } => {
                "Check that the server speaks MCP, or give it more time to start with `start_timeout`."
            }
            Self::Handshake { source, .. } => return source.hint(),
            Self::Refused { .. } | Self::Profile { .. } => {
                "Check that the server supports protocol version 2024-11-05 or one of its successors up to 2026-07-28, and that `era` is not set to one that it does not speak."
            }
        };
        hint.into()
    }

    /// Returns the error for an upstream that has accepted no connection so far.
    pub(super) fn upstream_unreachable(server: &ServerName) -> Self {
        let after = defaults::CONNECT_NOTICED_AFTER.as_millis();
        let source = RequestFailure::Connect(format!("no connection within {after} ms").into());
        Self::Handshake { server: server.clone(), asked: method::INITIALIZE, source }
    }

    /// Returns the kind of failure.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Launch { .. } => Fault::Offline,
            Self::Handshake { source, .. } => source.fault(),
            Self::Refused { .. } => Fault::Protocol,
            Self::Secret { .. }
            | Self::Header { .. }
            | Self::Endpoint { .. }
            | Self::Profile { .. } => Fault::Other,
        }
    }

    /// Returns whether the server used all its time and did not answer.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Handshake { source: RequestFailure::Timeout { .. }, .. })
    }

    /// Returns whether another attempt right after this one may succeed. It is `false` if an
    /// operator has to change something first, and if the server has used all its time.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Launch { source, .. } => source.may_pass(),
            Self::Handshake { source, .. } => !self.is_timeout() && source.fault().counts(),
            Self::Secret { .. }
            | Self::Header { .. }
            | Self::Endpoint { .. }
            | Self::Refused { .. }
            | Self::Profile { .. } => false,
        }
    }

    /// Returns the last lines of a server that ended during the handshake, oldest first.
    pub fn last_lines(&self) -> &[String] {
        if let Self::Handshake { source, .. } = self { source.last_lines() } else { &[] }
    }

    /// Returns whether the server is a unit without a listener on its socket.
    pub(super) fn is_socket_unit_down(&self) -> bool {
        match self {
            Self::Launch { source, .. } => source.is_socket_unit_down(),
            Self::Handshake { .. }
            | Self::Secret { .. }
            | Self::Header { .. }
            | Self::Endpoint { .. }
            | Self::Refused { .. }
            | Self::Profile { .. } => false,
        }
    }

    /// Returns whether the server, or a proxy in front of it, runs but is not ready, so that a
    /// later attempt may succeed. That is never so for a child of metamcp.
    pub(super) fn is_outage(&self) -> bool {
        let source = match self {
            Self::Handshake { source, .. } => source,
            Self::Launch { source, .. } => return source.is_outage(),
            Self::Secret { .. }
            | Self::Header { .. }
            | Self::Endpoint { .. }
            | Self::Refused { .. }
            | Self::Profile { .. } => return false,
        };
        match source {
            // A proxy that accepts before its server is ready closes the connection.
            RequestFailure::Connect(_) | RequestFailure::BrokenOff(_) => true,
            RequestFailure::Status { status, .. } => {
                matches!(*status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE)
            }
            RequestFailure::Exited { .. }
            | RequestFailure::HungUp { .. }
            | RequestFailure::Closed
            | RequestFailure::Gone
            | RequestFailure::SessionLost(_)
            | RequestFailure::EraLost(_)
            | RequestFailure::Unresponsive
            | RequestFailure::Oversized { .. }
            | RequestFailure::AnswerTooDeep
            | RequestFailure::TooDeep
            | RequestFailure::Timeout { .. }
            | RequestFailure::NotInTime { .. }
            | RequestFailure::Overrun
            | RequestFailure::NoMemory(_)
            | RequestFailure::Saturated => false,
        }
    }

    /// Returns whether the failure may be due to the era in which metamcp spoke. If the server is
    /// absent or has ended, the reason is another one.
    pub(super) fn may_be_era_mismatch(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::Profile { .. } => true,
            Self::Handshake { source, .. } => matches!(
                source,
                RequestFailure::Status { .. }
                    | RequestFailure::Timeout { .. }
                    | RequestFailure::BrokenOff(_)
            ),
            Self::Secret { .. }
            | Self::Launch { .. }
            | Self::Header { .. }
            | Self::Endpoint { .. } => false,
        }
    }

    /// Returns whether the server refused a POST as a server of protocol version 2024-11-05 does.
    ///
    /// Source: MCP 2025-03-26, "Backwards compatibility": any 4xx. Statuses that would refuse a GET
    /// too are excluded.
    pub(super) fn may_be_legacy(&self) -> bool {
        let Self::Handshake { source: RequestFailure::Status { status, .. }, .. } = self else {
            return false;
        };
        status.is_client_error()
            && !matches!(
                *status,
                StatusCode::UNAUTHORIZED
                    | StatusCode::FORBIDDEN
                    | StatusCode::PROXY_AUTHENTICATION_REQUIRED
                    | StatusCode::REQUEST_TIMEOUT
                    | StatusCode::TOO_MANY_REQUESTS
            )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::child::SpawnError;

    fn server() -> ServerName {
        ServerName::new("git").expect("a name")
    }

    fn spawn(source: SpawnError) -> ConnectError {
        ConnectError::Launch { server: server(), source: source.into() }
    }

    fn handshake(source: RequestFailure) -> ConnectError {
        ConnectError::Handshake { server: server(), asked: "initialize", source }
    }

    fn status(code: u16) -> ConnectError {
        let status = StatusCode::from_u16(code).expect("a status");
        handshake(RequestFailure::Status { status, body: "".into() })
    }

    #[test]
    fn a_failed_dial_is_of_one_kind_and_may_pass_the_next_time_or_not() {
        let command = || "x".to_owned();
        let os = std::io::Error::other("no memory");
        let header = ConnectError::Header { server: server(), header: "a".to_owned() };
        let endpoint = ConnectError::Endpoint { server: server(), endpoint: "b".to_owned() };
        let refused = ConnectError::Refused {
            server: server(),
            asked: "initialize",
            answer: "{}".to_owned(),
        };
        for (error, fault, may_pass) in [
            (spawn(SpawnError::NotFound { command: command() }), Fault::Offline, false),
            (spawn(SpawnError::NotExecutable { command: command() }), Fault::Offline, false),
            (spawn(SpawnError::Os { command: command(), source: os }), Fault::Offline, true),
            (header, Fault::Other, false),
            (endpoint, Fault::Other, false),
            (refused, Fault::Protocol, false),
            (status(401), Fault::Auth, false),
            (status(503), Fault::Http, true),
            (handshake(RequestFailure::Connect("refused".into())), Fault::Offline, true),
            (handshake(RequestFailure::Timeout { after: Duration::ZERO }), Fault::Offline, false),
            (handshake(RequestFailure::Closed), Fault::Cancelled, false),
        ] {
            assert_eq!((error.fault(), error.may_pass()), (fault, may_pass), "{error:?}");
        }
    }
}
