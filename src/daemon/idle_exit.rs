//! The exit of an unused service. Pure: the caller supplies the time.

use std::time::Duration;

use tokio::time::Instant;

use crate::status::Activity;

/// The time since which the service is unused.
#[derive(Debug)]
pub(super) struct IdleTimer {
    since: Instant,
    n_total: u64,
}

impl IdleTimer {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, n_total: 0 }
    }

    /// Records the activity, and returns whether there was none for `timeout`; never without one.
    pub(super) fn observe(
        &mut self,
        activity: Activity,
        now: Instant,
        timeout: Option<Duration>,
    ) -> bool {
        // A client may have come and gone since the last check.
        if activity.n_now > 0 || activity.n_total != self.n_total {
            (self.since, self.n_total) = (now, activity.n_total);
            return false;
        }
        timeout.is_some_and(|timeout| now.duration_since(self.since) >= timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_exits_after_it_was_unused_for_its_idle_timeout() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut idle = IdleTimer::new(start);
        let mut look = |n_now, n_total, seconds| {
            let activity = Activity { n_now, n_total };
            idle.observe(activity, at(seconds), Some(Duration::from_secs(10)))
        };
        assert!(!look(0, 0, 9));
        assert!(!look(1, 1, 11), "a client is connected");
        assert!(!look(1, 1, 30));
        assert!(!look(0, 1, 39));
        assert!(!look(0, 2, 40), "a client came and went between two checks");
        assert!(!look(0, 2, 49));
        assert!(look(0, 2, 50));
    }

    #[test]
    fn a_service_without_an_idle_timeout_never_exits() {
        let start = Instant::now();
        let later = start + Duration::from_secs(1_000_000);
        assert!(!IdleTimer::new(start).observe(Activity { n_now: 0, n_total: 0 }, later, None));
    }
}
