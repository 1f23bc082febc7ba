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
    /// It is an endpoint behind `mcp-remote`, which metamcp does not need.
    pub(super) is_unwrapped: bool,
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
    /// An endpoint.
    Endpoint(ImportedEndpoint),
}

/// An endpoint over HTTP.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ImportedEndpoint {
    pub(super) url: ForeignText,
    pub(super) headers: BTreeMap<String, ForeignText>,
    pub(super) login: ForeignLogin,
    /// The file with the certificates of further trusted authorities.
    pub(super) ca: Option<String>,
    /// The proxy, in the words of metamcp.
    pub(super) proxy: Option<String>,
}

/// The login at an endpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ForeignLogin {
    /// The client never logs in.
    pub(super) is_off: bool,
    /// The id of a registered client.
    pub(super) client_id: Option<ForeignText>,
    /// The secret of that client.
    pub(super) client_secret: Option<ForeignText>,
    /// The scopes to request.
    pub(super) scopes: Vec<String>,
    /// Requests for tokens do not name the endpoint.
    pub(super) omits_resource: bool,
}

impl ForeignTransport {
    /// Returns `true` if both differ at most in their variables, headers or login.
    pub(super) fn is_same_server(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Program { command, args, cwd, .. },
                Self::Program { command: other_command, args: other_args, cwd: other_cwd, .. },
            ) => command == other_command && args == other_args && cwd == other_cwd,
            (Self::Endpoint(endpoint), Self::Endpoint(other)) => endpoint.url == other.url,
            _ => false,
        }
    }
}
