//! Why there is no vector.

use hyper::StatusCode;

use super::openai_api::ResponseError;
use crate::{config::secret::SecretError, web::WebError};

/// Why there is no vector.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingError {
    /// The key cannot be found.
    #[error("find `search.embedding.api_key`")]
    Secret(#[source] SecretError),
    /// The endpoint cannot be asked, or has no answer.
    #[error("ask the embedding endpoint")]
    Web(#[from] WebError),
    /// Its answer is of no use.
    #[error("use the answer of the embedding endpoint")]
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
                "Its model was replaced by another one: restart the service."
            }
            Self::Unusable(
                ResponseError::Number { .. }
                | ResponseError::Order
                | ResponseError::Mixed { .. }
                | ResponseError::Long { .. }
                | ResponseError::Nowhere,
            ) => "Check `search.embedding.url` and `model`: it does not answer as the OpenAI API.",
        }
    }

    /// Tells whether what was asked is at fault, so that less of it may have an answer.
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
