//! The pauses between attempts: doubled each time, up to a cap, and shortened at random.
//!
//! Pure: the caller sleeps and supplies the random number.

use std::time::Duration;

/// The pause before the next attempt, and its growth.
#[derive(Clone, Debug)]
pub struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// The share of a pause that is random, so that clients that failed together do not retry
    /// together. Source: "equal jitter" in "Exponential Backoff And Jitter", AWS Architecture Blog:
    /// no retry is immediate, and none is later than without jitter.
    const CHANCE: f64 = 0.5;

    /// Returns a backoff with the pause `first` at the beginning and `longest` at most.
    pub fn new((first, longest): (Duration, Duration)) -> Self {
        Self { next: first.min(longest), longest }
    }

    /// Returns the pause before the next attempt and doubles the one after it. `chance`, from 0 to
    /// 1, is the fraction of the random half that is waited.
    pub fn pause(&mut self, chance: f64) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        pause.mul_f64(1.0 - Self::CHANCE * (1.0 - chance.clamp(0.0, 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> Backoff {
        Backoff::new((Duration::from_secs(1), Duration::from_secs(60)))
    }

    #[test]
    fn pauses_double_up_to_the_cap() {
        let mut backoff = new();
        let pauses: Vec<u64> = (0..8).map(|_| backoff.pause(1.0).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    proptest::proptest! {
        #[test]
        fn chance_shortens_a_pause_by_half_at_most(chances in proptest::collection::vec(0.0..1.0, 0..20)) {
            let (mut longest, mut shortened) = (new(), new());
            for chance in chances {
                let (envelope, pause) = (longest.pause(1.0), shortened.pause(chance));
                proptest::prop_assert!(pause <= envelope && pause >= envelope / 2, "{pause:?}");
            }
        }
    }
}
