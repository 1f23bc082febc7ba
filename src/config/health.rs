//! The liveness checks of servers: `[health]`, and `health` of a server.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::{
    TransportConfig,
    bounded_number::bounded_number,
    defaults,
    diagnostic::ConfigProblem,
    duration::{self, WrittenDuration, WrittenTimeout},
    reload_effect::ReloadEffect,
    schema::{DurationOrOff, DurationSchema},
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
    /// The failed reconnects in a row after which metamcp waits for a request; `None` is no limit.
    pub max_reconnects: Option<u32>,
}

/// `[health]`, or `health` of a server, as written in the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table such as { interval = \"20s\" }")]
#[schemars(inline, extend("x-reload" = ReloadEffect::Reconnect))]
pub(super) struct HealthTable {
    /// The silence of a server after which metamcp pings it; "0s" is never. For a server with `url`
    /// the default is 20s.
    #[schemars(with = "DurationOrOff", extend("default" = duration::text(defaults::HEALTH_INTERVAL)))]
    interval: Option<WrittenTimeout>,
    /// The time that a server may take to answer a ping.
    #[schemars(with = "DurationSchema", extend("default" = duration::text(defaults::HEALTH_TIMEOUT)))]
    timeout: Option<WrittenDuration>,
    /// The number of unanswered pings in a row after which metamcp gives up the session.
    #[schemars(with = "u32", range(min = 1, max = defaults::HEALTH_FAILURES_MAX), extend("default" = defaults::HEALTH_FAILURES))]
    failures: Option<Spanned<u32>>,
    /// The number of attempts in a row to reconnect a failed server that no request needs. After
    /// them, metamcp waits for a request. Without it, metamcp never stops.
    #[schemars(with = "u32", range(max = u32::MAX))]
    max_reconnects: Option<u32>,
}

impl HealthConfig {
    /// Returns the default checks of a server with this transport.
    pub fn of(transport: &TransportConfig) -> Self {
        let interval = match transport {
            TransportConfig::Stdio { .. } | TransportConfig::Unit { .. } => {
                defaults::HEALTH_INTERVAL
            }
            TransportConfig::Http { .. } => defaults::HEALTH_INTERVAL_UPSTREAM,
        };
        Self {
            interval: Some(interval),
            timeout: defaults::HEALTH_TIMEOUT,
            failures: defaults::HEALTH_FAILURES,
            max_reconnects: None,
        }
    }
}

impl HealthTable {
    pub(super) fn checked(self) -> Result<Self, ConfigProblem> {
        let most = defaults::HEALTH_FAILURES_MAX;
        let help = format!("use 1 to {most}, or `interval = \"0s\"` to send no pings");
        bounded_number("failures", self.failures.as_ref(), (1, most))
            .map_err(|problem| problem.help(help))?;
        Ok(self)
    }

    /// Returns `health` with the keys of this table in place of its own.
    pub(super) fn merged_over(&self, health: HealthConfig) -> HealthConfig {
        HealthConfig {
            interval: self.interval.as_ref().map_or(health.interval, |found| found.0),
            timeout: self.timeout.as_ref().map_or(health.timeout, |found| found.0),
            failures: self.failures.as_ref().map_or(health.failures, |found| *found.get_ref()),
            max_reconnects: self.max_reconnects.or(health.max_reconnects),
        }
    }
}
