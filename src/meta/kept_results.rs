//! The results that are too large to be shown, kept for a while, from which clients read on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::time::Instant;

use super::{
    cursor::CursorError,
    definitions::MetaTool,
    preview::ResultPreview,
    result_cache::{ResultCache, ResultCacheLimits, TOKEN_BYTES},
};
use crate::{
    config::defaults,
    memory_budget::{self, ReclaimableMemory},
    tool::ToolId,
};

/// The results from which clients read on.
#[derive(Debug)]
pub(super) struct KeptResults {
    results: Mutex<ResultCache>,
    since: Instant,
}

impl ReclaimableMemory for KeptResults {
    fn reclaim(&self) {
        self.results().clear();
    }
}

impl KeptResults {
    /// Returns no results. Their memory is reclaimed when the budget of the process needs it.
    pub(super) fn new() -> Arc<Self> {
        let limits = ResultCacheLimits {
            bytes_max: defaults::RESULTS_BYTES_MAX,
            count_max: defaults::RESULTS_KEPT_MAX,
            age_max: defaults::RESULTS_AGE_MAX,
        };
        let results = Mutex::new(ResultCache::new(limits));
        let kept = Arc::new(Self { results, since: Instant::now() });
        let reclaimable: Weak<Self> = Arc::downgrade(&kept);
        memory_budget::global().register_reclaimable(reclaimable);
        kept
    }

    /// Returns a result of `id`, JSON text, in the form of `op`. A result larger than `bytes_max`
    /// becomes a preview, and the rest is stored for a while.
    pub(super) fn shown(
        &self,
        op: MetaTool,
        id: &ToolId,
        result: String,
        bytes_max: usize,
    ) -> String {
        let Some(preview) = ResultPreview::of(&result, bytes_max) else { return result };
        let cursor = preview.next().and_then(|next| {
            let mut token = [0; TOKEN_BYTES];
            // Unguessable, since it gives access to the result of another client.
            getrandom::fill(&mut token).ok()?;
            // Reserved before the lock: freeing memory for it takes the lock, too.
            let memory = memory_budget::reserve(None, preview.document().bytes()).ok()?;
            let document = preview.document().clone();
            self.results().keep(token, id, (document, memory), next, self.since.elapsed())
        });
        preview.to_result(id, op, cursor.as_deref())
    }

    /// Returns a page of a stored result of `id`, as a result of `op`, JSON text.
    pub(super) fn page(
        &self,
        op: MetaTool,
        id: &ToolId,
        cursor: &str,
        bytes_max: usize,
    ) -> Result<String, CursorError> {
        self.results().page(id, op, cursor, bytes_max, self.since.elapsed())
    }

    fn results(&self) -> MutexGuard<'_, ResultCache> {
        // Held for statements on plain data.
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
