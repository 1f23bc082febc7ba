//! The source of vectors: an embedding endpoint and the vectors learned from it.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, Semaphore, watch},
    time::Instant,
};

use super::{
    EmbeddingError, EmbeddingText,
    openai_api::{EmbeddingRequest, EmbeddingResponse},
    request_batch::EmbeddingBatch,
    text_hash::TextDigest,
    vector_table::{QueryVectorCache, UnitVector, VectorTable},
};
use crate::{
    breaker::Breaker,
    config::{self, ProxyConfig, defaults, search},
    error_report::chain,
    http_client::{JsonClient, OwnedTasks, WebLimits},
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
    /// `cache`, if there is one. Requests go through `proxy`, unless the endpoint is on this host.
    ///
    /// # Errors
    ///
    /// [`EmbeddingError`] if the key cannot be found or sent, or if TLS is needed and the system
    /// trusts no certificate authority.
    pub fn new(
        declared: &search::EmbeddingConfig,
        credentials: Option<&Path>,
        cache: Option<&Path>,
        proxy: &ProxyConfig,
    ) -> Result<Arc<Self>, EmbeddingError> {
        Self::with(declared, credentials, cache, proxy, EmbeddingTimeouts::default())
    }

    pub(super) fn with(
        declared: &search::EmbeddingConfig,
        credentials: Option<&Path>,
        cache: Option<&Path>,
        proxy: &ProxyConfig,
        timeouts: EmbeddingTimeouts,
    ) -> Result<Arc<Self>, EmbeddingError> {
        let key = declared.api_key.as_ref().map(|key| key.resolve(credentials)).transpose();
        let key = key.map_err(EmbeddingError::Secret)?;
        let bounds = WebLimits {
            timeout: timeouts.timeout,
            body_bytes_max: defaults::EMBEDDING_ANSWER_BYTES_MAX,
        };
        let client = JsonClient::new(declared.url.clone(), key.as_deref(), bounds, proxy)?;
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

/// The state that an embedder shares with its tasks.
pub(super) struct EmbedderShared {
    pub(super) client: JsonClient,
    pub(super) model: String,
    /// The hash of endpoint and model. Only vectors of one space can be compared.
    pub(super) space: TextDigest,
    pub(super) file: Option<PathBuf>,
    pub(super) timeouts: EmbeddingTimeouts,
    pub(super) state: Mutex<EmbedderState>,
    /// The number of times that vectors of texts arrived.
    pub(super) changes: watch::Sender<u64>,
    /// Notified when the endpoint has answered a query, which ends a pause early.
    pub(super) answers: Notify,
    pub(super) queries: Arc<Semaphore>,
    /// The start of the time that the breaker counts.
    pub(super) epoch: Instant,
}

/// The known vectors, the work under way, and the state of the endpoint.
pub(super) struct EmbedderState {
    pub(super) plan: EmbeddingBatch,
    pub(super) vectors: VectorTable,
    pub(super) recent: QueryVectorCache,
    /// The breaker for queries. Texts are learned by one task, which pauses by itself.
    pub(super) breaker: Breaker,
    pub(super) health: EndpointHealth,
    pub(super) is_learning: bool,
    /// `true` once the file was read.
    pub(super) is_read: bool,
}

impl EmbedderState {
    fn new(breaker: Breaker) -> Self {
        Self {
            plan: EmbeddingBatch::default(),
            vectors: VectorTable::default(),
            recent: QueryVectorCache::default(),
            breaker,
            health: EndpointHealth::default(),
            is_learning: false,
            is_read: false,
        }
    }
}

impl EmbedderShared {
    /// Asks for the vectors of texts; the caller keeps them.
    pub(super) async fn ask(
        &self,
        texts: &[EmbeddingText],
    ) -> Result<Vec<UnitVector>, EmbeddingError> {
        let answer: EmbeddingResponse =
            self.client.post(&EmbeddingRequest::new(&self.model, texts)).await?;
        let vectors = answer.vectors(texts.len())?;
        let dimension = vectors.first().map(|vector| vector.len()).unwrap_or_default();
        self.state().vectors.answered(dimension)?;
        Ok(vectors)
    }

    /// Records an answer, and logs the end of an outage.
    pub(super) fn note_answer(&self, answer: EndpointAnswer) {
        if self.state().health.note_answer(answer) {
            let (origin, model) = (self.client.origin(), &self.model);
            tracing::info!(%origin, model, "search with embeddings again: {origin} answers");
        }
    }

    /// Records a failure, and warns operators once per outage.
    pub(super) fn failed(&self, error: &EmbeddingError) {
        let is_first = self.state().health.note_failure(EndpointHealth::Failing);
        let (origin, model, code, hint) =
            (self.client.origin(), &self.model, error.code(), error.hint());
        let error = chain(error);
        if is_first {
            tracing::warn!(%origin, model, code, error, hint, "search without embeddings: {error}");
        } else {
            tracing::debug!(%origin, model, code, error, "embeddings still missing: {error}");
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, EmbedderState> {
        // Held only for statements on plain data, never across an await.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of the endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EndpointHealth {
    /// There is no outage.
    #[default]
    Healthy,
    /// The endpoint fails. Any answer ends this outage.
    Failing,
    /// The endpoint answers too late for searches. Only an answer in time ends this outage.
    Slow,
}

/// The time of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndpointAnswer {
    /// In time for a search.
    InTime,
    /// At any time.
    AnyTime,
}

impl EndpointHealth {
    /// Records a failed or slow endpoint, and returns `true` if an outage begins.
    pub(super) fn note_failure(&mut self, kind: Self) -> bool {
        let is_first = *self == Self::Healthy;
        if is_first {
            *self = kind;
        }
        is_first
    }

    /// Records an answer, and returns `true` if an outage ends.
    pub(super) fn note_answer(&mut self, answer: EndpointAnswer) -> bool {
        let is_over = match (*self, answer) {
            (Self::Healthy, _) | (Self::Slow, EndpointAnswer::AnyTime) => false,
            (Self::Failing, _) | (Self::Slow, EndpointAnswer::InTime) => true,
        };
        if is_over {
            *self = Self::Healthy;
        }
        is_over
    }
}
