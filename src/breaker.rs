//! When a server that fails again and again is left alone, and when it is tried again.
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
//! A timeout may be the fault of the client, which asks for too much. So the timeouts of one client do
//! not trip the breaker while another client uses the server.
//!
//! Pure: the time comes in, counted from any moment that stays the same. Source: seed 004, whose
//! text has one probe, and a probe that fails trips at once.

use std::{collections::VecDeque, time::Duration};

use serde::Serialize;

use crate::{
    config::{BreakerConfig as Settings, defaults},
    fault::Fault,
    holder::Holder,
};

mod recent_clients;

use recent_clients::RecentClients;

/// One server's breaker.
#[derive(Debug)]
pub struct Breaker {
    settings: Settings,
    state: State,
    /// How many failures there were since the last success.
    failures: u32,
    /// The incidents among them.
    incidents: VecDeque<Counted>,
    /// How many failures were ever counted.
    n_counted: u64,
    /// How often it has tripped. What was admitted before the last time says nothing about now.
    trips: u64,
    n_probes: u64,
    last_fault: Option<Fault>,
    users: RecentClients,
    /// The clients whose timeouts are among the failures, and how many those are.
    timeouts: Vec<(Holder, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Requests pass.
    Passing,
    /// Requests are rejected, until a probe may pass.
    Tripped { until: Duration },
    /// A probe is under way: requests are rejected, until another probe may pass.
    Probing { until: Duration },
}

/// That a request was let through; it is to be reported how it went.
#[derive(Debug, PartialEq, Eq)]
pub struct BreakerTicket {
    /// The party that the request counts for.
    holder: Holder,
    trips: u64,
    n_counted: u64,
    /// Its number, if it is a probe.
    probe: Option<u64>,
}

impl BreakerTicket {
    /// Tells whether it is that of a probe.
    pub fn is_probe(&self) -> bool {
        self.probe.is_some()
    }
}

/// An event that makes requests fail, as far as that decides how they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerIncident {
    /// The request ran out of time. Others have nothing to do with that.
    Timeout,
    /// The connection of this generation went, with all that ran on it.
    Connection(u64),
    /// The dial of this number failed, for all who waited for it.
    Dial(u64),
}

/// An incident, and how many failures there were with it.
#[derive(Clone, Copy, Debug)]
struct Counted {
    incident: BreakerIncident,
    number: u64,
}

/// What a report has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum BreakerChange {
    /// Requests pass, or do not, as before.
    Nothing,
    /// Requests do not pass any more, after so many failures.
    Tripped {
        /// How many there were; one for a probe.
        failures: u32,
    },
    /// Requests pass again.
    Normal,
}

/// How a breaker is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakerSnapshot {
    /// `normal`, `open` or `probe`.
    pub state: BreakerState,
    /// How many failures there were in a row.
    pub failures: u32,
    /// How often it has tripped.
    pub trips: u64,
    /// In how many milliseconds a probe may pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_probe_ms: Option<u64>,
    /// What kind the last failure was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_fault: Option<Fault>,
}

/// The state of a breaker by the name that operators know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BreakerState {
    /// Requests pass.
    Normal,
    /// Requests are rejected.
    Open,
    /// One request is under way, the others are rejected.
    Probe,
}

