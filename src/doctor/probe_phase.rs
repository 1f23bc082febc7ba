//! A phase of a probe, with its duration.
//!
//! Pure.

use std::time::Duration;

use serde::{Serialize, Serializer};

/// A phase of a probe.
#[derive(Clone, Debug, Serialize)]
pub struct ProbePhase {
    /// The name: `resolve`, `connect`, `tunnel`, `TLS`, `start`, `handshake`, `discovery`, `token`,
    /// `tools/list`, `end`.
    pub name: &'static str,
    /// The duration.
    #[serde(rename = "ms", serialize_with = "as_ms")]
    pub took: Duration,
    /// `true` if it failed.
    #[serde(rename = "failed", skip_serializing_if = "std::ops::Not::not")]
    pub has_failed: bool,
}

impl ProbePhase {
    /// Returns a phase that succeeded.
    pub(super) fn new(name: &'static str, took: Duration) -> Self {
        Self { name, took, has_failed: false }
    }

    /// Returns the phase, which failed if `has_failed`.
    pub(super) fn failed_if(self, has_failed: bool) -> Self {
        Self { has_failed, ..self }
    }
}

fn as_ms<S: Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
}
