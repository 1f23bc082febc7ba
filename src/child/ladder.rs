//! How a child is asked to leave: politely, then again and again, then not any more.
//!
//! ```text
//!  0 ms      50 ms     150 ms    350 ms    750 ms    1550 ms
//!  stdin      TERM      TERM      TERM      TERM      KILL
//!  closed
//! ```
//!
//! Pure: the driver waits and signals. Source: seed 000, "Graceful shutdown".

use std::time::Duration;

/// What to do when a wait is over and the child is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// Ask it to end.
    Terminate,
    /// Take it away.
    Kill,
}

/// The waits, each followed by what to do if the child is still there.
///
/// The first wait begins when the child's standard input was closed: most servers leave at that.
pub const LADDER: [(Duration, Rung); 5] = [
    (Duration::from_millis(50), Rung::Terminate),
    (Duration::from_millis(100), Rung::Terminate),
    (Duration::from_millis(200), Rung::Terminate),
    (Duration::from_millis(400), Rung::Terminate),
    (Duration::from_millis(800), Rung::Kill),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_ignores_every_signal_is_killed_after_1550_ms() {
        let total: Duration = LADDER.iter().map(|(wait, _)| wait).sum();
        assert_eq!(total, Duration::from_millis(1550));
        assert_eq!(LADDER.map(|(_, rung)| rung == Rung::Kill), [false, false, false, false, true]);
    }
}
