//! Permits for connections: their holders, the queue for them, and evictions.
//!
//! Drives [`super::permits`] and [`super::idle_connections`]: one admission for all servers together, and one
//! for each server that declares a maximum number of connections for its clients.

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
use crate::{capacity_holder::Holder, config, fair_share::QueueTicket, server_name::ServerName};

mod eviction;

/// A connection that can hold a permit and can be evicted.
pub(super) trait Evictable: fmt::Debug + Send + Sync {
    /// Returns the data for the eviction decision if the connection is idle.
    fn idle(&self) -> Option<IdleConnection<()>>;

    /// Closes the connection, which returns the permit. Skips the drain if `is_awaited`. Returns
    /// `false` if the connection is in use again.
    fn put_away(&self, is_awaited: bool) -> bool;

    /// Returns the connection's server, its state, and the number of requests that hold it.
    fn holding(&self) -> (ServerName, LifecycleState, usize);
}

/// The holders of permits, and the requests that wait for one.
#[derive(Debug)]
pub(super) struct PermitAdmission {
    books: Mutex<Books>,
    /// The number of connections that should close. Checked when a connection becomes idle.
    n_wanted: AtomicUsize,
    n_evicted: AtomicU64,
    n_swept: AtomicU64,
    n_illegal: AtomicU64,
    /// Wakes the sweep early.
    woken: Notify,
    /// Notifies the waiting requests that the time until they may use the reserve has changed.
    rules_changed: Notify,
    /// The servers with a new connection.
    arrivals: Mutex<BTreeSet<ServerName>>,
    arrived: Notify,
    started: Instant,
    /// The next time of the sweep, in milliseconds since `started`.
    sweeps_at_ms: AtomicU64,
}

#[derive(Debug)]
struct Books {
    seats: PermitQueue,
    min: usize,
    /// The default idle timeout.
    stay: Option<Duration>,
    guests: HashMap<u64, Sitting>,
    waiting: HashMap<QueueTicket, Waiting>,
    n_seated: u64,
}

#[derive(Debug)]
struct Sitting {
    guest: Weak<dyn Evictable>,
    holder: Holder,
    /// The connection was asked to close.
    is_leaving: bool,
}

impl Sitting {
    fn stays(&self) -> bool {
        !self.is_leaving
    }
}

#[derive(Debug)]
struct Waiting {
    guest: Weak<dyn Evictable>,
    granted: oneshot::Sender<ConnectionPermit>,
}

/// A permit for one connection. Dropping it returns the permit.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    roster: Arc<PermitAdmission>,
    number: u64,
    holder: Holder,
}

/// A place in the queue. Dropping it leaves the queue.
struct Place<'a> {
    roster: &'a Arc<PermitAdmission>,
    ticket: QueueTicket,
}

impl PermitAdmission {
    /// Returns an empty admission for all servers together.
    pub(super) fn new(rules: &config::PoolConfig) -> Arc<Self> {
        Self::with(bounds(rules), rules.min_size, rules.idle_timeout)
    }

    /// Returns an empty admission for the connections of one server.
    pub(super) fn of_one(max_connections: usize) -> Arc<Self> {
        let bounds =
            PermitLimits { size: max_connections, reserve: 0, reserve_after: Duration::ZERO };
        Self::with(bounds, 0, None)
    }

    fn with(bounds: PermitLimits, min: usize, stay: Option<Duration>) -> Arc<Self> {
        let books = Books {
            seats: PermitQueue::new(bounds),
            min,
            stay,
            guests: HashMap::new(),
            waiting: HashMap::new(),
            n_seated: 0,
        };
        Arc::new(Self {
            books: Mutex::new(books),
            n_wanted: AtomicUsize::new(0),
            n_evicted: AtomicU64::new(0),
            n_swept: AtomicU64::new(0),
            n_illegal: AtomicU64::new(0),
            woken: Notify::new(),
            rules_changed: Notify::new(),
            arrivals: Mutex::default(),
            arrived: Notify::new(),
            started: Instant::now(),
            sweeps_at_ms: AtomicU64::new(u64::MAX),
        })
    }

    /// Applies other limits. Surplus connections close when they become idle.
    pub(super) fn set_rules(self: &Arc<Self>, rules: &config::PoolConfig) {
        {
            let mut books = self.books();
            books.seats.set_bounds(bounds(rules));
            books.min = rules.min_size;
            books.stay = rules.idle_timeout;
        }
        self.rules_changed.notify_waiters();
        self.seat_who_waits();
        self.make_room();
        self.woken.notify_one();
    }

    /// Returns the default idle timeout.
    pub(super) fn default_idle_limit(&self) -> Option<Duration> {
        self.books().stay
    }

    /// Waits for a permit for `holder`, as long as it takes. The least recently used connection is
    /// evicted as soon as one is idle. Cancel safe: the next waiter gets the place in the queue.
    pub(super) async fn seat(
        self: &Arc<Self>,
        holder: Holder,
        guest: Weak<dyn Evictable>,
    ) -> ConnectionPermit {
        let asked = Instant::now();
        let (ticket, mut seated) = {
            let mut books = self.books();
            let ticket = match books.seats.ask(holder, asked) {
                PermitReply::Seated => return self.sit(&mut books, holder, guest),
                PermitReply::Queued(ticket) => ticket,
            };
            let (granted, seated) = oneshot::channel();
            books.waiting.insert(ticket, Waiting { guest, granted });
            self.post(&books);
            (ticket, seated)
        };
        let _place = Place { roster: self, ticket };
        self.make_room();
        loop {
            let changed = self.rules_changed.notified();
            let may_use_reserve = asked + self.books().seats.bounds().reserve_after;
            tokio::select! {
                biased;
                seat = &mut seated => match seat {
                    Ok(seat) => return seat,
                    // The sender is removed only together with a permit or with this place.
                    Err(_) => std::future::pending().await,
                },
                () = time::sleep_until(may_use_reserve), if Instant::now() < may_use_reserve => {
                    self.seat_who_waits();
                }
                () = changed => {}
            }
        }
    }

