//! What knows the vectors of texts.

use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex},
};

use tokio::{
    sync::{Notify, Semaphore, watch},
    time::Instant,
};

use super::{
    EmbeddingError, EmbeddingText,
    shared::{EmbedderShared, EmbedderState},
    text::TextDigest,
    timeouts::EmbeddingTimeouts,
};
use crate::{
    breaker::Breaker,
    config::{self, defaults, search},
    web::{OwnedTasks, WebClient, WebLimits},
};

#[cfg(test)]
mod tests;

/// The file in the cache directory.
const FILE: &str = "embedding.vectors";

/// What knows the vectors of texts. Dropped, it gives up what it has under way.
pub struct Embedder {
    pub(super) shared: Arc<EmbedderShared>,
    pub(super) tasks: OwnedTasks,
}

impl Embedder {
    /// Returns one that asks the endpoint of `declared`; nothing is sent yet. References to secrets
    /// lead into the directory `credentials`; vectors are kept in the directory `cache`, if there
    /// is one.
    ///
    /// # Errors
    ///
    /// [`EmbeddingError`] when the key cannot be found or sent, or TLS is wanted and the system
    /// trusts nobody.
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
        pace: EmbeddingTimeouts,
    ) -> Result<Arc<Self>, EmbeddingError> {
        let key = declared.api_key.as_ref().map(|key| key.resolve(credentials)).transpose();
        let key = key.map_err(EmbeddingError::Secret)?;
        let bounds = WebLimits {
            timeout: pace.timeout,
            body_bytes_max: defaults::EMBEDDING_ANSWER_BYTES_MAX,
        };
        let client = WebClient::new(declared.url.clone(), key.as_deref(), bounds)?;
        let breaker = Breaker::new(config::BreakerConfig {
            failure_threshold: defaults::EMBEDDING_FAILURES,
            cooldown: pace.cooldown,
        });
        let url = declared.url.to_string();
        let shared = EmbedderShared {
            client,
            model: declared.model.clone(),
            space: TextDigest::of(&[url.as_bytes(), declared.model.as_bytes()]),
            file: cache.map(|directory| directory.join(FILE)),
            pace,
            state: Mutex::new(EmbedderState::new(breaker)),
            changes: watch::channel(0).0,
            answers: Notify::new(),
            queries: Arc::new(Semaphore::new(defaults::EMBEDDING_QUERIES_MAX)),
            epoch: Instant::now(),
        };
        Ok(Arc::new(Self { shared: Arc::new(shared), tasks: OwnedTasks::default() }))
    }

    /// Returns the vectors of `texts` that are known now, each of length one.
    pub fn vectors(&self, texts: &[EmbeddingText]) -> Vec<Option<Arc<[f32]>>> {
        let state = self.shared.state();
        texts.iter().map(|text| state.vectors.get(&text.digest()).cloned()).collect()
    }

    /// Returns what sees each time when vectors of texts have come: a number that grows.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }
}

impl fmt::Debug for Embedder {
    /// Prints no text and no vector.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedder")
            .field("origin", &self.shared.client.origin())
            .field("model", &self.shared.model)
            .finish_non_exhaustive()
    }
}
