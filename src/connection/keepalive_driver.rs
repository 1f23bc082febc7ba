//! The task that pings a server during its silence, as [`keepalive`](super::keepalive) decides.
//!
//! The end of a child shows at its pipes; a child that hangs shows only here.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::{
    Connection, Link, RequestFailure,
    keepalive::{Keepalive, KeepaliveAction, KeepaliveReason, KeepaliveView},
};
use crate::config::HealthConfig;

/// Pings the server of an established connection until that is gone, and retires it when the pings
/// get no answer. `is_kept_alive` says that the server is to run even while no client needs it.
pub(super) async fn watch(connection: Arc<Connection>, health: HealthConfig, is_kept_alive: bool) {
    let Some(interval) = health.interval else { return };
    tokio::select! {
        () = connection.wait_until_gone() => {}
        () = watch_until_dead(&connection, interval, health, is_kept_alive) => {
            tracing::warn!(mcp_server = %connection.server, "server does not answer pings");
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
        let concern = connection.concern(is_kept_alive);
        match keepalive.step(KeepaliveView { now: heard.age(), heard: heard.last(), concern }) {
            KeepaliveAction::Rest => heard.suspected().await,
            KeepaliveAction::Wait(pause) => {
                let _until_suspected = time::timeout(pause, heard.suspected()).await;
            }
            KeepaliveAction::Ping { patience } => {
                heard.pinged();
                match ping(connection, patience).await {
                    Ok(()) => heard.now(),
                    Err(failure) => {
                        tracing::debug!(mcp_server = %connection.server, %failure, "ping not answered");
                        keepalive.ping_missed(heard.age());
                        heard.missed_pings(keepalive.n_missed());
                    }
                }
            }
            KeepaliveAction::GiveUp => return,
        }
    }
}

/// Sends a ping. Any answer is a sign of life, even a refusal.
async fn ping(connection: &Arc<Connection>, patience: Duration) -> Result<(), RequestFailure> {
    match connection.probe(patience).await.map(drop) {
        // The upstream answers, and a new session would not help.
        Err(RequestFailure::Status { status, .. }) if status.is_client_error() => Ok(()),
        answered => answered,
    }
}

impl Connection {
    /// Returns the reason why the server's liveness matters now.
    fn concern(&self, is_kept_alive: bool) -> KeepaliveReason {
        // Abandoned requests are work too, but not for ever.
        self.expire(self.since.elapsed());
        match (&self.link, self.counters.heard.suspected_at()) {
            (Link::Http(_), Some(_)) => KeepaliveReason::Suspect,
            // It answers requests in parallel, and its end shows nowhere else.
            (Link::Http(_), None) => KeepaliveReason::Kept,
            (Link::Stdio(_), Some(since)) => KeepaliveReason::Stuck { since },
            (Link::Stdio(_), None) if !is_kept_alive => KeepaliveReason::Nobodys,
            (Link::Stdio(_), None) if self.is_idle() => KeepaliveReason::Kept,
            (Link::Stdio(_), None) => KeepaliveReason::Working,
        }
    }
}

#[cfg(test)]
mod tests;
