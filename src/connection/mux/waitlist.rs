//! The requests that wait for room on a connection that is at its bound.
//!
//! A waitlist exists only at the bound, so that other requests need no accounting.
//!
//! The bound is soft for small holders, so that a client with hanging requests blocks no other:
//!
//! ```text
//!   0 ─────────────── max ───────────────── 1.5 × max ───────────────── 2 × max
//!   all holders        members below their     accounts below their
//!                      share of an account     share of the connection
//! ```

use crate::{
    capacity_holder::Holder,
    config::defaults,
    fair_share::{FairQueue, QueueTicket},
};

/// A request that can be queued.
pub(in super::super) trait Queueable {
    /// Records that the request was admitted with `id`.
    fn admitted(&mut self, id: u64);
}

/// The requests that wait for room on one connection, and the holders of those in flight.
#[derive(Debug)]
pub(super) struct Waitlist<W> {
    pub(super) queue: FairQueue<W>,
}

impl<W> Waitlist<W> {
    /// Returns an empty waitlist that counts the requests in flight of the holders `in_flight`.
    pub(super) fn new(in_flight: impl Iterator<Item = Holder>) -> Box<Self> {
        let mut queue = FairQueue::default();
        in_flight.for_each(|holder| queue.add(holder));
        Box::new(Self { queue })
    }

    /// Counts one more request in flight for `holder`, unless others wait.
    pub(super) fn admit(&mut self, holder: Holder) -> bool {
        let is_free = self.queue.n_waiting() == 0;
        if is_free {
            self.queue.add(holder);
        }
        is_free
    }

    /// Queues a request. Returns its ticket, and the request that loses its place for it, if any.
    pub(super) fn enqueue(&mut self, holder: Holder, waiter: W) -> (QueueTicket, Option<W>) {
        let ticket = self.queue.enqueue(holder, waiter);
        let is_too_long = self.queue.n_waiting() > defaults::IN_FLIGHT_QUEUE_MAX;
        let displaced = if is_too_long { self.queue.shed() } else { None };
        (ticket, displaced.map(|(_, waiter)| waiter))
    }

    /// Admits the next request if there is room for it beside `n_in_flight` others.
    pub(super) fn next(&mut self, n_in_flight: usize, max: usize) -> Option<(Holder, W)> {
        let holder = self.queue.next()?;
        if n_in_flight >= self.limit(holder, max) {
            return None;
        }
        self.queue.dequeue().map(|(ticket, waiter)| (ticket.holder(), waiter))
    }

    /// Returns how many requests may be in flight when the next one is of `holder`.
    fn limit(&self, holder: Holder, max: usize) -> usize {
        let of_account = max / self.queue.n_accounts().max(1);
        let of_member = (of_account / self.queue.n_members(holder).max(1)).max(1);
        match () {
            () if self.queue.n_of_account(holder) < of_account => 2 * max,
            () if self.queue.n_of_member(holder) < of_member => max + max / 2,
            () => max,
        }
    }
}
