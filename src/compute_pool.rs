//! A thread pool for computations whose size an untrusted party chooses.
//!
//! The few threads are started on demand and end when idle. A shutdown does not wait for them.
//!
//! Jobs wait in two [`FairQueue`]s, which take turns. In each, the party with the fewest running
//! jobs is next. Jobs on answers of servers have one queue and are never refused: requests in
//! flight and the memory budget limit it. The other queue is limited by [`COMPUTE_QUEUE_MAX`]: when
//! it is full, the account with the most jobs loses its newest one.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::oneshot,
    task,
};

use crate::{
    capacity_holder::Holder,
    config::defaults::{
        COMPUTE_QUEUE_MAX, COMPUTE_STACK_BYTES, COMPUTE_THREADS_MAX, INLINE_BYTES_MAX,
    },
    fair_share::FairQueue,
};

/// The threads of the pool and the waiting jobs.
#[derive(Clone, Debug, Default)]
pub struct ComputePool(Arc<Mutex<State>>);

/// The flag of a job, set once its outcome is no longer wanted.
pub type StopFlag = Arc<AtomicBool>;

/// The reason why a job has no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    /// Too many jobs wait, and this one belongs to the account with the most.
    #[error("too many computations are waiting")]
    Full,
    /// The job panicked, which is a bug.
    #[error("the computation crashed")]
    Panicked,
}

/// Reads `n_bytes` bytes with `work` on this thread. For long reads, another thread takes over the
/// other tasks of this event loop, so that only the calling task waits.
#[inline]
pub fn read_in_place<T>(n_bytes: usize, work: impl FnOnce() -> T) -> T {
    if n_bytes > INLINE_BYTES_MAX && may_block() { task::block_in_place(work) } else { work() }
}

/// Returns whether another thread can take over the tasks of this event loop.
fn may_block() -> bool {
    let runtime = Handle::try_current();
    runtime.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// One computation, which also sends its outcome.
type Job = Box<dyn FnOnce() + Send>;

/// The queue of a job; its index in [`State::queues`].
#[derive(Clone, Copy)]
enum JobQueue {
    /// Jobs that can be refused, since no server has worked for them yet.
    Bounded,
    /// Jobs that process the answer of a server.
    Answers,
}

#[derive(Default)]
struct State {
    /// The parties with jobs: running jobs are held, others are queued.
    queues: [FairQueue<Job>; 2],
    /// The queue that is next.
    turn: usize,
    n_threads: usize,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n_jobs: usize = self.queues.iter().map(FairQueue::n_waiting).sum();
        write!(f, "[{n_jobs} jobs, {} threads]", self.n_threads)
    }
}

impl State {
    /// Takes the next job, with the index of its queue and its holder.
    fn next(&mut self) -> Option<(usize, Holder, Job)> {
        self.turn = 1 - self.turn;
        [self.turn, 1 - self.turn].into_iter().find_map(|queue| {
            let (ticket, job) = self.queues[queue].dequeue()?;
            Some((queue, ticket.holder(), job))
        })
    }
}

