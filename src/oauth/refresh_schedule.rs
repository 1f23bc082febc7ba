//! The times at which a token is refreshed and expires.
//!
//! Pure: the caller reads both clocks and supplies the random number.

use std::time::{Duration, SystemTime};

use super::moment::Moment;
use crate::config::defaults;

/// The part of a life by which a token counts as expired before its end, and the longest such time:
/// a request that starts now must not arrive late.
const MARGIN: (f64, Duration) = (0.05, Duration::from_secs(10));

/// The shortest time between refreshes.
const REFRESH_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// The life of one token.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefreshSchedule {
    /// The whole life; `None` if unknown.
    lifetime: Option<Duration>,
    /// The moment at which metamcp received or read the token, and its age then.
    since: Moment,
    age_since: Duration,
    /// The age at which a refresh is due.
    due_age: Duration,
}

impl RefreshSchedule {
    /// Returns the schedule of a token that was issued at `issued` by the wall clock, and is received
    /// or read `now`. `chance`, from 0 to 1, is the part of the jitter to use.
    pub(super) fn new(
        issued: SystemTime,
        lifetime: Option<Duration>,
        now: Moment,
        chance: f64,
    ) -> Self {
        // A time in the future means that the clock was set back: the age is unknown.
        let age_since = now.wall.duration_since(issued).unwrap_or_default();
        let part =
            defaults::TOKEN_REFRESH_PART - defaults::TOKEN_REFRESH_JITTER * chance.clamp(0.0, 1.0);
        let due_age = lifetime.unwrap_or_default().mul_f64(part).max(REFRESH_INTERVAL_MIN);
        Self { lifetime, since: now, age_since, due_age }
    }

    /// Returns the whole life of the token; `None` if unknown.
    pub(super) fn lifetime(&self) -> Option<Duration> {
        self.lifetime
    }

    /// Returns the age of the token. Of two clocks that disagree, the later one counts: the host may
    /// have slept. A clock that was set back does not make a token younger.
    pub(super) fn age(&self, now: Moment) -> Duration {
        let monotonic = now.monotonic.saturating_duration_since(self.since.monotonic);
        let wall = now.wall.duration_since(self.since.wall).unwrap_or_default();
        self.age_since.saturating_add(monotonic.max(wall))
    }

    /// Returns the time until a refresh is due; `None` if the life is unknown.
    pub(super) fn due_in(&self, now: Moment) -> Option<Duration> {
        self.lifetime.map(|_| self.due_age.saturating_sub(self.age(now)))
    }

    /// Returns whether the token has expired, or is about to.
    pub(super) fn has_expired(&self, now: Moment) -> bool {
        self.lifetime.is_some_and(|lifetime| {
            let (part, most) = MARGIN;
            self.age(now) >= lifetime.saturating_sub(lifetime.mul_f64(part).min(most))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Returns the moment `monotonic` seconds after `start` by one clock, and `wall` by the other.
    fn after(start: Moment, monotonic: u64, wall: i64) -> Moment {
        let by = Duration::from_secs(wall.unsigned_abs());
        Moment {
            monotonic: start.monotonic + Duration::from_secs(monotonic),
            wall: if wall < 0 { start.wall - by } else { start.wall + by },
        }
    }

    #[test]
    fn a_refresh_is_due_at_three_quarters_of_the_life_or_a_little_earlier() {
        let start = Moment::now();
        for (chance, due) in [(0.0, 2700), (0.5, 2520), (1.0, 2340)] {
            let schedule = RefreshSchedule::new(start.wall, Some(HOUR), start, chance);
            assert_eq!(schedule.due_in(start), Some(Duration::from_secs(due)));
            assert_eq!(schedule.due_in(after(start, due, due as i64)), Some(Duration::ZERO));
        }
    }

    #[test]
    fn a_clock_that_is_set_back_changes_nothing() {
        let start = Moment::now();
        let schedule = RefreshSchedule::new(start.wall, Some(HOUR), start, 0.0);
        assert_eq!(schedule.due_in(after(start, 700, -86_400)), Some(Duration::from_secs(2000)));
        assert!(schedule.has_expired(after(start, 3600, -86_400)));
        // The token was stored before the clock was set back, and read after it.
        let read = RefreshSchedule::new(start.wall + 5 * HOUR, Some(HOUR), start, 0.0);
        assert!(!read.has_expired(start));
        assert!(read.has_expired(after(start, 3600, 3600)), "it lives for one life at most");
    }

    #[test]
    fn a_host_that_slept_finds_its_token_expired() {
        let start = Moment::now();
        let schedule = RefreshSchedule::new(start.wall, Some(HOUR), start, 0.0);
        let awake = after(start, 1, 7200);
        assert!(schedule.has_expired(awake));
        assert_eq!(schedule.due_in(awake), Some(Duration::ZERO));
    }

    #[test]
    fn a_token_of_unknown_life_never_expires_and_is_never_due() {
        let start = Moment::now();
        let schedule = RefreshSchedule::new(start.wall, None, start, 0.0);
        let later = after(start, 1 << 30, 1 << 30);
        assert!(schedule.due_in(later).is_none() && !schedule.has_expired(later));
    }

    proptest! {
        #[test]
        fn a_refresh_is_due_before_the_token_expires(
            life in 2_u64..1 << 28, chance in -1.0..2.0_f64, age in 0_u64..1 << 29, wall in -1_i64 << 29..1 << 29,
        ) {
            let start = Moment::now();
            let life = Duration::from_secs(life);
            let schedule = RefreshSchedule::new(start.wall, Some(life), start, chance);
            let due = schedule.due_in(start).expect("a known life");
            prop_assert!(due <= life.mul_f64(0.75) && due >= life.mul_f64(0.649));
            let now = after(start, age, wall);
            prop_assert!(!schedule.has_expired(now) || schedule.due_in(now) == Some(Duration::ZERO));
            prop_assert!(schedule.age(now) >= Duration::from_secs(age));
        }

        #[test]
        fn an_age_never_shrinks(steps in prop::collection::vec((0_u64..1000, -5000_i64..5000), 1..20)) {
            let start = Moment::now();
            let schedule = RefreshSchedule::new(start.wall, Some(HOUR), start, 0.0);
            let (mut now, mut was_due) = (start, schedule.due_in(start));
            for (monotonic, wall) in steps {
                // The wall clock may only lag behind, or jump ahead once.
                now = after(now, monotonic, wall.max(0));
                let due = schedule.due_in(now);
                prop_assert!(due <= was_due);
                was_due = due;
            }
        }
    }
}
