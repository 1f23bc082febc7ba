//! Why there is no connection.

use std::sync::Arc;

use super::status::ServerConnections;
use crate::{connection::ConnectError, error_report::chain, fault::Fault, name::ServerName};

/// Why a slot has no connection to offer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SlotError {
    /// The dial failed.
    #[error("{}", chain(&**.error))]
    Dial {
        /// The number of the dial: all who waited for it have the same.
        attempt: u64,
        /// Why.
        error: Arc<ConnectError>,
    },
    /// The server is being closed: stop, or a reload that removed it.
    #[error("server `{0}` is being closed")]
    Closing(ServerName),
    /// As many connections are in use as the server may have.
    #[error("all {max} connections of server `{server}` are in use")]
    Busy {
        /// The server.
        server: ServerName,
        /// Its `max_connections`.
        max: usize,
    },
    /// As many connections are in use as there may be, all servers together.
    #[error("no connection for server `{server}`: all {size} of the pool are taken ({})", list(.holders))]
    Exhausted {
        /// The server.
        server: ServerName,
        /// `pool.size`.
        size: usize,
        /// Whose they are.
        holders: Vec<ServerConnections>,
    },
    /// The server keeps state for each client, and this client cannot be told from others.
    #[error("server `{0}` keeps a connection for each client session, and the request names none")]
    SessionRequired(ServerName),
    /// The client has ended its session while its request ran.
    #[error("server `{0}` keeps a connection for each client session, and this one has ended")]
    SessionEnded(ServerName),
}

impl SlotError {
    /// Tells whether the server was dialled, and did not answer in its time.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Dial { error, .. } if error.is_timeout())
    }

    /// Returns what kind of failure it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Dial { error, .. } => error.fault(),
            Self::Closing(_)
            | Self::Busy { .. }
            | Self::Exhausted { .. }
            | Self::SessionRequired(_)
            | Self::SessionEnded(_) => Fault::Cancelled,
        }
    }
}

/// Names who holds connections.
fn list(holders: &[ServerConnections]) -> String {
    holders.iter().map(ServerConnections::to_string).collect::<Vec<_>>().join("; ")
}
