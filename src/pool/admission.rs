//! Who has a seat, who waits for one, and who has to go.
//!
//! Drives [`super::permits`] and [`super::idle`]: one roster for all servers together, and one for
//! each server that declares how many connections it may have for its clients.

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
    idle::{self, IdleConnection},
    lifecycle::LifecycleState,
    permits::{PermitLimits, PermitQueue, PermitReply},
    status::{PoolStatus, ServerConnections},
};
use crate::{config, holder::Holder, name::ServerName, share::QueueTicket};

/// A connection that nobody uses, by the number of its seat.
type IdleGuest = IdleConnection<(u64, Arc<dyn Evictable>)>;

/// Who can take a seat.
pub(super) trait Evictable: fmt::Debug + Send + Sync {
    /// Returns what is to be known of the connection if nobody uses it.
    fn idle(&self) -> Option<IdleConnection<()>>;

    /// Closes the connection, which gives the seat back, at its leisure unless somebody waits for the
    /// seat; `false` if somebody uses it again.
    fn put_away(&self, is_awaited: bool) -> bool;

    /// Returns whose connection it is, its state, and how many requests hold it.
    fn holding(&self) -> (ServerName, LifecycleState, usize);
}

/// Who has a seat, and who waits for one.
#[derive(Debug)]
pub(super) struct PermitAdmission {
    books: Mutex<Books>,
    /// How many are to go: looked at when a connection becomes idle.
    n_wanted: AtomicUsize,
    n_evicted: AtomicU64,
    n_swept: AtomicU64,
    n_illegal: AtomicU64,
    /// Wakes the sweep before its time.
    woken: Notify,
    /// Tells those who wait that they may have to wait longer, or less long.
    rules_changed: Notify,
    /// The servers with a connection that was not there before.
    arrivals: Mutex<BTreeSet<ServerName>>,
    arrived: Notify,
    started: Instant,
    /// When the sweep looks again, in milliseconds since `started`.
    sweeps_at_ms: AtomicU64,
}

#[derive(Debug)]
struct Books {
    seats: PermitQueue,
    min: usize,
    /// How long a connection may stay that nobody uses, where nothing else is declared.
    stay: Option<Duration>,
    guests: HashMap<u64, Sitting>,
    waiting: HashMap<QueueTicket, Waiting>,
    n_seated: u64,
}

#[derive(Debug)]
struct Sitting {
    guest: Weak<dyn Evictable>,
    holder: Holder,
    /// It was told to go.
    is_leaving: bool,
}

impl Sitting {
    fn stays(&self) -> bool {
        !self.is_leaving
    }
}

/// What there is to be seen of those who were not told to go.
struct Look {
    idle: Vec<IdleGuest>,
    /// In use, or being made.
    n_busy: usize,
    /// Closed already: one that has a seat elsewhere too may have been told to go there.
    n_closed: usize,
}

/// What came of telling one to go.
enum Told {
    /// It goes.
    Goes,
    /// It was told already.
    IsGoing,
    /// Others go.
    Enough,
}

#[derive(Debug)]
struct Waiting {
    guest: Weak<dyn Evictable>,
    granted: oneshot::Sender<ConnectionPermit>,
}

/// A seat; dropping it gives it back.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    roster: Arc<PermitAdmission>,
    number: u64,
    holder: Holder,
}

/// A place in the queue; dropping it leaves the queue.
struct Place<'a> {
    roster: &'a Arc<PermitAdmission>,
    ticket: QueueTicket,
}

impl PermitAdmission {
    /// Returns an empty roster for all servers together.
    pub(super) fn new(rules: &config::PoolConfig) -> Arc<Self> {
        Self::with(bounds(rules), rules.min_size, rules.idle_timeout)
    }

    /// Returns an empty roster for the connections of one server.
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

    /// Applies other rules; whoever is too many goes when nobody uses it any more.
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

    /// Returns how long a connection may stay that nobody uses, where nothing else is declared.
    pub(super) fn default_idle_limit(&self) -> Option<Duration> {
        self.books().stay
    }

    /// Waits for a seat for `holder`, as long as it takes. The connection that was used longest ago makes room,
    /// as soon as there is one that nobody uses.
    ///
    /// # Cancel safety
    ///
    /// Safe: whoever leaves gives its place in the queue to the next.
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
                    // Its sender leaves the books only with a seat in hand, or with this place.
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

