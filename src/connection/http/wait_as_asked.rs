//! The waits that an upstream asks for: the request is sent again after them.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::{self, Instant, error::Elapsed};

use super::{Connection, HttpLink, Inbox, OutgoingPost, RequestFailure, ResponseBody, endpoint};
use crate::{
    config::defaults,
    connection::{Link, RetryAfter},
};

/// The waits of one request.
#[derive(Debug, Default)]
pub(super) struct RequestWaits {
    n_waits: u32,
}

/// The end of the latest wait on a connection, in milliseconds of its age.
#[derive(Debug, Default)]
pub(super) struct LatestWait(AtomicU64);

impl RequestWaits {
    /// Returns the pause for a wait that was `asked` for; `None` if it does not fit into the time
    /// `left`, or the request has waited too often. `chance`, from 0 to 1, spreads many requests.
    fn pause(&mut self, asked: Duration, left: Duration, chance: f64) -> Option<Duration> {
        let wait = asked.max(defaults::RETRY_AFTER_MIN);
        let spare = left.checked_sub(wait).filter(|spare| !spare.is_zero())?;
        if self.n_waits >= defaults::RETRY_AFTER_WAITS_MAX {
            return None;
        }
        self.n_waits += 1;
        Some(wait + wait.mul_f64(defaults::RETRY_AFTER_JITTER * chance).min(spare / 2))
    }
}

impl HttpLink {
    /// Waits as the upstream has `asked` in an answer to `post`, and tells the caller. Returns
    /// `false` if the caller leaves meanwhile.
    ///
    /// # Errors
    ///
    /// [`RequestFailure::RetryAfter`] if the request has no time for the wait.
    pub(super) async fn wait_as_asked(
        &self,
        connection: &Connection,
        post: &OutgoingPost,
        inbox: &Inbox,
        waits: &mut RequestWaits,
        (asked, body): (RetryAfter, ResponseBody),
    ) -> Result<bool, RequestFailure> {
        endpoint::finish(body).await;
        let (id, server, now) = (post.id, &connection.server, Instant::now());
        let left = post.ends.saturating_duration_since(now).min(post.silence);
        let Some(pause) = waits.pause(asked.wait, left, fastrand::f64()) else {
            return Err(RequestFailure::RetryAfter(asked));
        };
        tracing::info!(mcp_server = %server, id, "server `{server}` {asked}");
        let end = connection.since.elapsed() + pause;
        self.latest_wait.0.fetch_max(millis(end), Ordering::Relaxed);
        inbox.note_wait(asked);
        tokio::select! {
            biased;
            () = inbox.closed() => {
                connection.forget(id);
                Ok(false)
            }
            () = time::sleep(pause) => Ok(true),
        }
    }
}

impl Connection {
    /// Waits for `future` until the server has been silent for `silence`. The time that it asks to
    /// wait does not count.
    pub(in super::super) async fn within_silence<F: Future>(
        &self,
        silence: Duration,
        mut future: Pin<&mut F>,
    ) -> Result<F::Output, Elapsed> {
        let mut outcome = time::timeout(silence, future.as_mut()).await;
        while outcome.is_err()
            && let Some(left) = self.left_after_wait(silence)
        {
            outcome = time::timeout(left, future.as_mut()).await;
        }
        outcome
    }

    /// Returns the time until the server has been silent for `silence` since the end of its latest
    /// wait; `None` if that is over, or there was no wait.
    fn left_after_wait(&self, silence: Duration) -> Option<Duration> {
        let Link::Http(link) = &self.link else { return None };
        let end = link.latest_wait.0.load(Ordering::Relaxed);
        let end = (end > 0).then(|| Duration::from_millis(end) + silence)?;
        end.checked_sub(self.since.elapsed()).filter(|left| !left.is_zero())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_wait_is_at_least_what_was_asked_for_and_ends_before_the_request() {
        let pause = |asked, left, chance| RequestWaits::default().pause(asked, left, chance);
        assert_eq!(pause(10 * SECOND, 60 * SECOND, 0.0), Some(10 * SECOND));
        assert_eq!(pause(10 * SECOND, 60 * SECOND, 1.0), Some(11 * SECOND));
        assert_eq!(pause(10 * SECOND, 11 * SECOND, 1.0), Some(10 * SECOND + SECOND / 2));
        assert_eq!(pause(10 * SECOND, 10 * SECOND, 0.0), None);
        assert_eq!(pause(Duration::MAX, 60 * SECOND, 0.0), None);
        assert_eq!(pause(Duration::ZERO, SECOND, 0.0), Some(defaults::RETRY_AFTER_MIN));
    }

    #[test]
    fn a_request_waits_a_limited_number_of_times() {
        let mut waits = RequestWaits::default();
        let pauses = std::iter::from_fn(|| waits.pause(SECOND, 60 * SECOND, 0.5));
        assert_eq!(u32::try_from(pauses.take(100).count()), Ok(defaults::RETRY_AFTER_WAITS_MAX));
    }
}
