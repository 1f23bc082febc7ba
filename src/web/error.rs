//! What may go wrong with a web API.

use std::{error::Error, io, sync::Arc, time::Duration};

use hyper::StatusCode;
use hyper_util::client::legacy;
use tokio_rustls::rustls;

use crate::fault::Fault;

/// Why an API has given no answer, or none that is of use. Never holds a token.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The token has characters that no header may have.
    #[error("the token for `{origin}` has characters that cannot be sent")]
    Bearer {
        /// The API.
        origin: Arc<str>,
    },
    /// What is asked for is not a path.
    #[error("a request to `{origin}` has no path")]
    Target {
        /// The API.
        origin: Arc<str>,
    },
    /// What is sent cannot be written as JSON.
    #[error("write a request to `{origin}`")]
    Unwritable {
        /// The API.
        origin: Arc<str>,
        /// Why not.
        source: serde_json::Error,
    },
    /// The system trusts no issuer of certificates.
    #[error("find the certificates of issuers that this system trusts")]
    Untrusting {
        /// Why there are none.
        source: io::Error,
    },
    /// There is no connection to it.
    #[error("connect to `{origin}`")]
    Unreachable {
        /// The API.
        origin: Arc<str>,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// It is there, and the TLS handshake with it fails.
    #[error("speak TLS with `{origin}`")]
    Tls {
        /// The API.
        origin: Arc<str>,
        /// Why not.
        source: rustls::Error,
    },
    /// The connection broke before the whole answer was there.
    #[error("read the answer of `{origin}`")]
    BrokenOff {
        /// The API.
        origin: Arc<str>,
        /// How.
        source: Box<dyn Error + Send + Sync>,
    },
    /// It took too long.
    #[error("`{origin}` has not answered within {} ms", after.as_millis())]
    Late {
        /// The API.
        origin: Arc<str>,
        /// How long it was waited for.
        after: Duration,
    },
    /// It says that it will not, or cannot.
    #[error("`{origin}` answered {status}{}", quoted(quote))]
    Status {
        /// The API.
        origin: Arc<str>,
        /// What it said.
        status: StatusCode,
        /// The beginning of its page, fit to be shown.
        quote: String,
        /// In what time it is to be asked again, as it says.
        retry_after: Option<Duration>,
    },
    /// Its answer is larger than it may be.
    #[error("the answer of `{origin}` has more than {bytes_max} bytes")]
    TooLarge {
        /// The API.
        origin: Arc<str>,
        /// How many it may have.
        bytes_max: usize,
    },
    /// Its answer is not the JSON that was expected.
    #[error("the answer of `{origin}` is of no use: {why}{}", quoted(quote))]
    NotJson {
        /// The API.
        origin: Arc<str>,
        /// What is wrong with it.
        why: String,
        /// Its beginning, fit to be shown.
        quote: String,
    },
}

impl WebError {
    /// Returns why a request has no answer.
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

    /// Returns what the operator can do about it.
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

    /// Returns what kind of failure it is.
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

/// Puts a quotation behind a sentence, where there is one.
fn quoted(quote: &str) -> String {
    if quote.is_empty() { String::new() } else { format!(": {quote}") }
}

/// Finds what TLS has to say in the causes of an error.
fn tls_error(error: &(dyn Error + 'static)) -> Option<rustls::Error> {
    let mut next = Some(error);
    while let Some(cause) = next {
        let mut found = cause;
        // What an I/O error was made of is not among its causes.
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
