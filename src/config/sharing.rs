//! The clients that share a connection to a server, and the number of its connections.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::{
    bounded_number::BoundedNumber, defaults, diagnostic::ConfigProblem, keyword::NamedValue,
};

/// The clients that share a connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharingMode {
    /// All clients: one connection, with any number of requests at a time.
    #[default]
    Shared,
    /// The next client: a connection serves one request at a time, of any client.
    Exclusive {
        /// The largest number of connections; further requests wait.
        max_connections: usize,
    },
    /// No other client: each client session has its own connection.
    Session {
        /// The largest number of connections. For a further client, the connection that was unused
        /// for longest is closed, or the client waits.
        max_connections: usize,
    },
}

impl SharingMode {
    /// Returns the largest number of calls of one server that wait for their clients' input. It
    /// leaves one connection to the other clients.
    pub fn held_max(self) -> usize {
        match self {
            Self::Shared => defaults::HELD_CALLS_MAX,
            Self::Exclusive { max_connections } | Self::Session { max_connections } => {
                max_connections.saturating_sub(1).max(1)
            }
        }
    }

    /// Returns the word for the mode in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Exclusive { .. } => "exclusive",
            Self::Session { .. } => "session",
        }
    }
}

/// [`SharingMode`] as written in the file.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum SharingName {
    /// All clients.
    Shared,
    /// The next client, for one request.
    Exclusive,
    /// No other client: each client session has its own connection.
    Session,
}

pub(super) type MaxConnections = BoundedNumber<1, { defaults::MAX_CONNECTIONS_MAX }>;

/// Returns the sharing mode of this name.
pub(super) fn of(
    name: Option<NamedValue<SharingName>>,
    max_connections: Option<Spanned<MaxConnections>>,
) -> Result<SharingMode, ConfigProblem> {
    let max = |default| max_connections.as_ref().map_or(default, |max| max.get_ref().0);
    match name.map_or(SharingName::Shared, |name| name.0) {
        SharingName::Exclusive => {
            Ok(SharingMode::Exclusive { max_connections: max(defaults::EXCLUSIVE_CONNECTIONS) })
        }
        SharingName::Session => {
            Ok(SharingMode::Session { max_connections: max(defaults::SESSION_CONNECTIONS) })
        }
        SharingName::Shared => match max_connections {
            None => Ok(SharingMode::Shared),
            Some(max) => {
                let message = "`max_connections` has no effect on a shared server";
                Err(ConfigProblem::at(max.span(), message).help(
                    "remove it, because all clients share one connection, or set `sharing` to \"exclusive\" or \"session\"",
                ))
            }
        },
    }
}
