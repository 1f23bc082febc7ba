//! The errors of an embedding endpoint.

use hyper::StatusCode;

use super::openai_api::ResponseError;
use crate::{config::secret::SecretError, http_client::WebError};

/// The reason that a vector is missing.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingError {
    /// The key cannot be found.
    #[error("the key `search.embedding.api_key` cannot be found")]
    Secret(#[source] SecretError),
    /// The request to the endpoint failed.
    #[error("the request to the embedding endpoint failed")]
    Web(#[from] WebError),
    /// The answer of the endpoint is unusable.
    #[error("the answer of the embedding endpoint is unusable")]
    Unusable(#[from] ResponseError),
}

impl EmbeddingError {
    /// Returns the code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Secret(_) => "SECRET_MISSING",
            Self::Web(error) => error.code(),
            Self::Unusable(_) => "EMBEDDING_UNUSABLE",
        }
    }

    /// Returns what the operator can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Secret(error) => error.hint(),
            Self::Web(error) => error.hint(),
            Self::Unusable(ResponseError::Dimension { .. }) => {
                "Restart metamcp: the endpoint has replaced its model by another one."
            }
            Self::Unusable(_) => {
                "Check `search.embedding.url` and `model`: it does not answer like the OpenAI API."
            }
        }
    }

    /// Returns whether the request itself is at fault, so that a smaller one may succeed.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Web(WebError::Status { status, .. }) => matches!(
                *status,
                StatusCode::BAD_REQUEST
                    | StatusCode::PAYLOAD_TOO_LARGE
                    | StatusCode::UNPROCESSABLE_ENTITY
            ),
            Self::Web(WebError::TooLarge { .. }) => true,
            Self::Secret(_) | Self::Web(_) | Self::Unusable(_) => false,
        }
    }
}
