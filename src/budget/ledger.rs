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

use std::collections::{BTreeMap, BTreeSet};

use crate::{config::defaults::MEMORY_KEPT_DIVISOR, holder::Account};

/// The accounts of a memory budget.
#[derive(Debug)]
pub(super) struct AccountLedger<A> {
    max: usize,
    used: usize,
    peak: usize,
    n_refused: u64,
    /// The bytes that were ever given back.
    freed: u64,
    /// The bytes of each account that has any.
    shares: BTreeMap<Account, usize>,
    /// Those of each account that wait, by their tickets: the oldest first.
    queues: BTreeMap<Option<Account>, BTreeMap<u64, Waiting<A>>>,
    /// The bytes that all of them hold.
    waiters_hold: usize,
    n_tickets: u64,
}

/// A place in the queue of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LedgerTicket {
    number: u64,
    account: Option<Account>,
}

#[derive(Debug)]
struct Waiting<A> {
    asker: A,
    wanted: usize,
    /// The bytes that it has already, and gives back only when its wait is over.
    holds: usize,
}

/// A decision about an asker that has waited.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LedgerDecision<A> {
    /// It has as many bytes now, for the account that it has named.
    Granted(A, Option<Account>, usize),
    /// It gets none of those that it wanted, for the account that it has named.
    Refused(A, Option<Account>, usize),
}

impl<A> AccountLedger<A> {
    /// Returns the accounts of a budget of `max` bytes, none of which is in use.
    pub(super) const fn new(max: usize) -> Self {
        Self {
            max,
            used: 0,
            peak: 0,
            n_refused: 0,
            freed: 0,
            shares: BTreeMap::new(),
            queues: BTreeMap::new(),
            waiters_hold: 0,
            n_tickets: 0,
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
    ) -> (LedgerTicket, Vec<LedgerDecision<A>>) {
        let ticket = LedgerTicket { number: self.n_tickets, account };
        self.n_tickets += 1;
        self.waiters_hold += holds;
        let queue = self.queues.entry(account).or_default();
        queue.insert(ticket.number, Waiting { asker, wanted, holds });
        (ticket, self.decide())
    }

    /// Ends a wait, if it is not over yet.
    pub(super) fn withdraw(&mut self, ticket: LedgerTicket) -> Vec<LedgerDecision<A>> {
        if self.leave(ticket).is_some() { self.decide() } else { Vec::new() }
    }

    /// Takes bytes of `account` back.
    pub(super) fn free(
        &mut self,
        account: Option<Account>,
        n_bytes: usize,
    ) -> Vec<LedgerDecision<A>> {
        self.used -= n_bytes;
        self.freed += n_bytes as u64;
        if let Some(account) = account {
            self.take_from_share(account, n_bytes);
        }
        self.decide_if_asked()
    }

    /// Counts so many bytes for `account` no longer.
    pub(super) fn release(&mut self, account: Account, n_bytes: usize) -> Vec<LedgerDecision<A>> {
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

    fn decide_if_asked(&mut self) -> Vec<LedgerDecision<A>> {
        if self.has_waiters() { self.decide() } else { Vec::new() }
    }

    /// Changes the size of the budget. What is in use beyond it stays until it is given back.
    pub(super) fn resize(&mut self, max: usize) -> Vec<LedgerDecision<A>> {
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

    /// Tells whether anybody waits.
    pub(super) fn has_waiters(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Serves those that wait, as far as there is room. It looks at one of each account, and at those
    /// behind the ones that it serves.
    fn decide(&mut self) -> Vec<LedgerDecision<A>> {
        let mut decisions = Vec::new();
        let mut heads: BTreeSet<LedgerTicket> =
            self.queues.keys().filter_map(|account| self.head(*account)).collect();
        while let Some(ticket) = heads.pop_first() {
            let Some(wanted) = self.wanted(ticket) else { continue };
            let account = ticket.account;
            let bound = self.bound(account, wanted);
            let is_possible = wanted <= bound;
            if is_possible && !self.take(account, wanted) {
                // It is next, and what is given back is kept for it.
                if bound == self.max {
                    break;
                }
                // It is one of an account that has much, and others are not to wait for it: only those
                // of its account do, which are served in their order.
                continue;
            }
            let Some(Waiting { asker, .. }) = self.leave(ticket) else { continue };
            heads.extend(self.head(account));
            decisions.push(match is_possible {
                true => LedgerDecision::Granted(asker, account, wanted),
                false => LedgerDecision::Refused(asker, account, wanted),
            });
        }
        while self.waiters_hold >= self.used
            && let Some(newest) = self.newest()
            && let Some(Waiting { asker, wanted, .. }) = self.leave(newest)
        {
            decisions.push(LedgerDecision::Refused(asker, newest.account, wanted));
        }
        decisions
    }

    /// Returns the oldest of an account that wait.
    fn head(&self, account: Option<Account>) -> Option<LedgerTicket> {
        let (number, _) = self.queues.get(&account)?.first_key_value()?;
        Some(LedgerTicket { number: *number, account })
    }

    fn newest(&self) -> Option<LedgerTicket> {
        let last = |(account, queue): (&Option<Account>, &BTreeMap<u64, _>)| {
            let (number, _) = queue.last_key_value()?;
            Some(LedgerTicket { number: *number, account: *account })
        };
        self.queues.iter().filter_map(last).max()
    }

    fn wanted(&self, ticket: LedgerTicket) -> Option<usize> {
        Some(self.queues.get(&ticket.account)?.get(&ticket.number)?.wanted)
    }

    fn leave(&mut self, ticket: LedgerTicket) -> Option<Waiting<A>> {
        let queue = self.queues.get_mut(&ticket.account)?;
        let waiting = queue.remove(&ticket.number)?;
        if queue.is_empty() {
            self.queues.remove(&ticket.account);
        }
        self.waiters_hold -= waiting.holds;
        Some(waiting)
    }
}

#[cfg(test)]
mod tests;
