//! Calls that go on by themselves.

use std::time::Duration;

/// How long a finished task and its result are kept. Source: seed 001, one hour.
pub const TASK_EXPIRY: Duration = Duration::from_secs(60 * 60);

/// The shortest expiry that can be declared. Ours: somebody has to read the result.
pub const TASK_EXPIRY_MIN: Duration = Duration::from_secs(60);
