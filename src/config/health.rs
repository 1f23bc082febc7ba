//! The liveness checks of servers: `[health]`, and `health` of a server.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::{
    TransportConfig, defaults,
    diagnostic::ConfigProblem,
    duration,
    schema::{DurationOrOff, DurationSchema, duration_text},
};

/// The liveness checks of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthConfig {
    /// The silence of the server after which it is pinged; `None` is never.
    pub interval: Option<Duration>,
    /// The time that it may take to answer a ping.
    pub timeout: Duration,
    /// The number of unanswered pings in a row after which it is given up.
    pub failures: u32,
    /// The number of failed reconnects in a row after which metamcp waits for the next request;
    /// `None` is no limit.
    pub max_reconnects: Option<u32>,
}

/// `[health]`, or `health` of a server, as written in the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table such as { interval = \"20s\" }")]
#[schemars(inline)]
pub(super) struct HealthTable {
    /// The silence of a server after which metamcp pings it; "0s" is never. For a server with `url`
    /// the default is 20s.
    #[serde(deserialize_with = "duration::deserialize_or_off")]
    #[schemars(with = "DurationOrOff", extend("default" = duration_text(defaults::HEALTH_INTERVAL)))]
    interval: Option<Option<Duration>>,
    /// The time that a server may take to answer a ping.
    #[serde(deserialize_with = "duration::deserialize_some")]
    #[schemars(with = "DurationSchema", extend("default" = duration_text(defaults::HEALTH_TIMEOUT)))]
    timeout: Option<Duration>,
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
    /// Checks the table.
    pub(super) fn checked(self) -> Result<Self, ConfigProblem> {
        match &self.failures {
            Some(failures) if *failures.get_ref() == 0 => {
                Err(ConfigProblem::at(failures.span(), "`failures` is 0").help(
                    "a server would be given up that was never pinged: use 1 or more, or switch pings off with `interval = \"0s\"`",
                ))
            }
            Some(failures) if *failures.get_ref() > defaults::HEALTH_FAILURES_MAX => {
                let message = format!("`failures` is {}", failures.get_ref());
                Err(ConfigProblem::at(failures.span(), message)
                    .help(format!("use {} or less", defaults::HEALTH_FAILURES_MAX)))
            }
            Some(_) | None => Ok(self),
        }
    }

    /// Returns `health` with the keys of this table in place of its own.
    pub(super) fn merged_over(&self, health: HealthConfig) -> HealthConfig {
        HealthConfig {
            interval: self.interval.unwrap_or(health.interval),
            timeout: self.timeout.unwrap_or(health.timeout),
            failures: self.failures.as_ref().map_or(health.failures, |found| *found.get_ref()),
            max_reconnects: self.max_reconnects.or(health.max_reconnects),
        }
    }
}
