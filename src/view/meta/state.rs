//! What the tools of ours remember between calls: large results, and schemas that were read.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    budget::{self, ReclaimableMemory},
    compute_pool::{ComputeError, ComputePool, StopFlag},
    config::defaults,
    holder::Holder,
    meta::{
        MetaTool, ToolId,
        cursor::CursorError,
        preview::ResultPreview,
        result_cache::{ResultCache, ResultCacheLimits},
        validation::SchemaCache,
    },
};

/// What the tools of ours remember.
#[derive(Debug)]
pub(in crate::view) struct MetaState {
    pub(in crate::view) validators: Arc<SchemaCache>,
    /// What takes long is computed there.
    pub(in crate::view) computer: ComputePool,
    /// The tools with a schema of which the log says already that arguments are not checked, as digests.
    warned: Mutex<BTreeSet<u64>>,
    digests: RandomState,
    results: Mutex<ResultCache>,
    since: Instant,
}

impl Default for MetaState {
    fn default() -> Self {
        let bounds = ResultCacheLimits {
            bytes_max: defaults::RESULTS_BYTES_MAX,
            count_max: defaults::RESULTS_KEPT_MAX,
            age_max: defaults::RESULTS_AGE_MAX,
        };
        Self {
            validators: Arc::default(),
            computer: ComputePool::default(),
            warned: Mutex::default(),
            digests: RandomState::new(),
            results: Mutex::new(ResultCache::new(bounds)),
            since: Instant::now(),
        }
    }
}

impl ReclaimableMemory for MetaState {
    fn reclaim(&self) {
        self.results().clear();
    }
}

impl MetaState {
    /// Returns a result of `id`, JSON text, as `op` shows it: one that is larger than `bytes_max` as a
    /// preview, and what is left out is kept for a while.
    pub(super) fn shown(
        &self,
        op: MetaTool,
        id: &ToolId,
        result: String,
        bytes_max: usize,
    ) -> String {
        let Some(preview) = ResultPreview::of(&result, bytes_max) else { return result };
        let cursor = preview.next().and_then(|next| {
            let mut word = [0; crate::meta::result_cache::WORD_BYTES];
            // Who could guess it could read what others were answered.
            getrandom::fill(&mut word).ok()?;
            // Before the lock, which what is dropped for it takes, too.
            let memory = budget::reserve(None, preview.document().bytes()).ok()?;
            let document = preview.document().clone();
            self.results().keep(word, id, (document, memory), next, self.now())
        });
        preview.to_result(id, op, cursor.as_deref())
    }

    /// Returns the page of a result of `id` that was kept, as a result of `op`, JSON text.
    pub(super) fn page(
        &self,
        op: MetaTool,
        id: &ToolId,
        cursor: &str,
        bytes_max: usize,
    ) -> Result<String, CursorError> {
        self.results().page(id, op, cursor, bytes_max, self.now())
    }

    /// Does work on so many bytes: at once where they are few, else beside the event loops.
    ///
    /// # Errors
    ///
    /// [`ComputeError`] when there is no outcome.
    pub(in crate::view) async fn compute<T: Send + 'static>(
        &self,
        holder: Holder,
        bytes: usize,
        work: impl FnOnce(&StopFlag) -> T + Send + 'static,
    ) -> Result<T, ComputeError> {
        if bytes <= defaults::INLINE_BYTES_MAX {
            return Ok(work(&StopFlag::default()));
        }
        self.computer.clone().run(holder, work).await
    }

    /// Tells whether the log has nothing yet about this tool with this schema.
    pub(in crate::view) fn note_schema(&self, id: &ToolId, schema: &str) -> bool {
        let digest = self.digests.hash_one((&id.server, &id.tool, schema));
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.len() >= defaults::VALIDATORS_MAX {
            warned.clear();
        }
        warned.insert(digest)
    }

    fn now(&self) -> Duration {
        self.since.elapsed()
    }

    fn results(&self) -> MutexGuard<'_, ResultCache> {
        // Held for statements on plain data.
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
