//! The state of a login, as operators see it.

use std::time::SystemTime;

use serde::Serialize;

use crate::server_name::ServerName;

/// The state of the login at one server.
#[derive(Clone, Debug, PartialEq)]
pub struct LoginStatus {
    /// The server.
    pub server: ServerName,
    /// The kind of login.
    pub kind: LoginKind,
    /// The phase of the login.
    pub state: LoginState,
    /// The authorization server.
    pub issuer: Option<String>,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// The time at which the current token expires.
    pub expires: Option<SystemTime>,
    /// The time at which the current token was issued.
    pub refreshed: Option<SystemTime>,
    /// The last error.
    pub error: Option<String>,
}

/// The kind of login at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginKind {
    /// A person logs in with a browser.
    AuthorizationCode,
    /// metamcp logs in by itself.
    ClientCredentials,
    /// The operator sets `Authorization`.
    StaticHeader,
}

/// The phase of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginState {
    /// The server has not asked for a login.
    NotAsked,
    /// The server requires a login.
    NeedsLogin,
    /// A login has started.
    Pending,
    /// There is a token.
    LoggedIn,
}

impl LoginStatus {
    /// Returns the status of a server with a static `Authorization`.
    pub(super) fn of_static_header(server: ServerName) -> Self {
        Self {
            server,
            kind: LoginKind::StaticHeader,
            state: LoginState::LoggedIn,
            issuer: None,
            scopes: Vec::new(),
            expires: None,
            refreshed: None,
            error: None,
        }
    }
}
