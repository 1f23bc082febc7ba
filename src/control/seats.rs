//! Who is served on the control socket: as many connections as there are seats, and fewer of one user.
//!
//! Who comes when all are taken gets the seat of the connection that has had nothing running for the
//! longest, so that connections that are opened and left alone lock out nobody.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The seats.
#[derive(Debug)]
pub(super) struct Seats {
    max: usize,
    per_user_max: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    taken: Vec<Taken>,
    n_numbers: u64,
}

#[derive(Debug)]
struct Taken {
    number: u64,
    uid: u32,
    /// Since when nothing runs.
    idle_since: Option<Instant>,
    lost: CancellationToken,
}

/// A seat, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    number: u64,
    lost: CancellationToken,
}

impl Seats {
    pub(super) fn new(max: usize, per_user_max: usize) -> Arc<Self> {
        Arc::new(Self { max, per_user_max, table: Mutex::default() })
    }

    /// Takes a seat for a connection of the user `uid`; nothing where all have something running.
    pub(super) fn take(self: &Arc<Self>, uid: u32) -> Option<Seat> {
        let mut table = self.table();
        let n_own = table.taken.iter().filter(|taken| taken.uid == uid).count();
        if n_own >= self.per_user_max {
            table.free(|taken| taken.uid == uid)?;
        } else if table.taken.len() >= self.max {
            table.free(|_| true)?;
        }
        table.n_numbers += 1;
        let (number, lost) = (table.n_numbers, CancellationToken::new());
        let idle_since = Some(Instant::now());
        table.taken.push(Taken { number, uid, idle_since, lost: lost.clone() });
        Some(Seat { seats: Arc::clone(self), number, lost })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Held for statements on plain data.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Takes the seat away from the connection that has had nothing running for the longest, of those
    /// that may have to go.
    fn free(&mut self, may_go: impl Fn(&Taken) -> bool) -> Option<()> {
        let idle = self.taken.iter().enumerate().filter(|(_, taken)| may_go(taken));
        let idle = idle.filter_map(|(place, taken)| Some((taken.idle_since?, taken.number, place)));
        let (_, _, place) = idle.min()?;
        self.taken.swap_remove(place).lost.cancel();
        Some(())
    }
}

impl Seat {
    /// Notes whether something runs.
    pub(super) fn is_busy(&self, is_busy: bool) {
        let mut table = self.seats.table();
        let Some(taken) = table.taken.iter_mut().find(|taken| taken.number == self.number) else {
            return;
        };
        match (is_busy, taken.idle_since) {
            (true, _) => taken.idle_since = None,
            (false, None) => taken.idle_since = Some(Instant::now()),
            (false, Some(_)) => {}
        }
    }

    /// Waits until somebody else has the seat.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.table().taken.retain(|taken| taken.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_comes_last_gets_the_seat_that_was_left_alone_the_longest() {
        let seats = Seats::new(3, 3);
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.push(seats.take(1).expect("there is room"));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        taken[0].is_busy(true);
        let next = seats.take(1).expect("another one goes");
        assert!(!taken[0].lost.is_cancelled() && taken[1].lost.is_cancelled());
        next.is_busy(true);
        taken[2].is_busy(true);
        assert!(seats.take(1).is_none(), "all have something running");
        taken[0].is_busy(false);
        assert!(seats.take(2).is_some() && taken[0].lost.is_cancelled());
        drop(taken);
        assert_eq!(seats.table().taken.len(), 1);
    }

    #[tokio::test]
    async fn one_user_leaves_room_for_another() {
        let seats = Seats::new(3, 2);
        let own: Vec<Seat> = (0..2).filter_map(|_| seats.take(1)).collect();
        own.iter().for_each(|seat| seat.is_busy(true));
        assert!(seats.take(1).is_none());
        let _root = seats.take(0).expect("there is room for another user");
    }
}
