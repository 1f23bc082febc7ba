//! The task that learns the vectors of searchable texts, one request at a time.

use std::sync::Arc;

use tokio::time;

use super::{
    Embedder, EmbeddingError, EmbeddingText,
    embedder::{EmbedderShared, EndpointAnswer},
    vector_file,
    vector_table::{UnitVector, VectorTable},
};
use crate::{backoff::Backoff, config::defaults, error_report::chain, http_client::WebError};

impl Embedder {
    /// Learns the vectors of `texts`, all that searches can find, in the background: from the disk,
    /// and the missing ones from the endpoint. Texts of earlier calls that are not in `texts` are
    /// dropped.
    pub fn learn(&self, texts: Vec<EmbeddingText>) {
        let mut state = self.shared.state();
        state.plan.set_texts(texts);
        if !std::mem::replace(&mut state.is_learning, true) {
            drop(state);
            self.tasks.spawn(learn(Arc::clone(&self.shared)));
        }
    }
}

/// Learns until all wanted texts are known.
async fn learn(shared: Arc<EmbedderShared>) {
    shared.read().await;
    let mut backoff = Backoff::new(shared.timeouts.pause);
    let mut n_unsaved = 0;
    loop {
        let Some(batch) = shared.next(n_unsaved == 0) else { return };
        if batch.is_empty() || n_unsaved == defaults::EMBEDDING_BATCHES_UNSAVED {
            shared.save().await;
            n_unsaved = 0;
            continue;
        }
        match shared.ask(&batch).await {
            Ok(vectors) => {
                shared.insert(&batch, vectors);
                backoff = Backoff::new(shared.timeouts.pause);
                n_unsaved += 1;
            }
            Err(error) => {
                if shared.note_missing(&batch, &error) {
                    continue;
                }
                if n_unsaved > 0 {
                    shared.save().await;
                    n_unsaved = 0;
                }
                shared.pause(&mut backoff, &error).await;
            }
        }
    }
}

impl EmbedderShared {
    /// Returns the next batch; an empty one asks for saving only. `None` ends the learning, until
    /// [`Embedder::learn`] starts it again.
    fn next(&self, is_saved: bool) -> Option<Vec<EmbeddingText>> {
        let mut state = self.state();
        let vectors = &state.vectors;
        let batch = match vectors.is_full_of(state.plan.texts()) {
            true => Vec::new(),
            false => state.plan.next(|digest| vectors.get(digest).is_some()),
        };
        if batch.is_empty() && is_saved {
            state.is_learning = false;
            return None;
        }
        Some(batch)
    }

    fn insert(&self, batch: &[EmbeddingText], vectors: Vec<UnitVector>) {
        {
            let state = &mut *self.state();
            let found = batch.iter().map(EmbeddingText::digest).zip(vectors);
            state.vectors.insert(found, state.plan.texts());
            state.plan.answered();
        }
        self.changes.send_modify(|n| *n += 1);
        self.note_answer(EndpointAnswer::AnyTime);
    }

    /// Records that a batch has no answer; returns `true` if a smaller one is due at once.
    fn note_missing(&self, batch: &[EmbeddingText], error: &EmbeddingError) -> bool {
        if error.is_refusal() {
            let aside = self.state().plan.refused(batch);
            let Some(text) = aside else { return true };
            let n_bytes = text.as_str().len();
            let (code, error) = (error.code(), chain(error));
            tracing::debug!(n_bytes, code, "no embedding for a text of {n_bytes} bytes: {error}");
        }
        self.failed(error);
        false
    }

    /// Waits until the next attempt is due, or the endpoint has answered a query.
    async fn pause(&self, backoff: &mut Backoff, error: &EmbeddingError) {
        let mut pause = backoff.pause(fastrand::f64());
        if let EmbeddingError::Web(WebError::Status { retry_after: Some(asked), .. }) = error {
            pause = pause.max((*asked).min(self.timeouts.pause.1));
        }
        tokio::select! {
            () = time::sleep(pause) => {}
            () = self.answers.notified() => {}
        }
    }

    /// Reads the vectors on the disk, once.
    async fn read(self: &Arc<Self>) {
        let is_read = std::mem::replace(&mut self.state().is_read, true);
        let Some(file) = self.file.clone().filter(|_| !is_read) else { return };
        let space = self.space;
        let read = tokio::task::spawn_blocking(move || vector_file::read(&file, space));
        let found = read.await.unwrap_or_default();
        if found.is_empty() {
            return;
        }
        tracing::debug!(n_vectors = found.len(), "embeddings read from the cache");
        {
            let mut state = self.state();
            // A query may have shown by now that the endpoint uses another model.
            let dimension = state.vectors.dimension;
            state.vectors = VectorTable::cached(found);
            if let Some(dimension) = dimension {
                let _forgotten = state.vectors.answered(dimension);
            }
        }
        self.changes.send_modify(|n| *n += 1);
    }

    async fn save(self: &Arc<Self>) {
        let Some(file) = self.file.clone() else { return };
        let (space, all) = (self.space, self.state().vectors.all.clone());
        let write = tokio::task::spawn_blocking(move || vector_file::write(&file, space, &all));
        let _panicked = write.await;
    }
}
