//! A bounded number of places that can be taken away while they are idle: connections, streams.
//!
//! The largest holder makes room for a newcomer: it loses a place that was not proven in its first
//! moments, else the one that was idle for the longest. A newcomer of the largest account never
//! displaces another account's place.
//!
//! ```text
//!   0 ──────────── max ─────────────── max + reserve ─────────────── max + 2 × reserve
//!   all            accounts that hold less than their share          on probation
//! ```
//!
//! A newcomer without room is on probation, if the limit allows it. The caller then serves only
//! what operators and probes need, and refuses anything else unless [`EvictablePermit::confirm`]
//! finds room.
//!
//! Use is recorded in atomics. The table is locked for each arrival and departure, and searched
//! only at the bound.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Poll, Waker},
};

use futures_util::task::AtomicWaker;
use tokio::time::Instant;

use crate::{
    capacity_holder::{Account, AccountMember, Holder},
    config::defaults,
};

/// The limits on the number of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionBounds {
    /// The limit for all accounts.
    pub max: usize,
    /// The extra places for accounts below their share, and again as many on probation.
    pub reserve: usize,
}

/// A bounded number of places that can be taken away while they are idle.
#[derive(Debug)]
pub struct Evictables {
    bounds: EvictionBounds,
    started: Instant,
    table: Mutex<Table>,
}

/// The places that were not evicted. At the bound, each newcomer causes a look at thousands of
/// them: they are grouped by account and member, so that the sizes of these need no search.
#[derive(Debug, Default)]
struct Table {
    accounts: HashMap<Account, Places>,
    n_kept: usize,
    n_on_probation: usize,
    n_numbers: u64,
}

/// The places of one account.
#[derive(Debug, Default)]
struct Places {
    members: HashMap<AccountMember, HashMap<u64, Entry>>,
    n_kept: usize,
}

#[derive(Debug)]
struct Entry {
    /// The time of its creation, in milliseconds since the start of the table.
    since_ms: u64,
    on_probation: bool,
    usage: Arc<Usage>,
}

/// The use of one place, shared with the table.
#[derive(Debug, Default)]
struct Usage {
    n_running: AtomicUsize,
    /// The time of the last use, in milliseconds since the start of the table.
    used_ms: AtomicU64,
    is_proven: AtomicBool,
    is_evicted: AtomicBool,
    /// Woken when the place is evicted.
    owner: AtomicWaker,
}

/// A place in the table; dropping it gives it back.
#[derive(Debug)]
pub struct EvictablePermit {
    table: Arc<Evictables>,
    holder: Holder,
    number: u64,
    usage: Arc<Usage>,
    on_probation: AtomicBool,
}

/// A use of a place: while it lasts, the place is not evicted.
#[derive(Debug)]
pub struct EvictableUse(Arc<EvictablePermit>);

impl Evictables {
    /// Returns an empty table.
    pub fn new(bounds: EvictionBounds) -> Arc<Self> {
        Arc::new(Self { bounds, started: Instant::now(), table: Mutex::default() })
    }

    /// Returns the limits.
    pub fn bounds(&self) -> EvictionBounds {
        self.bounds
    }

    /// Takes a place for `holder`; without a free one, the largest holder loses its own. `None` if
    /// no room can be made.
    pub fn admit(self: &Arc<Self>, holder: Holder) -> Option<EvictablePermit> {
        self.take(holder, false)
    }

    /// Takes a place as [`Evictables::admit`] does, but on probation if no room can be made.
    pub fn admit_on_probation(self: &Arc<Self>, holder: Holder) -> Option<EvictablePermit> {
        self.take(holder, true)
    }

