//! Many clients that each send one request after another until stopped.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::{sync::Notify, task::JoinSet};

use super::DEADLINE;

/// Clients that send requests until stopped; aborted on drop.
pub(crate) struct Load<T> {
    workers: JoinSet<Vec<T>>,
    is_over: Arc<AtomicBool>,
    progress: Arc<Progress>,
}

/// The number of answers that each client has received.
#[derive(Debug)]
pub(crate) struct Progress {
    n_done: Vec<AtomicUsize>,
    changed: Notify,
}

impl<T: Send + 'static> Load<T> {
    /// Starts `n_clients`. Each calls `ask` with its number and its count of earlier calls.
    pub(crate) fn start<F, A>(n_clients: usize, ask: F) -> Self
    where
        F: Fn(usize, usize) -> A + Send + Sync + 'static,
        A: Future<Output = T> + Send,
    {
        let (progress, is_over) = (Arc::new(Progress::of(n_clients)), Arc::<AtomicBool>::default());
        let ask = Arc::new(ask);
        let mut workers = JoinSet::new();
        for number in 0..n_clients {
            let (ask, progress) = (Arc::clone(&ask), Arc::clone(&progress));
            let is_over = Arc::clone(&is_over);
            workers.spawn(async move {
                let mut answers = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    answers.push(ask(number, answers.len()).await);
                    progress.done(number);
                }
                answers
            });
        }
        Self { workers, is_over, progress }
    }

    /// Waits until each client has received `n_answers` more.
    pub(crate) async fn wait_for_answers(&self, n_answers: usize) {
        self.progress.wait_for_answers(n_answers).await;
    }

    /// Stops the clients and returns the answers of each one, in order.
    pub(crate) async fn end(mut self) -> Vec<T> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut answers = Vec::new();
        let ending = async {
            while let Some(worker) = self.workers.join_next().await {
                answers.extend(worker.expect("it does not panic"));
            }
        };
        tokio::time::timeout(DEADLINE, ending).await.expect("all end in time");
        answers
    }
}

impl Progress {
    /// Returns the progress of `n_clients` before their first answer.
    pub(crate) fn of(n_clients: usize) -> Self {
        let n_done = (0..n_clients).map(|_| AtomicUsize::new(0)).collect();
        Self { n_done, changed: Notify::new() }
    }

    /// Waits until each client has received `n_answers` more.
    pub(crate) async fn wait_for_answers(&self, n_answers: usize) {
        let counts = || self.n_done.iter().map(|n_done| n_done.load(Ordering::Relaxed));
        let wanted: Vec<usize> = counts().map(|n_done| n_done + n_answers).collect();
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                if counts().zip(&wanted).all(|(n_done, wanted)| n_done >= *wanted) {
                    return;
                }
                changed.await;
            }
        };
        let waited = tokio::time::timeout(DEADLINE, waiting).await;
        assert!(waited.is_ok(), "every client receives answers: {self:?}");
    }

    /// Records one more answer of a client.
    pub(crate) fn done(&self, number: usize) {
        self.n_done[number].fetch_add(1, Ordering::Relaxed);
        self.changed.notify_waiters();
    }
}
