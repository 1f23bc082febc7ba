//! Background reconnects of a `keep-alive` server, or of a server with watched resources.
//!
//! While the breaker is closed, such an attempt does not report to it: requests judge the server.
//! Once the breaker has tripped, the first attempt after the cooldown is its probe.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::{Supervisor, SupervisorState};
use crate::{
    backoff::Backoff,
    breaker::BreakerIncident,
    capacity_holder::Holder,
    config::defaults,
    connection::ConnectionOwner,
    pool::{breaker_gate::BreakerOpen, error::SlotError},
};

/// The background reconnects of one connection.
#[derive(Debug, Default)]
pub(super) struct Reconnects {
    /// A task reconnects.
    is_running: bool,
    /// The number of consecutive failures.
    pub(super) n_failed: u32,
    /// The pause before the next attempt, unless it is the first one.
    pub(super) backoff: Option<Backoff>,
}

impl Reconnects {
    /// Returns the pause before the next attempt.
    fn pause(&mut self) -> Duration {
        let backoff = self.backoff.get_or_insert_with(|| Backoff::new(defaults::RECONNECT_PAUSE));
        backoff.pause(fastrand::f64())
    }
}

impl Supervisor {
    /// Schedules a background reconnect if the server should be connected.
    pub(super) fn schedule_reconnect(self: &Arc<Self>, state: &mut SupervisorState) {
        let has_attempts = !self.is_at_max_reconnects(state.reconnects.n_failed);
        if self.is_desired() && !state.reconnects.is_running && !state.is_closing && has_attempts {
            state.reconnects.is_running = true;
            let reconnect = Arc::clone(self).reconnect();
            let closing = self.closing.clone();
            self.context.dialer.tasks().spawn(closing.run_until_cancelled_owned(reconnect));
        }
    }

    /// Returns whether the connection should exist without a request for it.
    fn is_desired(&self) -> bool {
        self.context.declared.is_reconnected()
            || (matches!(self.owner, ConnectionOwner::Shared) && self.is_watched())
    }

    /// Returns whether the maximum number of background reconnects is used up.
    fn is_at_max_reconnects(&self, n_reconnects_failed: u32) -> bool {
        self.context.declared.health.max_reconnects.is_some_and(|max| max <= n_reconnects_failed)
    }

    /// Reconnects with growing pauses, until it succeeds, the maximum is reached, or the connection
    /// is no longer desired.
    async fn reconnect(self: Arc<Self>) {
        loop {
            let pause = self.state().reconnects.pause();
            time::sleep(pause).await;
            {
                let mut state = self.state();
                if !self.is_desired() {
                    state.reconnects.is_running = false;
                    return;
                }
            }
            let outcome = self.probe().await;
            // Decided under the lock, so that an end at this moment is not missed.
            let mut state = self.state();
            if matches!(outcome, Err(SlotError::Closing(_))) || self.live().is_some() {
                state.reconnects.is_running = false;
                return;
            }
            state.reconnects.n_failed = state.reconnects.n_failed.saturating_add(1);
            if self.is_at_max_reconnects(state.reconnects.n_failed) {
                state.reconnects.is_running = false;
                let (name, n_attempts) = (self.name(), state.reconnects.n_failed);
                tracing::warn!(
                    mcp_server = %name, n_attempts,
                    "server `{name}` is not reconnected before the next request: {n_attempts} attempts failed"
                );
                return;
            }
        }
    }

    /// Connects as soon as the breaker allows it, and reports to the breaker if it had tripped.
    async fn probe(self: &Arc<Self>) -> Result<(), SlotError> {
        let permit = loop {
            if self.live().is_some() {
                // A request made this connection. Its existence does not answer the probe.
                return Ok(());
            }
            match self.context.gate.admit(Holder::SERVICE) {
                Ok(permit) => break permit,
                Err(BreakerOpen { retry_in, .. }) => time::sleep(retry_in).await,
            }
        };
        let outcome = self.lease(Holder::SERVICE, None).await.map(drop);
        if permit.is_probe() {
            match &outcome {
                Ok(()) => permit.succeeded(),
                Err(error @ SlotError::Dial { attempt, .. }) => {
                    let incident = Some(BreakerIncident::Dial(*attempt));
                    permit.failed(error.fault(), incident, error, error.cause());
                }
                // The outcome is unknown.
                Err(_) => drop(permit),
            }
        }
        outcome
    }
}
