//! Background reconnects of a `keep-alive` server, or of a server with watched resources.
//!
//! While the breaker is closed, such an attempt does not report to it: requests judge the server.
//! Once the breaker has tripped, the first attempt after the cooldown is its probe.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::{KeeperState, Supervisor};
use crate::{
    backoff::Backoff,
    breaker::BreakerIncident,
    capacity_holder::Holder,
    config::defaults,
    connection::ConnectionOwner,
    pool::{breaker_gate::BreakerOpen, error::SlotError},
};

impl Supervisor {
    /// Schedules a background reconnect if the server should be connected.
    pub(super) fn schedule_reconnect(self: &Arc<Self>, state: &mut KeeperState) {
        let is_enough = self.is_enough(state.n_redials_failed);
        if self.is_wanted() && !state.is_redialling && !state.is_closing && !is_enough {
            state.is_redialling = true;
            let redial = Arc::clone(self).redial();
            let closing = self.closing.clone();
            self.origin.dialer.tasks().spawn(closing.run_until_cancelled_owned(redial));
        }
    }

    /// Returns whether the connection should exist without a request for it.
    fn is_wanted(&self) -> bool {
        self.origin.declared.is_reconnected()
            || (matches!(self.party, ConnectionOwner::Shared) && self.is_watched())
    }

    /// Returns whether the maximum number of background reconnects is used up.
    fn is_enough(&self, n_redials_failed: u32) -> bool {
        self.origin.declared.health.max_reconnects.is_some_and(|max| max <= n_redials_failed)
    }

    /// Reconnects with growing pauses, until it succeeds, the maximum is reached, or the connection
    /// is not wanted any more.
    async fn redial(self: Arc<Self>) {
        loop {
            time::sleep(self.pause()).await;
            {
                let mut state = self.state();
                if !self.is_wanted() {
                    state.is_redialling = false;
                    return;
                }
            }
            let outcome = self.probe().await;
            // Decided under the lock, so that an end at this moment is not missed.
            let mut state = self.state();
            if matches!(outcome, Err(SlotError::Closing(_))) || self.live().is_some() {
                state.is_redialling = false;
                return;
            }
            state.n_redials_failed = state.n_redials_failed.saturating_add(1);
            if self.is_enough(state.n_redials_failed) {
                state.is_redialling = false;
                tracing::warn!(
                    mcp_server = %self.name(), n_attempts = state.n_redials_failed,
                    "server is left alone until a request asks for it"
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
            match self.origin.gate.admit(Holder::SERVICE) {
                Ok(permit) => break permit,
                Err(BreakerOpen { retry_in }) => time::sleep(retry_in).await,
            }
        };
        let outcome = self.lease(Holder::SERVICE, None).await.map(drop);
        if permit.is_probe() {
            match &outcome {
                Ok(()) => permit.succeeded(),
                Err(error @ SlotError::Dial { attempt, .. }) => {
                    permit.failed(error.fault(), Some(BreakerIncident::Dial(*attempt)), error);
                }
                // The outcome is unknown.
                Err(_) => drop(permit),
            }
        }
        outcome
    }

    /// Returns the pause before the next background reconnect.
    fn pause(&self) -> Duration {
        let mut state = self.state();
        let backoff = state.backoff.get_or_insert_with(|| Backoff::new(defaults::RECONNECT_PAUSE));
        backoff.pause(fastrand::f64())
    }
}
