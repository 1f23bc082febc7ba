//! Tests of the admission with events that happen while it takes a snapshot.

use tokio::task::yield_now;

use super::{
    super::idle_connections::{EvictionCost, IdleLimit},
    *,
};

const SECOND: Duration = Duration::from_secs(1);

type Meanwhile = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// A connection with an idle timeout of one second.
#[derive(Default)]
struct TestConnection {
    idle_since: Mutex<Option<Instant>>,
    n_closed: AtomicUsize,
    /// Runs right after the first survey of this connection.
    when_surveyed: Meanwhile,
    /// Runs while this connection closes.
    when_closed: Meanwhile,
}

impl fmt::Debug for TestConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sitter")
    }
}

impl TestConnection {
    fn idle_since(since: Instant) -> Arc<Self> {
        Arc::new(Self { idle_since: Mutex::new(Some(since)), ..Self::default() })
    }

    fn n_closed(&self) -> usize {
        self.n_closed.load(Ordering::Relaxed)
    }
}

fn run_once(meanwhile: &Meanwhile) {
    let happening = meanwhile.lock().expect("unpoisoned").take();
    if let Some(happening) = happening {
        happening();
    }
}

impl Evictable for TestConnection {
    fn idle(&self) -> Option<IdleConnection<()>> {
        let since = *self.idle_since.lock().expect("unpoisoned");
        run_once(&self.when_surveyed);
        Some(IdleConnection {
            key: (),
            since: since?,
            limit: IdleLimit::Own(Some(SECOND)),
            cost: EvictionCost::Nothing,
            is_above_share: false,
        })
    }

    fn close_if_idle(&self, _is_awaited: bool) -> bool {
        let was_idle = self.idle_since.lock().expect("unpoisoned").take().is_some();
        self.n_closed.fetch_add(usize::from(was_idle), Ordering::Relaxed);
        run_once(&self.when_closed);
        was_idle
    }

    fn usage(&self) -> (ServerName, LifecycleState, usize) {
        (ServerName::new("a").expect("a name"), LifecycleState::Idle, 0)
    }
}

fn weak(connection: &Arc<TestConnection>) -> Weak<dyn Evictable> {
    let connection: Weak<TestConnection> = Arc::downgrade(connection);
    connection
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_becomes_idle_during_a_sweep_is_closed_at_its_timeout() {
    let admission = PermitAdmission::of_one(5, DurationHistogram::default());
    let begin = Instant::now();
    let (first, other) = (TestConnection::idle_since(begin), Arc::new(TestConnection::default()));
    let _permits = [
        admission.acquire(Holder::SERVICE, weak(&first)).await,
        admission.acquire(Holder::SERVICE, weak(&other)).await,
    ];
    #[expect(clippy::disallowed_methods, reason = "a test ends it")]
    let sweep = tokio::spawn(Arc::clone(&admission).run_idle_sweep());
    yield_now().await;

    // The timeout of the first is over. The sweep runs, and the other becomes idle unseen.
    let (idle, waking) = (Arc::clone(&other), Arc::clone(&admission));
    *other.when_surveyed.lock().expect("unpoisoned") = Some(Box::new(move || {
        let now = Instant::now();
        *idle.idle_since.lock().expect("unpoisoned") = Some(now);
        waking.became_idle(Some(now + SECOND));
    }));
    time::sleep_until(begin + SECOND + SECOND / 2).await;
    assert_eq!((first.n_closed(), other.n_closed()), (1, 0));
    time::sleep_until(begin + 3 * SECOND).await;
    assert_eq!(other.n_closed(), 1);
    sweep.abort();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_evicts_one_connection_even_if_another_caller_makes_room_meanwhile() {
    let admission = PermitAdmission::of_one(2, DurationHistogram::default());
    let begin = Instant::now();
    let (first, other) =
        (TestConnection::idle_since(begin), TestConnection::idle_since(begin + SECOND));
    let _permits = [
        admission.acquire(Holder::SERVICE, weak(&first)).await,
        admission.acquire(Holder::SERVICE, weak(&other)).await,
    ];
    let concurrent = Arc::clone(&admission);
    *first.when_closed.lock().expect("unpoisoned") = Some(Box::new(move || concurrent.make_room()));

    let connection = Arc::new(TestConnection::default());
    let waits = time::timeout(SECOND, admission.acquire(Holder::SERVICE, weak(&connection)));
    assert!(waits.await.is_err(), "no permit was returned");
    assert_eq!((first.n_closed(), other.n_closed()), (1, 0));
}
