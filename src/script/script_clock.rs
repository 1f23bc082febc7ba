//! The clock of a script.

use std::time::Duration;

use tokio::time::Instant;

use super::limits::{ScriptEnd, ScriptLimits};
use crate::config::defaults;

/// The clock of a script, which stands still while only a person is waited for.
///
/// It also stands still while a script repeats its earlier run, which the script has paid for.
#[derive(Debug)]
pub(super) struct ScriptClock {
    /// The time that counts, until the clock stood still last.
    spent: Duration,
    state: ClockState,
}

/// The use of the time, and its begin.
#[derive(Clone, Copy, Debug)]
enum ClockState {
    /// Nothing yet, or not any more.
    Stopped,
    /// The script repeats its earlier run.
    Replaying(Instant),
    /// The script runs.
    Running(Instant),
    /// Only a person is waited for.
    Waiting(Instant),
}

impl ScriptClock {
    /// Returns the clock of a script that has run for `spent`. It stands still.
    pub(super) fn after(spent: Duration) -> Self {
        Self { spent, state: ClockState::Stopped }
    }

    /// Returns the time for which the script has run.
    pub(super) fn spent(&self) -> Duration {
        match self.state {
            ClockState::Running(since) => self.spent + since.elapsed(),
            _ => self.spent,
        }
    }

    /// Begins a repetition.
    pub(super) fn replay(&mut self) {
        self.change(ClockState::Replaying(Instant::now()));
    }

    /// Starts the clock, if it stands still.
    pub(super) fn run(&mut self) {
        if !matches!(self.state, ClockState::Running(_)) {
            self.change(ClockState::Running(Instant::now()));
        }
    }

    /// Stops the clock, if it runs: a person is waited for.
    pub(super) fn wait(&mut self) {
        if !matches!(self.state, ClockState::Waiting(_)) {
            self.change(ClockState::Waiting(Instant::now()));
        }
    }

    /// Stops the clock.
    pub(super) fn stop(&mut self) {
        self.change(ClockState::Stopped);
    }

    fn change(&mut self, state: ClockState) {
        (self.spent, self.state) = (self.spent(), state);
    }

    /// Returns the time at which a script that may run for `wall` ends by itself, if the clock is
    /// not stopped. A repetition may take as long again, and a person the time that a client has
    /// for an answer.
    pub(super) fn deadline(&self, wall: Duration) -> Option<Instant> {
        match self.state {
            ClockState::Stopped => None,
            ClockState::Replaying(since) => Some(since + wall),
            ClockState::Running(since) => Some(since + wall.saturating_sub(self.spent)),
            ClockState::Waiting(since) => Some(since + defaults::INPUT_TIMEOUT),
        }
    }

    /// Returns the end of a script whose deadline has passed.
    pub(super) fn end(&self, limits: &ScriptLimits) -> ScriptEnd {
        match self.state {
            ClockState::Waiting(_) => ScriptEnd::Unanswered(defaults::INPUT_TIMEOUT),
            _ => ScriptEnd::Timeout { wall: limits.wall, is_callers: limits.wall_is_callers },
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time;

    use super::*;

    const WALL: Duration = Duration::from_secs(10);
    const STEP: Duration = Duration::from_secs(4);

    #[tokio::test(start_paused = true)]
    async fn only_the_time_in_which_the_script_itself_runs_counts() {
        let start = Instant::now();
        let limits = ScriptLimits {
            wall: WALL,
            wall_is_callers: true,
            sleep_max: WALL,
            output_bytes_max: 0,
            calls_max: 0,
            parallel_max: 0,
            memory_bytes_max: 0,
        };
        let mut clock = ScriptClock::after(Duration::from_secs(1));
        assert_eq!(clock.deadline(WALL), None);
        clock.replay();
        time::advance(STEP).await;
        assert_eq!(clock.deadline(WALL), Some(start + WALL), "a repetition has the time again");
        clock.run();
        time::advance(STEP).await;
        clock.run();
        assert_eq!(clock.spent(), Duration::from_secs(5));
        assert_eq!(clock.deadline(WALL), Some(start + STEP + Duration::from_secs(9)));
        assert!(matches!(clock.end(&limits), ScriptEnd::Timeout { wall: WALL, is_callers: true }));
        clock.wait();
        let waits_since = Instant::now();
        time::advance(STEP).await;
        clock.wait();
        assert_eq!(clock.spent(), Duration::from_secs(5));
        assert_eq!(clock.deadline(WALL), Some(waits_since + defaults::INPUT_TIMEOUT));
        assert!(matches!(clock.end(&limits), ScriptEnd::Unanswered(_)));
        clock.stop();
        assert_eq!(clock.spent(), Duration::from_secs(5));
    }
}
