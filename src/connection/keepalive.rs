//! The state machine that decides when a server is pinged, and when it is taken for dead.
//!
//! Pure: the caller waits, pings and reports what it observes. Any message shows that the server
//! lives, except in a long flood without an answer. So a ping is sent only into silence, and a
//! message after a missed ping clears the server.
//!
//! Clients may queue behind a stuck child, so its pings follow one another without a pause: it is
//! given up `failures` timeouts after the suspicion. The first ping waits for a part of its
//! timeout, so that an answer that crosses the cancellation of its request spares the child the
//! ping.
//!
//! | reason | the server is pinged |
//! |---|---|
//! | it is not needed | never |
//! | it is kept alive, and works | never: many servers do one thing at a time |
//! | it is kept alive | after a period of silence |
//! | a request got no answer, and nothing else came | at once, then once per period |
//! | a request to a child got no answer, or was given up without one | at once, without pauses |

use std::time::Duration;

/// The grace period before the first ping of a child is the timeout divided by this: one second by
/// default, in which any server on the same host has read a cancellation.
const GRACE_PARTS: u32 = 10;

/// The state of the keepalive of one server.
#[derive(Debug)]
pub(super) struct Keepalive {
    period: Duration,
    timeout: Duration,
    failures: u32,
    /// The number of pings in a row that were missed.
    pub(super) n_missed: u32,
    /// The times of the last ping and of the last miss, on the clock of [`KeepaliveView`], and the
    /// time that the ping may take.
    last_ping: Option<Duration>,
    ping_timeout: Duration,
    last_miss: Option<Duration>,
}

/// The observations about the server at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepaliveView {
    /// The current time.
    pub(super) now: Duration,
    /// The time at which the server was heard last.
    pub(super) heard: Duration,
    /// The reason why its liveness matters.
    pub(super) reason: KeepaliveReason,
}

/// The reason why the liveness of the server matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeepaliveReason {
    /// It does not matter: the server is connected when it is needed, and its end is noticed.
    NotNeeded,
    /// The server is kept alive, but works and may be unable to answer.
    Working,
    /// The server is kept alive.
    KeptAlive,
    /// A request got no answer in time, and nothing was heard meanwhile.
    Suspect,
    /// A request to a child got no answer in time, or was given up without one. It was noticed
    /// then.
    Stuck(Duration),
}

/// The next action of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeepaliveAction {
    /// Wait until the server becomes suspect.
    Rest,
    /// Wait for this time, but no longer than until the server becomes suspect.
    Wait(Duration),
    /// Send a ping, and wait this long for its answer.
    Ping(Duration),
    /// The server is dead.
    GiveUp,
}

impl Keepalive {
    /// Returns a keepalive that pings after a silence of `period`. It gives the server up after
    /// `failures` missed pings in a row, each with a timeout of `timeout`.
    pub(super) fn new(period: Duration, timeout: Duration, failures: u32) -> Self {
        Self {
            period,
            timeout,
            failures,
            n_missed: 0,
            last_ping: None,
            ping_timeout: timeout,
            last_miss: None,
        }
    }

    /// Returns the next action.
    pub(super) fn step(&mut self, view: KeepaliveView) -> KeepaliveAction {
        let KeepaliveView { now, heard, reason } = view;
        if self.last_ping.is_some_and(|sent| heard >= sent) {
            self.n_missed = 0;
            self.last_miss = None;
        }
        if self.n_missed >= self.failures {
            return KeepaliveAction::GiveUp;
        }
        let after_miss = self.last_miss.map_or(Duration::ZERO, |missed| missed + self.period);
        let (due, timeout) = match reason {
            KeepaliveReason::NotNeeded => return KeepaliveAction::Rest,
            KeepaliveReason::Working => return KeepaliveAction::Wait(self.period),
            KeepaliveReason::KeptAlive => (after_miss.max(heard + self.period), self.timeout),
            KeepaliveReason::Suspect => (after_miss, self.timeout),
            KeepaliveReason::Stuck(since) => {
                match self.last_ping.filter(|sent| *sent >= since) {
                    None => {
                        let grace = self.timeout / GRACE_PARTS;
                        (since + grace, self.timeout - grace)
                    }
                    // A ping that could not be sent has its time too.
                    Some(sent) => (sent + self.ping_timeout, self.timeout),
                }
            }
        };
        if due > now {
            return KeepaliveAction::Wait(due - now);
        }
        (self.last_ping, self.ping_timeout) = (Some(now), timeout);
        KeepaliveAction::Ping(timeout)
    }

