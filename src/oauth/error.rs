//! The errors of logins.

use std::{io, sync::Arc};

use crate::{
    config::secret::SecretError, error_report::appended, http_client::WebError,
    server_name::ServerName,
};

/// The reason why a login fails. It holds no token, code, verifier or secret.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoginError {
    /// The server has no login.
    #[error("server `{0}` has no login with OAuth")]
    NoLogin(ServerName),
    /// metamcp logs in at the server by itself.
    #[error("server `{0}` has `grant = \"client_credentials\"`, so no person logs in")]
    NoPerson(ServerName),
    /// An HTTP request fails.
    #[error("cannot get an answer of `{url}`")]
    Http {
        /// The URL, without its secret parts.
        url: Arc<str>,
        /// The reason.
        source: Arc<WebError>,
    },
    /// A step takes too long.
    #[error("{step} has not finished within {seconds} s")]
    Timeout {
        /// The step.
        step: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// An endpoint answers with an unexpected status.
    #[error("`{url}` answered {status}{}", appended(quote))]
    Status {
        /// The URL, without its secret parts.
        url: Arc<str>,
        /// The status.
        status: u16,
        /// The beginning of the answer, safe to display; empty if it may hold a secret.
        quote: Arc<str>,
    },
    /// An endpoint answers with something else than the expected JSON.
    #[error("the answer of `{url}` is unusable: {why}")]
    InvalidAnswer {
        /// The URL, without its secret parts.
        url: Arc<str>,
        /// The mistake.
        why: Arc<str>,
    },
    /// A URL that came over the network is not secure.
    #[error("`{url}` is not an https URL, so metamcp does not use it")]
    InsecureUrl {
        /// The URL, without its secret parts.
        url: Arc<str>,
    },
    /// The metadata describes another server.
    #[error("server `{server}` has the metadata of another resource, `{resource}`")]
    ResourceMismatch {
        /// The server.
        server: ServerName,
        /// The resource that the metadata describes.
        resource: Arc<str>,
    },
    /// The metadata is that of another authorization server.
    #[error("the metadata of the authorization server `{expected}` names `{found}` as its issuer")]
    IssuerMismatch {
        /// The issuer that the URL of the metadata follows from.
        expected: Arc<str>,
        /// The issuer in the metadata.
        found: Arc<str>,
    },
    /// The authorization server has no metadata.
    #[error("the authorization server `{issuer}` has no metadata")]
    NoMetadata {
        /// The authorization server.
        issuer: Arc<str>,
    },
    /// The authorization server does not support PKCE.
    #[error("the authorization server `{issuer}` does not announce PKCE with S256")]
    NoPkce {
        /// The authorization server.
        issuer: Arc<str>,
    },
    /// The metadata lacks an endpoint.
    #[error("the metadata of the authorization server `{issuer}` has no `{endpoint}`")]
    NoEndpoint {
        /// The authorization server.
        issuer: Arc<str>,
        /// The missing member.
        endpoint: &'static str,
    },
    /// No way to a client id is left.
    #[error("the authorization server `{issuer}` registers no clients")]
    NoClientId {
        /// The authorization server.
        issuer: Arc<str>,
    },
    /// The authorization server refuses to register metamcp.
    #[error("the authorization server `{issuer}` does not register metamcp{}", appended(why))]
    RegistrationRefused {
        /// The authorization server.
        issuer: Arc<str>,
        /// The reason of the server, safe to display.
        why: Arc<str>,
    },
    /// The server has another authorization server than the one of its `client_id`.
    #[error(
        "server `{server}` now has the authorization server `{found}`, but its `client_id` belongs to `{expected}`"
    )]
    IssuerChanged {
        /// The server.
        server: ServerName,
        /// The authorization server that the credentials were used with.
        expected: Arc<str>,
        /// The current authorization server.
        found: Arc<str>,
    },
    /// The secret of the client cannot be read.
    #[error("cannot read the `client_secret` of server `{server}`")]
    Secret {
        /// The server.
        server: ServerName,
        /// The reason.
        source: Arc<SecretError>,
    },
    /// The server refuses scopes that a login has requested already.
    #[error("server `{server}` refuses even a token for the scopes `{scopes}`")]
    ScopesRefused {
        /// The server.
        server: ServerName,
        /// The scopes.
        scopes: Arc<str>,
    },
    /// Too many logins wait for a person.
    #[error("{0} logins have started and are not finished")]
    TooManyLogins(usize),
    /// The text is not an answer of an authorization server.
    #[error("the text is not the address at which a login ends: it has no `state`")]
    NotAnAnswer,
    /// The answer belongs to no login that waits.
    #[error("the login is unknown or over")]
    UnknownLogin,
    /// The answer comes from another authorization server.
    #[error("the answer does not come from the authorization server of server `{0}`")]
    WrongIssuer(ServerName),
    /// The answer does not name the authorization server.
    #[error("the answer for server `{0}` does not name its authorization server")]
    MissingIssuer(ServerName),
    /// The authorization server refuses the login.
    #[error(
        "the authorization server of server `{server}` refuses the login: {error}{}",
        appended(description)
    )]
    Refused {
        /// The server.
        server: ServerName,
        /// The code of the error.
        error: Arc<str>,
        /// The description of the error, safe to display.
        description: Arc<str>,
    },
    /// The answer has neither a code nor an error.
    #[error("the answer for server `{0}` has no `code`")]
    NoCode(ServerName),
    /// The authorization server refuses a token.
    #[error(
        "the authorization server `{issuer}` issues no token: {error}{}",
        appended(description)
    )]
    TokenRefused {
        /// The authorization server.
        issuer: Arc<str>,
        /// The code of the error.
        error: Arc<str>,
        /// The description of the error, safe to display.
        description: Arc<str>,
    },
    /// The time for the login is over.
    #[error("the login at server `{0}` was not finished in time")]
    Expired(ServerName),
    /// Another login at the same server has started, there was a logout, or its declaration has
    /// changed.
    #[error("another login, a logout or a reload ended the login at server `{0}`")]
    Replaced(ServerName),
    /// A file cannot be written.
    #[error("cannot store the login at server `{server}`")]
    Store {
        /// The server.
        server: ServerName,
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// The service ends.
    #[error("the service ends")]
    Stopping,
}

