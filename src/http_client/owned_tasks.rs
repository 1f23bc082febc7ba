//! Tasks that end with their owner.

use std::{
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::task::JoinSet;

/// Tasks that end with their owner: dropping the owner aborts them.
#[derive(Debug, Default)]
pub struct OwnedTasks(Mutex<JoinSet<()>>);

impl OwnedTasks {
    /// Starts a task.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.live();
        let _detached = tasks.spawn(work);
    }

    /// Returns the number of running tasks.
    pub fn n_running(&self) -> usize {
        self.live().len()
    }

    /// Returns the tasks without those that have ended, which would accumulate otherwise.
    fn live(&self) -> MutexGuard<'_, JoinSet<()>> {
        // Held while tasks are counted and started, never across an await.
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks
    }
}
