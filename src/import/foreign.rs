//! A server as a client declares it.
//!
//! Pure.

use std::collections::BTreeMap;

use super::{context::Origin, value::Text};
use crate::config::Lifecycle;

/// A server as a client declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// What the client calls it.
    pub(super) name: String,
    /// Where.
    pub(super) origin: Origin,
    /// How it is reached, or why nobody can tell.
    pub(super) way: Result<Way, String>,
    /// The client does not use it.
    pub(super) is_disabled: bool,
    /// How long it may take to start, in milliseconds.
    pub(super) start_timeout_ms: Option<u64>,
    /// How long an idle connection to it is kept.
    pub(super) lifecycle: Option<Lifecycle>,
    /// What the client asks its user for, by id: how it asks.
    pub(super) inputs: BTreeMap<String, String>,
    /// What it says besides that has no counterpart here, each as words for `… is not taken over`.
    pub(super) ignored: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Way {
    /// A program.
    Program { command: Text, args: Vec<Text>, env: BTreeMap<String, Text>, cwd: Option<Text> },
    /// An address.
    Endpoint { url: Text, headers: BTreeMap<String, Text> },
}

impl Way {
    /// Tells whether two are the same but for what they are handed: variables or headers.
    pub(super) fn is_same_place(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Program { command, args, cwd, .. },
                Self::Program { command: other_command, args: other_args, cwd: other_cwd, .. },
            ) => command == other_command && args == other_args && cwd == other_cwd,
            (Self::Endpoint { url, .. }, Self::Endpoint { url: other, .. }) => url == other,
            (Self::Program { .. }, Self::Endpoint { .. })
            | (Self::Endpoint { .. }, Self::Program { .. }) => false,
        }
    }
}