/// A guard that sets the flag of a job when its caller is gone.
struct StopOnDrop(StopFlag);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl ComputePool {
    /// Runs `work` for `holder`. If dropped, the work does not start, or its flag is set.
    ///
    /// # Errors
    ///
    /// [`ComputeError`] if there is no outcome.
    pub async fn run<T: Send + 'static>(
        self,
        holder: Holder,
        work: impl FnOnce(&StopFlag) -> T + Send + 'static,
    ) -> Result<T, ComputeError> {
        self.outcome(holder, JobQueue::Bounded, work).await
    }

    /// Runs `work` on the answer of a server, like [`ComputePool::run`]. It is never refused,
    /// because the server has already done its work.
    ///
    /// # Errors
    ///
    /// [`ComputeError`] if it panics, or no thread can be started.
    pub async fn run_on_answer<T: Send + 'static>(
        self,
        holder: Holder,
        work: impl FnOnce(&StopFlag) -> T + Send + 'static,
    ) -> Result<T, ComputeError> {
        self.outcome(holder, JobQueue::Answers, work).await
    }

    async fn outcome<T: Send + 'static>(
        self,
        holder: Holder,
        queue: JobQueue,
        work: impl FnOnce(&StopFlag) -> T + Send + 'static,
    ) -> Result<T, ComputeError> {
        let stop = StopOnDrop(Arc::default());
        let (sender, outcome) = oneshot::channel();
        let flag = Arc::clone(&stop.0);
        let job = Box::new(move || {
            if flag.load(Ordering::Relaxed) {
                return;
            }
            // The caller gets the error, and no other code sees the inconsistent state.
            let worked = catch_unwind(AssertUnwindSafe(|| work(&flag)));
            let _caller_gone = sender.send(worked.map_err(|_| ComputeError::Panicked));
        });
        self.submit(holder, queue, job);
        let outcome = outcome.await;
        drop(stop);
        outcome.unwrap_or(Err(ComputeError::Full))
    }

    /// Adds a job, and a thread if another is allowed.
    fn submit(&self, holder: Holder, queue: JobQueue, job: Job) {
        let mut state = self.state();
        let jobs = &mut state.queues[queue as usize];
        jobs.enqueue(holder, job);
        let is_full = matches!(queue, JobQueue::Bounded) && jobs.n_waiting() > COMPUTE_QUEUE_MAX;
        let refused = if is_full { jobs.shed() } else { None };
        let threads_max = thread::available_parallelism().map_or(1, usize::from);
        if state.n_threads < threads_max.min(COMPUTE_THREADS_MAX) {
            let pool = self.clone();
            let thread = thread::Builder::new().name("compute".to_owned());
            let started = thread.stack_size(COMPUTE_STACK_BYTES).spawn(move || pool.work());
            match started {
                Ok(_detached) => state.n_threads += 1,
                // Without any thread, the job would wait forever.
                Err(_) if state.n_threads == 0 => *state = State::default(),
                Err(_) => {}
            }
        }
        drop(state);
        drop(refused);
    }

    /// Runs jobs until there are none.
    fn work(&self) {
        let mut done: Option<(usize, Holder)> = None;
        loop {
            let mut state = self.state();
            if let Some((queue, holder)) = done {
                state.queues[queue].release(holder);
            }
            let Some((queue, holder, job)) = state.next() else {
                state.n_threads -= 1;
                return;
            };
            drop(state);
            job();
            done = Some((queue, holder));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Held for statements on plain data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, task::Poll, time::Duration};

    use super::*;
    use crate::capacity_holder::{Account, AccountMember};

    fn holder(account: u32, session: u64) -> Holder {
        Holder { account: Account::User(account), member: AccountMember::Session(session) }
    }

    #[tokio::test]
    async fn a_full_queue_refuses_a_job_of_the_account_with_the_most() {
        let pool = ComputePool::default();
        let (release, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let blocked = |holder| {
            let gate = Arc::clone(&gate);
            // Each thread waits until the sender is dropped.
            Box::pin(pool.clone().run(holder, move |_| {
                let _gone = gate.lock().unwrap_or_else(PoisonError::into_inner).recv();
            }))
        };
        let n_greedy = COMPUTE_THREADS_MAX + COMPUTE_QUEUE_MAX + 1;
        let (mut greedy, mut n_refused) = (Vec::new(), 0);
        for _ in 0..n_greedy {
            let mut job = blocked(holder(1, 1));
            match futures_util::poll!(job.as_mut()) {
                Poll::Ready(outcome) => n_refused += usize::from(outcome.is_err()),
                Poll::Pending => greedy.push(job),
            }
        }
        let mut other = blocked(holder(2, 2));
        assert!(futures_util::poll!(other.as_mut()).is_pending());
        drop(release);

        assert_eq!(other.await, Ok(()));
        let outcomes = futures_util::future::join_all(greedy).await;
        n_refused += outcomes.iter().filter(|outcome| outcome.is_err()).count();
        assert!((1..=COMPUTE_THREADS_MAX + 2).contains(&n_refused), "{n_refused}");
    }

    #[tokio::test]
    async fn a_job_on_an_answer_is_never_refused() {
        let pool = ComputePool::default();
        let (release, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let mut jobs = Vec::new();
        for _ in 0..COMPUTE_THREADS_MAX + 2 * COMPUTE_QUEUE_MAX {
            let gate = Arc::clone(&gate);
            let job = pool.clone().run_on_answer(holder(1, 1), move |_| {
                let _gone = gate.lock().unwrap_or_else(PoisonError::into_inner).recv();
            });
            let mut job = Box::pin(job);
            assert!(futures_util::poll!(job.as_mut()).is_pending());
            jobs.push(job);
        }
        let mut check = Box::pin(pool.clone().run(holder(2, 2), |_| ()));
        assert!(futures_util::poll!(check.as_mut()).is_pending(), "its account has no other");
        drop(release);
        assert!(futures_util::future::join_all(jobs).await.iter().all(Result::is_ok));
        assert_eq!(check.await, Ok(()));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_long_read_does_not_block_other_tasks_of_its_event_loop() {
        let (sender, receiver) = mpsc::channel();
        let mut tasks = task::JoinSet::new();
        tasks.spawn(async move {
            let has_received = || receiver.recv_timeout(Duration::from_secs(10)).is_ok();
            read_in_place(INLINE_BYTES_MAX + 1, has_received)
        });
        // With one worker, this runs only if the reader has released it.
        tasks.spawn(async move { sender.send(()).is_ok() });
        assert_eq!(tasks.join_all().await, [true, true]);
    }

    #[tokio::test]
    async fn a_job_has_an_outcome_and_one_that_panics_harms_no_other() {
        let pool = ComputePool::default();
        let panicked = pool.clone().run(holder(1, 1), |_| -> u8 { panic!("a bug") }).await;
        assert_eq!(panicked, Err(ComputeError::Panicked));
        assert_eq!(pool.run(holder(1, 1), |_| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn a_job_without_a_caller_is_stopped_or_never_starts() {
        let pool = ComputePool::default();
        let (sender, reports) = mpsc::channel();
        let mut jobs = Vec::new();
        for number in 0..COMPUTE_THREADS_MAX + 1 {
            let (pool, sender) = (pool.clone(), sender.clone());
            let job = pool.run(holder(1, 1), move |flag| {
                sender.send((number, "begins")).expect("the test listens");
                while !flag.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                sender.send((number, "ends")).expect("the test listens");
            });
            jobs.push(Box::pin(job));
        }
        for job in &mut jobs {
            assert!(futures_util::poll!(job.as_mut()).is_pending());
        }
        let first = reports.recv_timeout(Duration::from_secs(10)).expect("one begins");
        assert_eq!(first.1, "begins");
        drop(jobs);
        drop(sender);
        let all: Vec<_> = std::iter::once(first).chain(reports.iter()).collect();
        assert!(all.iter().all(|(number, _)| *number < COMPUTE_THREADS_MAX), "{all:?}");
        assert_eq!(
            all.iter().filter(|report| report.1 == "begins").count() * 2,
            all.len(),
            "{all:?}"
        );
    }
}
