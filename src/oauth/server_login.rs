//! The login of one declared server.

use std::sync::Arc;

use super::Authorizer;

/// The login of one server.
pub(super) enum ServerLogin {
    /// The operator sets `Authorization`.
    StaticHeader,
    OAuth(Arc<Authorizer>),
}

impl ServerLogin {
    /// Returns the tokens, if the login is one with OAuth.
    pub(super) fn authorizer(&self) -> Option<&Arc<Authorizer>> {
        match self {
            Self::StaticHeader => None,
            Self::OAuth(authorizer) => Some(authorizer),
        }
    }
}