    /// Records that the last ping was not answered until `now`, or could not be sent.
    pub(super) fn ping_missed(&mut self, now: Duration) {
        self.n_missed += 1;
        self.last_miss = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        KeepaliveReason::{KeptAlive, NotNeeded, Stuck, Suspect, Working},
        *,
    };

    const PERIOD: Duration = Duration::from_secs(30);
    const TIMEOUT: Duration = Duration::from_secs(10);

    fn view(now_s: u64, heard_s: u64, reason: KeepaliveReason) -> KeepaliveView {
        let [now, heard] = [now_s, heard_s].map(Duration::from_secs);
        KeepaliveView { now, heard, reason }
    }

    fn wait(seconds: u64) -> KeepaliveAction {
        KeepaliveAction::Wait(Duration::from_secs(seconds))
    }

    fn stuck(since_s: u64) -> KeepaliveReason {
        Stuck(Duration::from_secs(since_s))
    }

    const PING: KeepaliveAction = KeepaliveAction::Ping(TIMEOUT);
    const FIRST_PING: KeepaliveAction = KeepaliveAction::Ping(Duration::from_secs(9));

    #[test]
    fn a_server_is_pinged_only_into_silence_and_for_a_reason() {
        for (seen, step) in [
            (view(100, 100, NotNeeded), KeepaliveAction::Rest),
            (view(100, 0, NotNeeded), KeepaliveAction::Rest),
            (view(100, 0, Working), wait(30)),
            (view(100, 95, KeptAlive), wait(25)),
            (view(100, 70, KeptAlive), PING),
            (view(100, 95, Suspect), PING),
            (view(100, 95, stuck(100)), wait(1)),
            (view(101, 95, stuck(100)), FIRST_PING),
        ] {
            assert_eq!(Keepalive::new(PERIOD, TIMEOUT, 3).step(seen), step, "{seen:?}");
        }
    }

    #[test]
    fn a_server_is_given_up_after_the_third_missed_ping_in_a_row() {
        for reason in [KeptAlive, Suspect] {
            let mut keepalive = Keepalive::new(PERIOD, TIMEOUT, 3);
            for (n_missed, sent) in [(1, 30), (2, 70), (3, 110)] {
                assert_eq!(keepalive.step(view(sent, 0, reason)), PING);
                keepalive.ping_missed(Duration::from_secs(sent + 10));
                assert_eq!(keepalive.n_missed, n_missed);
                let next = if n_missed == 3 { KeepaliveAction::GiveUp } else { wait(30) };
                assert_eq!(keepalive.step(view(sent + 10, 0, reason)), next, "{n_missed}");
            }
        }
    }

    #[test]
    fn a_stuck_child_is_pinged_without_pauses() {
        let mut keepalive = Keepalive::new(PERIOD, TIMEOUT, 3);
        for (now, step, missed) in [
            (50, wait(1), None),
            (51, FIRST_PING, Some(60)),
            (60, PING, Some(60)),
            // This ping could not be sent.
            (60, wait(10), None),
            (70, PING, Some(80)),
            (80, KeepaliveAction::GiveUp, None),
        ] {
            assert_eq!(keepalive.step(view(now, 40, stuck(50))), step, "{now} s");
            if let Some(missed) = missed {
                keepalive.ping_missed(Duration::from_secs(missed));
            }
        }
    }

    #[test]
    fn any_message_after_a_ping_clears_the_server() {
        for reason in [KeptAlive, Suspect] {
            let mut keepalive = Keepalive::new(PERIOD, TIMEOUT, 2);
            assert_eq!(keepalive.step(view(30, 0, reason)), PING);
            keepalive.ping_missed(Duration::from_secs(40));
            assert_eq!(keepalive.step(view(41, 30, reason)).is_ping(), reason == Suspect);
            assert_eq!(keepalive.n_missed, 0, "{reason:?}");
        }
    }

