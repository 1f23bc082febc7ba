//! The errors of requests to a web API.

use std::{error::Error, sync::Arc, time::Duration};

use hyper::StatusCode;

use super::{DialError, Origin};
use crate::{error_report::appended, fault_class::Fault};

/// The reason why an API gave no usable answer. Never holds a token.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The token has characters that no header may contain.
    #[error("the token for `{origin}` has characters that cannot be sent")]
    InvalidToken {
        /// The API.
        origin: Origin,
    },
    /// The request target is not a path.
    #[error("a request to `{origin}` has no path")]
    InvalidTarget {
        /// The API.
        origin: Origin,
    },
    /// The request body cannot be written as JSON.
    #[error("cannot write a request to `{origin}`")]
    InvalidRequest {
        /// The API.
        origin: Origin,
        /// The reason.
        source: serde_json::Error,
    },
    /// The URL of a request has no scheme or host.
    #[error("a request has no absolute URL")]
    NoOrigin,
    /// No connection can be made, and nothing was sent.
    #[error(transparent)]
    Dial(#[from] Arc<DialError>),
    /// The answer is a redirect that is not followed.
    #[error("`{origin}` redirects to {}, which metamcp does not follow", shown(target.as_ref()))]
    Redirected {
        /// The API.
        origin: Origin,
        /// The origin that it redirects to, if it names one.
        target: Option<Origin>,
    },
    /// The connection broke before the answer was complete.
    #[error("cannot read the answer of `{origin}`")]
    BrokenOff {
        /// The API.
        origin: Origin,
        /// The error of the connection.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The answer took too long.
    #[error("`{origin}` has not answered within {} ms", after.as_millis())]
    Timeout {
        /// The API.
        origin: Origin,
        /// The timeout.
        after: Duration,
    },
    /// The API answered with a status other than 200.
    #[error("`{origin}` answered {status}{}", appended(quote))]
    Status {
        /// The API.
        origin: Origin,
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
        origin: Origin,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// The answer is not the expected JSON.
    #[error("the answer of `{origin}` is not the expected JSON: {why}{}", appended(quote))]
    NotJson {
        /// The API.
        origin: Origin,
        /// The description of the mistake.
        why: String,
        /// The beginning of the answer, safe to display.
        quote: String,
    },
}

impl WebError {
    /// Returns the error of a connection that broke.
    pub(super) fn broken_off(origin: Origin, source: impl Error + Send + Sync + 'static) -> Self {
        Self::BrokenOff { origin, source: Box::new(source) }
    }

    /// Returns the code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidToken { .. } => "TOKEN_INVALID",
            Self::InvalidTarget { .. } => "TARGET_INVALID",
            Self::InvalidRequest { .. } => "REQUEST_INVALID",
            Self::NoOrigin => "URL_INVALID",
            Self::Dial(error) => error.code(),
            Self::Redirected { .. } => "REDIRECTED",
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
            Self::InvalidTarget { .. } | Self::InvalidRequest { .. } | Self::NoOrigin => {
                "Report this as a bug of metamcp, which makes the request."
            }
            Self::Dial(error) => error.hint(),
            Self::Redirected { .. } => {
                "Write the URL that the redirect leads to. metamcp follows none to another origin, so secrets stay here."
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
            | Self::NoOrigin
            | Self::Redirected { .. } => Fault::Other,
            Self::Dial(error) => error.fault(),
            Self::BrokenOff { .. } | Self::Timeout { .. } => Fault::Offline,
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

fn shown(target: Option<&Origin>) -> String {
    target.map_or_else(|| "no usable address".to_owned(), |target| format!("`{target}`"))
}
