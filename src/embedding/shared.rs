//! What an embedder and its tasks share.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::{Notify, Semaphore, watch},
    time::Instant,
};

use super::{
    EmbeddingError, EmbeddingText, ResponseError,
    batch::EmbeddingBatch,
    endpoint_health::{EndpointAnswer, EndpointHealth},
    openai_api::{EmbeddingRequest, EmbeddingResponse},
    query_cache::QueryVectorCache,
    text::TextDigest,
    timeouts::EmbeddingTimeouts,
    vectors::{DimensionMismatch, UnitVector, VectorTable},
};
use crate::{breaker::Breaker, error_report::chain, web::WebClient};

/// What the embedder and its tasks share.
pub(super) struct EmbedderShared {
    pub(super) client: WebClient,
    pub(super) model: String,
    /// Endpoint and model: vectors of one space can be compared.
    pub(super) space: TextDigest,
    pub(super) file: Option<PathBuf>,
    pub(super) pace: EmbeddingTimeouts,
    pub(super) state: Mutex<EmbedderState>,
    /// How often vectors of texts came.
    pub(super) changes: watch::Sender<u64>,
    /// Told when the endpoint has answered a query: whoever waits to try again need not.
    pub(super) answers: Notify,
    pub(super) queries: Arc<Semaphore>,
    /// What the breaker counts time from.
    pub(super) epoch: Instant,
}

/// What they know, and how it stands.
pub(super) struct EmbedderState {
    pub(super) plan: EmbeddingBatch,
    pub(super) vectors: VectorTable,
    pub(super) recent: QueryVectorCache,
    /// Of the queries: texts are asked for by one task, which makes pauses.
    pub(super) breaker: Breaker,
    pub(super) outage: EndpointHealth,
    pub(super) is_learning: bool,
    /// What the disk has was read.
    pub(super) is_read: bool,
}

impl EmbedderState {
    /// Returns that nothing is known, and nothing under way.
    pub(super) fn new(breaker: Breaker) -> Self {
        Self {
            plan: EmbeddingBatch::default(),
            vectors: VectorTable::default(),
            recent: QueryVectorCache::default(),
            breaker,
            outage: EndpointHealth::default(),
            is_learning: false,
            is_read: false,
        }
    }
}

impl EmbedderShared {
    /// Asks for the vectors of texts; none is kept yet.
    pub(super) async fn ask(
        &self,
        texts: &[EmbeddingText],
    ) -> Result<Vec<UnitVector>, EmbeddingError> {
        let answer: EmbeddingResponse =
            self.client.post(&EmbeddingRequest::new(&self.model, texts)).await?;
        let vectors = answer.vectors(texts.len())?;
        let dimension = vectors.first().map(|vector| vector.len()).unwrap_or_default();
        let answered = self.state().vectors.answered(dimension);
        answered.map_err(|DimensionMismatch { known, found }| ResponseError::Dimension {
            known,
            found,
        })?;
        Ok(vectors)
    }

    /// Notes that an answer came.
    pub(super) fn note_answer(&self, came: EndpointAnswer) {
        if self.state().outage.ends(came) {
            let (origin, model) = (self.client.origin(), &self.model);
            tracing::info!(%origin, model, "search with embeddings again");
        }
    }

    /// Notes that none came: operators are told once for each outage.
    pub(super) fn failed(&self, error: &EmbeddingError) {
        let is_news = self.state().outage.note_failure(EndpointHealth::Failing);
        let (origin, model, code, hint) =
            (self.client.origin(), &self.model, error.code(), error.hint());
        let error = chain(error);
        if is_news {
            tracing::warn!(%origin, model, code, error, hint, "search without embeddings");
        } else {
            tracing::debug!(%origin, model, code, error, "embeddings still missing");
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, EmbedderState> {
        // Held for statements on plain data, never across an await.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
