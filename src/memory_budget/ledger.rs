//! The accounts of a memory budget: the bytes in use and the queues of waiters.
//!
//! Pure: the caller passes the decisions on to the waiters. A waiter may hold bytes, such as the
//! request for an answer. So it may wait only while another party holds bytes and does not wait: it
//! will give them back. If all bytes belong to waiters, the newest is refused.
//!
//! No account can take everything. An account with more than a part of the budget leaves an equal
//! part to accounts with less, and to bytes without an account:
//!
//! ```text
//!   0 ──────────────────── max - max / divisor ──────────────────── max
//!       for all                           for those with at most max / divisor
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::MemoryUsage;
use crate::{capacity_holder::Account, config::defaults::MEMORY_KEPT_DIVISOR};

/// The accounts of a memory budget.
#[derive(Debug)]
pub(super) struct AccountLedger<A> {
    max: usize,
    used: usize,
    peak: usize,
    n_refused: u64,
    /// The total of bytes ever given back.
    freed: u64,
    /// The bytes of each account that has any.
    shares: BTreeMap<Account, usize>,
    /// The waiters of each account by ticket, the oldest first.
    queues: BTreeMap<Option<Account>, BTreeMap<u64, Waiting<A>>>,
    /// The bytes that all waiters hold.
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
    waiter: A,
    wanted: usize,
    /// The bytes that the waiter holds until its wait is over.
    holds: usize,
}

/// A decision about a waiter.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LedgerDecision<A> {
    /// The waiter got these bytes for this account.
    Granted(A, Option<Account>, usize),
    /// The waiter gets none of the bytes that it wanted for this account.
    Refused(A, Option<Account>, usize),
}

impl<A> AccountLedger<A> {
    /// Returns the accounts of an unused budget of `max` bytes.
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

    /// Counts bytes that are already in use for `account`, if its limit allows.
    pub(super) fn attribute(&mut self, account: Account, n_bytes: usize) -> bool {
        let fits = self.used <= self.bound(Some(account), n_bytes);
        if fits {
            self.add_to_share(Some(account), n_bytes);
        }
        fits
    }

    /// Queues `waiter`, which holds `holds` bytes, for `wanted` more.
    pub(super) fn wait(
        &mut self,
        waiter: A,
        account: Option<Account>,
        wanted: usize,
        holds: usize,
    ) -> (LedgerTicket, Vec<LedgerDecision<A>>) {
        let ticket = LedgerTicket { number: self.n_tickets, account };
        self.n_tickets += 1;
        self.waiters_hold += holds;
        let queue = self.queues.entry(account).or_default();
        queue.insert(ticket.number, Waiting { waiter, wanted, holds });
        (ticket, self.decide())
    }

    /// Ends a wait that is not over yet.
    pub(super) fn withdraw(&mut self, ticket: LedgerTicket) -> Vec<LedgerDecision<A>> {
        if self.leave(ticket).is_some() { self.decide() } else { Vec::new() }
    }

    /// Gives back bytes of `account`.
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
        self.decide_if_awaited()
    }

    /// Stops counting these bytes for `account`.
    pub(super) fn release(&mut self, account: Account, n_bytes: usize) -> Vec<LedgerDecision<A>> {
        self.take_from_share(account, n_bytes);
        self.decide_if_awaited()
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

    /// Returns the limit for all bytes in use if `account` gets `wanted` more.
    fn bound(&self, account: Option<Account>, wanted: usize) -> usize {
        let Some(account) = account else { return self.max };
        let kept = self.max / MEMORY_KEPT_DIVISOR;
        if self.share(account).saturating_add(wanted) <= kept { self.max } else { self.max - kept }
    }

    fn decide_if_awaited(&mut self) -> Vec<LedgerDecision<A>> {
        if self.has_waiters() { self.decide() } else { Vec::new() }
    }

    /// Changes the size of the budget. Excess bytes in use remain until they are given back.
    pub(super) fn resize(&mut self, max: usize) -> Vec<LedgerDecision<A>> {
        self.max = max;
        self.decide()
    }

    /// Counts a refusal.
    pub(super) fn refused(&mut self) {
        self.n_refused += 1;
    }

    /// Returns the figures for status output.
    pub(super) fn usage(&self) -> MemoryUsage {
        MemoryUsage {
            used_bytes: self.used,
            peak_bytes: self.peak,
            max_bytes: self.max,
            refused: self.n_refused,
        }
    }

    /// Returns the bytes of an account.
    pub(super) fn share(&self, account: Account) -> usize {
        self.shares.get(&account).copied().unwrap_or_default()
    }

    /// Returns the total of bytes ever given back.
    pub(super) fn freed(&self) -> u64 {
        self.freed
    }

    /// Returns whether a party waits.
    pub(super) fn has_waiters(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Serves waiters while there is room: the oldest of each account, then the next one behind
    /// each served one.
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
                // This waiter is next: bytes that are given back are reserved for it.
                if bound == self.max {
                    break;
                }
                // Its account has much already, so waiters of other accounts do not wait for it.
                // Those of the same account do, and are served in order.
                continue;
            }
            let Some(Waiting { waiter, .. }) = self.leave(ticket) else { continue };
            heads.extend(self.head(account));
            decisions.push(match is_possible {
                true => LedgerDecision::Granted(waiter, account, wanted),
                false => LedgerDecision::Refused(waiter, account, wanted),
            });
        }
        while self.waiters_hold >= self.used
            && let Some(newest) = self.newest()
            && let Some(Waiting { waiter, wanted, .. }) = self.leave(newest)
        {
            decisions.push(LedgerDecision::Refused(waiter, newest.account, wanted));
        }
        decisions
    }

    /// Returns the oldest ticket of an account.
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
