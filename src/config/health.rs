//! The liveness checks of servers: `[health]`, and `health` of a server.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::{
    bounded_number::BoundedNumber,
    defaults,
    duration::{self, AnyDuration, DurationOrOff},
    refusal::KEY,
    reload_effect::ReloadEffect,
};

/// The liveness checks of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthConfig {
    /// The silence of the server after which it is pinged; `None` is never.
    pub interval: Option<Duration>,
    /// The time that it may take to answer a ping.
    pub timeout: Duration,
    /// The number of unanswered pings in a row after which metamcp gives up the session.
    pub failures: u32,
    /// The failed reconnects in a row after which metamcp waits for a request; `None` means no limit.
    pub max_reconnects: Option<u32>,
}

/// `[health]`, or `health` of a server, as written in the file: a table of a server leaves out the
/// keys that it has from `[health]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table such as { interval = \"20s\" }")]
#[schemars(extend("x-reload" = ReloadEffect::Reconnect))]
pub(super) struct HealthTable {
    /// The silence of a server after which metamcp pings it; "0s" is never. For a server with `url`
    /// the default is 20s.
    #[schemars(with = "DurationOrOff", extend("default" = duration::text(defaults::HEALTH_INTERVAL)))]
    interval: Option<DurationOrOff>,
    /// The time that a server may take to answer a ping.
    #[schemars(with = "AnyDuration", extend("default" = duration::text(defaults::HEALTH_TIMEOUT)))]
    timeout: Option<AnyDuration>,
    /// The number of unanswered pings in a row after which metamcp gives up the session.
    #[serde(deserialize_with = "failures")]
    #[schemars(with = "Failures", extend("default" = defaults::HEALTH_FAILURES))]
    failures: Option<u32>,
    /// The number of attempts in a row to reconnect a failed server that no request needs. After
    /// them, metamcp waits for a request. Without it, metamcp never stops.
    #[schemars(with = "u32", range(max = u32::MAX))]
    max_reconnects: Option<u32>,
}

type Failures = BoundedNumber<1, { defaults::HEALTH_FAILURES_MAX as usize }>;

fn failures<'de, D: Deserializer<'de>>(found: D) -> Result<Option<u32>, D::Error> {
    let help = || format!("{}, or `interval = \"0s\"` to send no pings", Failures::help());
    Failures::read::<u32, _, _>(found, KEY, help).map(Some)
}

impl HealthConfig {
    /// Returns the default checks of a server, with this silence before a ping.
    pub(super) fn every(interval: Duration) -> Self {
        Self {
            interval: Some(interval),
            timeout: defaults::HEALTH_TIMEOUT,
            failures: defaults::HEALTH_FAILURES,
            max_reconnects: None,
        }
    }
}

impl HealthTable {
    /// Returns `health` with the keys of this table in place of its own.
    pub(super) fn merged_over(&self, health: HealthConfig) -> HealthConfig {
        HealthConfig {
            interval: self.interval.as_ref().map_or(health.interval, |found| found.0),
            timeout: self.timeout.as_ref().map_or(health.timeout, |found| found.0),
            failures: self.failures.unwrap_or(health.failures),
            max_reconnects: self.max_reconnects.or(health.max_reconnects),
        }
    }
}
