//! The circuit breakers of servers: `[breaker]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::{bounded_number::BoundedNumber, defaults, duration::AnyDuration, refusal::KEY};

/// The settings of the circuit breaker that each server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerConfig {
    /// The number of failures in a row that opens the breaker of a server; 0 is never. While the
    /// breaker is open, metamcp leaves the server alone.
    #[serde(deserialize_with = "failure_threshold")]
    #[schemars(with = "FailureThreshold")]
    pub failure_threshold: u32,
    /// The time that a breaker stays open. Then one request reaches the server. If it fails too,
    /// the time begins again.
    #[serde(with = "AnyDuration")]
    pub cooldown: Duration,
}

type FailureThreshold = BoundedNumber<0, { defaults::FAILURE_THRESHOLD_MAX as usize }>;

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            failure_threshold: defaults::FAILURE_THRESHOLD,
            cooldown: defaults::BREAKER_COOLDOWN,
        }
    }
}

fn failure_threshold<'de, D: Deserializer<'de>>(found: D) -> Result<u32, D::Error> {
    let most = defaults::FAILURE_THRESHOLD_MAX;
    let help = || format!("use 1 to {most}, or 0 for a breaker that never opens");
    FailureThreshold::read::<i64, _, _>(found, KEY, help)
}
