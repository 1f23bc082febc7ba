//! Who shares a connection to a server, and how many connections there may be.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::{defaults, diagnostic::ConfigProblem, named_value::NamedValue};

/// Who shares a connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharingMode {
    /// Everybody: one connection, as many requests at a time as come.
    #[default]
    Shared,
    /// Nobody at the same time: a connection serves one request at a time, whoever asks.
    Exclusive {
        /// How many connections there may be; more requests wait.
        max_connections: usize,
    },
    /// Nobody: each client session has a connection of its own.
    Session {
        /// How many connections there may be; with more clients, the one that nobody has used for
        /// longest makes room, or they wait.
        max_connections: usize,
    },
}

impl SharingMode {
    /// Returns how many calls of one server may be held while their clients are asked something: all
    /// of its connections but one, so that those who are asked nothing need not wait for them.
    pub fn held_max(self) -> usize {
        match self {
            Self::Shared => defaults::PARKED_MAX,
            Self::Exclusive { max_connections } | Self::Session { max_connections } => {
                max_connections.saturating_sub(1).max(1)
            }
        }
    }

    /// Returns the name of the sharing, as it is declared.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Exclusive { .. } => "exclusive",
            Self::Session { .. } => "session",
        }
    }
}

/// [`SharingMode`] as it stands in the file.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum SharingName {
    /// Everybody.
    Shared,
    /// Whoever is next, for one request.
    Exclusive,
    /// Nobody: each client session has its own.
    Session,
}

/// Returns the sharing of that name.
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
