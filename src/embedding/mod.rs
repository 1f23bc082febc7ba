//! Vectors of texts that an embedding model has made, so that a search finds what is meant.
//!
//! An [`Embedder`] asks an endpoint that speaks as the OpenAI API does, if the configuration names
//! one; no variable of the environment does. It never stands in the way of a search: what it knows
//! is there at once, the rest is learned in the background, and the vector of a query is waited for
//! only as long as nobody notices. Whatever fails, the search goes on without.
//!
//! What to ask next ([`batch`]), what an answer is worth ([`answer`]), what is known ([`vectors`])
//! and whether operators are to be told ([`outage`]) are decided by pure parts; [`learning`] and
//! [`query`] drive them. What was learned is kept on the disk ([`store`]), under a hash of each text.

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

use crate::{
    breaker::Breaker,
    config::{self, defaults, search},
    report::chain,
    web::{Bounds, Client, Tasks},
};

mod answer;
mod batch;
mod error;
mod learning;
mod outage;
mod query;
mod recent;
mod store;
mod text;
mod vectors;

pub use answer::Unusable;
pub use error::EmbeddingError;
pub use text::Text;

use answer::{Answer, Request};
use batch::Plan;
use outage::{Came, Outage};
use recent::Recent;
use text::Digest;
use vectors::{OtherDimension, Vector, Vectors};

/// The file in the cache directory.
const FILE: &str = "embedding.vectors";

/// What knows the vectors of texts. Dropped, it gives up what it has under way.
pub struct Embedder {
    shared: Arc<Shared>,
    tasks: Tasks,
}

/// What the embedder and its tasks share.
struct Shared {
    client: Client,
    model: String,
    /// Endpoint and model: vectors of one space can be compared.
    space: Digest,
    file: Option<PathBuf>,
    pace: Pace,
    state: Mutex<State>,
    /// How often vectors of texts came.
    changes: watch::Sender<u64>,
    /// Told when the endpoint has answered a query: whoever waits to try again need not.
    answers: Notify,
    queries: Arc<Semaphore>,
    /// What the breaker counts time from.
    epoch: Instant,
}

struct State {
    plan: Plan,
    vectors: Vectors,
    recent: Recent,
    /// Of the queries: texts are asked for by one task, which makes pauses.
    breaker: Breaker,
    outage: Outage,
    is_learning: bool,
    /// What the disk has was read.
    is_read: bool,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
struct Pace {
    timeout: Duration,
    query_patience: Duration,
    pause: (Duration, Duration),
    cooldown: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            timeout: defaults::EMBEDDING_TIMEOUT,
            query_patience: defaults::EMBEDDING_QUERY_PATIENCE,
            pause: defaults::EMBEDDING_PAUSE,
            cooldown: defaults::EMBEDDING_COOLDOWN,
        }
    }
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
        declared: &search::Embedding,
        credentials: Option<&Path>,
        cache: Option<&Path>,
    ) -> Result<Arc<Self>, EmbeddingError> {
        Self::with(declared, credentials, cache, Pace::default())
    }

    fn with(
        declared: &search::Embedding,
        credentials: Option<&Path>,
        cache: Option<&Path>,
        pace: Pace,
    ) -> Result<Arc<Self>, EmbeddingError> {
        let key = declared.api_key.as_ref().map(|key| key.resolve(credentials)).transpose();
        let key = key.map_err(EmbeddingError::Secret)?;
        let bounds =
            Bounds { timeout: pace.timeout, body_bytes_max: defaults::EMBEDDING_ANSWER_BYTES_MAX };
        let client = Client::new(declared.url.clone(), key.as_deref(), bounds)?;
        let breaker = Breaker::new(config::Breaker {
            failure_threshold: defaults::EMBEDDING_FAILURES,
            cooldown: pace.cooldown,
        });
        let url = declared.url.to_string();
        let shared = Shared {
            client,
            model: declared.model.clone(),
            space: Digest::of(&[url.as_bytes(), declared.model.as_bytes()]),
            file: cache.map(|directory| directory.join(FILE)),
            pace,
            state: Mutex::new(State {
                plan: Plan::default(),
                vectors: Vectors::default(),
                recent: Recent::default(),
                breaker,
                outage: Outage::default(),
                is_learning: false,
                is_read: false,
            }),
            changes: watch::channel(0).0,
            answers: Notify::new(),
            queries: Arc::new(Semaphore::new(defaults::EMBEDDING_QUERIES_MAX)),
            epoch: Instant::now(),
        };
        Ok(Arc::new(Self { shared: Arc::new(shared), tasks: Tasks::default() }))
    }

    /// Returns the vectors of `texts` that are known now, each of length one.
    pub fn vectors(&self, texts: &[Text]) -> Vec<Option<Arc<[f32]>>> {
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

impl Shared {
    /// Asks for the vectors of texts; none is kept yet.
    async fn ask(&self, texts: &[Text]) -> Result<Vec<Vector>, EmbeddingError> {
        let answer: Answer = self.client.post(&Request::new(&self.model, texts)).await?;
        let vectors = answer.vectors(texts.len())?;
        let dimension = vectors.first().map(|vector| vector.len()).unwrap_or_default();
        let answered = self.state().vectors.answered(dimension);
        answered.map_err(|OtherDimension { known, found }| Unusable::Dimension { known, found })?;
        Ok(vectors)
    }

    /// Notes that an answer came.
    fn came(&self, came: Came) {
        if self.state().outage.ends(came) {
            let (origin, model) = (self.client.origin(), &self.model);
            tracing::info!(%origin, model, "search with embeddings again");
        }
    }

    /// Notes that none came: operators are told once for each outage.
    fn failed(&self, error: &EmbeddingError) {
        let is_news = self.state().outage.begins(Outage::Failing);
        let (origin, model, code, hint) =
            (self.client.origin(), &self.model, error.code(), error.hint());
        let error = chain(error);
        if is_news {
            tracing::warn!(%origin, model, code, error, hint, "search without embeddings");
        } else {
            tracing::debug!(%origin, model, code, error, "embeddings still missing");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Held for statements on plain data, never across an await.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
