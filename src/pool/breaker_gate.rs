//! The circuit breaker of one server, with a lock and a clock.

use std::{
    error::Error,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    breaker::{Breaker, BreakerChange, BreakerIncident, BreakerSnapshot, BreakerTicket},
    capacity_holder::Holder,
    config::{self, defaults},
    error_report::chain,
    fault_class::Fault,
    pool::server_events::{ServerEventKind, ServerEvents},
    redact,
    server_name::ServerName,
    telemetry::message_id::message_id,
};

/// One server's breaker. It belongs to the server and outlives every connection.
#[derive(Debug)]
pub struct BreakerGate {
    server: ServerName,
    opened: Instant,
    breaker: Mutex<Breaker>,
    /// The log says that the server refuses its credentials, since the last success.
    is_refusal_logged: AtomicBool,
    /// The cause of the last counted failure, about the server.
    cause: Mutex<Option<Arc<str>>>,
    events: Arc<ServerEvents>,
}

/// The permission to send one request to the server. Dropping it without a report cancels it.
#[derive(Debug)]
#[must_use]
pub struct GatePass {
    gate: Arc<BreakerGate>,
    ticket: Option<BreakerTicket>,
}

/// The error for a request that must not reach the server now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the breaker is open")]
pub struct BreakerOpen {
    /// The longest time until a request may pass.
    pub retry_in: Duration,
    /// The cause of the last failure, about the server: "its process exited with code 1".
    pub cause: Option<Arc<str>>,
}

impl BreakerGate {
    /// Returns a gate that admits all requests.
    pub fn new(
        server: ServerName,
        settings: config::BreakerConfig,
        events: Arc<ServerEvents>,
    ) -> Arc<Self> {
        let breaker = Mutex::new(Breaker::new(settings));
        let is_refusal_logged = AtomicBool::new(false);
        let (opened, cause) = (Instant::now(), Mutex::default());
        Arc::new(Self { server, opened, breaker, is_refusal_logged, cause, events })
    }

    /// Admits one request, or one connection attempt, of `holder`.
    ///
    /// # Errors
    ///
    /// [`BreakerOpen`] while the breaker is open.
    pub fn admit(self: &Arc<Self>, holder: Holder) -> Result<GatePass, BreakerOpen> {
        let admitted = self.breaker().admit(holder, self.now());
        match admitted {
            Ok(ticket) => Ok(GatePass { gate: Arc::clone(self), ticket: Some(ticket) }),
            Err(retry_in) => Err(BreakerOpen { retry_in, cause: self.cause().clone() }),
        }
    }

    /// Replaces the settings.
    pub fn configure(&self, settings: config::BreakerConfig) {
        self.breaker().configure(settings);
    }

    /// Returns the state for status output.
    pub fn snapshot(&self) -> BreakerSnapshot {
        self.breaker().snapshot(self.now())
    }

    fn now(&self) -> Duration {
        self.opened.elapsed()
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        // Held only for single statements on plain data.
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cause(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        // Held only for single statements on plain data.
        self.cause.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs the state change that a report caused. The callers log the failures themselves.
    fn log_change(&self, change: BreakerChange, fault: Option<Fault>) {
        let server = &self.server;
        match change {
            BreakerChange::Nothing => {}
            BreakerChange::Tripped { failures } => {
                let fault = fault.map_or("none", Fault::name);
                let cause = self.cause().clone().unwrap_or_else(|| fault.into());
                self.events.record(ServerEventKind::BreakerOpened, &cause);
                tracing::warn!(
                    mcp_server = %server, fault, failures, message_id = message_id("SERVER_TRIPPED"),
                    "breaker tripped: server `{server}` failed {failures} times (last: {cause}), so its requests are refused"
                );
            }
            BreakerChange::Normal => {
                self.events.record(ServerEventKind::BreakerClosed, "");
                tracing::info!(
                    mcp_server = %server, "breaker normal again: server `{server}` works"
                );
            }
        }
    }
}

impl GatePass {
    /// Returns whether this is the probe, which decides whether other requests may pass.
    pub fn is_probe(&self) -> bool {
        self.ticket.as_ref().is_some_and(BreakerTicket::is_probe)
    }

    /// Reports that the server has answered.
    pub fn succeeded(mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.gate.is_refusal_logged.store(false, Ordering::Relaxed);
            let change = self.gate.breaker().succeeded(&ticket, self.gate.now());
            self.gate.log_change(change, None);
        }
    }

    /// Reports that the request has finally failed, after all retries. `incident` is the cause that
    /// other failed requests may share; `details` is for the log. `cause` is about the server, for
    /// all clients.
    pub fn failed(
        mut self,
        fault: Fault,
        incident: Option<BreakerIncident>,
        details: &dyn Error,
        cause: Option<String>,
    ) {
        let Some(ticket) = self.ticket.take() else { return };
        let gate = &self.gate;
        if let Some(cause) = cause.filter(|_| fault.counts()) {
            *gate.cause() = Some(redact::cut(&cause, defaults::SERVER_EVENT_BYTES_MAX).into());
        }
        let change = gate.breaker().failed(&ticket, fault, incident, gate.now());
        // Each call fails until an operator acts, and the breaker does not count it.
        if fault == Fault::Auth && !gate.is_refusal_logged.swap(true, Ordering::Relaxed) {
            let (server, error) = (&gate.server, chain(details));
            tracing::warn!(
                mcp_server = %server, error,
                "server `{server}` refuses its credentials: {error}"
            );
        }
        gate.log_change(change, Some(fault));
    }
}

impl Drop for GatePass {
    fn drop(&mut self) {
        if let Some(ticket) = &self.ticket {
            self.gate.breaker().cancelled(ticket, self.gate.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breaker::BreakerState;

    const SETTINGS: config::BreakerConfig =
        config::BreakerConfig { failure_threshold: 1, cooldown: Duration::from_secs(30) };

    fn tripped() -> Arc<BreakerGate> {
        let gate =
            BreakerGate::new(ServerName::new("git").expect("a name"), SETTINGS, Arc::default());
        gate.admit(Holder::SERVICE).expect("it passes").failed(
            Fault::Other,
            None,
            &BreakerOpen { retry_in: Duration::ZERO, cause: None },
            Some("its process exited".to_owned()),
        );
        gate
    }

    #[tokio::test(start_paused = true)]
    async fn the_breaker_admits_a_probe_after_the_cooldown() {
        let gate = tripped();
        assert_eq!(
            gate.admit(Holder::SERVICE).err(),
            Some(BreakerOpen {
                retry_in: SETTINGS.cooldown,
                cause: Some("its process exited".into())
            })
        );
        tokio::time::advance(SETTINGS.cooldown).await;
        gate.admit(Holder::SERVICE).expect("the probe").succeeded();
        assert_eq!(gate.snapshot().state, BreakerState::Normal);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_probe_lets_the_next_request_be_the_probe() {
        let gate = tripped();
        tokio::time::advance(SETTINGS.cooldown).await;
        let probe = gate.admit(Holder::SERVICE).expect("the probe");
        assert!(gate.admit(Holder::SERVICE).is_err(), "one at a time");
        drop(probe);
        assert!(gate.admit(Holder::SERVICE).is_ok());
    }
}
