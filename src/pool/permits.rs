//! A bounded number of permits, and the queue for them.
//!
//! ```text
//!  request ──▶ a permit is free and the queue is empty? ──▶ granted
//!              │ no
//!              ▼
//!            queue ──▶ a permit is returned, and the ticket is next ──▶ granted
//!                 └──▶ has waited for `reserve_after`, and the reserve is free ──▶ granted
//! ```
//!
//! The queue is round-robin over holders and first-in, first-out within each ([`FairQueue`]). Pure:
//! the caller passes the time.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use crate::{
    capacity_holder::{Account, Holder},
    fair_share::{FairQueue, QueueTicket},
};

/// The number of permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PermitLimits {
    /// The permits for all requests.
    pub(super) size: usize,
    /// The extra permits for requests that have waited.
    pub(super) reserve: usize,
    /// The waiting time before a request may use the reserve.
    pub(super) reserve_after: Duration,
}

#[derive(Debug)]
pub(super) struct PermitQueue {
    /// The limits. Permits that are in use stay valid after a change.
    pub(super) limits: PermitLimits,
    /// The number of permits in use.
    pub(super) n_taken: usize,
    queue: FairQueue<()>,
    /// The start of each wait, by ticket number: the first entry has waited longest.
    since: BTreeMap<u64, Instant>,
}

/// The reply to a request for a permit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PermitReply {
    /// The permit is granted.
    Granted,
    /// All permits are taken, and the request is queued.
    Queued(QueueTicket),
}

impl PermitQueue {
    /// Returns a queue with all permits free.
    pub(super) fn new(limits: PermitLimits) -> Self {
        Self { limits, n_taken: 0, queue: FairQueue::default(), since: BTreeMap::new() }
    }

    /// Returns the number of waiting requests.
    pub(super) fn n_waiting(&self) -> usize {
        self.queue.n_waiting()
    }

    /// Returns the number of permits in use above the limits.
    pub(super) fn n_surplus(&self) -> usize {
        self.n_taken.saturating_sub(self.limits.size + self.limits.reserve)
    }

    /// Returns the ticket that gets the next permit.
    pub(super) fn next(&self) -> Option<QueueTicket> {
        self.queue.next_ticket()
    }

    /// Returns whether the account of `holder` has more than an equal share of the permits.
    pub(super) fn is_above_share(&self, holder: Holder) -> bool {
        // Plus one for the connections that all clients share.
        let n_accounts = self.queue.n_accounts() + 1;
        self.queue.n_of_account(holder) * n_accounts > self.limits.size
    }

    /// Asks for a permit.
    pub(super) fn request(&mut self, holder: Holder, now: Instant) -> PermitReply {
        if self.queue.n_waiting() == 0 && self.n_taken < self.limits.size {
            self.n_taken += 1;
            if is_counted(holder) {
                self.queue.add(holder);
            }
            return PermitReply::Granted;
        }
        let ticket = self.queue.enqueue(holder, ());
        self.since.insert(ticket.number(), now);
        PermitReply::Queued(ticket)
    }

    /// Takes back a permit of `holder`.
    pub(super) fn release(&mut self, holder: Holder) {
        self.n_taken = self.n_taken.saturating_sub(1);
        if is_counted(holder) {
            self.queue.release(holder);
        }
    }

    /// Removes a request from the queue. Returns `false` if it has got a permit meanwhile.
    pub(super) fn leave(&mut self, ticket: QueueTicket) -> bool {
        self.since.remove(&ticket.number());
        self.queue.remove(ticket).is_some()
    }

    /// Grants the free permits, and returns the tickets in order.
    pub(super) fn grant(&mut self, now: Instant) -> Vec<QueueTicket> {
        let mut granted = Vec::new();
        while let Some((_, since)) = self.since.first_key_value() {
            let has_waited = now.saturating_duration_since(*since) >= self.limits.reserve_after;
            let reserve = if has_waited { self.limits.reserve } else { 0 };
            if self.limits.size + reserve <= self.n_taken {
                break;
            }
            let Some((ticket, ())) = self.queue.dequeue() else { break };
            if !is_counted(ticket.holder()) {
                self.queue.release(ticket.holder());
            }
            self.since.remove(&ticket.number());
            self.n_taken += 1;
            granted.push(ticket);
        }
        granted
    }
}

