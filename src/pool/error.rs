//! The reasons why a slot offers no connection.

use std::sync::Arc;

use super::status::ServerConnections;
use crate::{
    connection::ConnectError, error_report::chain, fault_class::Fault, server_name::ServerName,
};

/// The reason why a slot offers no connection.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SlotError {
    /// Connecting failed.
    #[error("{}", chain(&**.error))]
    Dial {
        /// The number of the attempt, the same for all its waiters.
        attempt: u64,
        /// The cause.
        error: Arc<ConnectError>,
    },
    /// The server is closing because of a shutdown or of a reload that changed or removed it.
    #[error(
        "server `{0}` is closing: metamcp is stopping, or the configuration of the server has changed"
    )]
    Closing(ServerName),
    /// All connections of the server are in use: as many as its `max_connections`.
    #[error("server `{0}` is busy: all of its {1} connections are in use")]
    Busy(ServerName, usize),
    /// The pool's maximum number of connections is in use.
    #[error("server `{server}` got no connection: all {size} connections of the pool are taken ({})", list(.holders))]
    Exhausted {
        /// The server.
        server: ServerName,
        /// `pool.size`.
        size: usize,
        /// The servers that hold the connections.
        holders: Vec<ServerConnections>,
    },
    /// The server keeps state for each client, and the request names no session.
    #[error("server `{0}` has one connection for each session, and the request names no session")]
    SessionRequired(ServerName),
    /// The client's session ended while its request ran.
    #[error("server `{0}` has one connection for each session, and this session has ended")]
    SessionEnded(ServerName),
}

impl SlotError {
    /// Returns whether connecting to the server timed out.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Dial { error, .. } if error.is_timeout())
    }

    /// Returns the cause as a statement about the server, if connecting failed.
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::Dial { error, .. } => Some(error.cause()),
            _ => None,
        }
    }

    /// Returns the kind of failure.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Dial { error, .. } => error.fault(),
            Self::Closing(_)
            | Self::Busy(..)
            | Self::Exhausted { .. }
            | Self::SessionRequired(_)
            | Self::SessionEnded(_) => Fault::Cancelled,
        }
    }
}

/// Lists the servers that hold connections.
fn list(holders: &[ServerConnections]) -> String {
    holders.iter().map(ServerConnections::to_string).collect::<Vec<_>>().join("; ")
}
