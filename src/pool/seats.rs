//! A bounded number of seats, and the queue for them.
//!
//! ```text
//!  ask ──▶ a seat is free and nobody waits? ──▶ seated
//!              │ no
//!              ▼
//!            queue ──▶ first in it when a seat is given back ──▶ seated
//!                 └──▶ has waited for `reserve_after`, and there is a reserve ──▶ seated
//! ```
//!
//! Who came first sits first; nobody overtakes. Pure: time comes in as an argument.
//! Source: seed 000, "Reserve pool"; design ruling 10.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

/// Somebody in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ticket(u64);

/// How many seats there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// For everybody.
    pub(super) size: usize,
    /// For those who have waited.
    pub(super) reserve: usize,
    /// For how long they must have.
    pub(super) reserve_after: Duration,
}

/// The seats and the queue.
#[derive(Debug)]
pub(super) struct Seats {
    bounds: Bounds,
    n_taken: usize,
    queue: VecDeque<Waiting>,
    n_tickets: u64,
}

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    since: Instant,
}

/// The answer to who asks for a seat.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Here it is.
    Seated,
    /// There is none yet.
    Queued(Ticket),
}

impl Seats {
    /// Returns so many free seats.
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, n_taken: 0, queue: VecDeque::new(), n_tickets: 0 }
    }

    /// Changes how many there are; nobody has to stand up.
    pub(super) fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// Returns how many there are.
    pub(super) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Returns how many are taken.
    pub(super) fn n_taken(&self) -> usize {
        self.n_taken
    }

    /// Returns how many wait.
    pub(super) fn n_waiting(&self) -> usize {
        self.queue.len()
    }

    /// Returns how many sit although there is no seat for them any more.
    pub(super) fn n_surplus(&self) -> usize {
        self.n_taken.saturating_sub(self.bounds.size + self.bounds.reserve)
    }

    /// Returns who sits next.
    pub(super) fn next(&self) -> Option<Ticket> {
        self.queue.front().map(|first| first.ticket)
    }

    /// Asks for a seat.
    pub(super) fn ask(&mut self, now: Instant) -> Asked {
        if self.queue.is_empty() && self.n_taken < self.bounds.size {
            self.n_taken += 1;
            return Asked::Seated;
        }
        self.n_tickets += 1;
        let ticket = Ticket(self.n_tickets);
        self.queue.push_back(Waiting { ticket, since: now });
        Asked::Queued(ticket)
    }

    /// Somebody stands up.
    pub(super) fn give_back(&mut self) {
        self.n_taken = self.n_taken.saturating_sub(1);
    }

    /// Somebody does not wait any more; `false` when it was seated meanwhile.
    pub(super) fn leave(&mut self, ticket: Ticket) -> bool {
        let before = self.queue.len();
        self.queue.retain(|waiting| waiting.ticket != ticket);
        self.queue.len() < before
    }

    /// Seats who may sit now, in the order of the queue.
    pub(super) fn seat(&mut self, now: Instant) -> BTreeSet<Ticket> {
        let mut seated = BTreeSet::new();
        while let Some(first) = self.queue.front() {
            let has_waited =
                now.saturating_duration_since(first.since) >= self.bounds.reserve_after;
            let reserve = if has_waited { self.bounds.reserve } else { 0 };
            if self.bounds.size + reserve <= self.n_taken {
                break;
            }
            seated.insert(first.ticket);
            self.queue.pop_front();
            self.n_taken += 1;
        }
        seated
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AFTER: Duration = Duration::from_secs(5);

    fn seats(size: usize, reserve: usize) -> Seats {
        Seats::new(Bounds { size, reserve, reserve_after: AFTER })
    }

    #[track_caller]
    fn queued(asked: Asked) -> Ticket {
        match asked {
            Asked::Queued(ticket) => ticket,
            Asked::Seated => panic!("there was a seat"),
        }
    }

    #[test]
    fn who_came_first_sits_first_and_nobody_overtakes() {
        let (mut seats, now) = (seats(1, 0), Instant::now());
        assert_eq!(seats.ask(now), Asked::Seated);
        let (first, second) = (queued(seats.ask(now)), queued(seats.ask(now)));

        seats.give_back();
        queued(seats.ask(now));
        assert_eq!(seats.seat(now), BTreeSet::from([first]));

        seats.give_back();
        assert_eq!(seats.seat(now), BTreeSet::from([second]));
    }

    #[test]
    fn who_leaves_the_queue_keeps_nobody_waiting() {
        let (mut seats, now) = (seats(1, 0), Instant::now());
        assert_eq!(seats.ask(now), Asked::Seated);
        let (first, second) = (queued(seats.ask(now)), queued(seats.ask(now)));
        assert!(seats.leave(first));
        seats.give_back();
        assert_eq!(seats.seat(now), BTreeSet::from([second]));
        assert!(!seats.leave(second), "it sits already");
    }

    #[test]
    fn the_reserve_is_for_those_who_have_waited() {
        let (mut seats, now) = (seats(1, 1), Instant::now());
        assert_eq!(seats.ask(now), Asked::Seated);
        let (first, second) = (queued(seats.ask(now)), queued(seats.ask(now)));
        assert!(seats.seat(now + AFTER - Duration::from_millis(1)).is_empty());
        assert_eq!(seats.seat(now + AFTER), BTreeSet::from([first]));
        assert!(seats.seat(now + 2 * AFTER).is_empty(), "the reserve is used up");

        seats.give_back();
        assert_eq!(seats.n_taken(), 1, "the reserve is given back first");
        assert_eq!(seats.seat(now + AFTER), BTreeSet::from([second]));
    }

    #[test]
    fn with_fewer_seats_nobody_has_to_stand_up() {
        let (mut seats, now) = (seats(3, 0), Instant::now());
        for _ in 0..3 {
            assert_eq!(seats.ask(now), Asked::Seated);
        }
        seats.set_bounds(Bounds { size: 1, reserve: 0, reserve_after: AFTER });
        assert_eq!((seats.n_taken(), seats.n_surplus()), (3, 2));
        queued(seats.ask(now));
        seats.give_back();
        assert!(seats.seat(now).is_empty());
    }

    proptest! {
        /// Never more sit than there are seats, the queue is served in its order, and nobody waits
        /// beside a free seat.
        #[test]
        fn seats_are_neither_lost_nor_made(
            size in 1_usize..4,
            reserve in 0_usize..3,
            steps in proptest::collection::vec((0_u8..4, 0_u64..4), 0..80),
        ) {
            let mut seats = seats(size, reserve);
            let mut now = Instant::now();
            let (mut n_sitting, mut waiting) = (0_usize, Vec::new());
            for (step, seconds) in steps {
                now += Duration::from_secs(seconds);
                match step {
                    0 | 1 => match seats.ask(now) {
                        Asked::Seated => {
                            prop_assert!(waiting.is_empty(), "overtaken");
                            n_sitting += 1;
                        }
                        Asked::Queued(ticket) => waiting.push(ticket),
                    },
                    2 if n_sitting > 0 => {
                        seats.give_back();
                        n_sitting -= 1;
                    }
                    3 if !waiting.is_empty() => {
                        let ticket = waiting.remove(waiting.len() / 2);
                        prop_assert!(seats.leave(ticket));
                    }
                    _ => {}
                }
                let seated = seats.seat(now);
                let first: BTreeSet<Ticket> = waiting.drain(..seated.len()).collect();
                prop_assert_eq!(&seated, &first, "not in the order of the queue");
                n_sitting += seated.len();
                prop_assert_eq!(seats.n_taken(), n_sitting);
                prop_assert_eq!(seats.n_waiting(), waiting.len());
                prop_assert!(n_sitting <= size + reserve);
                prop_assert!(waiting.is_empty() || n_sitting >= size);
            }
        }
    }
}