    #[test]
    fn a_busy_server_is_not_pinged_until_it_is_suspected() {
        let mut keepalive = Keepalive::new(PERIOD, TIMEOUT, 3);
        assert_eq!(keepalive.step(view(30, 0, KeptAlive)), PING);
        keepalive.ping_missed(Duration::from_secs(40));
        assert_eq!(keepalive.step(view(100, 0, Working)), wait(30));
        assert_eq!(keepalive.step(view(101, 0, Suspect)), PING);
        assert_eq!(keepalive.n_missed, 1, "missed pings still count");
    }

    impl KeepaliveAction {
        fn is_ping(self) -> bool {
            matches!(self, Self::Ping(_))
        }
    }

    fn reason() -> impl Strategy<Value = KeepaliveReason> {
        prop_oneof![Just(NotNeeded), Just(Working), Just(KeptAlive), Just(Suspect)]
    }

    proptest! {
        /// A child that stays stuck is given up `failures` timeouts after the suspicion at the
        /// latest, regardless of earlier misses.
        #[test]
        fn the_next_client_waits_for_the_timeouts_of_all_pings_at_most(
            failures in 1_u32..5,
            before in proptest::collection::vec((reason(), 0_u64..40), 0..20),
        ) {
            let mut keepalive = Keepalive::new(PERIOD, TIMEOUT, failures);
            let (mut now, heard) = (Duration::ZERO, Duration::ZERO);
            for (reason, rest) in before {
                if keepalive.n_missed + 1 < failures
                    && keepalive.step(KeepaliveView { now, heard, reason }).is_ping()
                {
                    now += TIMEOUT;
                    keepalive.ping_missed(now);
                }
                now += Duration::from_secs(rest);
            }
            let since = now;
            loop {
                match keepalive.step(KeepaliveView { now, heard, reason: Stuck(since) }) {
                    KeepaliveAction::Wait(pause) => now += pause,
                    KeepaliveAction::Ping(timeout) => {
                        now += timeout;
                        keepalive.ping_missed(now);
                    }
                    KeepaliveAction::GiveUp => break,
                    KeepaliveAction::Rest => prop_assert!(false, "it is not left alone"),
                }
            }
            prop_assert!(now <= since + TIMEOUT * failures, "{:?}", now - since);
        }

        /// A server is given up only after `failures` missed pings in a row, at least a period
        /// apart. A server that stays silent is given up eventually, once its liveness matters.
        #[test]
        fn a_silent_server_is_given_up_eventually_and_only_after_the_configured_missed_pings(
            failures in 1_u32..5,
            moments in proptest::collection::vec((reason(), any::<bool>(), 0_u64..40), 0..60),
        ) {
            let mut keepalive = Keepalive::new(PERIOD, TIMEOUT, failures);
            let (mut now, mut heard) = (Duration::ZERO, Duration::ZERO);
            let mut missed: Vec<Duration> = Vec::new();
            let mut moments = moments.into_iter();
            for _ in 0..200 {
                let (reason, answers, rest) = moments.next().unwrap_or((KeptAlive, false, 0));
                // A server that was heard just now is never suspect.
                let reason = if heard == now && reason == Suspect { KeptAlive } else { reason };
                match keepalive.step(KeepaliveView { now, heard, reason }) {
                    KeepaliveAction::Rest => {
                        prop_assert_eq!(reason, NotNeeded);
                        now += Duration::from_secs(rest);
                    }
                    KeepaliveAction::Wait(pause) => {
                        prop_assert!(pause <= PERIOD && !pause.is_zero());
                        now += pause;
                    }
                    KeepaliveAction::Ping(_) => {
                        prop_assert!(reason == Suspect || reason == KeptAlive && now >= heard + PERIOD);
                        if answers {
                            heard = now;
                            missed.clear();
                        } else {
                            if let Some(last) = missed.last() {
                                prop_assert!(now >= *last + PERIOD);
                            }
                            now += TIMEOUT;
                            missed.push(now);
                            keepalive.ping_missed(now);
                        }
                    }
                    KeepaliveAction::GiveUp => {
                        prop_assert_eq!(missed.len(), failures as usize);
                        return Ok(());
                    }
                }
            }
            prop_assert!(false, "a server that is silent for ever is given up");
        }
    }
}
