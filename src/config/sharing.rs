//! The clients that share a connection to a server, and the number of its connections.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::{defaults, diagnostic::ConfigProblem, keyword::NamedValue};

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
    /// None: each client session has its own connection.
    Session {
        /// The largest number of connections. For a further client, the connection that was unused
        /// for longest is closed, or the client waits.
        max_connections: usize,
    },
}

impl SharingMode {
    /// Returns how many calls of one server may be held while their clients are asked for input:
    /// all its connections except one. So clients that are asked nothing need not wait for them.
    pub fn held_max(self) -> usize {
        match self {
            Self::Shared => defaults::PARKED_MAX,
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
#[schemars(inline)]
pub(super) enum SharingName {
    /// All clients.
    Shared,
    /// The next client, for one request.
    Exclusive,
    /// None: each client session has its own.
    Session,
}

/// Returns the sharing mode of this name.
pub(super) fn of(
    name: Option<NamedValue<SharingName>>,
    max_connections: Option<Spanned<usize>>,
) -> Result<SharingMode, ConfigProblem> {
    let max = |default: usize| match &max_connections {
        Some(max) if *max.get_ref() == 0 => {
            Err(ConfigProblem::at(max.span(), "`max_connections` is 0")
                .help("no request could be served: use 1 or more"))
        }
        Some(max) if *max.get_ref() > defaults::MAX_CONNECTIONS_MAX => {
            let message = format!("`max_connections` is {}", max.get_ref());
            Err(ConfigProblem::at(max.span(), message)
                .help(format!("use {} or less", defaults::MAX_CONNECTIONS_MAX)))
        }
        Some(max) => Ok(*max.get_ref()),
        None => Ok(default),
    };
    match name.map(|name| name.0).unwrap_or(SharingName::Shared) {
        SharingName::Exclusive => {
            Ok(SharingMode::Exclusive { max_connections: max(defaults::EXCLUSIVE_CONNECTIONS)? })
        }
        SharingName::Session => {
            Ok(SharingMode::Session { max_connections: max(defaults::SESSION_CONNECTIONS)? })
        }
        SharingName::Shared => match max_connections {
            None => Ok(SharingMode::Shared),
            Some(max) => Err(ConfigProblem::at(max.span(), "`max_connections` of a shared server").help(
                "it has one connection: add `sharing = \"exclusive\"` or `sharing = \"session\"`, or remove it",
            )),
        },
    }
}
