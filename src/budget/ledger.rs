//! The accounts of a memory budget: what is in use, and who waits for more.
//!
//! Pure: a driver takes its decisions to the askers. An asker that waits may hold bytes of its own, as
//! that of an answer holds its request. So it may wait only while somebody who does not wait holds
//! bytes: those come back, whatever the others do. Where all bytes belong to askers that wait, the
//! newest of them is refused.

use std::collections::VecDeque;

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
    /// The oldest first.
    queue: VecDeque<Waiting<A>>,
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
pub(super) enum Decision<A> {
    /// It has as many bytes now.
    Granted(A, usize),
    /// It gets none of those that it wanted.
    Refused(A, usize),
}

impl<A: Asker> Ledger<A> {
    /// Returns the accounts of a budget of `max` bytes, none of which is in use.
    pub(super) const fn new(max: usize) -> Self {
        Self { max, used: 0, peak: 0, n_refused: 0, freed: 0, queue: VecDeque::new() }
    }

    /// Takes bytes if they are free.
    pub(super) fn take(&mut self, wanted: usize) -> bool {
        let fits = self.used.checked_add(wanted).is_some_and(|used| used <= self.max);
        if fits {
            self.used += wanted;
            self.peak = self.peak.max(self.used);
        }
        fits
    }

    /// Has `asker`, which holds `holds` bytes, wait for `wanted` more.
    pub(super) fn wait(&mut self, asker: A, wanted: usize, holds: usize) -> Vec<Decision<A>> {
        self.queue.push_back(Waiting { asker, wanted, holds });
        self.decide()
    }

    /// Takes bytes back.
    pub(super) fn give_back(&mut self, n_bytes: usize) -> Vec<Decision<A>> {
        self.used -= n_bytes;
        self.freed += n_bytes as u64;
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
        while let Some(first) = self.queue.front() {
            let is_possible = first.wanted <= self.max;
            if is_possible && !self.take(self.queue[0].wanted) {
                break;
            }
            let Some(Waiting { asker, wanted, .. }) = self.queue.pop_front() else { break };
            decisions.push(match is_possible {
                true => Decision::Granted(asker, wanted),
                false => Decision::Refused(asker, wanted),
            });
        }
        while self.waiters_hold() >= self.used
            && let Some(Waiting { asker, wanted, .. }) = self.queue.pop_back()
        {
            decisions.push(Decision::Refused(asker, wanted));
        }
        decisions
    }

    fn waiters_hold(&self) -> usize {
        self.queue.iter().map(|waiting| waiting.holds).sum()
    }
}

#[cfg(test)]
mod tests;
