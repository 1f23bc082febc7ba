//! The timeouts and pauses of an embedder.

use std::time::Duration;

use crate::config::defaults;

/// The timeouts and pauses of an embedder.
#[derive(Clone, Copy, Debug)]
pub(super) struct EmbeddingTimeouts {
    pub(super) timeout: Duration,
    pub(super) query_patience: Duration,
    pub(super) pause: (Duration, Duration),
    pub(super) cooldown: Duration,
}

impl Default for EmbeddingTimeouts {
    fn default() -> Self {
        Self {
            timeout: defaults::EMBEDDING_TIMEOUT,
            query_patience: defaults::EMBEDDING_QUERY_PATIENCE,
            pause: defaults::EMBEDDING_PAUSE,
            cooldown: defaults::EMBEDDING_COOLDOWN,
        }
    }
}
