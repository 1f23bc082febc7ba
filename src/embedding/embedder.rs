//! The source of vectors: an embedding endpoint and the vectors learned from it.

use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    sync::{Notify, Semaphore, watch},
    time::Instant,
};

use super::{
    EmbeddingError, EmbeddingText,
    embedder_state::{EmbedderShared, EmbedderState},
    text_hash::TextDigest,
};
use crate::{
    breaker::Breaker,
    config::{self, defaults, search},
    http_client::{OwnedTasks, WebClient, WebLimits},
};

#[cfg(test)]
mod tests;

/// The name of the file in the cache directory.
const FILE: &str = "embedding.vectors";

/// A source of vectors for texts. Dropping it aborts its requests.
pub struct Embedder {
    pub(super) shared: Arc<EmbedderShared>,
    pub(super) tasks: OwnedTasks,
}

/// The timeouts and pauses of an embedder.
#[derive(Clone, Copy, Debug)]
pub(super) struct EmbeddingTimeouts {
    pub(super) timeout: Duration,
    pub(super) query_timeout: Duration,
    pub(super) pause: (Duration, Duration),
    pub(super) cooldown: Duration,
}

impl Default for EmbeddingTimeouts {
    fn default() -> Self {
        Self {
            timeout: defaults::EMBEDDING_TIMEOUT,
            query_timeout: defaults::EMBEDDING_QUERY_TIMEOUT,
            pause: defaults::EMBEDDING_PAUSE,
            cooldown: defaults::EMBEDDING_COOLDOWN,
        }
    }
}

impl Embedder {
    /// Returns an embedder for the endpoint of `declared`; it sends nothing yet. References to
    /// secrets are resolved in the directory `credentials`; vectors are kept in the directory
    /// `cache`, if there is one.
    ///
    /// # Errors
    ///
    /// [`EmbeddingError`] if the key cannot be found or sent, or if TLS is needed and the system
    /// trusts no certificate authority.
    pub fn new(
        declared: &search::EmbeddingConfig,
        credentials: Option<&Path>,
        cache: Option<&Path>,
    ) -> Result<Arc<Self>, EmbeddingError> {
        Self::with(declared, credentials, cache, EmbeddingTimeouts::default())
    }

    pub(super) fn with(
        declared: &search::EmbeddingConfig,
        credentials: Option<&Path>,
        cache: Option<&Path>,
        timeouts: EmbeddingTimeouts,
    ) -> Result<Arc<Self>, EmbeddingError> {
        let key = declared.api_key.as_ref().map(|key| key.resolve(credentials)).transpose();
        let key = key.map_err(EmbeddingError::Secret)?;
        let bounds = WebLimits {
            timeout: timeouts.timeout,
            body_bytes_max: defaults::EMBEDDING_ANSWER_BYTES_MAX,
        };
        let client = WebClient::new(declared.url.clone(), key.as_deref(), bounds)?;
        let breaker = Breaker::new(config::BreakerConfig {
            failure_threshold: defaults::EMBEDDING_FAILURES,
            cooldown: timeouts.cooldown,
        });
        let url = declared.url.to_string();
        let shared = EmbedderShared {
            client,
            model: declared.model.clone(),
            space: TextDigest::of(&[url.as_bytes(), declared.model.as_bytes()]),
            file: cache.map(|directory| directory.join(FILE)),
            timeouts,
            state: Mutex::new(EmbedderState::new(breaker)),
            changes: watch::channel(0).0,
            answers: Notify::new(),
            queries: Arc::new(Semaphore::new(defaults::EMBEDDING_QUERIES_MAX)),
            epoch: Instant::now(),
        };
        Ok(Arc::new(Self { shared: Arc::new(shared), tasks: OwnedTasks::default() }))
    }

    /// Returns the vector of each text, of length one, or `None` if it is not known yet.
    pub fn vectors(&self, texts: &[EmbeddingText]) -> Vec<Option<Arc<[f32]>>> {
        let state = self.shared.state();
        texts.iter().map(|text| state.vectors.get(&text.digest()).cloned()).collect()
    }

    /// Returns a receiver of a number that grows each time vectors of texts arrive.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }
}

impl fmt::Debug for Embedder {
    /// Omits texts and vectors.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedder")
            .field("origin", &self.shared.client.origin())
            .field("model", &self.shared.model)
            .finish_non_exhaustive()
    }
}
