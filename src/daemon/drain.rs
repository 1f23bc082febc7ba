//! The end of the service: orderly, or immediate if the operator insists.

use std::pin::pin;

use tokio::time::{self, Instant};

use super::{listeners::Listeners, notify, signals::SignalStreams, stop_requests::StopRequests};
use crate::{child, config::defaults, pool::Pool};

/// Finishes `work`, the servers included, and removes the service's own socket. Another request to
/// stop changes nothing. A third one within [`defaults::IMPATIENCE`] kills every descendant of this
/// process and ends at once.
///
/// # Cancel safety
///
/// If dropped early, it can be started again.
pub(super) async fn drain(
    signals: &mut SignalStreams,
    listeners: &Listeners,
    work: impl Future<Output = ()>,
) {
    let mut impatience = StopRequests::new(Instant::now());
    let mut work = pin!(work);
    loop {
        tokio::select! {
            () = &mut work => break,
            () = signals.stop() => {
                if impatience.note_request(Instant::now()) {
                    tracing::warn!("asked to stop three times: every server is killed");
                    child::kill_descendants();
                    break;
                }
                tracing::info!(
                    "asked to stop again: running requests are finished first; to end at once, ask three times within 2 s"
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
    notify::stopping("closing servers", defaults::FAREWELL);
    if time::timeout(defaults::FAREWELL, pool.close()).await.is_err() {
        tracing::error!("some servers did not leave in time");
    }
}
