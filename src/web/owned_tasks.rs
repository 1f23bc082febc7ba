//! Tasks that end with their owner.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use hyper::rt::Executor;
use tokio::task::JoinSet;

/// Tasks that end with their owner: dropped, it gives them all up.
#[derive(Debug, Default)]
pub struct OwnedTasks(Arc<Mutex<JoinSet<()>>>);

/// What starts tasks for an owner, as long as there is one. A task may hold it: the owner goes away
/// all the same.
#[derive(Clone, Debug)]
pub struct TaskSpawner(Weak<Mutex<JoinSet<()>>>);

impl OwnedTasks {
    /// Returns what starts tasks for this owner.
    pub fn spawner(&self) -> TaskSpawner {
        TaskSpawner(Arc::downgrade(&self.0))
    }

    /// Starts a task.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = locked(&self.0);
        // Those that have ended are let go, or they would gather.
        while tasks.try_join_next().is_some() {}
        let _detached = tasks.spawn(work);
    }

    /// Returns how many run.
    pub fn len(&self) -> usize {
        let mut tasks = locked(&self.0);
        while tasks.try_join_next().is_some() {}
        tasks.len()
    }

    /// Tells whether none runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
