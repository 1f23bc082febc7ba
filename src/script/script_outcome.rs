//! The outcome of a run of a script.

use std::time::Duration;

use super::limits::ScriptEnd;

/// The outcome of a run.
#[derive(Debug)]
pub struct ScriptOutcome {
    /// The way in which it ended.
    pub end: ScriptEnd,
    /// The console output.
    pub output: String,
    /// The number of calls that it has made.
    pub n_calls: usize,
    /// The time for which it has run.
    pub spent: Duration,
    /// `true` if the same request can still go on with the script.
    pub is_kept: bool,
}

impl ScriptOutcome {
    /// Returns the size of what the script has printed and returned, in bytes.
    pub fn n_bytes(&self) -> usize {
        let value = match &self.end {
            ScriptEnd::Returned(value) => value.get().len(),
            _ => 0,
        };
        self.output.len() + value
    }
}
