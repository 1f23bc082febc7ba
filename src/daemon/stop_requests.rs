//! The requests to stop the service. Pure: the caller supplies the time.

use tokio::time::Instant;

use crate::config::defaults::STOP_REPEAT_WINDOW;

/// The requests to stop. A second one changes nothing: running requests are finished. A third one
/// within [`STOP_REPEAT_WINDOW`] of the first means that the operator does not want to wait.
#[derive(Debug)]
pub(super) struct StopRequests {
    before_last: Option<Instant>,
    last: Instant,
}

impl StopRequests {
    /// Records the first request.
    pub(super) fn new(now: Instant) -> Self {
        Self { before_last: None, last: now }
    }

    /// Records another request, and returns whether it is the third within [`STOP_REPEAT_WINDOW`].
    pub(super) fn note_request(&mut self, now: Instant) -> bool {
        let is_third = self.before_last.is_some_and(|first| now <= first + STOP_REPEAT_WINDOW);
        self.before_last = Some(std::mem::replace(&mut self.last, now));
        is_third
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_third_stop_request_within_two_seconds_is_recognised() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut quick = StopRequests::new(start);
        assert!(!quick.note_request(at(1000)), "the second");
        assert!(quick.note_request(at(2000)), "the third");

        let mut slow = StopRequests::new(start);
        assert!(!slow.note_request(at(1000)));
        assert!(!slow.note_request(at(2001)), "the first was too long ago");
        assert!(slow.note_request(at(3000)), "the third of the last two seconds");
    }
}
