//! The watch over an upstream: pings into its silence.
//!
//! A child needs none: its end is seen at its pipes.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use tokio::time;

use super::{
    Connection, Failure, Limits,
    keepalive::{Keepalive, Step},
};
use crate::{
    config::Health,
    protocol::{Message, mcp::method},
};

/// Pings the server of `connection` for as long as this is polled, and retires the connection
/// when nobody answers. It begins when the connection is established.
pub(super) async fn watch(connection: &Arc<Connection>, health: Health) -> Infallible {
    if let Some(interval) = health.interval {
        connection.warm_up.done().await;
        tokio::select! {
            () = connection.gone() => {}
            () = watch_until_dead(connection, interval, health.timeout) => {
                tracing::warn!(mcp_server = %connection.server, "server does not answer pings");
                connection.retire(Failure::Unresponsive);
            }
        }
    }
    pending().await
}

async fn watch_until_dead(connection: &Arc<Connection>, interval: Duration, patience: Duration) {
    let mut keepalive = Keepalive::new(interval);
    loop {
        match keepalive.step(connection.counters.heard.silence()) {
            Step::Wait(pause) => time::sleep(pause).await,
            Step::Ping => match ping(connection, patience).await {
                Ok(()) => connection.counters.heard.now(),
                Err(failure) => {
                    tracing::debug!(mcp_server = %connection.server, %failure, "ping not answered");
                    keepalive.missed();
                }
            },
            Step::GiveUp => return,
        }
    }
}

/// Any answer is a sign of life, a refusal too.
async fn ping(connection: &Arc<Connection>, patience: Duration) -> Result<(), Failure> {
    let limits = Limits { silence: patience, total: patience };
    let ping = Message::request(method::PING, None);
    match connection.ask(&ping, limits).await.map(drop) {
        // Somebody is there, and a new session would not help.
        Err(Failure::Status { status, .. }) if status.is_client_error() => Ok(()),
        // Nothing can be said while we ourselves have too much under way.
        Err(Failure::Saturated) => Ok(()),
        answered => answered,
    }
}
