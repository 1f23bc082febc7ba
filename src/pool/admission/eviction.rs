//! Evictions for waiting requests, and the sweep of idle connections.

use std::sync::{Arc, atomic::Ordering};

use tokio::time::{self, Instant};

use super::{
    super::{
        connection_lifecycle::LifecycleState,
        idle_connections::{self, IdleConnection},
    },
    AdmissionState, Evictable, PermitAdmission,
};

/// An idle connection, by the number of its permit.
type IdleCandidate = IdleConnection<(u64, Arc<dyn Evictable>)>;

/// The connections that were not asked to close, at one moment.
struct Survey {
    idle: Vec<IdleCandidate>,
    /// The number of connections in use or connecting.
    n_busy: usize,
    /// The number of closed connections: another admission may have asked them to close.
    n_closed: usize,
}

/// The decision whether a connection is evicted.
enum EvictionOutcome {
    /// The connection is marked as closing.
    Marked,
    /// The connection was asked to close before.
    AlreadyClosing,
    /// Enough other connections close.
    Unneeded,
}

impl PermitAdmission {
    /// Evicts idle connections, one for each waiting request or surplus connection.
    pub(super) fn make_room(self: &Arc<Self>) {
        loop {
            let min = {
                let state = self.state();
                if !state.is_short(0) {
                    return;
                }
                state.min
            };
            let Survey { idle, n_busy, n_closed } = self.survey();
            let Some((number, connection)) = idle_connections::evicted(idle, n_busy, min) else {
                return;
            };
            // Mark it before it closes, so that a concurrent call does not evict another one.
            match self.state().mark_for_eviction(number, n_closed) {
                EvictionOutcome::Marked => {}
                EvictionOutcome::AlreadyClosing => continue,
                EvictionOutcome::Unneeded => return,
            }
            if connection.close_if_idle(true) {
                self.n_evicted.fetch_add(1, Ordering::Relaxed);
                let name = connection.usage().0;
                tracing::info!(
                    mcp_server = %name,
                    "idle connection of server `{name}` closed: a request waits for a connection"
                );
            } else {
                // It is in use again, and therefore not idle in the next snapshot.
                self.set_closing(number, false);
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
            let Survey { idle, n_busy, .. } = self.survey();
            let (over, next) =
                idle_connections::expired(idle, n_busy, self.state().min, Instant::now());
            for (number, connection) in over {
                if connection.close_if_idle(false) {
                    self.set_closing(number, true);
                    self.n_swept.fetch_add(1, Ordering::Relaxed);
                    let name = connection.usage().0;
                    tracing::info!(
                        mcp_server = %name,
                        "idle connection of server `{name}` closed: its idle timeout is over"
                    );
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
        if self.n_to_close.load(Ordering::Relaxed) > 0 {
            self.make_room();
        }
        if let Some(ends) = ends
            && self.ms(ends) < self.sweeps_at_ms.load(Ordering::Relaxed)
        {
            self.woken.notify_one();
        }
    }

    /// Takes a snapshot of the connections that were not asked to close.
    fn survey(&self) -> Survey {
        let mut survey = Survey { idle: Vec::new(), n_busy: 0, n_closed: 0 };
        // Connections are queried without the lock: they may be about to take it.
        for (number, connection) in self.open_connections() {
            match connection.idle() {
                Some(IdleConnection { key: (), since, limit, cost, .. }) => {
                    let is_above_share = self.state().is_above_share(number);
                    let key = (number, connection);
                    survey.idle.push(IdleConnection { key, since, limit, cost, is_above_share });
                }
                None if connection.usage().1 == LifecycleState::Closed => survey.n_closed += 1,
                None => survey.n_busy += 1,
            }
        }
        survey
    }

    fn set_closing(&self, number: u64, is_closing: bool) {
        if let Some(permit) = self.state().held.get_mut(&number) {
            permit.is_closing = is_closing;
        }
    }

    fn ms(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.started);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

impl AdmissionState {
    /// Returns whether the permit `number` belongs to an account with more than its share.
    fn is_above_share(&self, number: u64) -> bool {
        self.held.get(&number).is_some_and(|permit| self.permits.is_above_share(permit.holder))
    }

    /// Returns whether too few connections close. `n_closed` close for another reason.
    fn is_short(&self, n_closed: usize) -> bool {
        let n_closing = self.held.values().filter(|permit| permit.is_closing).count();
        n_closing + n_closed < self.n_to_close()
    }

    /// Marks a connection as asked to close, unless it was or enough others close.
    fn mark_for_eviction(&mut self, number: u64, n_closed: usize) -> EvictionOutcome {
        if !self.is_short(n_closed) {
            return EvictionOutcome::Unneeded;
        }
        match self.held.get_mut(&number) {
            Some(permit) if !permit.is_closing => {
                permit.is_closing = true;
                EvictionOutcome::Marked
            }
            Some(_) | None => EvictionOutcome::AlreadyClosing,
        }
    }
}
