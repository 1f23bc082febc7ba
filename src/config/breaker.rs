//! The circuit breakers of servers: `[breaker]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::{
    bounded_number::bounded_number,
    defaults,
    diagnostic::ConfigProblem,
    duration::{self, WrittenDuration},
    schema::DurationSchema,
};

/// The settings of the circuit breaker that each server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    /// The number of failures in a row that opens the breaker; 0 is never.
    pub failure_threshold: u32,
    /// The time that the breaker stays open. Then one request reaches the server.
    pub cooldown: Duration,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            failure_threshold: defaults::FAILURE_THRESHOLD,
            cooldown: defaults::BREAKER_COOLDOWN,
        }
    }
}

/// [`BreakerConfig`] as written in the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub(super) struct BreakerTable {
    /// The number of failures in a row that opens the breaker of a server; 0 is never.
    #[schemars(with = "u32", range(min = 0, max = defaults::FAILURE_THRESHOLD_MAX), extend("default" = defaults::FAILURE_THRESHOLD))]
    failure_threshold: Option<Spanned<i64>>,
    /// The time that a breaker stays open. Then one request reaches the server.
    #[schemars(with = "DurationSchema", extend("default" = duration::text(defaults::BREAKER_COOLDOWN)))]
    cooldown: Option<WrittenDuration>,
}

impl BreakerTable {
    pub(super) fn checked(self) -> Result<BreakerConfig, ConfigProblem> {
        let defaults = BreakerConfig::default();
        let most = defaults::FAILURE_THRESHOLD_MAX;
        let help = format!("use 1 to {most}, or 0 for a breaker that never opens");
        let threshold =
            bounded_number("failure_threshold", self.failure_threshold.as_ref(), (0, most))
                .map_err(|problem| problem.help(help))?;
        Ok(BreakerConfig {
            failure_threshold: threshold.unwrap_or(defaults.failure_threshold),
            cooldown: self.cooldown.map_or(defaults.cooldown, |found| found.0),
        })
    }
}