/// Returns whether the permits of `holder` count against it. A connection that all clients share
/// counts for none of them.
fn is_counted(holder: Holder) -> bool {
    holder.account != Account::Service
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capacity_holder::AccountMember;

    const ONE: Holder = Holder { account: Account::User(1), member: AccountMember::Whole };
    const OTHER: Holder = Holder { account: Account::User(2), member: AccountMember::Whole };
    const AFTER: Duration = Duration::from_secs(5);

    fn queue(size: usize, reserve: usize) -> PermitQueue {
        PermitQueue::new(PermitLimits { size, reserve, reserve_after: AFTER })
    }

    #[track_caller]
    fn queued(asked: PermitReply) -> QueueTicket {
        match asked {
            PermitReply::Queued(ticket) => ticket,
            PermitReply::Granted => panic!("a permit was free"),
        }
    }

    #[test]
    fn permits_are_granted_in_the_order_of_the_requests() {
        let (mut queue, now) = (queue(1, 0), Instant::now());
        assert_eq!(queue.request(ONE, now), PermitReply::Granted);
        let (first, second) = (queued(queue.request(ONE, now)), queued(queue.request(ONE, now)));

        queue.release(ONE);
        queued(queue.request(ONE, now));
        assert_eq!(queue.grant(now), [first]);

        queue.release(ONE);
        assert_eq!(queue.grant(now), [second]);
    }

    #[test]
    fn a_client_with_many_permits_waits_behind_a_client_with_none_and_a_shared_server() {
        let (mut queue, now) = (queue(2, 0), Instant::now());
        assert_eq!(queue.request(ONE, now), PermitReply::Granted);
        assert_eq!(queue.request(ONE, now), PermitReply::Granted);
        assert!(queue.is_above_share(ONE) && !queue.is_above_share(OTHER));
        let third = queued(queue.request(ONE, now));
        let other = queued(queue.request(OTHER, now));
        let shared = queued(queue.request(Holder::SERVICE, now));

        let mut order = Vec::new();
        for holder in [ONE, OTHER, ONE] {
            queue.release(holder);
            order.extend(queue.grant(now));
        }

        assert_eq!(order, [other, shared, third]);
    }

    #[test]
    fn a_request_that_leaves_the_permit_queue_does_not_delay_the_next_one() {
        let (mut queue, now) = (queue(1, 0), Instant::now());
        assert_eq!(queue.request(ONE, now), PermitReply::Granted);
        let (first, second) = (queued(queue.request(ONE, now)), queued(queue.request(ONE, now)));
        assert!(queue.leave(first));
        queue.release(ONE);
        assert_eq!(queue.grant(now), [second]);
        assert!(!queue.leave(second), "it has a permit already");
    }

    #[test]
    fn the_reserve_is_for_requests_that_have_waited() {
        let (mut queue, now) = (queue(1, 1), Instant::now());
        assert_eq!(queue.request(ONE, now), PermitReply::Granted);
        let (first, second) = (queued(queue.request(ONE, now)), queued(queue.request(ONE, now)));
        assert!(queue.grant(now + AFTER - Duration::from_millis(1)).is_empty());
        assert_eq!(queue.grant(now + AFTER), [first]);
        assert!(queue.grant(now + 2 * AFTER).is_empty(), "the reserve is used up");

        queue.release(ONE);
        assert_eq!(queue.n_taken, 1, "the reserve is given back first");
        assert_eq!(queue.grant(now + AFTER), [second]);
    }

    #[test]
    fn a_lower_pool_size_revokes_no_permit_and_grants_none_while_there_is_a_surplus() {
        let (mut queue, now) = (queue(3, 0), Instant::now());
        for _ in 0..3 {
            assert_eq!(queue.request(ONE, now), PermitReply::Granted);
        }
        queue.limits = PermitLimits { size: 1, reserve: 0, reserve_after: AFTER };
        assert_eq!((queue.n_taken, queue.n_surplus()), (3, 2));
        queued(queue.request(ONE, now));
        queue.release(ONE);
        assert!(queue.grant(now).is_empty());
    }

    proptest! {
        /// No more permits are granted than exist, the queue is served in order, and no request
        /// waits while a permit is free.
        #[test]
        fn permits_are_neither_lost_nor_created(
            size in 1_usize..4,
            reserve in 0_usize..3,
            steps in proptest::collection::vec((0_u8..4, 0_u64..4), 0..80),
        ) {
            let mut queue = queue(size, reserve);
            let mut now = Instant::now();
            let (mut n_granted, mut waiting) = (0_usize, Vec::new());
            for (step, seconds) in steps {
                now += Duration::from_secs(seconds);
                match step {
                    0 | 1 => match queue.request(ONE, now) {
                        PermitReply::Granted => {
                            prop_assert!(waiting.is_empty(), "overtaken");
                            n_granted += 1;
                        }
                        PermitReply::Queued(ticket) => waiting.push(ticket),
                    },
                    2 if n_granted > 0 => {
                        queue.release(ONE);
                        n_granted -= 1;
                    }
                    3 if !waiting.is_empty() => {
                        let ticket = waiting.remove(waiting.len() / 2);
                        prop_assert!(queue.leave(ticket));
                    }
                    _ => {}
                }
                let granted = queue.grant(now);
                let first: Vec<QueueTicket> = waiting.drain(..granted.len()).collect();
                prop_assert_eq!(&granted, &first, "not in the order of the queue");
                n_granted += granted.len();
                prop_assert_eq!(queue.n_taken, n_granted);
                prop_assert_eq!(queue.n_waiting(), waiting.len());
                prop_assert!(n_granted <= size + reserve);
                prop_assert!(waiting.is_empty() || n_granted >= size);
            }
        }
    }
}
