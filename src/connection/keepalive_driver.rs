//! The task that pings a server during its silence, as [`keepalive`](super::keepalive) decides.
//!
//! The end of a child shows at its pipes; a child that hangs shows only here.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::{
    Connection, Link, RequestFailure, dial,
    keepalive::{Keepalive, KeepaliveAction, KeepaliveReason, KeepaliveView},
};
use crate::{
    config::HealthConfig,
    protocol::{Era, Message, payloads::method},
};

/// Pings the server of an established connection until that is gone, and retires it when the pings
/// get no answer. `is_kept_alive` says that the server is to run even while no client needs it.
pub(super) async fn watch(connection: Arc<Connection>, health: HealthConfig, is_kept_alive: bool) {
    let Some(interval) = health.interval else { return };
    tokio::select! {
        () = connection.wait_until_gone() => {}
        () = watch_until_dead(&connection, interval, health, is_kept_alive) => {
            let server = &connection.server;
            tracing::warn!(
                mcp_server = %server,
                "server `{server}` does not answer pings: metamcp reconnects to it"
            );
            connection.retire(RequestFailure::Unresponsive);
            if connection.is_child() {
                // Its requests get no answer either, and the next connection waits for its end.
                connection.close();
            }
        }
    }
}

async fn watch_until_dead(
    connection: &Arc<Connection>,
    interval: Duration,
    health: HealthConfig,
    is_kept_alive: bool,
) {
    let heard = &connection.counters.heard;
    let mut keepalive = Keepalive::new(interval, health.timeout, health.failures);
    loop {
        let reason = connection.keepalive_reason(is_kept_alive);
        match keepalive.step(KeepaliveView { now: heard.age(), heard: heard.last(), reason }) {
            KeepaliveAction::Rest => heard.suspected().await,
            KeepaliveAction::Wait(pause) => {
                let _until_suspected = time::timeout(pause, heard.suspected()).await;
            }
            KeepaliveAction::Ping(timeout) => {
                heard.note_ping();
                match ping(connection, timeout).await {
                    Ok(()) => heard.note_sign_of_life(),
                    Err(failure) => {
                        let server = &connection.server;
                        tracing::debug!(
                            mcp_server = %server, %failure,
                            "server `{server}` has not answered a ping: {failure}"
                        );
                        keepalive.ping_missed(heard.age());
                        heard.set_missed_pings(keepalive.n_missed);
                    }
                }
            }
            KeepaliveAction::GiveUp => return,
        }
    }
}

/// Sends a ping. Any answer is a sign of life, even a refusal.
async fn ping(connection: &Arc<Connection>, timeout: Duration) -> Result<(), RequestFailure> {
    let request = match connection.era() {
        Era::Legacy => Message::request(method::PING, None),
        Era::Modern => dial::discovery(),
    };
    match connection.probe(&request, timeout).await.map(drop) {
        // The upstream answers, and a new session would not help.
        Err(RequestFailure::Status(status, _)) if status.is_client_error() => Ok(()),
        Err(RequestFailure::RetryAfter(_)) => Ok(()),
        answered => answered,
    }
}

impl Connection {
    /// Returns the reason why the server's liveness matters now.
    fn keepalive_reason(&self, is_kept_alive: bool) -> KeepaliveReason {
        // Abandoned requests are work too, for a limited time.
        self.expire(self.since.elapsed());
        match (&self.link, self.counters.heard.suspected_at()) {
            (Link::Http(_), Some(_)) => KeepaliveReason::Suspect,
            // It answers requests in parallel, and its end shows nowhere else.
            (Link::Http(_), None) => KeepaliveReason::KeptAlive,
            (Link::Stdio(_), Some(since)) => KeepaliveReason::Stuck(since),
            (Link::Stdio(_), None) if !is_kept_alive => KeepaliveReason::NotNeeded,
            (Link::Stdio(_), None) if self.is_idle() => KeepaliveReason::KeptAlive,
            (Link::Stdio(_), None) => KeepaliveReason::Working,
        }
    }
}

#[cfg(test)]
mod tests;
