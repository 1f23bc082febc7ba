//! The last entries of something that never ends, in memory, for readers that may follow it.
//!
//! Entries are numbered from 1. A reader asks for the entries after the last one that it has; those
//! that were dropped meanwhile are counted.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::time_format;

/// An entry that a ring can keep. Readers get clones, made while the ring is locked.
pub trait RingEntry: Clone {
    /// Returns the bytes that the entry takes.
    fn n_bytes(&self) -> usize;

    /// Returns the time of the entry, in milliseconds since 1970.
    fn at_ms(&self) -> u64;
}

impl<T: RingEntry> RingEntry for Arc<T> {
    fn n_bytes(&self) -> usize {
        T::n_bytes(self)
    }

    fn at_ms(&self) -> u64 {
        T::at_ms(self)
    }
}

/// The last entries, up to a number and a size.
#[derive(Debug)]
pub struct Ring<T> {
    kept: Mutex<KeptEntries<T>>,
    /// Wakes the readers that wait for an entry.
    added: Notify,
    entries_max: usize,
    bytes_max: usize,
    /// The time of the creation, in milliseconds since 1970.
    started_ms: u64,
}

#[derive(Debug)]
struct KeptEntries<T> {
    entries: VecDeque<T>,
    n_bytes: usize,
    /// The number of entries so far, which is also the number of the newest one.
    n_written: u64,
}

/// The part of a ring that a reader wants.
#[derive(Clone, Copy, Debug)]
pub struct RingQuery {
    /// Only entries at or after this time, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Only entries after the one with this number.
    pub after: Option<u64>,
    /// The largest number of entries: the first ones after `after`, else the last ones.
    pub entries_max: usize,
}

/// A part of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingPage<T> {
    /// The entries, oldest first.
    pub entries: Vec<T>,
    /// The number to ask for the entries after these.
    pub next: u64,
    /// The number of entries after `after` that were dropped before they were read.
    pub n_lost: u64,
    /// Entries from before the oldest kept one may match, too.
    pub is_cut: bool,
}

impl<T: RingEntry> Ring<T> {
    /// Returns an empty ring for at most so many entries and bytes.
    pub fn new(entries_max: usize, bytes_max: usize) -> Self {
        // Memory that no entry has used is not resident.
        let entries = VecDeque::with_capacity(entries_max.saturating_add(1));
        let kept = KeptEntries { entries, n_bytes: 0, n_written: 0 };
        let (kept, added) = (Mutex::new(kept), Notify::new());
        Self { kept, added, entries_max, bytes_max, started_ms: time_format::now_ms() }
    }

    /// Adds an entry in place of the oldest ones.
    pub fn push(&self, entry: T) {
        let mut kept = self.kept();
        kept.n_written += 1;
        kept.n_bytes += entry.n_bytes();
        kept.entries.push_back(entry);
        while kept.entries.len() > self.entries_max || kept.n_bytes > self.bytes_max {
            let Some(dropped) = kept.entries.pop_front() else { break };
            kept.n_bytes -= dropped.n_bytes();
        }
        drop(kept);
        self.added.notify_waiters();
    }

    /// Returns the entries of `query` that `is_wanted`.
    pub fn read(&self, query: RingQuery, is_wanted: impl Fn(&T) -> bool) -> RingPage<T> {
        let kept = self.kept();
        let n_dropped = kept.n_written - kept.entries.len() as u64;
        let is_wanted = |entry: &&T| {
            query.since_ms.is_none_or(|since_ms| entry.at_ms() >= since_ms) && is_wanted(entry)
        };
        if let Some(after) = query.after {
            let (n_lost, entries) = kept.after(after);
            let mut page =
                RingPage { entries: Vec::new(), next: kept.n_written, n_lost, is_cut: false };
            for (number, entry) in entries {
                if !is_wanted(&entry) {
                    continue;
                }
                if page.entries.len() == query.entries_max {
                    page.next = number - 1;
                    break;
                }
                page.entries.push(entry.clone());
            }
            return page;
        }
        let wanted = kept.entries.iter().rev().filter(is_wanted);
        let mut entries: Vec<_> = wanted.take(query.entries_max).cloned().collect();
        entries.reverse();
        let oldest_ms = kept.entries.front().map_or(0, |entry| entry.at_ms());
        let may_be_older = query.since_ms.is_none_or(|since_ms| since_ms < oldest_ms);
        let is_cut = n_dropped > 0 && may_be_older && entries.len() < query.entries_max;
        RingPage { entries, next: kept.n_written, n_lost: 0, is_cut }
    }

    /// Shows `visit` each entry after the one with the number `after`, while the ring is locked.
    /// Returns the number of the newest entry, and how many were dropped before they were read.
    pub fn visit_after(&self, after: u64, mut visit: impl FnMut(&T)) -> (u64, u64) {
        let kept = self.kept();
        let (n_lost, entries) = kept.after(after);
        entries.for_each(|(_, entry)| visit(entry));
        (kept.n_written, n_lost)
    }

