//! The login that the running service has at a server.
//!
//! Pure.

use serde::Serialize;
use serde_json::Value;

/// The login that the running service has at a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceLogin {
    /// The phase: `logged_in`, `needs_login`, `pending`.
    pub state: String,
    /// The time until the token expires, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// The last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ServiceLogin {
    /// Reads the answer to `auth/status` about one server.
    pub(super) fn read(auth: &Value) -> Self {
        Self {
            state: auth["state"].as_str().unwrap_or_default().to_owned(),
            expires_in_ms: auth["expiresInMs"].as_u64(),
            error: auth["error"].as_str().map(str::to_owned),
        }
    }

    /// Returns whether the service has a token.
    pub(super) fn is_logged_in(&self) -> bool {
        self.state == "logged_in"
    }
}
