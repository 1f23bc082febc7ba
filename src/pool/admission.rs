//! Permits for connections: their holders, the queue for them, and evictions.
//!
//! Drives [`super::permits`] and [`super::idle_connections`]. There is one admission for all
//! servers together, and one for each server that limits the connections of its clients.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::{self, Instant},
};

use super::{
    connection_lifecycle::LifecycleState,
    idle_connections::IdleConnection,
    permits::{PermitLimits, PermitQueue, PermitReply},
    status::{PoolStatus, ServerConnections},
};
use crate::{
    capacity_holder::Holder, config, fair_share::QueueTicket, server_name::ServerName,
    telemetry::duration_histogram::DurationHistogram,
};

mod eviction;

/// A connection that can hold a permit and can be evicted.
pub(super) trait Evictable: fmt::Debug + Send + Sync {
    /// Returns the data for the eviction decision if the connection is idle.
    fn idle(&self) -> Option<IdleConnection<()>>;

    /// Closes the connection, which returns the permit. Skips the drain if `is_awaited`. Returns
    /// `false` if the connection is in use again.
    fn close_if_idle(&self, is_awaited: bool) -> bool;

    /// Returns the connection's server, its state, and the number of requests that hold it.
    fn usage(&self) -> (ServerName, LifecycleState, usize);
}

/// The holders of permits, and the requests that wait for one.
#[derive(Debug)]
pub(super) struct PermitAdmission {
    state: Mutex<AdmissionState>,
    /// The number of connections that should close. Checked when a connection becomes idle.
    n_to_close: AtomicUsize,
    n_evicted: AtomicU64,
    n_swept: AtomicU64,
    n_illegal: AtomicU64,
    /// Wakes the sweep early.
    woken: Notify,
    /// Notifies the waiting requests that the time until they may use the reserve has changed.
    rules_changed: Notify,
    /// The servers with a new connection.
    new_connections: Mutex<BTreeSet<ServerName>>,
    arrived: Notify,
    /// The times that connections waited for a permit, of those that waited.
    waits: DurationHistogram,
    started: Instant,
    /// The next time of the sweep, in milliseconds since `started`.
    sweeps_at_ms: AtomicU64,
}

#[derive(Debug)]
struct AdmissionState {
    permits: PermitQueue,
    min: usize,
    /// The default idle timeout.
    idle_timeout: Option<Duration>,
    /// The permits in use, by number.
    held: HashMap<u64, HeldPermit>,
    waiting: HashMap<QueueTicket, Waiting>,
    n_granted: u64,
}

#[derive(Debug)]
struct HeldPermit {
    connection: Weak<dyn Evictable>,
    holder: Holder,
    /// The connection was asked to close.
    is_closing: bool,
}

#[derive(Debug)]
struct Waiting {
    connection: Weak<dyn Evictable>,
    grant: oneshot::Sender<ConnectionPermit>,
}

/// A permit for one connection. Dropping it returns the permit.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    admission: Arc<PermitAdmission>,
    number: u64,
    holder: Holder,
}

/// A place in the queue. Dropping it leaves the queue.
struct Place<'a> {
    admission: &'a Arc<PermitAdmission>,
    ticket: QueueTicket,
}

impl PermitAdmission {
    /// Returns an empty admission for all servers together.
    pub(super) fn new(rules: &config::PoolConfig) -> Arc<Self> {
        let waits = DurationHistogram::default();
        Self::with(limits(rules), rules.min_size, rules.idle_timeout, waits)
    }

    /// Returns an empty admission for the connections of one server, which counts its `waits`.
    pub(super) fn of_one(max_connections: usize, waits: DurationHistogram) -> Arc<Self> {
        let limits =
            PermitLimits { size: max_connections, reserve: 0, reserve_after: Duration::ZERO };
        Self::with(limits, 0, None, waits)
    }