    /// Waits for an entry after the one with the number `after`. Cancel safe.
    pub async fn wait_after(&self, after: u64) {
        loop {
            // Made before the check: it sees every entry that is added behind it.
            let added = self.added.notified();
            if self.n_written() > after {
                return;
            }
            added.await;
        }
    }

    /// Returns the time from which on the ring has had entries, in milliseconds since 1970.
    pub fn started_ms(&self) -> u64 {
        self.started_ms
    }

    /// Returns the largest number of entries.
    pub fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// Returns the number of the newest entry.
    pub fn n_written(&self) -> u64 {
        self.kept().n_written
    }

    /// Returns whether a kept entry `is_wanted`.
    pub fn has(&self, is_wanted: impl Fn(&T) -> bool) -> bool {
        self.kept().entries.iter().any(is_wanted)
    }

    fn kept(&self) -> MutexGuard<'_, KeptEntries<T>> {
        // Held only for statements on plain data.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> KeptEntries<T> {
    /// Returns the entries after the one with the number `after`, with their numbers, and how many
    /// were dropped before.
    fn after(&self, after: u64) -> (u64, impl Iterator<Item = (u64, &T)>) {
        let n_dropped = self.n_written - self.entries.len() as u64;
        let n_read = usize::try_from(after.saturating_sub(n_dropped)).unwrap_or(usize::MAX);
        let n_read = n_read.min(self.entries.len());
        let first = n_dropped + n_read as u64 + 1;
        (n_dropped.saturating_sub(after), (first..).zip(self.entries.range(n_read..)))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    impl RingEntry for u64 {
        fn n_bytes(&self) -> usize {
            8
        }

        fn at_ms(&self) -> u64 {
            *self
        }
    }

    fn of(
        entries: impl IntoIterator<Item = u64>,
        entries_max: usize,
        bytes_max: usize,
    ) -> Ring<u64> {
        let ring = Ring::new(entries_max, bytes_max);
        entries.into_iter().for_each(|entry| ring.push(entry));
        ring
    }

    const ALL: RingQuery = RingQuery { since_ms: None, after: None, entries_max: usize::MAX };

    fn read(ring: &Ring<u64>, query: RingQuery) -> Vec<u64> {
        ring.read(query, |_| true).entries
    }

    #[test]
    fn a_ring_keeps_the_last_entries_up_to_a_number_and_a_size() {
        assert_eq!(read(&of(1..=9, 3, usize::MAX), ALL), [7, 8, 9]);
        assert_eq!(read(&of(1..=9, 100, 17), ALL), [8, 9]);
        assert!(read(&of(1..=9, 100, 7), ALL).is_empty());
    }

    #[test]
    fn a_page_has_the_first_entries_after_a_number_and_else_the_last_ones() {
        let ring = of(1..=9, 6, usize::MAX);
        assert_eq!(read(&ring, RingQuery { entries_max: 2, ..ALL }), [8, 9]);
        assert_eq!(read(&ring, RingQuery { since_ms: Some(8), ..ALL }), [8, 9]);
        let page = ring.read(RingQuery { after: Some(1), entries_max: 2, ..ALL }, |n| n % 2 == 1);
        assert_eq!((page.entries, page.next, page.n_lost), (vec![5, 7], 8, 2));
        let page = ring.read(RingQuery { after: Some(8), ..ALL }, |_| true);
        assert_eq!((page.entries, page.next, page.n_lost), (vec![9], 9, 0));
        assert!(ring.has(|entry| *entry == 4) && !ring.has(|entry| *entry == 3));
    }

    #[test]
    fn a_visitor_sees_the_entries_after_a_number() {
        let ring = of(1..=9, 6, usize::MAX);
        for (after, n_lost, seen) in
            [(1, 2, vec![4, 5, 6, 7, 8, 9]), (8, 0, vec![9]), (9, 0, vec![])]
        {
            let mut visited = Vec::new();
            assert_eq!(ring.visit_after(after, |entry| visited.push(*entry)), (9, n_lost));
            assert_eq!(visited, seen);
        }
    }

    #[test]
    fn a_page_says_whether_dropped_entries_may_belong_to_it() {
        let ring = of(1..=9, 6, usize::MAX);
        let is_cut = |query| ring.read(query, |_| true).is_cut;
        assert!(is_cut(ALL) && is_cut(RingQuery { since_ms: Some(3), ..ALL }));
        assert!(!is_cut(RingQuery { since_ms: Some(4), ..ALL }));
        assert!(!is_cut(RingQuery { entries_max: 6, ..ALL }));
        assert!(!of(1..=3, 6, usize::MAX).read(ALL, |_| true).is_cut);
    }

    #[test]
    fn a_reader_waits_for_the_next_entry() {
        let ring = of([1], 3, usize::MAX);
        assert_eq!(ring.wait_after(0).now_or_never(), Some(()));
        assert_eq!(ring.wait_after(1).now_or_never(), None);
    }
}
