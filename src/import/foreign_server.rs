//! A server as declared by a client.
//!
//! Pure.

use std::collections::BTreeMap;

use super::{declaration_origin::DeclarationOrigin, variable_syntax::ForeignText};
use crate::config::LifecycleConfig;

/// A server as declared by a client.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignServer {
    /// The client's name for it.
    pub(super) name: String,
    /// The origin of its declaration.
    pub(super) origin: DeclarationOrigin,
    /// The transport, or the reason why it is unknown.
    pub(super) transport: Result<ForeignTransport, String>,
    /// Its client has disabled it.
    pub(super) is_disabled: bool,
    /// The time limit for its start, in milliseconds.
    pub(super) start_timeout_ms: Option<u64>,
    /// The time for which an idle connection is kept.
    pub(super) lifecycle: Option<LifecycleConfig>,
    /// The prompts for the values that the client asks its user for, by id.
    pub(super) inputs: BTreeMap<String, String>,
    /// The keys without a counterpart in metamcp, each worded for `… is not imported`.
    pub(super) ignored: Vec<String>,
}

/// The transport of a server.
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
    /// Returns `true` if both differ at most in their variables or headers.
    pub(super) fn is_same_server(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Program { command, args, cwd, .. },
                Self::Program { command: other_command, args: other_args, cwd: other_cwd, .. },
            ) => command == other_command && args == other_args && cwd == other_cwd,
            (Self::Endpoint { url, .. }, Self::Endpoint { url: other, .. }) => url == other,
            _ => false,
        }
    }
}
