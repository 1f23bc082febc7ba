//! The vector of a query, if it comes in time.

use std::sync::Arc;

use tokio::{sync::oneshot, time};

use super::{
    Embedder, EmbeddingText,
    embedder::{EmbedderShared, EndpointAnswer, EndpointHealth},
};
use crate::{breaker::BreakerChange, capacity_holder::Holder, fault_class::Fault};

impl Embedder {
    /// Returns the vector of a query, of length one. `None` means that it takes too long, that the
    /// request failed, or that the breaker is open after repeated failures. Cancel safe: an answer
    /// that is under way is kept for the next query with the same text.
    pub async fn query(&self, text: &str) -> Option<Arc<[f32]>> {
        let text = EmbeddingText::new(text);
        if text.as_str().is_empty() {
            return None;
        }
        let shared = &self.shared;
        let now = shared.epoch.elapsed();
        let ticket = {
            let mut state = shared.state();
            let known = state.recent.get(text.digest());
            if let Some(known) = known.or_else(|| state.vectors.get(&text.digest()).cloned()) {
                return Some(known);
            }
            state.breaker.admit(Holder::SERVICE, now).ok()?
        };
        let answer = time::timeout(shared.timeouts.query_timeout, self.ask(text)).await;
        let now = shared.epoch.elapsed();
        match answer {
            Ok(Some(vector)) => {
                let _normal = shared.state().breaker.succeeded(&ticket, now);
                shared.note_answer(EndpointAnswer::InTime);
                Some(vector)
            }
            // A search does not depend on the cause.
            Ok(None) => {
                let _logged_elsewhere =
                    shared.state().breaker.failed(&ticket, Fault::Other, None, now);
                None
            }
            Err(_) => {
                let change = shared.state().breaker.failed(&ticket, Fault::Offline, None, now);
                if let BreakerChange::Tripped { failures } = change {
                    shared.note_slow(failures);
                }
                None
            }
        }
    }

    /// Asks in a separate task. Some endpoints load their model on request, and stop loading when
    /// the client disconnects.
    async fn ask(&self, text: EmbeddingText) -> Option<Arc<[f32]>> {
        let shared = Arc::clone(&self.shared);
        let permit = Arc::clone(&shared.queries).acquire_owned().await.ok()?;
        let (found, answer) = oneshot::channel();
        self.tasks.spawn(async move {
            let _permit = permit;
            let texts = [text];
            match shared.ask(&texts).await {
                Ok(vectors) => {
                    let vector = vectors.into_iter().next();
                    if let Some(vector) = &vector {
                        let digest = texts[0].digest();
                        shared.state().recent.insert(digest, Arc::clone(vector));
                    }
                    shared.note_answer(EndpointAnswer::AnyTime);
                    shared.answers.notify_waiters();
                    let _left = found.send(vector);
                }
                Err(error) => shared.failed(&error),
            }
        });
        answer.await.ok().flatten()
    }
}

impl EmbedderShared {
    /// Warns operators that searches run without vectors for a while.
    fn note_slow(&self, failures: u32) {
        if self.state().health.note_failure(EndpointHealth::Slow) {
            let (origin, model) = (self.client.origin(), &self.model);
            let patience_ms = self.timeouts.query_timeout.as_millis();
            tracing::warn!(
                %origin, model, code = "TOO_SLOW", failures, patience_ms,
                "search without embeddings: {origin} takes longer than {patience_ms} ms"
            );
        }
    }
}