    fn sit(
        self: &Arc<Self>,
        books: &mut Books,
        holder: Holder,
        guest: Weak<dyn Evictable>,
    ) -> ConnectionPermit {
        books.n_seated += 1;
        let number = books.n_seated;
        books.guests.insert(number, Sitting { guest, holder, is_leaving: false });
        ConnectionPermit { roster: Arc::clone(self), number, holder }
    }

    /// Grants free permits to the waiting requests.
    fn seat_who_waits(self: &Arc<Self>) {
        let seated: Vec<_> = {
            let mut books = self.books();
            let tickets = books.seats.seat(Instant::now());
            self.post(&books);
            let granted = tickets.into_iter().filter_map(|ticket| {
                let Waiting { guest, granted } = books.waiting.remove(&ticket)?;
                Some((granted, self.sit(&mut books, ticket.holder(), guest)))
            });
            granted.collect()
        };
        for (granted, seat) in seated {
            // A request that has left returns the permit.
            drop(granted.send(seat));
        }
    }

    /// Returns the server that gets the next permit, if a request waits for one.
    pub(super) fn next(&self) -> Option<ServerName> {
        if self.n_wanted.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let guest = {
            let books = self.books();
            books.waiting.get(&books.seats.next()?)?.guest.upgrade()
        };
        guest.map(|guest| guest.holding().0)
    }

    /// Records that a server has a new connection.
    pub(super) fn note_arrival(&self, server: &ServerName) {
        self.arrivals().insert(server.clone());
        self.arrived.notify_one();
    }

    /// Waits until servers have new connections, and returns those servers. Cancel safe: the next
    /// call returns them.
    pub(super) async fn arrived(&self) -> BTreeSet<ServerName> {
        loop {
            let arrivals = std::mem::take(&mut *self.arrivals());
            if !arrivals.is_empty() {
                return arrivals;
            }
            self.arrived.notified().await;
        }
    }

    fn arrivals(&self) -> MutexGuard<'_, BTreeSet<ServerName>> {
        // Held only for single statements on plain data.
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a refused state transition.
    pub(super) fn illegal(&self) {
        self.n_illegal.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the connections of each server.
    pub(super) fn holders(&self) -> Vec<ServerConnections> {
        let mut holders = BTreeMap::<ServerName, ServerConnections>::new();
        for (_, guest) in self.guests(|_| true) {
            let (server, state, n_requests) = guest.holding();
            let holder =
                holders.entry(server.clone()).or_insert_with(|| ServerConnections::none(server));
            holder.add(state, n_requests);
        }
        holders.into_values().collect()
    }

    /// Returns the status.
    pub(super) fn status(&self) -> PoolStatus {
        let states: Vec<LifecycleState> =
            self.guests(Sitting::stays).iter().map(|(_, guest)| guest.holding().1).collect();
        let n_in = |wanted: LifecycleState| states.iter().filter(|state| **state == wanted).count();
        let (active, idle) = (n_in(LifecycleState::Active), n_in(LifecycleState::Idle));
        let books = self.books();
        let bounds = books.seats.bounds();
        PoolStatus {
            size: bounds.size,
            reserve_size: bounds.reserve,
            min_size: books.min,
            connections: books.seats.n_taken(),
            active,
            idle,
            waiting: books.seats.n_waiting(),
            evicted: self.n_evicted.load(Ordering::Relaxed),
            swept: self.n_swept.load(Ordering::Relaxed),
            illegal_transitions: self.n_illegal.load(Ordering::Relaxed),
        }
    }

    /// Returns the number of permits without the reserve.
    pub(super) fn size(&self) -> usize {
        self.books().seats.bounds().size
    }

    /// Returns the connections that `is_meant` accepts.
    fn guests(&self, is_meant: impl Fn(&Sitting) -> bool) -> Vec<(u64, Arc<dyn Evictable>)> {
        let books = self.books();
        let sitting = books.guests.iter().filter(|(_, sitting)| is_meant(sitting));
        sitting.filter_map(|(number, sitting)| Some((*number, sitting.guest.upgrade()?))).collect()
    }

    /// Publishes the number of connections that should close.
    fn post(&self, books: &Books) {
        self.n_wanted.store(books.n_wanted(), Ordering::Relaxed);
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        // Held only for statements on plain data. No connection is queried under it.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    /// Returns the number of connections that should close.
    fn n_wanted(&self) -> usize {
        self.seats.n_waiting().max(self.seats.n_surplus())
    }
}

fn bounds(rules: &config::PoolConfig) -> PermitLimits {
    PermitLimits {
        size: rules.size,
        reserve: rules.reserve_size,
        reserve_after: rules.reserve_timeout,
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        {
            let mut books = self.roster.books();
            books.guests.remove(&self.number);
            books.seats.release(self.holder);
        }
        self.roster.seat_who_waits();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // A request with a permit has left the queue already.
        let waiting = {
            let mut books = self.roster.books();
            books.seats.leave(self.ticket);
            self.roster.post(&books);
            books.waiting.remove(&self.ticket)
        };
        drop(waiting);
    }
}

#[cfg(test)]
mod tests;