    fn with(
        limits: PermitLimits,
        min: usize,
        idle_timeout: Option<Duration>,
        waits: DurationHistogram,
    ) -> Arc<Self> {
        let state = AdmissionState {
            permits: PermitQueue::new(limits),
            min,
            idle_timeout,
            held: HashMap::new(),
            waiting: HashMap::new(),
            n_granted: 0,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            n_to_close: AtomicUsize::new(0),
            n_evicted: AtomicU64::new(0),
            n_swept: AtomicU64::new(0),
            n_illegal: AtomicU64::new(0),
            woken: Notify::new(),
            rules_changed: Notify::new(),
            new_connections: Mutex::default(),
            arrived: Notify::new(),
            waits,
            started: Instant::now(),
            sweeps_at_ms: AtomicU64::new(u64::MAX),
        })
    }

    /// Applies other limits. Surplus connections close when they become idle.
    pub(super) fn set_rules(self: &Arc<Self>, rules: &config::PoolConfig) {
        {
            let mut state = self.state();
            state.permits.limits = limits(rules);
            state.min = rules.min_size;
            state.idle_timeout = rules.idle_timeout;
        }
        self.rules_changed.notify_waiters();
        self.grant_to_waiters();
        self.make_room();
        self.woken.notify_one();
    }

    /// Returns the times that connections waited for a permit.
    pub(super) fn waits(&self) -> &DurationHistogram {
        &self.waits
    }

    /// Returns the default idle timeout.
    pub(super) fn default_idle_limit(&self) -> Option<Duration> {
        self.state().idle_timeout
    }

    /// Waits for a permit for `holder`, as long as it takes. The least recently used connection is
    /// evicted as soon as one is idle. Cancel safe: the next waiter gets the place in the queue.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        holder: Holder,
        connection: Weak<dyn Evictable>,
    ) -> ConnectionPermit {
        let asked = Instant::now();
        let (ticket, mut granted) = {
            let mut state = self.state();
            let ticket = match state.permits.request(holder, asked) {
                PermitReply::Granted => return self.issue(&mut state, holder, connection),
                PermitReply::Queued(ticket) => ticket,
            };
            let (grant, granted) = oneshot::channel();
            state.waiting.insert(ticket, Waiting { connection, grant });
            self.publish_n_to_close(&state);
            (ticket, granted)
        };
        let _timer = self.waits.start();
        let _place = Place { admission: self, ticket };
        self.make_room();
        loop {
            let changed = self.rules_changed.notified();
            let may_use_reserve = asked + self.state().permits.limits.reserve_after;
            tokio::select! {
                biased;
                permit = &mut granted => match permit {
                    Ok(permit) => return permit,
                    // The sender is removed only together with a permit or with this place.
                    Err(_) => std::future::pending().await,
                },
                () = time::sleep_until(may_use_reserve), if Instant::now() < may_use_reserve => {
                    self.grant_to_waiters();
                }
                () = changed => {}
            }
        }
    }

    /// Records `connection` as the holder of a granted permit.
    fn issue(
        self: &Arc<Self>,
        state: &mut AdmissionState,
        holder: Holder,
        connection: Weak<dyn Evictable>,
    ) -> ConnectionPermit {
        state.n_granted += 1;
        let number = state.n_granted;
        state.held.insert(number, HeldPermit { connection, holder, is_closing: false });
        ConnectionPermit { admission: Arc::clone(self), number, holder }
    }

    /// Grants free permits to the waiting requests.
    fn grant_to_waiters(self: &Arc<Self>) {
        let granted: Vec<_> = {
            let mut state = self.state();
            let tickets = state.permits.grant(Instant::now());
            self.publish_n_to_close(&state);
            let served = tickets.into_iter().filter_map(|ticket| {
                let Waiting { connection, grant } = state.waiting.remove(&ticket)?;
                Some((grant, self.issue(&mut state, ticket.holder(), connection)))
            });
            served.collect()
        };
        for (grant, permit) in granted {
            // A request that has left returns the permit.
            drop(grant.send(permit));
        }
    }

    /// Returns the server that gets the next permit, if a request waits for one.
    pub(super) fn next_server(&self) -> Option<ServerName> {
        if self.n_to_close.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let connection = {
            let state = self.state();
            state.waiting.get(&state.permits.next()?)?.connection.upgrade()
        };
        connection.map(|connection| connection.usage().0)
    }

    /// Records that a server has a new connection.
    pub(super) fn note_arrival(&self, server: &ServerName) {
        self.new_connections().insert(server.clone());
        self.arrived.notify_one();
    }

    /// Waits until servers have new connections, and returns those servers. Cancel safe: the next
    /// call returns them.
    pub(super) async fn arrived(&self) -> BTreeSet<ServerName> {
        loop {
            let new_connections = std::mem::take(&mut *self.new_connections());
            if !new_connections.is_empty() {
                return new_connections;
            }
            self.arrived.notified().await;
        }
    }

    fn new_connections(&self) -> MutexGuard<'_, BTreeSet<ServerName>> {
        // Held only for single statements on plain data.
        self.new_connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a refused state transition.
    pub(super) fn count_illegal_transition(&self) {
        self.n_illegal.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the connections of each server.
    pub(super) fn holders(&self) -> Vec<ServerConnections> {
        let mut holders = BTreeMap::<ServerName, ServerConnections>::new();
        for (_, connection) in self.connections(|_| true) {
            let (server, state, n_requests) = connection.usage();
            let holder =
                holders.entry(server.clone()).or_insert_with(|| ServerConnections::none(server));
            holder.add(state, n_requests);
        }
        holders.into_values().collect()
    }

    pub(super) fn status(&self) -> PoolStatus {
        let states: Vec<LifecycleState> =
            self.open_connections().iter().map(|(_, connection)| connection.usage().1).collect();
        let n_in = |wanted: LifecycleState| states.iter().filter(|state| **state == wanted).count();
        let (active, idle) = (n_in(LifecycleState::Active), n_in(LifecycleState::Idle));
        let state = self.state();
        let limits = state.permits.limits;
        PoolStatus {
            size: limits.size,
            reserve_size: limits.reserve,
            min_size: state.min,
            connections: state.permits.n_taken,
            active,
            idle,
            waiting: state.permits.n_waiting(),
            evicted: self.n_evicted.load(Ordering::Relaxed),
            swept: self.n_swept.load(Ordering::Relaxed),
            illegal_transitions: self.n_illegal.load(Ordering::Relaxed),
        }
    }

    /// Returns the number of permits without the reserve.
    pub(super) fn size(&self) -> usize {
        self.state().permits.limits.size
    }

    /// Returns the connections that were not asked to close, by the number of their permit.
    fn open_connections(&self) -> Vec<(u64, Arc<dyn Evictable>)> {
        self.connections(|permit| !permit.is_closing)
    }

    fn connections(
        &self,
        is_meant: impl Fn(&HeldPermit) -> bool,
    ) -> Vec<(u64, Arc<dyn Evictable>)> {
        let state = self.state();
        let held = state.held.iter().filter(|(_, permit)| is_meant(permit));
        held.filter_map(|(number, permit)| Some((*number, permit.connection.upgrade()?))).collect()
    }

    /// Publishes the number of connections that should close.
    fn publish_n_to_close(&self, state: &AdmissionState) {
        self.n_to_close.store(state.n_to_close(), Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, AdmissionState> {
        // Held only for statements on plain data. No connection is queried under it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmissionState {
    /// Returns the number of connections that should close.
    fn n_to_close(&self) -> usize {
        self.permits.n_waiting().max(self.permits.n_surplus())
    }
}

fn limits(rules: &config::PoolConfig) -> PermitLimits {
    PermitLimits {
        size: rules.size,
        reserve: rules.reserve_size,
        reserve_after: rules.reserve_timeout,
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        {
            let mut state = self.admission.state();
            state.held.remove(&self.number);
            state.permits.release(self.holder);
        }
        self.admission.grant_to_waiters();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // A request with a permit has left the queue already.
        let waiting = {
            let mut state = self.admission.state();
            state.permits.leave(self.ticket);
            self.admission.publish_n_to_close(&state);
            state.waiting.remove(&self.ticket)
        };
        drop(waiting);
    }
}

#[cfg(test)]
mod tests;
