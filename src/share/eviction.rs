//! A bounded number of things that can be taken away while they are idle: connections, streams.
//!
//! The largest holder makes room for a newcomer: it loses the one that has proved nothing in its
//! first moments, else the one that was left idle for the longest. A newcomer whose own account is
//! the largest never displaces another account's.
//!
//! ```text
//!   0 ──────────── max ─────────────── max + reserve ─────────────── max + 2 × reserve
//!   all            accounts that hold less than their share          on probation
//! ```
//!
//! A newcomer for which no room can be made is on probation where it may be: the caller serves it
//! what operators and probes need, and turns anything else away unless [`EvictablePermit::confirm`]
//! finds room.
//!
//! Use is noted in atomics. The table is locked when one comes or goes, and looked through only at
//! the bound.

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
    config::defaults,
    holder::{Account, Holder},
};

/// How many there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionBounds {
    /// For all.
    pub max: usize,
    /// For accounts that hold less than their share, and as many again on probation.
    pub reserve: usize,
}

/// A bounded number of things that can be taken away while they are idle.
#[derive(Debug)]
pub struct Evictables {
    bounds: EvictionBounds,
    started: Instant,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Those that were not evicted.
    kept: HashMap<u64, Entry>,
    n_numbers: u64,
}

#[derive(Debug)]
struct Entry {
    holder: Holder,
    /// Milliseconds since the start of the table.
    since_ms: u64,
    on_probation: bool,
    usage: Arc<Usage>,
}

/// The use of one thing, as the table sees it.
#[derive(Debug, Default)]
struct Usage {
    n_running: AtomicUsize,
    /// When it was used last, in milliseconds since the start of the table.
    used_ms: AtomicU64,
    is_proven: AtomicBool,
    is_evicted: AtomicBool,
    /// Woken when it is evicted.
    owner: AtomicWaker,
}

/// A place in the table; dropping it gives it back.
#[derive(Debug)]
pub struct EvictablePermit {
    table: Arc<Evictables>,
    number: u64,
    usage: Arc<Usage>,
    on_probation: AtomicBool,
}

/// A use of a place: it is not evicted meanwhile.
#[derive(Debug)]
pub struct EvictableUse(Arc<EvictablePermit>);

impl Evictables {
    /// Returns an empty table.
    pub fn new(bounds: EvictionBounds) -> Arc<Self> {
        Arc::new(Self { bounds, started: Instant::now(), table: Mutex::default() })
    }

    /// Returns how many there may be.
    pub fn bounds(&self) -> EvictionBounds {
        self.bounds
    }

    /// Takes a place for `holder`, from the largest holder where none is free; `None` where no room
    /// can be made.
    pub fn admit(self: &Arc<Self>, holder: Holder) -> Option<EvictablePermit> {
        self.take(holder, false)
    }

    /// As [`Evictables::admit`], on probation where no room can be made.
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
        let may_stay = may_be_on_probation && table.kept.len() < max + 2 * reserve;
        if !has_room && !may_stay {
            return None;
        }
        table.n_numbers += 1;
        let (number, usage) = (table.n_numbers, Arc::<Usage>::default());
        usage.used_ms.store(now_ms, Ordering::Relaxed);
        let (on_probation, kept) = (!has_room, Arc::clone(&usage));
        table.kept.insert(number, Entry { holder, since_ms: now_ms, on_probation, usage: kept });
        let (table, on_probation) = (Arc::clone(self), AtomicBool::new(on_probation));
        Some(EvictablePermit { table, number, usage, on_probation })
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
    /// Tells whether there is room for one more of `holder`, after an eviction if that is needed.
    fn make_room(&mut self, bounds: EvictionBounds, holder: Holder, now_ms: u64) -> bool {
        if self.kept.len() < bounds.max {
            return true;
        }
        let mut sizes = HashMap::<Account, usize>::new();
        let mut members = HashMap::<Holder, usize>::new();
        let mut n_confirmed = 0;
        for entry in self.kept.values() {
            n_confirmed += usize::from(!entry.on_probation);
            *sizes.entry(entry.holder.account).or_default() += 1;
            *members.entry(entry.holder).or_default() += 1;
        }
        *members.entry(holder).or_default() += 1;
        let size = sizes.entry(holder.account).or_default();
        *size += 1;
        let size = *size;
        if let Some(number) = self.evictable(holder, &sizes, &members, now_ms)
            && let Some(evicted) = self.kept.remove(&number)
        {
            evicted.usage.is_evicted.store(true, Ordering::Release);
            evicted.usage.owner.wake();
            if !evicted.on_probation {
                return true;
            }
        }
        let is_below_share = size * sizes.len() <= bounds.max;
        n_confirmed < bounds.max + if is_below_share { bounds.reserve } else { 0 }
    }

