//! The failure to get a token for a request.

use std::{borrow::Cow, sync::Arc};

use crate::server_name::ServerName;

/// The need for a login: no token serves the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("server `{server}` requires a login: {why}")]
pub struct LoginRequired {
    /// The server.
    pub server: ServerName,
    /// The reason.
    pub why: Arc<str>,
}

/// The failure to get a token for a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorizationFailure {
    /// Only a login yields such a token.
    #[error(transparent)]
    LoginRequired(#[from] LoginRequired),
    /// The authorization server is not reachable. No login is needed once it is.
    #[error("cannot get a token for server `{server}`: {why}")]
    Unavailable {
        /// The server.
        server: ServerName,
        /// The reason.
        why: Arc<str>,
    },
}

impl AuthorizationFailure {
    /// Returns the code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::LoginRequired(_) => "LOGIN_REQUIRED",
            Self::Unavailable { .. } => "TOKEN_UNAVAILABLE",
        }
    }

    /// Returns the next step for the caller.
    pub fn hint(&self) -> Cow<'static, str> {
        match self {
            Self::LoginRequired(LoginRequired { server, .. }) => format!(
                "Ask the operator of this host to run `metamcp login {server}`, then call again."
            )
            .into(),
            Self::Unavailable { .. } => {
                "Check the authorization server. metamcp asks it again by itself.".into()
            }
        }
    }
}
