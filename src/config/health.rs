//! How a server is watched: pings into its silence, and what comes of a dead one.

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

/// How a server is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthConfig {
    /// How long it may be silent before it is pinged; never when absent.
    pub interval: Option<Duration>,
    /// How long it may take to answer.
    pub timeout: Duration,
    /// How many pings in a row it leaves unanswered before it is given up.
    pub failures: u32,
    /// How often in a row it is connected in vain, unasked, before that is left to the next
    /// request; for ever when absent.
    pub max_reconnects: Option<u32>,
}

/// `[health]`, and `health` of a server, as they stand in the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table such as { interval = \"20s\" }")]
#[schemars(inline)]
pub(super) struct HealthTable {
    /// How long a server may be silent before it is pinged; "0s" is never. For one with `url` the
    /// default is 20s.
    #[serde(deserialize_with = "duration::deserialize_or_off")]
    #[schemars(with = "DurationOrOff", extend("default" = duration_text(defaults::HEALTH_INTERVAL)))]
    interval: Option<Option<Duration>>,
    /// How long it may take to answer a ping.
    #[serde(deserialize_with = "duration::deserialize_some")]
    #[schemars(with = "DurationSchema", extend("default" = duration_text(defaults::HEALTH_TIMEOUT)))]
    timeout: Option<Duration>,
    /// After how many pings in a row without an answer it is given up.
    #[schemars(with = "u32", range(min = 1, max = defaults::HEALTH_FAILURES_MAX), extend("default" = defaults::HEALTH_FAILURES))]
    failures: Option<Spanned<u32>>,
    /// After how many attempts in a row that nobody asked for a failed server is left alone until a
    /// request asks for it; without it, never.
    #[schemars(with = "u32", range(max = u32::MAX))]
    max_reconnects: Option<u32>,
}

impl HealthConfig {
    /// Returns how a server is watched of which the file says nothing.
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

    /// Returns `health` with what this table says instead.
    pub(super) fn merged_over(&self, health: HealthConfig) -> HealthConfig {
        HealthConfig {
            interval: self.interval.unwrap_or(health.interval),
            timeout: self.timeout.unwrap_or(health.timeout),
            failures: self.failures.as_ref().map_or(health.failures, |found| *found.get_ref()),
            max_reconnects: self.max_reconnects.or(health.max_reconnects),
        }
    }
}
