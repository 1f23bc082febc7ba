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
struct Sitter {
    idle_since: Mutex<Option<Instant>>,
    n_put_away: AtomicUsize,
    /// Runs right after the first look at this connection.
    when_seen: Meanwhile,
    /// Runs while this connection closes.
    when_put_away: Meanwhile,
}

impl fmt::Debug for Sitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sitter")
    }
}

impl Sitter {
    fn idle_since(since: Instant) -> Arc<Self> {
        Arc::new(Self { idle_since: Mutex::new(Some(since)), ..Self::default() })
    }

    fn n_put_away(&self) -> usize {
        self.n_put_away.load(Ordering::Relaxed)
    }
}

fn happens(meanwhile: &Meanwhile) {
    let happening = meanwhile.lock().expect("unpoisoned").take();
    if let Some(happening) = happening {
        happening();
    }
}

impl Evictable for Sitter {
    fn idle(&self) -> Option<IdleConnection<()>> {
        let since = *self.idle_since.lock().expect("unpoisoned");
        happens(&self.when_seen);
        Some(IdleConnection {
            key: (),
            since: since?,
            stay: IdleLimit::Own(Some(SECOND)),
            loss: EvictionCost::Nothing,
            is_above_share: false,
        })
    }

    fn put_away(&self, _is_awaited: bool) -> bool {
        let was_idle = self.idle_since.lock().expect("unpoisoned").take().is_some();
        self.n_put_away.fetch_add(usize::from(was_idle), Ordering::Relaxed);
        happens(&self.when_put_away);
        was_idle
    }

    fn holding(&self) -> (ServerName, LifecycleState, usize) {
        (ServerName::new("a").expect("a name"), LifecycleState::Idle, 0)
    }
}

fn weak(guest: &Arc<Sitter>) -> Weak<dyn Evictable> {
    let guest: Weak<Sitter> = Arc::downgrade(guest);
    guest
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_becomes_idle_during_a_sweep_is_closed_at_its_timeout() {
    let roster = PermitAdmission::of_one(5);
    let begin = Instant::now();
    let (first, other) = (Sitter::idle_since(begin), Arc::new(Sitter::default()));
    let _seats = [
        roster.seat(Holder::SERVICE, weak(&first)).await,
        roster.seat(Holder::SERVICE, weak(&other)).await,
    ];
    #[expect(clippy::disallowed_methods, reason = "a test ends it")]
    let sweep = tokio::spawn(Arc::clone(&roster).run_idle_sweep());
    yield_now().await;

    // The timeout of the first is over. The sweep runs, and the other becomes idle unseen.
    let (idle, told) = (Arc::clone(&other), Arc::clone(&roster));
    *other.when_seen.lock().expect("unpoisoned") = Some(Box::new(move || {
        let now = Instant::now();
        *idle.idle_since.lock().expect("unpoisoned") = Some(now);
        told.became_idle(Some(now + SECOND));
    }));
    time::sleep_until(begin + SECOND + SECOND / 2).await;
    assert_eq!((first.n_put_away(), other.n_put_away()), (1, 0));
    time::sleep_until(begin + 3 * SECOND).await;
    assert_eq!(other.n_put_away(), 1);
    sweep.abort();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_evicts_one_connection_even_if_another_caller_makes_room_meanwhile() {
    let roster = PermitAdmission::of_one(2);
    let begin = Instant::now();
    let (first, other) = (Sitter::idle_since(begin), Sitter::idle_since(begin + SECOND));
    let _seats = [
        roster.seat(Holder::SERVICE, weak(&first)).await,
        roster.seat(Holder::SERVICE, weak(&other)).await,
    ];
    let looks = Arc::clone(&roster);
    *first.when_put_away.lock().expect("unpoisoned") = Some(Box::new(move || looks.make_room()));

    let guest = Arc::new(Sitter::default());
    let waits = time::timeout(SECOND, roster.seat(Holder::SERVICE, weak(&guest)));
    assert!(waits.await.is_err(), "no seat was given back");
    assert_eq!((first.n_put_away(), other.n_put_away()), (1, 0));
}
