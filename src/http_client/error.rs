//! The errors of requests to a web API.

use std::{error::Error, io, sync::Arc, time::Duration};

use hyper::StatusCode;
use hyper_util::client::legacy;
use tokio_rustls::rustls;

use crate::{error_report::appended, fault_class::Fault};

/// The reason why an API gave no usable answer. Never holds a token.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The token has characters that no header may contain.
    #[error("the token for `{origin}` has characters that cannot be sent")]
    InvalidToken {
        /// The API.
        origin: Arc<str>,
    },
    /// The request target is not a path.
    #[error("a request to `{origin}` has no path")]
    InvalidTarget {
        /// The API.
        origin: Arc<str>,
    },
    /// The request body cannot be written as JSON.
    #[error("cannot write a request to `{origin}`")]
    InvalidRequest {
        /// The API.
        origin: Arc<str>,
        /// The reason.
        source: serde_json::Error,
    },
    /// The system trusts no issuer of certificates.
    #[error("cannot find the certificates of issuers that this system trusts")]
    NoTrust {
        /// The reason.
        source: io::Error,
    },
    /// No connection can be made.
    #[error("cannot connect to `{origin}`")]
    Unreachable {
        /// The API.
        origin: Arc<str>,
        /// The reason.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The API is reachable, but the TLS handshake with it fails.
    #[error("cannot speak TLS with `{origin}`")]
    Tls {
        /// The API.
        origin: Arc<str>,
        /// The reason.
        source: rustls::Error,
    },
    /// The connection broke before the answer was complete.
    #[error("cannot read the answer of `{origin}`")]
    BrokenOff {
        /// The API.
        origin: Arc<str>,
        /// The error of the connection.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The answer took too long.
    #[error("`{origin}` has not answered within {} ms", after.as_millis())]
    Timeout {
        /// The API.
        origin: Arc<str>,
        /// The timeout.
        after: Duration,
    },
    /// The API answered with a status other than 200.
    #[error("`{origin}` answered {status}{}", appended(quote))]
    Status {
        /// The API.
        origin: Arc<str>,
        /// The status of the answer.
        status: StatusCode,
        /// The beginning of the answer, safe to display.
        quote: String,
        /// The delay before the next request that the API asks for.
        retry_after: Option<Duration>,
    },
    /// The answer is too large.
    #[error("the answer of `{origin}` has more than {bytes_max} bytes")]
    TooLarge {
        /// The API.
        origin: Arc<str>,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// The answer is not the expected JSON.
    #[error("the answer of `{origin}` is not the expected JSON: {why}{}", appended(quote))]
    NotJson {
        /// The API.
        origin: Arc<str>,
        /// The description of the mistake.
        why: String,
        /// The beginning of the answer, safe to display.
        quote: String,
    },
}

impl WebError {
    /// Returns the error of a request that got no answer.
    pub(super) fn unsent(origin: Arc<str>, error: legacy::Error) -> Self {
        if let Some(source) = tls_error(&error) {
            return Self::Tls { origin, source };
        }
        match error.is_connect() {
            true => Self::Unreachable { origin, source: Box::new(error) },
            false => Self::broken_off(origin, error),
        }
    }

    /// Returns the error of a connection that broke.
    pub(super) fn broken_off(origin: Arc<str>, source: impl Error + Send + Sync + 'static) -> Self {
        Self::BrokenOff { origin, source: Box::new(source) }
    }

    /// Returns the code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidToken { .. } => "TOKEN_INVALID",
            Self::InvalidTarget { .. } => "TARGET_INVALID",
            Self::InvalidRequest { .. } => "REQUEST_INVALID",
            Self::NoTrust { .. } => "NO_TRUST",
            Self::Unreachable { .. } => "UNREACHABLE",
            Self::Tls { .. } => "TLS_FAILED",
            Self::BrokenOff { .. } => "BROKEN_OFF",
            Self::Timeout { .. } => "TIMEOUT",
            Self::Status { .. } => "HTTP_STATUS",
            Self::TooLarge { .. } => "TOO_LARGE",
            Self::NotJson { .. } => "NOT_JSON",
        }
    }

    /// Returns the remedy for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::InvalidToken { .. } => {
                "Remove line breaks and other control characters from the key."
            }
            Self::InvalidTarget { .. } | Self::InvalidRequest { .. } => {
                "Report this as a bug of metamcp, which makes the request."
            }
            Self::NoTrust { .. } => {
                "Install the certificates of the system, or set SSL_CERT_FILE to a PEM file."
            }
            Self::Unreachable { .. } => {
                "Check its host and port, and that it is running. metamcp uses no proxy."
            }
            Self::Tls { .. } => {
                "Trust the issuer of its certificate by SSL_CERT_FILE, or write `http://` if it speaks no TLS."
            }
            Self::BrokenOff { .. } => "See its log: the connection broke.",
            Self::Timeout { .. } => "Check whether it is overloaded or still starting.",
            Self::Status { status, .. } => status_hint(*status),
            Self::TooLarge { .. } | Self::NotJson { .. } => {
                "Check the path of the URL: something else may answer there."
            }
        }
    }

    /// Returns the kind of the failure.
    pub fn fault(&self) -> Fault {
        match self {
            Self::InvalidToken { .. }
            | Self::InvalidTarget { .. }
            | Self::InvalidRequest { .. }
            | Self::NoTrust { .. } => Fault::Other,
            Self::Unreachable { .. }
            | Self::Tls { .. }
            | Self::BrokenOff { .. }
            | Self::Timeout { .. } => Fault::Offline,
            Self::Status { status, .. } => Fault::of_status(*status),
            Self::TooLarge { .. } | Self::NotJson { .. } => Fault::Protocol,
        }
    }
}

fn status_hint(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "Check the key and what it allows.",
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => "Check the path of the URL.",
        StatusCode::TOO_MANY_REQUESTS => "Check its quota. metamcp asks again later.",
        status if status.is_redirection() => {
            "Write the URL that the redirect leads to. metamcp follows none, so the key stays here."
        }
        status if status.is_server_error() => "See its log.",
        _ => "See the answer that the error quotes.",
    }
}

/// Finds the TLS error in the chain of causes of an error.
fn tls_error(error: &(dyn Error + 'static)) -> Option<rustls::Error> {
    let mut next = Some(error);
    while let Some(cause) = next {
        let mut found = cause;
        // The error that an I/O error wraps is not among its sources.
        while let Some(inner) = found.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            found = inner;
        }
        if let Some(found) = found.downcast_ref::<rustls::Error>() {
            return Some(found.clone());
        }
        next = cause.source();
    }
    None
}
