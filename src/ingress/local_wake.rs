//! A future that wakes itself without a detour through the scheduler.
//!
//! hyper passes request bodies and answers between the two sides within one task, and each transfer
//! wakes the running task. tokio would queue the task again, often on another thread, which costs a
//! system call per transfer. Polling again at once costs none.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// The number of times that a future is polled again before other tasks get a turn.
const POLLS_MAX: u32 = 16;

/// A future whose wake-ups of itself stay local.
pub(super) struct LocalWake<F> {
    future: Pin<Box<F>>,
    signal: Arc<Signal>,
    waker: Waker,
}

/// The state that a waker updates.
#[derive(Debug, Default)]
struct Signal {
    state: AtomicU8,
    task: Mutex<Option<Waker>>,
}

/// The future is not being polled: a wake-up goes to the task.
const RESTING: u8 = 0;
/// The future is being polled.
const POLLING: u8 = 1;
/// The future was woken while it was being polled.
const WOKEN: u8 = 2;

impl<F: Future<Output = ()>> LocalWake<F> {
    pub(super) fn new(future: F) -> Self {
        let signal = Arc::new(Signal::default());
        let waker = Waker::from(Arc::clone(&signal));
        Self { future: Box::pin(future), signal, waker }
    }
}

impl<F: Future<Output = ()>> Future for LocalWake<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.signal.set_task(context.waker());
        let waker = self.waker.clone();
        for _ in 0..POLLS_MAX {
            self.signal.state.store(POLLING, Ordering::Release);
            if self.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                return Poll::Ready(());
            }
            // A wake-up from here on goes to the task, and is not lost: tokio is polling the task.
            if self.signal.state.swap(RESTING, Ordering::AcqRel) != WOKEN {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Signal {
    fn set_task(&self, task: &Waker) {
        let mut known = self.task();
        match &mut *known {
            Some(known) => known.clone_from(task),
            none => *none = Some(task.clone()),
        }
    }

    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        // Held only to copy or compare a waker.
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let seen = self.state.compare_exchange(POLLING, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if seen == Err(RESTING) {
            let task = self.task().clone();
            if let Some(task) = task {
                task.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        sync::atomic::{AtomicU32, Ordering},
    };

    use super::*;

    /// A task that counts its wake-ups.
    #[derive(Default)]
    struct Task(AtomicU32);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Polls a future once that wakes itself `n_wakes` times and then waits. Returns the number of
    /// polls, the last waker, and the task.
    fn poll(n_wakes: u32) -> (u32, Waker, Arc<Task>) {
        let (mut n_polls, mut last) = (0, None);
        let future = poll_fn(|context| {
            n_polls += 1;
            last = Some(context.waker().clone());
            if n_polls <= n_wakes {
                context.waker().wake_by_ref();
            }
            Poll::Pending
        });
        let task = Arc::new(Task::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut local = LocalWake::new(future);
        assert!(Pin::new(&mut local).poll(&mut Context::from_waker(&waker)).is_pending());
        drop(local);
        (n_polls, last.expect("polled"), task)
    }

    #[test]
    fn a_wake_up_during_a_poll_stays_local_and_a_later_one_reaches_the_task() {
        let (n_polls, waker, task) = poll(3);
        assert_eq!((n_polls, task.0.load(Ordering::Relaxed)), (4, 0));
        waker.wake();
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_future_that_always_wakes_itself_yields_to_other_tasks() {
        let (n_polls, _, task) = poll(u32::MAX);
        assert_eq!((n_polls, task.0.load(Ordering::Relaxed)), (POLLS_MAX, 1));
    }
}
