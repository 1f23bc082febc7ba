//! The errors of requests to a web API.

use std::{error::Error, io, sync::Arc, time::Duration};

use hyper::StatusCode;
use hyper_util::client::legacy;
use tokio_rustls::rustls;

use crate::fault_class::Fault;

/// The reason why an API gave no usable answer. Never holds a token.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The token has characters that no header may contain.
    #[error("the token for `{origin}` has characters that cannot be sent")]
    Bearer {
        /// The API.
        origin: Arc<str>,
    },
    /// The request target is not a path.
    #[error("a request to `{origin}` has no path")]
    Target {
        /// The API.
        origin: Arc<str>,
    },
    /// The request body cannot be written as JSON.
    #[error("write a request to `{origin}`")]
    Unwritable {
        /// The API.
        origin: Arc<str>,
        /// The reason.
        source: serde_json::Error,
    },
    /// The system trusts no issuer of certificates.
    #[error("find the certificates of issuers that this system trusts")]
    Untrusting {
        /// The reason.
        source: io::Error,
    },
    /// No connection can be made.
    #[error("connect to `{origin}`")]
    Unreachable {
        /// The API.
        origin: Arc<str>,
        /// The reason.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The API is reachable, but the TLS handshake with it fails.
    #[error("speak TLS with `{origin}`")]
    Tls {
        /// The API.
        origin: Arc<str>,
        /// The reason.
        source: rustls::Error,
    },
    /// The connection broke before the answer was complete.
    #[error("read the answer of `{origin}`")]
    BrokenOff {
        /// The API.
        origin: Arc<str>,
        /// The error of the connection.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The answer took too long.
    #[error("`{origin}` has not answered within {} ms", after.as_millis())]
    Late {
        /// The API.
        origin: Arc<str>,
        /// The timeout.
        after: Duration,
    },
    /// The API answered with a status other than 200.
    #[error("`{origin}` answered {status}{}", quoted(quote))]
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
    #[error("the answer of `{origin}` is of no use: {why}{}", quoted(quote))]
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
        let is_unconnected = error.is_connect();
        let source = Box::new(error);
        match is_unconnected {
            true => Self::Unreachable { origin, source },
            false => Self::BrokenOff { origin, source },
        }
    }

    /// Returns the code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Bearer { .. } => "TOKEN_INVALID",
            Self::Target { .. } => "TARGET_INVALID",
            Self::Unwritable { .. } => "REQUEST_INVALID",
            Self::Untrusting { .. } => "NO_TRUST",
            Self::Unreachable { .. } => "UNREACHABLE",
            Self::Tls { .. } => "TLS_FAILED",
            Self::BrokenOff { .. } => "BROKEN_OFF",
            Self::Late { .. } => "TIMEOUT",
            Self::Status { .. } => "HTTP_STATUS",
            Self::TooLarge { .. } => "TOO_LARGE",
            Self::NotJson { .. } => "NOT_JSON",
        }
    }

    /// Returns the remedy for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Bearer { .. } => "Remove line breaks and other control characters from the key.",
            Self::Target { .. } | Self::Unwritable { .. } => {
                "Report it: the request is made by the service."
            }
            Self::Untrusting { .. } => {
                "Install the certificates of the system, or set SSL_CERT_FILE to a PEM file."
            }
            Self::Unreachable { .. } => {
                "Check that it runs, and its host and port; a proxy is not used."
            }
            Self::Tls { .. } => {
                "Trust the issuer of its certificate by SSL_CERT_FILE, or write `http://` if it speaks no TLS."
            }
            Self::BrokenOff { .. } => "See its log: it closed the connection.",
            Self::Late { .. } => "See whether it is overloaded, or is still starting.",
            Self::Status { status, .. } => status_hint(*status),
            Self::TooLarge { .. } | Self::NotJson { .. } => {
                "Check the path of the URL: something else may answer there."
            }
        }
    }

    /// Returns the kind of the failure.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Bearer { .. }
            | Self::Target { .. }
            | Self::Unwritable { .. }
            | Self::Untrusting { .. } => Fault::Other,
            Self::Unreachable { .. }
            | Self::Tls { .. }
            | Self::BrokenOff { .. }
            | Self::Late { .. } => Fault::Offline,
            Self::Status { status, .. } => Fault::of_status(*status),
            Self::TooLarge { .. } | Self::NotJson { .. } => Fault::Protocol,
        }
    }
}

fn status_hint(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "Check the key and what it allows.",
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => "Check the path of the URL.",
        StatusCode::TOO_MANY_REQUESTS => "It is asked again later; its quota may be used up.",
        status if status.is_redirection() => {
            "No redirect is followed, or the key would go elsewhere: write the URL that it leads to."
        }
        status if status.is_server_error() => "See its log.",
        _ => "See what it says.",
    }
}

/// Formats a quotation to append to a sentence; empty without a quotation.
fn quoted(quote: &str) -> String {
    if quote.is_empty() { String::new() } else { format!(": {quote}") }
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
