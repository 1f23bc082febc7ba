//! A server as a client declares it.
//!
//! Pure.

use std::collections::BTreeMap;

use super::{context::DeclarationOrigin, variable_syntax::ForeignText};
use crate::config::LifecycleConfig;

/// A server as a client declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignServer {
    /// What the client calls it.
    pub(super) name: String,
    /// Where.
    pub(super) origin: DeclarationOrigin,
    /// How it is reached, or why nobody can tell.
    pub(super) way: Result<ForeignTransport, String>,
    /// The client does not use it.
    pub(super) is_disabled: bool,
    /// How long it may take to start, in milliseconds.
    pub(super) start_timeout_ms: Option<u64>,
    /// How long an idle connection to it is kept.
    pub(super) lifecycle: Option<LifecycleConfig>,
    /// What the client asks its user for, by id: how it asks.
    pub(super) inputs: BTreeMap<String, String>,
    /// What it says besides that has no counterpart here, each as words for `… is not taken over`.
    pub(super) ignored: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ForeignTransport {
    /// A program.
    Program {
        command: ForeignText,
        args: Vec<ForeignText>,
        env: BTreeMap<String, ForeignText>,
        cwd: Option<ForeignText>,
    },
    /// An address.
    Endpoint { url: ForeignText, headers: BTreeMap<String, ForeignText> },
}

impl ForeignTransport {
    /// Tells whether two are the same but for what they are handed: variables or headers.
    pub(super) fn is_same_server(&self, other: &Self) -> bool {
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
