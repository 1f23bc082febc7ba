//! The clock of a script.

use std::time::Duration;

use tokio::time::Instant;

/// The clock of a script, which stands still while only a person is waited for.
#[derive(Debug)]
pub(super) struct ScriptClock {
    /// The time until it was stopped last.
    spent: Duration,
    /// The time at which it was started again.
    since: Option<Instant>,
}

impl ScriptClock {
    /// Returns the clock of a script that has run for `spent`. It stands still.
    pub(super) fn after(spent: Duration) -> Self {
        Self { spent, since: None }
    }

    /// Starts it, if it stands still.
    pub(super) fn run(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// Stops it.
    pub(super) fn pause(&mut self) {
        if let Some(since) = self.since.take() {
            self.spent += since.elapsed();
        }
    }

    /// Returns the time for which it has run.
    pub(super) fn spent(&self) -> Duration {
        self.spent + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns the time at which it will have run for `wall`, unless it stands still.
    pub(super) fn deadline(&self, wall: Duration) -> Option<Instant> {
        self.since.map(|since| since + wall.saturating_sub(self.spent))
    }
}
