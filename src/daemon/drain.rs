//! The end of the service: orderly, or immediate if the operator insists.

use std::pin::pin;

use tokio::time::{self, Instant};

use super::{listeners::Listeners, notify, signals::SignalStreams, stop_requests::StopRequests};
use crate::{child, config::defaults, pool::Pool};

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