impl LoginError {
    /// Returns the code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoLogin(_) => "NO_LOGIN",
            Self::NoPerson(_) => "NO_PERSON",
            Self::Http { source, .. } => source.code(),
            Self::Timeout { .. } => "TIMEOUT",
            Self::Status { .. } => "HTTP_STATUS",
            Self::InvalidAnswer { .. } => "ANSWER_INVALID",
            Self::InsecureUrl { .. } => "URL_INSECURE",
            Self::ResourceMismatch { .. } => "RESOURCE_MISMATCH",
            Self::IssuerMismatch { .. } => "ISSUER_MISMATCH",
            Self::NoMetadata { .. } => "NO_METADATA",
            Self::NoPkce { .. } => "NO_PKCE",
            Self::NoEndpoint { .. } => "NO_ENDPOINT",
            Self::NoClientId { .. } => "NO_CLIENT_ID",
            Self::RegistrationRefused { .. } => "REGISTRATION_REFUSED",
            Self::IssuerChanged { .. } => "ISSUER_CHANGED",
            Self::Secret { .. } => "SECRET_UNREADABLE",
            Self::ScopesRefused { .. } => "SCOPES_REFUSED",
            Self::TooManyLogins(_) => "TOO_MANY_LOGINS",
            Self::NotAnAnswer => "NOT_AN_ANSWER",
            Self::UnknownLogin => "LOGIN_UNKNOWN",
            Self::WrongIssuer(_) => "ISSUER_WRONG",
            Self::MissingIssuer(_) => "ISSUER_MISSING",
            Self::Refused { .. } => "LOGIN_REFUSED",
            Self::NoCode(_) => "NO_CODE",
            Self::TokenRefused { .. } => "TOKEN_REFUSED",
            Self::Expired(_) => "LOGIN_EXPIRED",
            Self::Replaced(_) => "LOGIN_REPLACED",
            Self::Store { .. } => "STORE_FAILED",
            Self::Stopping => "STOPPING",
        }
    }

    /// Returns the remedy for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoLogin(_) => {
                "Only a server with a `url`, and without `Authorization` in its `headers`, needs a login. A program gets its credentials from `env`."
            }
            Self::NoPerson(_) => {
                "Check `client_id`, `client_secret` and `scopes`. metamcp logs in when a request needs it."
            }
            Self::Http { source, .. } => source.hint(),
            Self::Timeout { .. } => "Check whether it is overloaded, then log in again.",
            Self::Status { .. } => "See its log, then log in again.",
            Self::InvalidAnswer { .. } | Self::NoMetadata { .. } => {
                "Check the `url` of the server, and whether the server supports OAuth. If it wants a key, set it in `headers`."
            }
            Self::InsecureUrl { .. } => "Ask the operator of the server to announce https URLs.",
            Self::ResourceMismatch { .. } => {
                "Write the `url` of the server as its metadata names it, if you trust that address."
            }
            Self::IssuerMismatch { .. } => {
                "Ask the operator of the server to correct its metadata."
            }
            Self::NoPkce { .. } | Self::NoEndpoint { .. } => {
                "Ask the operator of the authorization server to announce it. metamcp does not log in without it."
            }
            Self::NoClientId { .. } | Self::RegistrationRefused { .. } => {
                "Register metamcp by hand, and set `auth = { client_id, client_secret }`. `metamcp auth NAME --document` shows its redirect address."
            }
            Self::IssuerChanged { .. } => {
                "Set the `client_id` of the new authorization server. If the old one is right there, run `metamcp logout NAME` first."
            }
            Self::Secret { source, .. } => source.hint(),
            Self::ScopesRefused { .. } => {
                "Ask the operator of the server for access. To log in anyway, run `metamcp logout NAME` first."
            }
            Self::TooManyLogins(_) => "Finish those logins, or wait ten minutes.",
            Self::NotAnAnswer => "Paste the whole address that the browser ended at.",
            Self::UnknownLogin | Self::Expired(_) | Self::Replaced(_) | Self::NoCode(_) => {
                "Run `metamcp login NAME` again. A login can be finished once, within ten minutes."
            }
            Self::WrongIssuer(_) | Self::MissingIssuer(_) => {
                "Do not use that answer: another server may have forged it. Run `metamcp login NAME` again."
            }
            Self::Refused { .. } => {
                "Run `metamcp login NAME` again and agree, or ask the operator of the server for access."
            }
            Self::TokenRefused { .. } => {
                "Run `metamcp login NAME`. With `client_id`, check it and its secret."
            }
            Self::Store { .. } => "Check the permissions and the space of the state directory.",
            Self::Stopping => "Run the command again once the service runs.",
        }
    }

    /// Returns whether the same attempt may succeed later.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Http { .. }
            | Self::Timeout { .. }
            | Self::Status { .. }
            | Self::InvalidAnswer { .. }
            | Self::Store { .. } => true,
            // Source: RFC 6749, section 4.1.2.1, and RFC 8628, section 3.5.
            Self::TokenRefused { error, .. } => {
                matches!(&**error, "server_error" | "temporarily_unavailable" | "slow_down")
            }
            _ => false,
        }
    }
}