    /// Returns the one that makes room for `newcomer`, whose account and itself are counted in `sizes`
    /// and `members`.
    fn evictable(
        &self,
        newcomer: Holder,
        sizes: &HashMap<Account, usize>,
        members: &HashMap<Holder, usize>,
        now_ms: u64,
    ) -> Option<u64> {
        let size = |account| sizes.get(&account).copied().unwrap_or_default();
        let own = size(newcomer.account);
        let grace_ms = u64::try_from(defaults::PROOF_GRACE.as_millis()).unwrap_or(u64::MAX);
        let idle = self.kept.iter().filter(|(_, entry)| {
            let is_idle = entry.usage.n_running.load(Ordering::Acquire) == 0;
            let account = entry.holder.account;
            is_idle && (account == newcomer.account || size(account) >= own)
        });
        let first = idle.min_by_key(|(number, entry)| {
            let is_proven = entry.usage.is_proven.load(Ordering::Relaxed);
            let is_new = now_ms.saturating_sub(entry.since_ms) < grace_ms;
            let of_member = members.get(&entry.holder).copied().unwrap_or_default();
            let used_ms = entry.usage.used_ms.load(Ordering::Relaxed);
            let largest = std::cmp::Reverse((size(entry.holder.account), of_member));
            (largest, is_proven || is_new, used_ms, **number)
        });
        first.map(|(number, _)| *number)
    }
}

impl EvictablePermit {
    /// Notes a use, which lasts until it is dropped.
    pub fn run(self: &Arc<Self>) -> EvictableUse {
        self.usage.n_running.fetch_add(1, Ordering::AcqRel);
        EvictableUse(Arc::clone(self))
    }

    /// Notes a use that is over already.
    pub fn touch(&self) {
        self.usage.used_ms.store(self.table.now_ms(), Ordering::Relaxed);
    }

    /// Tells whether something runs.
    pub fn is_running(&self) -> bool {
        self.usage.n_running.load(Ordering::Acquire) > 0
    }

    /// Notes whether something runs.
    pub fn set_running(&self, is_running: bool) {
        let n_running = usize::from(is_running);
        if self.usage.n_running.swap(n_running, Ordering::AcqRel) > n_running {
            self.touch();
        }
    }

    /// Notes that its holder has sent something acceptable.
    pub fn prove(&self) {
        if !self.is_proven() {
            self.usage.is_proven.store(true, Ordering::Relaxed);
        }
    }

    /// Tells whether its holder has sent something acceptable.
    pub fn is_proven(&self) -> bool {
        self.usage.is_proven.load(Ordering::Relaxed)
    }

    /// Takes it off probation, if room can be made; `true` where it never was on probation.
    pub fn confirm(&self) -> bool {
        if !self.on_probation.load(Ordering::Relaxed) {
            return true;
        }
        let now_ms = self.table.now_ms();
        let mut table = self.table.table();
        // Out of its own way meanwhile.
        let Some(mut entry) = table.kept.remove(&self.number) else { return false };
        entry.on_probation = !table.make_room(self.table.bounds, entry.holder, now_ms);
        self.on_probation.store(entry.on_probation, Ordering::Relaxed);
        let is_confirmed = !entry.on_probation;
        table.kept.insert(self.number, entry);
        is_confirmed
    }

    /// Waits until it is taken away. For one at a time.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn evicted(&self) {
        let mut registered: Option<Waker> = None;
        std::future::poll_fn(|context| {
            // A task that is polled for other reasons all the time registers once.
            if !registered.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                self.usage.owner.register(context.waker());
                registered = Some(context.waker().clone());
            }
            // Looked at after that: an eviction either finds the waker or is seen here.
            if self.is_evicted() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Tells whether it was taken away.
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
        self.table.table().kept.remove(&self.number);
    }
}

#[cfg(test)]
mod tests;
