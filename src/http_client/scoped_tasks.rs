//! Tasks that end with their owner.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use hyper::rt::Executor;
use tokio::task::JoinSet;

/// Tasks that end with their owner: dropping the owner aborts them.
#[derive(Debug, Default)]
pub struct OwnedTasks(Arc<Mutex<JoinSet<()>>>);

/// A handle that starts tasks for an owner while it exists. A task may hold it without keeping the
/// owner alive.
#[derive(Clone, Debug)]
pub(super) struct TaskSpawner(Weak<Mutex<JoinSet<()>>>);

impl OwnedTasks {
    /// Returns a handle that starts tasks for this owner.
    pub(super) fn spawner(&self) -> TaskSpawner {
        TaskSpawner(Arc::downgrade(&self.0))
    }

    /// Starts a task.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = locked(&self.0);
        // Removes the tasks that have ended, which would accumulate otherwise.
        while tasks.try_join_next().is_some() {}
        let _detached = tasks.spawn(work);
    }

    /// Returns the number of running tasks.
    pub fn n_running(&self) -> usize {
        let mut tasks = locked(&self.0);
        while tasks.try_join_next().is_some() {}
        tasks.len()
    }
}

impl<F> Executor<F> for TaskSpawner
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, work: F) {
        if let Some(tasks) = self.0.upgrade() {
            OwnedTasks(tasks).spawn(work);
        }
    }
}

fn locked(tasks: &Mutex<JoinSet<()>>) -> MutexGuard<'_, JoinSet<()>> {
    // Held while tasks are counted and started, never across an await.
    tasks.lock().unwrap_or_else(PoisonError::into_inner)
}
