//! The end of the service: orderly, or immediate if the operator insists.

use std::pin::pin;

use tokio::time::{self, Instant};

use super::{listeners::Listeners, notify, signals::SignalStreams};
use crate::{
    child,
    config::defaults::{self, STOP_REPEAT_WINDOW},
    pool::Pool,
};

/// The requests to stop. A second one changes nothing: running requests are finished. A third one
/// within [`STOP_REPEAT_WINDOW`] of the first means that the operator does not want to wait.
#[derive(Debug)]
struct StopRequests {
    before_last: Option<Instant>,
    last: Instant,
}

impl StopRequests {
    /// Records the first request.
    fn new(now: Instant) -> Self {
        Self { before_last: None, last: now }
    }

    /// Records another request, and returns whether it is the third within [`STOP_REPEAT_WINDOW`].
    fn note_request(&mut self, now: Instant) -> bool {
        let is_third = self.before_last.is_some_and(|first| now <= first + STOP_REPEAT_WINDOW);
        self.before_last = Some(std::mem::replace(&mut self.last, now));
        is_third
    }
}

/// Finishes `work`, the servers included, and removes the service's own socket. A second request to
/// stop changes nothing. A third one within [`defaults::STOP_REPEAT_WINDOW`] kills every descendant
/// of this process and ends at once.
///
/// # Cancel safety
///
/// If dropped early, it can be started again.
pub(super) async fn drain(
    signals: &mut SignalStreams,
    listeners: &Listeners,
    work: impl Future<Output = ()>,
) {
    let mut requests = StopRequests::new(Instant::now());
    let mut work = pin!(work);
    loop {
        tokio::select! {
            () = &mut work => break,
            () = signals.stop() => {
                if requests.note_request(Instant::now()) {
                    tracing::warn!("asked to stop three times: killing all servers");
                    child::kill_descendants();
                    break;
                }
                tracing::info!(
                    "asked to stop again: finishing running requests first; three requests within 2 s end the service at once"
                );
            }
        }
    }
    listeners.clean_up();
    tracing::info!("stopped");
}

/// Closes the servers.
///
/// # Cancel safety
///
/// If dropped early, servers that are not yet closed continue.
pub(super) async fn close(pool: &Pool) {
    notify::stopping("closing servers", defaults::SERVERS_END_TIMEOUT);
    if time::timeout(defaults::SERVERS_END_TIMEOUT, pool.close()).await.is_err() {
        let limit = defaults::SERVERS_END_TIMEOUT;
        tracing::error!("some servers did not end within {limit:?}");
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
