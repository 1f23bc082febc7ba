//! The state that an embedder shares with its tasks.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::{Notify, Semaphore, watch},
    time::Instant,
};

use super::{
    EmbeddingError, EmbeddingText,
    embedder::EmbeddingTimeouts,
    endpoint_health::{EndpointAnswer, EndpointHealth},
    openai_api::{EmbeddingRequest, EmbeddingResponse},
    request_batch::EmbeddingBatch,
    text_hash::TextDigest,
    vector_table::{QueryVectorCache, UnitVector, VectorTable},
};
use crate::{breaker::Breaker, error_report::chain, http_client::WebClient};

/// The state that an embedder shares with its tasks.
pub(super) struct EmbedderShared {
    pub(super) client: WebClient,
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
    /// Returns a state without vectors or work.
    pub(super) fn new(breaker: Breaker) -> Self {
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
