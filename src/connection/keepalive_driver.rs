//! The watch over a server: pings into its silence, as [`keepalive`](super::keepalive) has it.
//!
//! The end of a child is seen at its pipes. What is not seen there is one that hangs.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::{
    Connection, Link, RequestFailure,
    keepalive::{Keepalive, KeepaliveAction, KeepaliveReason, KeepaliveView},
};
use crate::config::HealthConfig;

/// Pings the server of an established connection until that is gone, and retires it when nobody
/// answers. `is_kept_alive` says that the server is to be there also while nobody asks.
pub(super) async fn watch(connection: Arc<Connection>, health: HealthConfig, is_kept_alive: bool) {
    let Some(interval) = health.interval else { return };
    tokio::select! {
        () = connection.wait_until_gone() => {}
        () = watch_until_dead(&connection, interval, health, is_kept_alive) => {
            tracing::warn!(mcp_server = %connection.server, "server does not answer pings");
            connection.retire(RequestFailure::Unresponsive);
            if connection.is_child() {
                // What runs there gets no answer either, and the next one waits for its end.
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

/// Any answer is a sign of life, a refusal too.
async fn ping(connection: &Arc<Connection>, patience: Duration) -> Result<(), RequestFailure> {
    match connection.probe(patience).await.map(drop) {
        // Somebody is there, and a new session would not help.
        Err(RequestFailure::Status { status, .. }) if status.is_client_error() => Ok(()),
        answered => answered,
    }
}

impl Connection {
    /// Returns why it matters now whether the server lives.
    fn concern(&self, is_kept_alive: bool) -> KeepaliveReason {
        // An answer that nobody waits for any more is work too, but not for ever.
        self.expire(self.since.elapsed());
        match (&self.link, self.counters.heard.suspected_at()) {
            (Link::Http(_), Some(_)) => KeepaliveReason::Suspect,
            // It answers its requests side by side, and its end is not seen.
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
