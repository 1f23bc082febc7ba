//! Pauses between attempts: twice as long each time, up to a cap.
//!
//! Pure: the caller sleeps.

use std::time::Duration;

/// The pause before the next attempt, and how it grows.
#[derive(Clone, Debug)]
pub struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// Starts at `first`; no pause is longer than `longest`.
    pub fn new((first, longest): (Duration, Duration)) -> Self {
        Self { next: first.min(longest), longest }
    }

    /// Returns the pause before the next attempt and doubles the one after it.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_cap() {
        let mut backoff = Backoff::new((Duration::from_secs(1), Duration::from_secs(60)));
        let pauses: Vec<u64> = (0..8).map(|_| backoff.pause().as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
