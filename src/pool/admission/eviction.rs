//! Evictions for waiting requests, and the sweep of idle connections.

use std::sync::{Arc, atomic::Ordering};

use tokio::time::{self, Instant};

use super::{
    super::{
        connection_lifecycle::LifecycleState,
        idle_connections::{self, IdleConnection},
    },
    Books, Evictable, PermitAdmission, Sitting,
};

/// An idle connection, by the number of its permit.
type IdleGuest = IdleConnection<(u64, Arc<dyn Evictable>)>;

/// A snapshot of the connections that were not asked to close.
struct Look {
    idle: Vec<IdleGuest>,
    /// The number of connections in use or connecting.
    n_busy: usize,
    /// The number of closed connections: another admission may have asked them to close.
    n_closed: usize,
}

/// The result of asking a connection to close.
enum Told {
    /// It closes.
    Goes,
    /// It was asked before.
    IsGoing,
    /// Enough other connections close.
    Enough,
}

impl PermitAdmission {
    /// Evicts idle connections, one for each waiting request or surplus connection.
    pub(super) fn make_room(self: &Arc<Self>) {
        loop {
            let min = {
                let books = self.books();
                if !books.is_short(0) {
                    return;
                }
                books.min
            };
            let Look { idle, n_busy, n_closed } = self.look();
            let Some((number, guest)) = idle_connections::evicted(idle, n_busy, min) else {
                return;
            };
            // Mark it before it closes, so that a concurrent call does not evict another one.
            match self.books().tell_to_go(number, n_closed) {
                Told::Goes => {}
                Told::IsGoing => continue,
                Told::Enough => return,
            }
            if guest.put_away(true) {
                self.n_evicted.fetch_add(1, Ordering::Relaxed);
                tracing::info!(mcp_server = %guest.holding().0, "connection makes room for another");
            } else {
                // It is in use again, and therefore not idle in the next snapshot.
                self.mark(number, false);
            }
        }
    }

    /// Closes connections whose idle timeout is over, as long as this is polled. Cancel safe.
    pub(in crate::pool) async fn run_idle_sweep(self: Arc<Self>) {
        loop {
            // Reset before the snapshot, so that no connection that becomes idle meanwhile is
            // missed: until the next time is known, every one wakes the sweep.
            let woken = self.woken.notified();
            self.sweeps_at_ms.store(u64::MAX, Ordering::Relaxed);
            let Look { idle, n_busy, .. } = self.look();
            let (over, next) =
                idle_connections::expired(idle, n_busy, self.books().min, Instant::now());
            for (number, guest) in over {
                if guest.put_away(false) {
                    self.mark(number, true);
                    self.n_swept.fetch_add(1, Ordering::Relaxed);
                    tracing::info!(mcp_server = %guest.holding().0, "idle connection closed");
                }
            }
            self.sweeps_at_ms.store(next.map_or(u64::MAX, |next| self.ms(next)), Ordering::Relaxed);
            match next {
                Some(next) => tokio::select! {
                    () = woken => {}
                    () = time::sleep_until(next) => {}
                },
                None => woken.await,
            }
        }
    }

    /// Records that a connection has become idle, with an idle timeout that ends at `ends`.
    pub(in crate::pool) fn became_idle(self: &Arc<Self>, ends: Option<Instant>) {
        if self.n_wanted.load(Ordering::Relaxed) > 0 {
            self.make_room();
        }
        if let Some(ends) = ends
            && self.ms(ends) < self.sweeps_at_ms.load(Ordering::Relaxed)
        {
            self.woken.notify_one();
        }
    }

    /// Takes a snapshot of the connections that were not asked to close.
    fn look(&self) -> Look {
        let mut look = Look { idle: Vec::new(), n_busy: 0, n_closed: 0 };
        // Connections are queried without the lock: they may be about to take it.
        for (number, guest) in self.guests(Sitting::stays) {
            match guest.idle() {
                Some(IdleConnection { key: (), since, stay, loss, .. }) => {
                    let is_above_share = self.books().is_above_share(number);
                    look.idle.push(IdleConnection {
                        key: (number, guest),
                        since,
                        stay,
                        loss,
                        is_above_share,
                    });
                }
                None if guest.holding().1 == LifecycleState::Closed => look.n_closed += 1,
                None => look.n_busy += 1,
            }
        }
        look
    }

    fn mark(&self, number: u64, is_leaving: bool) {
        if let Some(sitting) = self.books().guests.get_mut(&number) {
            sitting.is_leaving = is_leaving;
        }
    }

    fn ms(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.started);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Books {
    /// Returns whether the permit `number` belongs to an account with more than its share.
    fn is_above_share(&self, number: u64) -> bool {
        self.guests.get(&number).is_some_and(|sitting| self.seats.is_above_share(sitting.holder))
    }

    /// Returns whether too few connections close. `n_closed` close for another reason.
    fn is_short(&self, n_closed: usize) -> bool {
        let n_leaving = self.guests.values().filter(|guest| guest.is_leaving).count();
        n_leaving + n_closed < self.n_wanted()
    }

    /// Marks a connection as asked to close, unless it was or enough others close.
    fn tell_to_go(&mut self, number: u64, n_closed: usize) -> Told {
        if !self.is_short(n_closed) {
            return Told::Enough;
        }
        match self.guests.get_mut(&number).filter(|one| one.stays()) {
            None => Told::IsGoing,
            Some(one) => {
                one.is_leaving = true;
                Told::Goes
            }
        }
    }
}
