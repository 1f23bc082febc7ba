//! When to ping a server, and when to take it for dead.
//!
//! Pure: the caller waits, pings and tells how long nothing has been heard. Anything that is heard
//! shows that the server lives, so a ping is sent only into silence; one that is not answered
//! makes a suspect, the second one in a row a dead server.
//! Source: seed 003, PIN-14.

use std::time::Duration;

/// How many pings in a row a server may leave unanswered and count as alive.
const MISSED_MAX: u32 = 1;

/// The state of the watch over one server.
#[derive(Debug)]
pub(super) struct Keepalive {
    period: Duration,
    n_missed: u32,
    /// A period has passed since the last ping that was missed.
    has_rested: bool,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Wait and ask again.
    Wait(Duration),
    /// Send a ping.
    Ping,
    /// The server is dead.
    GiveUp,
}

impl Keepalive {
    /// Begins a watch that pings a server of which nothing was heard for `period`.
    pub(super) fn new(period: Duration) -> Self {
        Self { period, n_missed: 0, has_rested: true }
    }

    /// Returns what to do, when nothing has been heard for `silence`.
    pub(super) fn step(&mut self, silence: Duration) -> Step {
        if silence < self.period {
            *self = Self::new(self.period);
            return Step::Wait(self.period - silence);
        }
        if self.n_missed > MISSED_MAX {
            return Step::GiveUp;
        }
        if std::mem::replace(&mut self.has_rested, true) {
            Step::Ping
        } else {
            Step::Wait(self.period)
        }
    }

    /// Takes note of a ping that was not answered in time, or could not be sent.
    pub(super) fn missed(&mut self) {
        self.n_missed += 1;
        self.has_rested = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(20);

    #[test]
    fn a_server_that_was_heard_within_the_period_is_left_alone() {
        let mut keepalive = Keepalive::new(PERIOD);
        assert_eq!(keepalive.step(Duration::from_secs(5)), Step::Wait(Duration::from_secs(15)));
        assert_eq!(keepalive.step(PERIOD), Step::Ping);
        assert_eq!(keepalive.step(Duration::ZERO), Step::Wait(PERIOD), "the ping was answered");
    }

    #[test]
    fn the_second_ping_in_a_row_that_is_missed_is_the_end() {
        let mut keepalive = Keepalive::new(PERIOD);
        assert_eq!(keepalive.step(PERIOD), Step::Ping);
        keepalive.missed();
        assert_eq!(keepalive.step(PERIOD), Step::Wait(PERIOD), "suspect");
        assert_eq!(keepalive.step(2 * PERIOD), Step::Ping);
        keepalive.missed();
        assert_eq!(keepalive.step(2 * PERIOD), Step::GiveUp);
    }

    #[test]
    fn whatever_a_suspect_says_clears_it() {
        let mut keepalive = Keepalive::new(PERIOD);
        assert_eq!(keepalive.step(PERIOD), Step::Ping);
        keepalive.missed();
        assert_eq!(keepalive.step(PERIOD), Step::Wait(PERIOD));
        assert_eq!(keepalive.step(Duration::from_secs(1)), Step::Wait(Duration::from_secs(19)));
        assert_eq!(keepalive.step(PERIOD), Step::Ping);
        keepalive.missed();
        assert_eq!(keepalive.step(PERIOD), Step::Wait(PERIOD), "one missed ping, not two");
    }

    proptest::proptest! {
        /// Two pings are missed in a row, with at least a period between them, before a server is
        /// given up; and one that is silent for ever is.
        #[test]
        fn nobody_is_given_up_too_early_or_never(heard in proptest::collection::vec(proptest::bool::ANY, 0..40)) {
            let mut keepalive = Keepalive::new(PERIOD);
            let (mut now, mut last_heard) = (Duration::ZERO, Duration::ZERO);
            let mut missed: Vec<Duration> = Vec::new();
            let mut answers = heard.into_iter();
            for _ in 0..200 {
                match keepalive.step(now - last_heard) {
                    Step::Wait(pause) => now += pause,
                    Step::Ping if answers.next().unwrap_or(false) => {
                        last_heard = now;
                        missed.clear();
                    }
                    Step::Ping => {
                        missed.push(now);
                        now += Duration::from_secs(10);
                        keepalive.missed();
                    }
                    Step::GiveUp => {
                        proptest::prop_assert_eq!(missed.len(), 2);
                        proptest::prop_assert!(missed[1] - missed[0] >= PERIOD);
                        return Ok(());
                    }
                }
            }
            proptest::prop_assert!(false, "a server that is silent for ever is given up");
        }
    }
}
