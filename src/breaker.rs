//! A circuit breaker, which rejects requests to a server that keeps failing and probes it later.
//!
//! ```text
//!             failures in a row                 the cooldown is over
//!  Passing ───────────────────────▶ Tripped ───────────────────────▶ Probing
//!  (normal) ◀──────┐                (open) ◀──────┐                  (probe)
//!                  │                              │                    │ │
//!                  └──────────────────────────────┼─── succeeded ──────┘ │
//!                                                 └── failed, or left ───┘
//! ```
//!
//! A timeout may be the fault of a client that asks for too much. Therefore the timeouts of one
//! client do not trip the breaker while another client uses the server.
//!
//! Pure: the caller passes the time since a fixed moment. One probe runs at a time, and a failed
//! probe trips the breaker again at once.

use std::{collections::VecDeque, time::Duration};

use serde::Serialize;

use crate::{
    capacity_holder::Holder,
    config::{BreakerConfig as Settings, defaults},
    fault_class::Fault,
};

mod recent_clients;

use recent_clients::RecentClients;

/// One server's breaker.
#[derive(Debug)]
pub struct Breaker {
    settings: Settings,
    state: State,
    /// The number of failures since the last success.
    failures: u32,
    /// The incidents among these failures, each with the number of failures up to it.
    incidents: VecDeque<(BreakerIncident, u64)>,
    /// The number of failures ever counted.
    n_counted: u64,
    /// The number of trips. Requests admitted before the last trip are ignored.
    trips: u64,
    n_probes: u64,
    last_fault: Option<Fault>,
    clients: RecentClients,
    /// The clients with timeouts among the failures, and the number of those.
    timeouts: Vec<(Holder, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Requests pass.
    Passing,
    /// Requests are rejected, until a probe may pass.
    Tripped { until: Duration },
    /// A probe is running. Requests are rejected until another probe may pass.
    Probing { until: Duration },
}

/// The admission of a request. The caller must report the outcome.
#[derive(Debug, PartialEq, Eq)]
pub struct BreakerTicket {
    /// The holder that the request counts for.
    holder: Holder,
    trips: u64,
    n_counted: u64,
    /// The number of the probe, if it is one.
    probe: Option<u64>,
}

impl BreakerTicket {
    /// Returns whether it belongs to a probe.
    pub fn is_probe(&self) -> bool {
        self.probe.is_some()
    }
}

/// An event that makes requests fail, which decides how the breaker counts the failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerIncident {
    /// The request timed out, independently of others.
    Timeout,
    /// The connection of this generation ended, with all its requests.
    Connection(u64),
    /// The connection attempt with this number failed, for all its waiters.
    Dial(u64),
}

/// The change that a report has caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum BreakerChange {
    /// No change.
    Nothing,
    /// Requests are rejected after these failures.
    Tripped {
        /// The number of failures, 1 for a failed probe.
        failures: u32,
    },
    /// Requests pass again.
    Normal,
}

/// The status of a breaker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakerSnapshot {
    /// `normal`, `open` or `probe`.
    pub state: BreakerState,
    /// The number of consecutive failures.
    pub failures: u32,
    /// The number of trips.
    pub trips: u64,
    /// The time until a probe may pass, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_probe_ms: Option<u64>,
    /// The kind of the last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_fault: Option<Fault>,
}

/// The state of a breaker, as operators see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BreakerState {
    /// Requests pass.
    Normal,
    /// Requests are rejected.
    Open,
    /// A probe is running. Other requests are rejected.
    Probe,
}

