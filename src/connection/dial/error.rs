//! The reasons why a server could not be connected, for clients and operators.

use std::{borrow::Cow, sync::Arc};

use hyper::StatusCode;

use crate::{
    child::{LaunchError, StdioServerKind},
    config::{defaults, secret::SecretError},
    connection::{RequestFailure, RetryAfter},
    error_report::chain,
    fault_class::Fault,
    http_client::DialError,
    protocol::payloads::{ServerProfileError, method},
    server_name::ServerName,
};

/// The reason why a server could not be connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A credential or variable that the server needs is missing.
    #[error("cannot connect to server `{server}`: its `{key}` cannot be read")]
    Secret {
        /// The server.
        server: ServerName,
        /// The variable or header.
        key: String,
        /// The reason.
        source: SecretError,
    },
    /// The server did not start.
    #[error("cannot connect to server `{server}`")]
    Launch {
        /// The server.
        server: ServerName,
        /// The reason.
        source: LaunchError,
    },
    /// A header's value has characters that HTTP forbids.
    #[error("cannot connect to server `{server}`: the value of header `{header}` cannot be sent")]
    Header {
        /// The server.
        server: ServerName,
        /// The header.
        header: String,
    },
    /// The settings for connections to the server are not usable.
    #[error("cannot connect to server `{server}`")]
    Connector {
        /// The server.
        server: ServerName,
        /// The reason.
        source: DialError,
    },
    /// The server names a message address that is not its own.
    #[error(
        "cannot connect to server `{server}`: it names the message address `{endpoint}`, which has another origin"
    )]
    Endpoint {
        /// The server.
        server: ServerName,
        /// The address.
        endpoint: String,
    },
    /// The server did not answer in the handshake.
    #[error("cannot connect to server `{server}`: it did not answer `{request}`")]
    Handshake {
        /// The server.
        server: ServerName,
        /// The method that it was sent.
        request: &'static str,
        /// The reason.
        source: RequestFailure,
    },
    /// The server refused the handshake.
    #[error("cannot connect to server `{server}`: it refused `{request}`: {answer}")]
    Refused {
        /// The server.
        server: ServerName,
        /// The method that it was sent.
        request: &'static str,
        /// Its error object.
        answer: String,
    },
    /// The answer of the server is unusable.
    #[error("cannot connect to server `{server}`: its answer to `{request}` is not usable")]
    Profile {
        /// The server.
        server: ServerName,
        /// The method that it was sent.
        request: &'static str,
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
            Self::Connector { source, .. } => source.code(),
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
            Self::Connector { source, .. } => source.hint(),
            Self::Endpoint { .. } => {
                "Set `url` to the address that clients use: metamcp sends credentials to no other origin."
            }
            Self::Handshake { server, source, .. } => match source {
                RequestFailure::Exited { kind: StdioServerKind::Unit(name), .. } => {
                    return format!(
                        "See `journalctl -u '{name}@*' -u {name}.socket`. If as many instances run as `MaxConnections=` of its socket unit allows, stop them with `systemctl stop '{name}@*'`."
                    )
                    .into();
                }
                RequestFailure::Exited { kind: StdioServerKind::Process, .. } => {
                    return format!(
                        "Run its command in a shell to see why it ends. See its log: `metamcp logs --server {server}`."
                    )
                    .into();
                }
                RequestFailure::HungUp { .. } => {
                    "Run its command in a shell: it must keep its pipes open and stay in the foreground."
                }
                RequestFailure::RetryAfter(_) => {
                    "Try again after that time. With a longer `start_timeout`, metamcp waits itself."
                }
                RequestFailure::Timeout(_) => {
                    "Check that the server speaks MCP, or give it more time to start with `start_timeout`."
                }
                _ => return source.hint(server),
            },
            Self::Refused { .. } | Self::Profile { .. } => {
                "Check that the server supports a protocol version from 2024-11-05 to 2026-07-28, and that `era` is not set to an era that it does not speak."
            }
        };
        hint.into()
    }

    /// Returns the error for an upstream that has accepted no connection so far.
    pub(super) fn upstream_unreachable(server: &ServerName) -> Self {
        let pending = DialError::Pending(defaults::CONNECT_NOTICED_AFTER);
        let source = RequestFailure::Connect(Arc::new(pending));
        Self::Handshake { server: server.clone(), request: method::INITIALIZE, source }
    }

    /// Returns the kind of failure.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Launch { .. } => Fault::Offline,
            Self::Handshake { source, .. } => source.fault(),
            Self::Refused { .. } => Fault::Protocol,
            Self::Secret { .. }
            | Self::Header { .. }
            | Self::Connector { .. }
            | Self::Endpoint { .. }
            | Self::Profile { .. } => Fault::Other,
        }
    }

    /// Returns whether the server requires a login.
    pub fn is_login_required(&self) -> bool {
        matches!(self, Self::Handshake { source, .. } if source.is_login_required())
    }

    /// Returns whether the server used all its time and did not answer.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Handshake { source: RequestFailure::Timeout(_), .. })
    }

    /// Returns whether another attempt right after this one may succeed. It is `false` if an
    /// operator has to change something first, and if the server has used all its time.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Launch { source, .. } => source.is_transient(),
            Self::Handshake { source, .. } => !self.is_timeout() && source.fault().counts(),
            _ => false,
        }
    }

    /// Returns the wait that the server asks for, if that is the reason.
    pub fn retry_after(&self) -> Option<RetryAfter> {
        match self {
            Self::Handshake { source: RequestFailure::RetryAfter(asked), .. } => Some(*asked),
            _ => None,
        }
    }

    /// Returns the cause as a statement about the server: "its process exited with code 1".
    pub fn cause(&self) -> String {
        let (server, text) = (self.server(), chain(self));
        match self {
            Self::Handshake { source: RequestFailure::Timeout(_), .. } => {}
            Self::Handshake { source, .. } => return source.cause(),
            _ => {}
        }
        let about = format!("cannot connect to server `{server}`: ");
        text.strip_prefix(&about).map_or(text.clone(), str::to_owned)
    }

    fn server(&self) -> &ServerName {
        match self {
            Self::Secret { server, .. }
            | Self::Launch { server, .. }
            | Self::Header { server, .. }
            | Self::Connector { server, .. }
            | Self::Endpoint { server, .. }
            | Self::Handshake { server, .. }
            | Self::Refused { server, .. }
            | Self::Profile { server, .. } => server,
        }
    }

    /// Returns the last lines of a server that ended during the handshake, oldest first.
    pub fn last_lines(&self) -> &[String] {
        if let Self::Handshake { source, .. } = self { source.last_lines() } else { &[] }
    }

    /// Returns whether the server is a unit without a listener on its socket.
    pub(super) fn is_socket_unit_down(&self) -> bool {
        matches!(self, Self::Launch { source, .. } if source.is_socket_unit_down())
    }

    /// Returns whether the server, or a proxy in front of it, runs but is not ready, so that a
    /// later attempt may succeed. That is never so for a child of metamcp.
    pub(super) fn is_outage(&self) -> bool {
        match self {
            Self::Launch { source, .. } => source.is_outage(),
            Self::Handshake { source, .. } => match source {
                // A proxy that accepts before its server is ready closes the connection.
                RequestFailure::BrokenOff(_) => true,
                RequestFailure::Connect(error) => !error.is_lasting(),
                RequestFailure::Status(status, _) => {
                    matches!(*status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns whether the failure may be due to the era in which metamcp spoke. The absence or the
    /// end of a server never is.
    pub(super) fn may_be_era_mismatch(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::Profile { .. } => true,
            Self::Handshake { source, .. } => matches!(
                source,
                RequestFailure::Status(..)
                    | RequestFailure::Timeout(_)
                    | RequestFailure::BrokenOff(_)
            ),
            _ => false,
        }
    }

    /// Returns whether the server refused a POST as a server of protocol version 2024-11-05 does.
    ///
    /// Source: MCP 2025-03-26, "Backwards compatibility": any 4xx. Statuses that would refuse a GET
    /// too are excluded.
    pub(super) fn may_be_legacy(&self) -> bool {
        let Self::Handshake { source: RequestFailure::Status(status, _), .. } = self else {
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
    use crate::child::{SpawnError, SpawnFault};

    fn server() -> ServerName {
        ServerName::new("git").expect("a name")
    }

    fn spawn(source: SpawnError) -> ConnectError {
        ConnectError::Launch { server: server(), source: source.into() }
    }

    fn handshake(source: RequestFailure) -> ConnectError {
        ConnectError::Handshake { server: server(), request: "initialize", source }
    }

    fn status(code: u16) -> ConnectError {
        let status = StatusCode::from_u16(code).expect("a status");
        handshake(RequestFailure::Status(status, "".into()))
    }

    #[test]
    fn each_connect_error_has_one_fault_class_and_may_pass_or_not() {
        let command = || "x".to_owned();
        let os = std::io::Error::other("no memory");
        let header = ConnectError::Header { server: server(), header: "a".to_owned() };
        let endpoint = ConnectError::Endpoint { server: server(), endpoint: "b".to_owned() };
        let refused = ConnectError::Refused {
            server: server(),
            request: "initialize",
            answer: "{}".to_owned(),
        };
        for (error, fault, is_transient) in [
            (spawn(SpawnError::new(&command(), SpawnFault::NotFound)), Fault::Offline, false),
            (spawn(SpawnError::new(&command(), SpawnFault::NotExecutable)), Fault::Offline, false),
            (spawn(SpawnError::new(&command(), SpawnFault::Os(os))), Fault::Offline, true),
            (header, Fault::Other, false),
            (endpoint, Fault::Other, false),
            (refused, Fault::Protocol, false),
            (status(401), Fault::Auth, false),
            (status(503), Fault::Http, true),
            (
                handshake(RequestFailure::Connect(Arc::new(DialError::Pending(Duration::ZERO)))),
                Fault::Offline,
                true,
            ),
            (handshake(RequestFailure::Timeout(Duration::ZERO)), Fault::Offline, false),
            (handshake(RequestFailure::Closed), Fault::Cancelled, false),
        ] {
            assert_eq!((error.fault(), error.is_transient()), (fault, is_transient), "{error:?}");
        }
    }
}
