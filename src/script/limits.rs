//! The limits of a script, and the ways in which it can end.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    memory_budget::MemoryExhausted,
    sandbox::message::{SandboxLimits, ScriptFailure},
};

/// The limits of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptLimits {
    /// The longest time that it runs. The time in which only a person is waited for does not count.
    pub wall: Duration,
    /// `true` if the caller has set this time, and may set a longer one.
    pub wall_is_callers: bool,
    /// The longest sleep.
    pub sleep_max: Duration,
    /// The most bytes that it prints and returns.
    pub output_bytes_max: usize,
    /// The most calls of tools.
    pub calls_max: usize,
    /// The most operations at the same time.
    pub parallel_max: usize,
    /// The memory of its engine, in bytes.
    pub memory_bytes_max: usize,
}

/// The most operations of a script that are not settled: each takes some memory on both sides of
/// the pipe. A fan-out over a thousand items fits.
pub(super) const PENDING_MAX: usize = 4096;

/// The most operations of a script altogether, sleeps among them.
pub(super) const OPERATIONS_MAX: usize = 10_000;

impl ScriptLimits {
    /// Returns the limits that the sandbox checks itself.
    pub(super) fn of_sandbox(&self) -> SandboxLimits {
        SandboxLimits {
            memory_bytes: self.memory_bytes_max,
            sleep_max_ms: u64::try_from(self.sleep_max.as_millis()).unwrap_or(u64::MAX),
            pending_max: PENDING_MAX,
        }
    }
}

/// A limit that ends a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptLimit {
    /// It printed and returned too much.
    #[error("the script printed and returned more than {0} bytes")]
    Output(usize),
    /// It needed more memory.
    #[error("the script needs more than {0} bytes of memory")]
    Memory(usize),
    /// It began too many operations.
    #[error("the script began more than {0} operations")]
    Operations(usize),
    /// The arguments of its calls that wait for their turn are too large together.
    #[error("the arguments of calls that wait for their turn have more than {0} bytes together")]
    Arguments(usize),
    /// The outcomes of its operations, which are kept until its end, are too large together.
    #[error("the results that the script received have more than {0} bytes together")]
    Record(usize),
}

impl ScriptLimit {
    /// Returns the name of the limit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Output(_) => "output",
            Self::Memory(_) => "memory",
            Self::Operations(_) => "operations",
            Self::Arguments(_) => "arguments",
            Self::Record(_) => "results",
        }
    }

    /// Returns the value of the limit.
    pub fn value(self) -> usize {
        match self {
            Self::Output(value)
            | Self::Memory(value)
            | Self::Operations(value)
            | Self::Arguments(value)
            | Self::Record(value) => value,
        }
    }
}

/// The way in which a script ended.
#[derive(Debug)]
pub enum ScriptEnd {
    /// It has returned this value, JSON.
    Returned(Box<RawValue>),
    /// It has failed.
    Failed(Box<ScriptFailure>),
    /// It has reached a limit.
    Limit(ScriptLimit),
    /// It took longer than its limit.
    Timeout {
        /// The limit.
        wall: Duration,
        /// `true` if the caller has set it, and may set a longer one.
        is_callers: bool,
    },
    /// No person has answered for this time.
    Unanswered(Duration),
    /// It waits for the client: the result that asks, JSON text.
    Suspended(String),
    /// It did something else than its record says, in this operation.
    Diverged(u32),
    /// Its sandbox ended, or sent what no sandbox sends. Contains the reason.
    Broken(String),
    /// The service has no memory for it.
    NoMemory(MemoryExhausted),
    /// It did not start. Contains the reason.
    NotStarted(String),
}
