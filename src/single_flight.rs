//! Work that runs once for all callers that want it at the same time.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// At most one run of some work at a time; callers that join meanwhile share its outcome.
///
/// The work runs in a task of its own, so the first caller can leave without ending it for the
/// others.
#[derive(Debug)]
pub struct SingleFlight<T> {
    current: Mutex<Option<watch::Receiver<Option<T>>>>,
}

/// The wait for the outcome of one run.
#[derive(Clone, Debug)]
pub struct FlightWaiter<T>(watch::Receiver<Option<T>>);

impl<T: Clone + Send + Sync + 'static> SingleFlight<T> {
    /// Returns a `SingleFlight` with no work in progress.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { current: Mutex::new(None) })
    }

    /// Joins the work in progress, or starts `work` unless `ready` already has the outcome.
    ///
    /// `ready` is called only while no work runs. A run stores its outcome before it ends, so
    /// `ready` sees that outcome.
    pub fn join<F>(
        self: &Arc<Self>,
        tasks: &TaskTracker,
        ready: impl FnOnce() -> Option<T>,
        work: impl FnOnce() -> F,
    ) -> FlightWaiter<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut current = self.current();
        // The sender is gone if the work has panicked.
        if let Some(run) = &*current
            && run.has_changed().is_ok()
        {
            return FlightWaiter(run.clone());
        }
        if let Some(outcome) = ready() {
            return FlightWaiter(watch::channel(Some(outcome)).1);
        }
        let (sender, run) = watch::channel(None);
        *current = Some(run.clone());
        let (this, work) = (Arc::clone(self), work());
        tasks.spawn(async move {
            let outcome = work.await;
            *this.current() = None;
            sender.send_replace(Some(outcome));
        });
        FlightWaiter(run)
    }

    /// Returns whether work is in progress.
    pub fn is_running(&self) -> bool {
        self.current().as_ref().is_some_and(|run| run.has_changed().is_ok())
    }

    fn current(&self) -> MutexGuard<'_, Option<watch::Receiver<Option<T>>>> {
        // Held while work is looked up and started, never across an await.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> FlightWaiter<T> {
    /// Waits for the outcome; `None` when the work panicked or the runtime shuts down. Cancel safe:
    /// the work continues.
    pub async fn outcome(mut self) -> Option<T> {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_hundred_concurrent_callers_cause_one_run() {
        let (tasks, single) = (TaskTracker::new(), SingleFlight::new());
        let runs = Arc::new(AtomicU32::new(0));
        let waiters: Vec<_> = (0..100)
            .map(|_| {
                let runs = Arc::clone(&runs);
                single.join(
                    &tasks,
                    || None,
                    || async move {
                        tokio::task::yield_now().await;
                        runs.fetch_add(1, Ordering::Relaxed) + 1
                    },
                )
            })
            .collect();

        for waiter in waiters {
            assert_eq!(waiter.outcome().await, Some(1));
        }
        assert!(!single.is_running());
    }

    #[tokio::test]
    async fn a_ready_outcome_starts_no_work() {
        let (tasks, single) = (TaskTracker::new(), SingleFlight::new());
        let waiter = single.join(&tasks, || Some(7), || async { unreachable!("not started") });
        assert_eq!(waiter.outcome().await, Some(7));
    }

    #[tokio::test]
    async fn work_that_panics_does_not_block_the_next_run() {
        let (tasks, single) = (TaskTracker::new(), SingleFlight::new());
        let first = single.join(&tasks, || None, || async { panic!("on purpose") });
        assert_eq!(first.outcome().await, None);
        let second = single.join(&tasks, || None, || async { 2 });
        assert_eq!(second.outcome().await, Some(2));
    }

    #[tokio::test]
    async fn the_first_caller_may_leave_without_ending_the_work() {
        let (tasks, single) = (TaskTracker::new(), SingleFlight::new());
        let first = single.join(
            &tasks,
            || None,
            || async {
                tokio::task::yield_now().await;
                1
            },
        );
        drop(first);
        let second = single.join(&tasks, || None, || async { 2 });
        assert_eq!(second.outcome().await, Some(1));
    }
}