impl Breaker {
    /// Returns a breaker that admits all requests.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            state: State::Passing,
            failures: 0,
            incidents: VecDeque::new(),
            n_counted: 0,
            trips: 0,
            n_probes: 0,
            last_fault: None,
            clients: RecentClients::default(),
            timeouts: Vec::new(),
        }
    }

    /// Admits a request of `holder`. If a probe has no outcome within a cooldown, another one may
    /// pass.
    ///
    /// # Errors
    ///
    /// The time after which a probe may pass.
    pub fn admit(&mut self, holder: Holder, now: Duration) -> Result<BreakerTicket, Duration> {
        let probe = match self.state {
            State::Passing => None,
            State::Tripped { until } | State::Probing { until } if now < until => {
                return Err(until - now);
            }
            State::Tripped { .. } | State::Probing { .. } => {
                self.n_probes += 1;
                self.state = State::Probing { until: now + self.settings.cooldown };
                Some(self.n_probes)
            }
        };
        self.clients.note(holder, now);
        Ok(BreakerTicket { holder, trips: self.trips, n_counted: self.n_counted, probe })
    }

    /// Records that a request was answered.
    pub fn succeeded(&mut self, ticket: &BreakerTicket, now: Duration) -> BreakerChange {
        self.clients.note(ticket.holder, now);
        if ticket.trips != self.trips {
            return BreakerChange::Nothing;
        }
        self.forget_failures();
        // A late probe counts too: otherwise a server that takes longer than a cooldown would be
        // rejected forever.
        match std::mem::replace(&mut self.state, State::Passing) {
            State::Passing => BreakerChange::Nothing,
            State::Tripped { .. } | State::Probing { .. } => BreakerChange::Normal,
        }
    }

    /// Records that a request has failed.
    pub fn failed(
        &mut self,
        ticket: &BreakerTicket,
        fault: Fault,
        incident: Option<BreakerIncident>,
        now: Duration,
    ) -> BreakerChange {
        if fault != Fault::Cancelled {
            self.last_fault = Some(fault);
        }
        match fault {
            // The server is reachable after `Auth` and `Throttled`, but it may not work.
            Fault::Cancelled | Fault::Auth | Fault::Throttled => {
                self.cancelled(ticket, now);
                return BreakerChange::Nothing;
            }
            // The server has responded.
            Fault::Protocol => return self.succeeded(ticket, now),
            Fault::Offline | Fault::Http | Fault::StdioExit | Fault::Other => {}
        }
        if ticket.trips != self.trips {
            return BreakerChange::Nothing;
        }
        match self.state {
            State::Passing => self.count(ticket, incident, now),
            // A late probe counts too.
            State::Probing { .. } | State::Tripped { .. } if ticket.probe.is_some() => {
                self.n_counted += 1;
                self.trip(now);
                BreakerChange::Tripped { failures: 1 }
            }
            // Only a probe decides.
            State::Probing { .. } | State::Tripped { .. } => BreakerChange::Nothing,
        }
    }

    /// Records that a request's outcome is unknown. A probe makes way for the next one at once.
    pub fn cancelled(&mut self, ticket: &BreakerTicket, now: Duration) {
        let is_deciding = ticket.trips == self.trips && ticket.probe == Some(self.n_probes);
        if is_deciding && matches!(self.state, State::Probing { .. }) {
            self.state = State::Tripped { until: now };
        }
    }

    /// Replaces the settings.
    pub fn configure(&mut self, settings: Settings) {
        let before = std::mem::replace(&mut self.settings, settings).cooldown;
        match &mut self.state {
            State::Passing => {}
            state if settings.failure_threshold == 0 => *state = State::Passing,
            State::Tripped { until } | State::Probing { until } => {
                *until = until.saturating_sub(before) + settings.cooldown;
            }
        }
    }

    /// Returns the status.
    pub fn snapshot(&self, now: Duration) -> BreakerSnapshot {
        let (state, until) = match self.state {
            State::Passing => (BreakerState::Normal, None),
            State::Tripped { until } => (BreakerState::Open, Some(until)),
            State::Probing { until } => (BreakerState::Probe, Some(until)),
        };
        let next_probe_ms = until
            .map(|until| u64::try_from(until.saturating_sub(now).as_millis()).unwrap_or(u64::MAX));
        BreakerSnapshot {
            state,
            failures: self.failures,
            trips: self.trips,
            next_probe_ms,
            last_fault: self.last_fault,
        }
    }

    /// Counts a failure, unless its incident is already counted.
    fn count(
        &mut self,
        ticket: &BreakerTicket,
        incident: Option<BreakerIncident>,
        now: Duration,
    ) -> BreakerChange {
        if incident.is_some_and(|incident| self.is_known(incident, ticket)) {
            return BreakerChange::Nothing;
        }
        let is_timeout = incident == Some(BreakerIncident::Timeout);
        if is_timeout && !self.count_timeout(ticket.holder, now) {
            return BreakerChange::Nothing;
        }
        self.failures = self.failures.saturating_add(1);
        self.n_counted += 1;
        if let Some(incident) = incident.filter(|_| !is_timeout) {
            self.incidents.push_back((incident, self.n_counted));
            if self.incidents.len() > defaults::INCIDENTS_KEPT {
                self.incidents.pop_front();
            }
        }
        let threshold = self.settings.failure_threshold;
        if threshold == 0 || self.failures < threshold {
            return BreakerChange::Nothing;
        }
        let failures = self.failures;
        self.trip(now);
        BreakerChange::Tripped { failures }
    }

    /// Counts a timeout of `holder`. Returns `false` if the timeouts of one client would trip the
    /// breaker while another client uses the server.
    fn count_timeout(&mut self, holder: Holder, now: Duration) -> bool {
        let threshold = self.settings.failure_threshold;
        // Such a breaker never trips and needs no clients.
        if threshold == 0 {
            return true;
        }
        // Fewer clients have a timeout than it takes to trip.
        let place = self.timeouts.iter().position(|(known, _)| *known == holder);
        let n_timeouts = place.map_or(0, |place| self.timeouts[place].1);
        if n_timeouts + 1 >= threshold
            && self.clients.has_other_client(holder, now.saturating_sub(self.settings.cooldown))
        {
            return false;
        }
        match place {
            Some(place) => self.timeouts[place].1 += 1,
            None => self.timeouts.push((holder, 1)),
        }
        true
    }

    /// Returns whether the incident was counted while the request ran or waited. A later request
    /// has met a new incident: an upstream may break off one answer after the other.
    fn is_known(&self, incident: BreakerIncident, ticket: &BreakerTicket) -> bool {
        self.incidents.iter().any(|(known, number)| {
            let is_same = *known == incident;
            let ran_meanwhile = ticket.n_counted < *number;
            match (known, incident) {
                // Retries after the same failed attempt may meet different second failures.
                (BreakerIncident::Dial(_), BreakerIncident::Dial(_)) => is_same || ran_meanwhile,
                _ => is_same && ran_meanwhile,
            }
        })
    }

    fn forget_failures(&mut self) {
        self.failures = 0;
        self.incidents.clear();
        self.timeouts.clear();
    }

    fn trip(&mut self, now: Duration) {
        self.forget_failures();
        self.trips += 1;
        self.state = State::Tripped { until: now + self.settings.cooldown };
    }
}

#[cfg(test)]
mod tests;