    /// Seats those who may sit now.
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
            // Whoever has left meanwhile gives it back.
            drop(granted.send(seat));
        }
    }

    /// Has connections go that nobody uses, one for each that waits or is too many.
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
            let Some((number, guest)) = idle::evicted(idle, n_busy, min) else { return };
            // Before it goes: whoever looks meanwhile is not to have another one go instead of it.
            match self.books().tell_to_go(number, n_closed) {
                Told::Goes => {}
                Told::IsGoing => continue,
                Told::Enough => return,
            }
            if guest.put_away(true) {
                self.n_evicted.fetch_add(1, Ordering::Relaxed);
                tracing::info!(mcp_server = %guest.holding().0, "connection makes room for another");
            } else {
                // It is used again at this moment, and not idle when looked at the next time.
                self.mark(number, false);
            }
        }
    }

    /// Closes connections when their time is over, for as long as this is polled.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn run_idle_sweep(self: Arc<Self>) {
        loop {
            // Told before it is looked, so that what becomes idle meanwhile is not missed: it is
            // whatever its time, as long as it is not known when it is looked again.
            let woken = self.woken.notified();
            self.sweeps_at_ms.store(u64::MAX, Ordering::Relaxed);
            let Look { idle, n_busy, .. } = self.look();
            let (over, next) = idle::expired(idle, n_busy, self.books().min, Instant::now());
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

    /// Takes note that nobody uses a connection any more, whose time is over at `ends`.
    pub(super) fn became_idle(self: &Arc<Self>, ends: Option<Instant>) {
        if self.n_wanted.load(Ordering::Relaxed) > 0 {
            self.make_room();
        }
        if let Some(ends) = ends
            && self.ms(ends) < self.sweeps_at_ms.load(Ordering::Relaxed)
        {
            self.woken.notify_one();
        }
    }

    /// Returns whose connection is to have the next seat, if one is waited for.
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

    /// Takes note that a server has a connection that was not there before.
    pub(super) fn note_arrival(&self, server: &ServerName) {
        self.arrivals().insert(server.clone());
        self.arrived.notify_one();
    }

    /// Waits until there are such servers, and returns them.
    ///
    /// # Cancel safety
    ///
    /// Safe: they are returned the next time.
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
        // Held for single statements on plain data.
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a change of state that was refused.
    pub(super) fn illegal(&self) {
        self.n_illegal.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns who holds the connections.
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

    /// Returns the state for status output.
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

    /// Returns how many there may be without waiting.
    pub(super) fn size(&self) -> usize {
        self.books().seats.bounds().size
    }

    /// Looks at those who were not told to go.
    fn look(&self) -> Look {
        let mut look = Look { idle: Vec::new(), n_busy: 0, n_closed: 0 };
        // Guests are asked without the books: they may be about to open them.
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

    /// Returns those of who sits that are meant.
    fn guests(&self, is_meant: impl Fn(&Sitting) -> bool) -> Vec<(u64, Arc<dyn Evictable>)> {
        let books = self.books();
        let sitting = books.guests.iter().filter(|(_, sitting)| is_meant(sitting));
        sitting.filter_map(|(number, sitting)| Some((*number, sitting.guest.upgrade()?))).collect()
    }

    fn mark(&self, number: u64, is_leaving: bool) {
        if let Some(sitting) = self.books().guests.get_mut(&number) {
            sitting.is_leaving = is_leaving;
        }
    }

    /// Takes note of how many are to go.
    fn post(&self, books: &Books) {
        self.n_wanted.store(books.n_wanted(), Ordering::Relaxed);
    }

    fn ms(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.started);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        // Held for statements on plain data; no guest is asked meanwhile.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    /// Returns for how many others there is to be room.
    fn n_wanted(&self) -> usize {
        self.seats.n_waiting().max(self.seats.n_surplus())
    }

    /// Tells whether the seat of this number is of an account that holds more than its share.
    fn is_above_share(&self, number: u64) -> bool {
        self.guests.get(&number).is_some_and(|sitting| self.seats.is_above_share(sitting.holder))
    }

    /// Tells whether fewer go than are to; `n_closed` go without having been told so by us.
    fn is_short(&self, n_closed: usize) -> bool {
        let n_leaving = self.guests.values().filter(|guest| guest.is_leaving).count();
        n_leaving + n_closed < self.n_wanted()
    }

    /// Marks one as told to go, unless it was, or enough go already.
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
        // One who was seated has left the queue already.
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
