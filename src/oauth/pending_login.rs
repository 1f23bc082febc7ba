//! A login that has started and waits for a person.

use std::{fmt, sync::Arc};

use tokio::time::Instant;

use crate::server_name::ServerName;

/// The id of a login, which is not a secret.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LoginId(Arc<str>);

impl LoginId {
    pub(super) fn random() -> Self {
        Self(uuid::Uuid::new_v4().to_string().into())
    }
}

impl From<&str> for LoginId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for LoginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A login that has started and waits for a person.
#[derive(Clone)]
pub struct PendingLogin {
    /// The id of the login.
    pub id: LoginId,
    /// The server.
    pub server: ServerName,
    /// The address that the person opens. It contains the state of the login.
    pub url: String,
    /// The time at which the login ends without an answer.
    pub ends: Instant,
}

impl fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingLogin")
            .field("id", &self.id)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}
