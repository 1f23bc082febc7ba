//! The accounts of a memory budget: what is in use, and who waits for more.
//!
//! Pure: a driver takes its decisions to the askers. An asker that waits may hold bytes of its own, as
//! that of an answer holds its request. So it may wait only while somebody who does not wait holds
//! bytes: those come back, whatever the others do. Where all bytes belong to askers that wait, the
//! newest of them is refused.
//!
//! No account takes everything. One that has more than a part of the budget leaves as large a part to
//! those that have less, and to bytes of no account:
//!
//! ```text
//!   0 ──────────────────── max - max / divisor ──────────────────── max
//!       for all                           for those with at most max / divisor
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{config::defaults::MEMORY_KEPT_DIVISOR, holder::Account};

/// A party that waits for bytes.
pub(super) trait Asker {
    /// Tells whether it has stopped waiting.
    fn is_gone(&self) -> bool;
}

/// The accounts of a memory budget.
#[derive(Debug)]
pub(super) struct Ledger<A> {
    max: usize,
    used: usize,
    peak: usize,
    n_refused: u64,
    /// The bytes that were ever given back.
    freed: u64,
    /// The bytes of each account that has any.
    shares: BTreeMap<Account, usize>,
    /// The oldest first.
    queue: VecDeque<Waiting<A>>,
}

#[derive(Debug)]
struct Waiting<A> {
    asker: A,
    account: Option<Account>,
    wanted: usize,
    /// The bytes that it has already, and gives back only when its wait is over.
    holds: usize,
}

/// A decision about an asker that has waited.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision<A> {
    /// It has as many bytes now, for the account that it has named.
    Granted(A, Option<Account>, usize),
    /// It gets none of those that it wanted, for the account that it has named.
    Refused(A, Option<Account>, usize),
}

impl<A: Asker> Ledger<A> {
    /// Returns the accounts of a budget of `max` bytes, none of which is in use.
    pub(super) const fn new(max: usize) -> Self {
        Self {
            max,
            used: 0,
            peak: 0,
            n_refused: 0,
            freed: 0,
            shares: BTreeMap::new(),
            queue: VecDeque::new(),
        }
    }

    /// Takes bytes for `account` if they are free.
    pub(super) fn take(&mut self, account: Option<Account>, wanted: usize) -> bool {
        let bound = self.bound(account, wanted);
        let fits = self.used.checked_add(wanted).is_some_and(|used| used <= bound);
        if fits {
            self.used += wanted;
            self.peak = self.peak.max(self.used);
            self.add_to_share(account, wanted);
        }
        fits
    }

    /// Counts bytes that are in use already for `account`, if it may have them.
    pub(super) fn attribute(&mut self, account: Account, n_bytes: usize) -> bool {
        let fits = self.used <= self.bound(Some(account), n_bytes);
        if fits {
            self.add_to_share(Some(account), n_bytes);
        }
        fits
    }

    /// Has `asker`, which holds `holds` bytes, wait for `wanted` more.
    pub(super) fn wait(
        &mut self,
        asker: A,
        account: Option<Account>,
        wanted: usize,
        holds: usize,
    ) -> Vec<Decision<A>> {
        self.queue.push_back(Waiting { asker, account, wanted, holds });
        self.decide()
    }

    /// Takes bytes of `account` back.
    pub(super) fn give_back(
        &mut self,
        account: Option<Account>,
        n_bytes: usize,
    ) -> Vec<Decision<A>> {
        self.used -= n_bytes;
        self.freed += n_bytes as u64;
        if let Some(account) = account {
            self.take_from_share(account, n_bytes);
        }
        self.decide_if_asked()
    }

    /// Counts so many bytes for `account` no longer.
    pub(super) fn release(&mut self, account: Account, n_bytes: usize) -> Vec<Decision<A>> {
        self.take_from_share(account, n_bytes);
        self.decide_if_asked()
    }

    fn add_to_share(&mut self, account: Option<Account>, n_bytes: usize) {
        if let Some(account) = account {
            *self.shares.entry(account).or_default() += n_bytes;
        }
    }

    fn take_from_share(&mut self, account: Account, n_bytes: usize) {
        let Some(share) = self.shares.get_mut(&account) else { return };
        *share -= n_bytes;
        if *share == 0 {
            self.shares.remove(&account);
        }
    }

    /// Returns the most bytes that may be in use where `account` gets `wanted` more of them.
    fn bound(&self, account: Option<Account>, wanted: usize) -> usize {
        let Some(account) = account else { return self.max };
        let kept = self.max / MEMORY_KEPT_DIVISOR;
        if self.share(account).saturating_add(wanted) <= kept { self.max } else { self.max - kept }
    }

    fn decide_if_asked(&mut self) -> Vec<Decision<A>> {
        if self.queue.is_empty() { Vec::new() } else { self.decide() }
    }

    /// Changes the size of the budget. What is in use beyond it stays until it is given back.
    pub(super) fn resize(&mut self, max: usize) -> Vec<Decision<A>> {
        self.max = max;
        self.decide()
    }

    /// Counts a refusal.
    pub(super) fn refused(&mut self) {
        self.n_refused += 1;
    }

    /// Returns the bytes in use, the most that ever were, the size of the budget, and how often bytes
    /// were refused.
    pub(super) fn figures(&self) -> (usize, usize, usize, u64) {
        (self.used, self.peak, self.max, self.n_refused)
    }

    /// Returns the bytes of an account.
    pub(super) fn share(&self, account: Account) -> usize {
        self.shares.get(&account).copied().unwrap_or_default()
    }

    /// Returns the bytes that were ever given back.
    pub(super) fn freed(&self) -> u64 {
        self.freed
    }

    /// Returns how many wait.
    pub(super) fn n_waiting(&self) -> usize {
        self.queue.len()
    }

    /// Serves those that wait, as far as there is room; those that have gone are forgotten.
    pub(super) fn decide(&mut self) -> Vec<Decision<A>> {
        let mut decisions = Vec::new();
        self.queue.retain(|waiting| !waiting.asker.is_gone());
        let (mut n_skipped, mut passed_over) = (0, BTreeSet::new());
        while let Some(&Waiting { account, wanted, .. }) = self.queue.get(n_skipped) {
            // Those of one account are served in their order.
            if account.is_some_and(|account| passed_over.contains(&account)) {
                n_skipped += 1;
                continue;
            }
            let bound = self.bound(account, wanted);
            let is_possible = wanted <= bound;
            if is_possible && !self.take(account, wanted) {
                // It is next, and what is given back is kept for it.
                if bound == self.max {
                    break;
                }
                // It is one of an account that has much, and others are not to wait for it.
                passed_over.extend(account);
                n_skipped += 1;
                continue;
            }
            let Some(Waiting { asker, .. }) = self.queue.remove(n_skipped) else { break };
            decisions.push(match is_possible {
                true => Decision::Granted(asker, account, wanted),
                false => Decision::Refused(asker, account, wanted),
            });
        }
        while self.waiters_hold() >= self.used
            && let Some(Waiting { asker, account, wanted, .. }) = self.queue.pop_back()
        {
            decisions.push(Decision::Refused(asker, account, wanted));
        }
        decisions
    }

    fn waiters_hold(&self) -> usize {
        self.queue.iter().map(|waiting| waiting.holds).sum()
    }
}

#[cfg(test)]
mod tests;
