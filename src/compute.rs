//! Computations that a stranger sizes, beside the event loops.
//!
//! They run on a few threads of their own, which come with the work and go with it. A stop of the
//! service does not wait for these threads.
//!
//! Jobs wait in a bounded queue, and accounts take turns, inside an account its members. Where the
//! queue is full, the account that has the most jobs in it loses its newest one.

use std::{
    collections::{BTreeMap, VecDeque},
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
    config::defaults::{
        COMPUTE_QUEUE_MAX, COMPUTE_STACK_BYTES, COMPUTE_THREADS_MAX, INLINE_BYTES_MAX,
    },
    holder::{Account, Holder, Member},
};

/// The threads that compute, and the jobs that wait for them.
#[derive(Clone, Debug, Default)]
pub struct ComputePool(Arc<Mutex<State>>);

/// The flag of a job, which is set once its outcome is no longer wanted.
pub type StopFlag = Arc<AtomicBool>;

/// The reason for which a job has no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    /// Too many others wait, and this job is one of the account that has the most.
    #[error("too many computations wait")]
    Full,
    /// It has panicked, which is a bug.
    #[error("the computation failed")]
    Panicked,
}

/// Reads so many bytes by `work`, on this thread. Where that takes long, another thread takes over the
/// other tasks of this event loop, so that only the calling task waits.
pub fn read_in_place<T>(n_bytes: usize, work: impl FnOnce() -> T) -> T {
    let may_leave = || {
        let runtime = Handle::try_current();
        runtime.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
    };
    if n_bytes > INLINE_BYTES_MAX && may_leave() { task::block_in_place(work) } else { work() }
}

/// One computation, with the way that its outcome takes.
type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    queue: FairQueue<Job>,
    n_threads: usize,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{} jobs, {} threads]", self.queue.n_jobs, self.n_threads)
    }
}

/// Sets the flag of a job whose asker has gone.
struct Asker(StopFlag);

impl Drop for Asker {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl ComputePool {
    /// Runs `work` for `holder`.
    ///
    /// # Errors
    ///
    /// [`ComputeError`] when there is no outcome.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, the work does not begin, or is told by its flag.
    pub async fn run<T: Send + 'static>(
        self,
        holder: Holder,
        work: impl FnOnce(&StopFlag) -> T + Send + 'static,
    ) -> Result<T, ComputeError> {
        let asker = Asker(Arc::default());
        let (sender, outcome) = oneshot::channel();
        let flag = Arc::clone(&asker.0);
        let job = Box::new(move || {
            if flag.load(Ordering::Relaxed) {
                return;
            }
            // The asker learns of it, and nothing else sees what it has left half done.
            let worked = catch_unwind(AssertUnwindSafe(|| work(&flag)));
            let _asker_gone = sender.send(worked.map_err(|_| ComputeError::Panicked));
        });
        self.submit(holder, job);
        let outcome = outcome.await;
        drop(asker);
        outcome.unwrap_or(Err(ComputeError::Full))
    }

    /// Adds a job, and a thread where there may be one more.
    fn submit(&self, holder: Holder, job: Job) {
        let mut state = self.state();
        let refused = state.queue.push(holder, job);
        let threads_max = thread::available_parallelism().map_or(1, usize::from);
        if state.n_threads < threads_max.min(COMPUTE_THREADS_MAX) {
            let pool = self.clone();
            let thread = thread::Builder::new().name("compute".to_owned());
            let started = thread.stack_size(COMPUTE_STACK_BYTES).spawn(move || pool.work());
            match started {
                Ok(_detached) => state.n_threads += 1,
                // Without any thread a job would wait for ever.
                Err(_) if state.n_threads == 0 => state.queue = FairQueue::default(),
                Err(_) => {}
            }
        }
        drop(state);
        drop(refused);
    }