impl Breaker {
    /// Returns one that lets everything pass.
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
            users: RecentClients::default(),
            timeouts: Vec::new(),
        }
    }

    /// Lets a request of `holder` through, or says in what time one may pass. At exactly that time it
    /// does.
    ///
    /// A probe that says nothing for as long as a cooldown is not waited for: another one passes.
    ///
    /// # Errors
    ///
    /// How long it takes at most until a probe may pass.
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
        self.users.note(holder, now);
        Ok(BreakerTicket { holder, trips: self.trips, n_counted: self.n_counted, probe })
    }

    /// Notes that a request was answered.
    pub fn succeeded(&mut self, ticket: &BreakerTicket, now: Duration) -> BreakerChange {
        self.users.note(ticket.holder, now);
        if ticket.trips != self.trips {
            return BreakerChange::Nothing;
        }
        self.forget_failures();
        // A probe that was not waited for any more is as good as the one after it: a server that
        // takes longer than a cooldown would be rejected for ever.
        match std::mem::replace(&mut self.state, State::Passing) {
            State::Passing => BreakerChange::Nothing,
            State::Tripped { .. } | State::Probing { .. } => BreakerChange::Normal,
        }
    }

    /// Notes that a request has failed.
    pub fn failed(
        &mut self,
        ticket: &BreakerTicket,
        fault: Fault,
        incident: Option<BreakerIncident>,
        now: Duration,
    ) -> BreakerChange {
        match fault {
            Fault::Cancelled => {
                self.cancelled(ticket, now);
                return BreakerChange::Nothing;
            }
            // It says that the server is there, and nothing of whether it works.
            Fault::Auth => {
                self.last_fault = Some(fault);
                self.cancelled(ticket, now);
                return BreakerChange::Nothing;
            }
            // The server was asked and spoke.
            Fault::Protocol => {
                self.last_fault = Some(fault);
                return self.succeeded(ticket, now);
            }
            Fault::Offline | Fault::Http | Fault::StdioExit | Fault::Other => {}
        }
        self.last_fault = Some(fault);
        if ticket.trips != self.trips {
            return BreakerChange::Nothing;
        }
        match self.state {
            State::Passing => self.count(ticket, incident, now),
            // Also one that was not waited for any more: it says no less.
            State::Probing { .. } | State::Tripped { .. } if ticket.probe.is_some() => {
                self.n_counted += 1;
                self.trip(now);
                BreakerChange::Tripped { failures: 1 }
            }
            // A probe decides.
            State::Probing { .. } | State::Tripped { .. } => BreakerChange::Nothing,
        }
    }

    /// Notes that nobody knows how a request went: a probe gives way to the next one at once.
    pub fn cancelled(&mut self, ticket: &BreakerTicket, now: Duration) {
        let is_deciding = ticket.trips == self.trips && ticket.probe == Some(self.n_probes);
        if is_deciding && matches!(self.state, State::Probing { .. }) {
            self.state = State::Tripped { until: now };
        }
    }

    /// Goes on with other settings.
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

    /// Returns how it is shown.
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

    /// Counts a failure, unless it is one with another that was counted.
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
            self.incidents.push_back(Counted { incident, number: self.n_counted });
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

    /// Adds a timeout to those of `holder`, unless those of one client would trip the breaker while
    /// another client uses the server: `false`.
    fn count_timeout(&mut self, holder: Holder, now: Duration) -> bool {
        let threshold = self.settings.failure_threshold;
        // Such a breaker never trips: it need not know the clients.
        if threshold == 0 {
            return true;
        }
        // There are fewer clients with a timeout than it takes to trip.
        let place = self.timeouts.iter().position(|(known, _)| *known == holder);
        let n_timeouts = place.map_or(0, |place| self.timeouts[place].1);
        if n_timeouts + 1 >= threshold
            && self.users.has_other_client(holder, now.saturating_sub(self.settings.cooldown))
        {
            return false;
        }
        match place {
            Some(place) => self.timeouts[place].1 += 1,
            None => self.timeouts.push((holder, 1)),
        }
        true
    }

    /// Tells whether an incident is one that was counted while the request ran or waited. A request
    /// that came later has met another one: an upstream may break off one answer after the other.
    fn is_known(&self, incident: BreakerIncident, ticket: &BreakerTicket) -> bool {
        self.incidents.iter().any(|counted| {
            let ran_meanwhile = ticket.n_counted < counted.number;
            match (counted.incident, incident) {
                // Those who tried again with the same dial do not all meet the same second one.
                (BreakerIncident::Dial(known), BreakerIncident::Dial(met)) => {
                    known == met || ran_meanwhile
                }
                (BreakerIncident::Connection(known), BreakerIncident::Connection(met)) => {
                    known == met && ran_meanwhile
                }
                (
                    BreakerIncident::Dial(_)
                    | BreakerIncident::Connection(_)
                    | BreakerIncident::Timeout,
                    _,
                ) => false,
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