    fn take(
        self: &Arc<Self>,
        holder: Holder,
        may_be_on_probation: bool,
    ) -> Option<EvictablePermit> {
        let EvictionBounds { max, reserve } = self.bounds;
        let now_ms = self.now_ms();
        let mut table = self.table();
        let has_room = table.make_room(self.bounds, holder, now_ms);
        let may_stay = may_be_on_probation && table.n_kept < max + 2 * reserve;
        if !has_room && !may_stay {
            return None;
        }
        table.n_numbers += 1;
        let (number, usage) = (table.n_numbers, Arc::<Usage>::default());
        usage.used_ms.store(now_ms, Ordering::Relaxed);
        let (on_probation, kept) = (!has_room, Arc::clone(&usage));
        table.insert(holder, number, Entry { since_ms: now_ms, on_probation, usage: kept });
        let (table, on_probation) = (Arc::clone(self), AtomicBool::new(on_probation));
        Some(EvictablePermit { table, holder, number, usage, on_probation })
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Held for statements on plain data.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn insert(&mut self, holder: Holder, number: u64, entry: Entry) {
        self.n_kept += 1;
        self.n_on_probation += usize::from(entry.on_probation);
        let places = self.accounts.entry(holder.account).or_default();
        places.n_kept += 1;
        places.members.entry(holder.member).or_default().insert(number, entry);
    }

    fn remove(&mut self, holder: Holder, number: u64) -> Option<Entry> {
        let places = self.accounts.get_mut(&holder.account)?;
        let member = places.members.get_mut(&holder.member)?;
        let entry = member.remove(&number)?;
        let is_last = member.is_empty();
        if is_last {
            places.members.remove(&holder.member);
        }
        places.n_kept -= 1;
        if places.n_kept == 0 {
            self.accounts.remove(&holder.account);
        }
        self.n_kept -= 1;
        self.n_on_probation -= usize::from(entry.on_probation);
        Some(entry)
    }

    /// Returns whether there is room for a place of `holder`, after an eviction if needed.
    fn make_room(&mut self, bounds: EvictionBounds, holder: Holder, now_ms: u64) -> bool {
        if self.n_kept < bounds.max {
            return true;
        }
        let own = self.accounts.get(&holder.account);
        let n_accounts = self.accounts.len() + usize::from(own.is_none());
        let size = own.map_or(0, |places| places.n_kept) + 1;
        let n_confirmed = self.n_kept - self.n_on_probation;
        if let Some((evicted_holder, number)) = self.evictable(holder, size, now_ms)
            && let Some(evicted) = self.remove(evicted_holder, number)
        {
            evicted.usage.is_evicted.store(true, Ordering::Release);
            evicted.usage.owner.wake();
            if !evicted.on_probation {
                return true;
            }
        }
        let is_below_share = size * n_accounts <= bounds.max;
        n_confirmed < bounds.max + if is_below_share { bounds.reserve } else { 0 }
    }

    /// Returns the place to evict for `newcomer`; `own` is the size of its account with it.
    fn evictable(&self, newcomer: Holder, own: usize, now_ms: u64) -> Option<(Holder, u64)> {
        let grace_ms = u64::try_from(defaults::PROOF_GRACE.as_millis()).unwrap_or(u64::MAX);
        let size = |account: Account, places: &Places| match account == newcomer.account {
            true => own,
            false => places.n_kept,
        };
        let large = self
            .accounts
            .iter()
            .map(|(account, places)| (*account, size(*account, places), places));
        let members =
            large.filter(|(_, size, _)| *size >= own).flat_map(|(account, size, places)| {
                places.members.iter().map(move |(member, entries)| {
                    let holder = Holder { account, member: *member };
                    let n_entries = entries.len() + usize::from(holder == newcomer);
                    (holder, std::cmp::Reverse((size, n_entries)), entries)
                })
            });
        let entries = members.flat_map(|(holder, largest, entries)| {
            entries.iter().map(move |(number, entry)| (holder, largest, *number, entry))
        });
        let idle = entries.filter(|(.., entry)| entry.usage.n_running.load(Ordering::Acquire) == 0);
        let first = idle.min_by_key(|(_, largest, number, entry)| {
            let is_proven = entry.usage.is_proven.load(Ordering::Relaxed);
            let is_new = now_ms.saturating_sub(entry.since_ms) < grace_ms;
            let used_ms = entry.usage.used_ms.load(Ordering::Relaxed);
            (*largest, is_proven || is_new, used_ms, *number)
        });
        first.map(|(holder, _, number, _)| (holder, number))
    }
}

impl EvictablePermit {
    /// Starts a use, which lasts until the returned value is dropped.
    pub fn run(self: &Arc<Self>) -> EvictableUse {
        self.usage.n_running.fetch_add(1, Ordering::AcqRel);
        EvictableUse(Arc::clone(self))
    }

    /// Records a use that is already over.
    pub fn touch(&self) {
        self.usage.used_ms.store(self.table.now_ms(), Ordering::Relaxed);
    }

    /// Returns whether the place is in use.
    pub fn is_running(&self) -> bool {
        self.usage.n_running.load(Ordering::Acquire) > 0
    }

    /// Sets whether the place is in use.
    pub fn set_running(&self, is_running: bool) {
        let n_running = usize::from(is_running);
        if self.usage.n_running.swap(n_running, Ordering::AcqRel) > n_running {
            self.touch();
        }
    }

    /// Records that its holder has sent something acceptable.
    pub fn trust(&self) {
        if !self.is_trusted() {
            self.usage.is_proven.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether its holder has sent something acceptable.
    pub fn is_trusted(&self) -> bool {
        self.usage.is_proven.load(Ordering::Relaxed)
    }

    /// Ends the probation if room can be made; `true` if the place was never on probation.
    pub fn confirm(&self) -> bool {
        if !self.on_probation.load(Ordering::Relaxed) {
            return true;
        }
        let now_ms = self.table.now_ms();
        let mut table = self.table.table();
        // Removed for the search, so that it does not compete with itself.
        let Some(mut entry) = table.remove(self.holder, self.number) else { return false };
        entry.on_probation = !table.make_room(self.table.bounds, self.holder, now_ms);
        self.on_probation.store(entry.on_probation, Ordering::Relaxed);
        let is_confirmed = !entry.on_probation;
        table.insert(self.holder, self.number, entry);
        is_confirmed
    }

    /// Waits until the place is evicted. For one waiter at a time. Cancel safe.
    pub async fn evicted(&self) {
        let mut registered: Option<Waker> = None;
        std::future::poll_fn(|context| {
            // A task that is polled often for other reasons registers only once.
            if !registered.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                self.usage.owner.register(context.waker());
                registered = Some(context.waker().clone());
            }
            // Checked after that: an eviction either finds the waker or is seen here.
            if self.is_evicted() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Returns whether the place was evicted.
    pub fn is_evicted(&self) -> bool {
        self.usage.is_evicted.load(Ordering::Acquire)
    }
}

impl Drop for EvictableUse {
    fn drop(&mut self) {
        self.0.touch();
        self.0.usage.n_running.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for EvictablePermit {
    fn drop(&mut self) {
        self.table.table().remove(self.holder, self.number);
    }
}

#[cfg(test)]
mod tests;
