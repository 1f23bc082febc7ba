//! A future that wakes itself without its task being put to sleep and woken for it.
//!
//! hyper hands a request's body to the service inside one task, and our own answer goes back the
//! same way: each hand-over wakes the task that is running. tokio would queue it again, often for
//! another thread, which is a system call each way. Polled again at once, it is none.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// How often a future is polled again before others get their turn.
const POLLS_MAX: u32 = 16;

/// Runs a future whose wake-ups of itself stay inside.
pub(super) struct LocalWake<F> {
    future: Pin<Box<F>>,
    signal: Arc<Signal>,
    waker: Waker,
}

/// What a wake-up finds.
#[derive(Debug, Default)]
struct Signal {
    state: AtomicU8,
    task: Mutex<Option<Waker>>,
}

/// Nobody polls: a wake-up goes to the task.
const RESTING: u8 = 0;
/// The future is being polled.
const POLLING: u8 = 1;
/// It was woken meanwhile.
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
        self.signal.belongs_to(context.waker());
        let waker = self.waker.clone();
        for _ in 0..POLLS_MAX {
            self.signal.state.store(POLLING, Ordering::Release);
            if self.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                return Poll::Ready(());
            }
            // A wake-up from here on goes to the task, which is not lost: it is being polled.
            if self.signal.state.swap(RESTING, Ordering::AcqRel) != WOKEN {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Signal {
    fn belongs_to(&self, task: &Waker) {
        let mut known = self.task();
        match &mut *known {
            Some(known) => known.clone_from(task),
            none => *none = Some(task.clone()),
        }
    }

    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        // Held to copy or compare a waker.
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

    /// Counts the wake-ups of a task.
    #[derive(Default)]
    struct Task(AtomicU32);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Polls once a future that wakes itself `n_wakes` times, then waits; returns how often it was
    /// polled, its last waker, and the task.
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
        let mut quiet = LocalWake::new(future);
        assert!(Pin::new(&mut quiet).poll(&mut Context::from_waker(&waker)).is_pending());
        drop(quiet);
        (n_polls, last.expect("polled"), task)
    }

    #[test]
    fn a_wake_up_of_itself_stays_inside_and_one_from_outside_does_not() {
        let (n_polls, waker, task) = poll(3);
        assert_eq!((n_polls, task.0.load(Ordering::Relaxed)), (4, 0));
        waker.wake();
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn one_that_never_rests_lets_others_have_their_turn() {
        let (n_polls, _, task) = poll(u32::MAX);
        assert_eq!((n_polls, task.0.load(Ordering::Relaxed)), (POLLS_MAX, 1));
    }
}
