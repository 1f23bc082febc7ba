//! The state of the meta-tools between calls: large results, and compiled schemas.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;

use crate::{
    capacity_holder::Holder,
    compute_pool::{ComputeError, ComputePool, StopFlag},
    config::defaults,
    memory_budget::{self, ReclaimableMemory},
    meta::{
        MetaTool,
        cursor::CursorError,
        preview::ResultPreview,
        result_cache::{ResultCache, ResultCacheLimits, TOKEN_BYTES},
    },
    tool::{ToolId, validation::SchemaCache},
};

/// The state of the meta-tools.
#[derive(Debug)]
pub(in crate::view) struct MetaState {
    pub(in crate::view) validators: Arc<SchemaCache>,
    /// The pool for long computations.
    pub(in crate::view) computer: ComputePool,
    /// The digests of tools with a schema for which an unchecked call was already logged.
    warned: Mutex<BTreeSet<u64>>,
    digests: RandomState,
    results: Mutex<ResultCache>,
    since: Instant,
}

impl Default for MetaState {
    fn default() -> Self {
        let limits = ResultCacheLimits {
            bytes_max: defaults::RESULTS_BYTES_MAX,
            count_max: defaults::RESULTS_KEPT_MAX,
            age_max: defaults::RESULTS_AGE_MAX,
        };
        Self {
            validators: Arc::default(),
            computer: ComputePool::default(),
            warned: Mutex::default(),
            digests: RandomState::new(),
            results: Mutex::new(ResultCache::new(limits)),
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

    /// Does work on so many bytes: at once if they are few, else in the compute pool.
    ///
    /// # Errors
    ///
    /// [`ComputeError`] if the work was not done.
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

    /// Records a tool with this schema. Returns whether it was not recorded yet.
    pub(in crate::view) fn note_schema(&self, id: &ToolId, schema: &str) -> bool {
        let digest = self.digests.hash_one((&id.server, &id.tool, schema));
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.len() >= defaults::VALIDATORS_MAX {
            warned.clear();
        }
        warned.insert(digest)
    }

    fn results(&self) -> MutexGuard<'_, ResultCache> {
        // Held for statements on plain data.
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