    /// Takes jobs until there are none.
    fn work(&self) {
        loop {
            let mut state = self.state();
            let Some(job) = state.queue.pop() else {
                state.n_threads -= 1;
                return;
            };
            drop(state);
            job();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Held for statements on plain data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Jobs that wait, in the order in which it is their holders' turn.
struct FairQueue<T> {
    accounts: Turns<Account, Turns<Member, VecDeque<T>>>,
    n_jobs: usize,
}

/// Queues that take turns.
struct Turns<K, Q> {
    queues: BTreeMap<K, Q>,
    order: VecDeque<K>,
}

impl<K, Q> Default for Turns<K, Q> {
    fn default() -> Self {
        Self { queues: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { accounts: Turns::default(), n_jobs: 0 }
    }
}

impl<K: Ord + Copy, Q: Default> Turns<K, Q> {
    /// Returns the queue of `key`, whose turn comes last if it had none.
    fn queue(&mut self, key: K) -> &mut Q {
        self.queues.entry(key).or_insert_with(|| {
            self.order.push_back(key);
            Q::default()
        })
    }

    /// Takes a job of the queue whose turn it is.
    fn take<T>(
        &mut self,
        take: impl Fn(&mut Q) -> Option<T>,
        is_empty: impl Fn(&Q) -> bool,
    ) -> Option<T> {
        let key = self.order.pop_front()?;
        let queue = self.queues.get_mut(&key)?;
        let job = take(queue);
        match is_empty(queue) {
            true => drop(self.queues.remove(&key)),
            false => self.order.push_back(key),
        }
        job
    }

    /// Removes the queue of `key` if it is empty.
    fn forget(&mut self, key: K, is_empty: impl Fn(&Q) -> bool) {
        if self.queues.get(&key).is_some_and(is_empty) {
            self.queues.remove(&key);
            self.order.retain(|found| *found != key);
        }
    }
}

impl<T> Turns<Member, VecDeque<T>> {
    fn n_jobs(&self) -> usize {
        self.queues.values().map(VecDeque::len).sum()
    }
}

impl<T> FairQueue<T> {
    /// Adds a job, and returns the one that has no room any more.
    fn push(&mut self, holder: Holder, job: T) -> Option<T> {
        self.accounts.queue(holder.account).queue(holder.member).push_back(job);
        self.n_jobs += 1;
        if self.n_jobs > COMPUTE_QUEUE_MAX { self.evict() } else { None }
    }

    /// Takes the job whose turn it is.
    fn pop(&mut self) -> Option<T> {
        let job = self.accounts.take(
            |members| members.take(VecDeque::pop_front, VecDeque::is_empty),
            |members| members.queues.is_empty(),
        )?;
        self.n_jobs -= 1;
        Some(job)
    }

    /// Removes the newest job of the largest member of the largest account.
    fn evict(&mut self) -> Option<T> {
        let largest = self.accounts.queues.iter_mut().max_by_key(|(_, members)| members.n_jobs());
        let (account, members) = largest?;
        let account = *account;
        let (member, jobs) = members.queues.iter_mut().max_by_key(|(_, jobs)| jobs.len())?;
        let (member, job) = (*member, jobs.pop_back());
        members.forget(member, VecDeque::is_empty);
        self.accounts.forget(account, |members| members.queues.is_empty());
        self.n_jobs -= usize::from(job.is_some());
        job
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use proptest::prelude::*;

    use super::*;

    fn holder(account: u32, session: u64) -> Holder {
        Holder { account: Account::User(account), member: Member::Session(session) }
    }

    #[test]
    fn accounts_take_turns_and_so_do_members_of_one() {
        let mut queue = FairQueue::default();
        for (account, session, job) in
            [(1, 1, "a1"), (1, 1, "a2"), (1, 2, "b1"), (1, 2, "b2"), (2, 3, "c1"), (2, 3, "c2")]
        {
            assert_eq!(queue.push(holder(account, session), job), None);
        }
        let order: Vec<&str> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, ["a1", "c1", "b1", "c2", "a2", "b2"]);
        assert!(queue.accounts.queues.is_empty() && queue.accounts.order.is_empty());
    }

    #[test]
    fn where_there_is_no_room_the_one_with_the_most_jobs_loses_one() {
        let mut queue = FairQueue::default();
        for job in 0..COMPUTE_QUEUE_MAX {
            assert_eq!(queue.push(holder(1, 1), job), None);
        }
        assert_eq!(queue.push(holder(1, 2), 1000), Some(COMPUTE_QUEUE_MAX - 1));
        assert_eq!(queue.push(holder(2, 3), 2000), Some(COMPUTE_QUEUE_MAX - 2));
        assert_eq!(queue.n_jobs, COMPUTE_QUEUE_MAX);
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(0), Some(2000), Some(1000)]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_task_that_reads_for_long_leaves_the_event_loop_to_others() {
        let (sender, receiver) = mpsc::channel();
        let reading = tokio::spawn(async move {
            read_in_place(INLINE_BYTES_MAX + 1, || receiver.recv_timeout(Duration::from_secs(10)))
        });
        // With one worker, this runs only if the reader has left it.
        let telling = tokio::spawn(async move { sender.send(()) });
        assert_eq!(reading.await.expect("no panic"), Ok(()));
        telling.await.expect("no panic").expect("it is heard");
    }

    #[tokio::test]
    async fn a_job_has_an_outcome_and_one_that_panics_harms_no_other() {
        let pool = ComputePool::default();
        let panicked = pool.clone().run(holder(1, 1), |_| -> u8 { panic!("a bug") }).await;
        assert_eq!(panicked, Err(ComputeError::Panicked));
        assert_eq!(pool.run(holder(1, 1), |_| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn a_job_is_told_that_its_asker_has_gone_and_one_that_waits_never_begins() {
        let pool = ComputePool::default();
        let (told, hears) = mpsc::channel();
        let mut jobs = Vec::new();
        for number in 0..COMPUTE_THREADS_MAX + 1 {
            let (pool, told) = (pool.clone(), told.clone());
            let job = pool.run(holder(1, 1), move |flag| {
                told.send((number, "begins")).expect("the test listens");
                while !flag.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                told.send((number, "ends")).expect("the test listens");
            });
            jobs.push(Box::pin(job));
        }
        for job in &mut jobs {
            assert!(futures_util::poll!(job.as_mut()).is_pending());
        }
        let first = hears.recv_timeout(Duration::from_secs(10)).expect("one begins");
        assert_eq!(first.1, "begins");
        drop(jobs);
        drop(told);
        let all: Vec<_> = std::iter::once(first).chain(hears.iter()).collect();
        assert!(all.iter().all(|(number, _)| *number < COMPUTE_THREADS_MAX), "{all:?}");
        assert_eq!(all.iter().filter(|told| told.1 == "begins").count() * 2, all.len(), "{all:?}");
    }

    proptest! {
        #[test]
        fn no_job_is_lost_or_done_twice(
            all in prop::collection::vec(prop::option::of((0..3_u32, 0..3_u64)), 0..400)
        ) {
            let (mut queue, mut seen) = (FairQueue::default(), Vec::new());
            for (number, step) in all.iter().enumerate() {
                match step {
                    Some((account, session)) => {
                        seen.extend(queue.push(holder(*account, *session), number));
                    }
                    None => seen.extend(queue.pop()),
                }
                let n_jobs: usize = queue.accounts.queues.values().map(Turns::n_jobs).sum();
                prop_assert!(queue.n_jobs == n_jobs && n_jobs <= COMPUTE_QUEUE_MAX);
            }
            seen.extend(std::iter::from_fn(|| queue.pop()));
            seen.sort_unstable();
            let pushed: Vec<usize> =
                all.iter().enumerate().filter_map(|(number, step)| step.map(|_| number)).collect();
            prop_assert_eq!(seen, pushed);
        }
    }
}
