//! Whether a request that failed is sent again.
//!
//! | what was lost | `safe` | `vital` | `fresh` | `never` |
//! |---|---|---|---|---|
//! | a dial that may pass the next time | again | again | again | |
//! | a request that was not executed | again | again | again | |
//! | one in the middle that may be executed twice | again | again | again | |
//! | one that may have been executed, or still runs | | again | again, on the first connection | |
//! | anything that is not the server's fault, or stays as it is | | | | |
//!
//! Pure. Source: design ruling 9, and seed 004 for `vital` and `fresh`.

use std::time::Duration;

use crate::config::{RetryPolicy, defaults};

/// What became of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureClass {
    /// There is no connection: the dial failed, and another one may not.
    Dial,
    /// It provably was not executed, and a new connection is all that it needs.
    Unexecuted,
    /// It was interrupted, and may be executed twice.
    Repeatable,
    /// It failed by the server's fault, and may have been executed.
    Unknown,
    /// Sending it again is of no use.
    Final,
}

/// How a request is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryKind {
    /// With another dial.
    Redial,
    /// On another connection.
    Replay,
    /// A second time, which does no harm.
    Repeat,
    /// A second time, whatever that does.
    Blind,
}

/// How often a request may still be tried again, each way counted apart: one that was interrupted is
/// the first to find out that the server is not there.
#[derive(Debug)]
pub(super) struct RetryBudget {
    redials: u32,
    replays: u32,
    repeats: u32,
    blinds: u32,
    /// How often the server may still be started, whatever the reason.
    starts: u32,
}

/// Returns how a request is tried again, if it is. `is_fresh` tells that the server has not been
/// connected anew so far.
pub(super) fn decide(retry: RetryPolicy, loss: FailureClass, is_fresh: bool) -> Option<RetryKind> {
    match (retry, loss) {
        (RetryPolicy::Never, _) | (_, FailureClass::Final) => None,
        (_, FailureClass::Dial) => Some(RetryKind::Redial),
        (_, FailureClass::Unexecuted) => Some(RetryKind::Replay),
        (_, FailureClass::Repeatable) => Some(RetryKind::Repeat),
        (RetryPolicy::Vital, FailureClass::Unknown) => Some(RetryKind::Blind),
        (RetryPolicy::Fresh, FailureClass::Unknown) => is_fresh.then_some(RetryKind::Blind),
        (RetryPolicy::Safe, FailureClass::Unknown) => None,
    }
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self {
            redials: defaults::REDIALS,
            replays: defaults::REPLAYS,
            repeats: defaults::REPEATS,
            blinds: defaults::BLIND_RETRIES,
            starts: defaults::STARTS_MAX,
        }
    }
}

impl RetryBudget {
    /// Takes one attempt, and returns how long to wait before it; nothing when none is left.
    pub(super) fn take(&mut self, again: RetryKind) -> Option<Duration> {
        let (left, pause) = match again {
            RetryKind::Redial => (&mut self.redials, Duration::ZERO),
            RetryKind::Replay => (&mut self.replays, Duration::ZERO),
            RetryKind::Repeat => (&mut self.repeats, defaults::REPEAT_PAUSE),
            RetryKind::Blind => (&mut self.blinds, Duration::ZERO),
        };
        *left = left.checked_sub(1)?;
        Some(pause)
    }

    /// Notes that the server was started so often for the request.
    pub(super) fn started(&mut self, n_starts: u32) {
        self.starts = self.starts.saturating_sub(n_starts);
    }

    /// Tells whether the server may be started for the request once more.
    pub(super) fn may_start(&self) -> bool {
        self.starts > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_sends_again_what_it_says() {
        use RetryKind::{Blind, Redial, Repeat, Replay};
        let rows = [
            (FailureClass::Dial, [Some(Redial), Some(Redial), Some(Redial), Some(Redial), None]),
            (
                FailureClass::Unexecuted,
                [Some(Replay), Some(Replay), Some(Replay), Some(Replay), None],
            ),
            (
                FailureClass::Repeatable,
                [Some(Repeat), Some(Repeat), Some(Repeat), Some(Repeat), None],
            ),
            (FailureClass::Unknown, [None, Some(Blind), Some(Blind), None, None]),
            (FailureClass::Final, [None; 5]),
        ];
        for (loss, expected) in rows {
            let decided = [
                decide(RetryPolicy::Safe, loss, true),
                decide(RetryPolicy::Vital, loss, false),
                decide(RetryPolicy::Fresh, loss, true),
                decide(RetryPolicy::Fresh, loss, false),
                decide(RetryPolicy::Never, loss, true),
            ];
            assert_eq!(decided, expected, "{loss:?}");
        }
    }

    #[test]
    fn no_request_is_tried_again_for_ever() {
        let mut budget = RetryBudget::default();
        let n_taken = |budget: &mut RetryBudget, again| {
            std::iter::from_fn(|| budget.take(again)).take(100).count()
        };
        let counts = [RetryKind::Redial, RetryKind::Replay, RetryKind::Repeat, RetryKind::Blind]
            .map(|again| n_taken(&mut budget, again));
        assert_eq!(counts, [1, 1, 2, 1]);
    }

    #[test]
    fn no_request_has_its_server_started_a_third_time() {
        let mut budget = RetryBudget::default();
        let n_starts = (0..10).filter(|_| {
            let may_start = budget.may_start();
            budget.started(1);
            may_start
        });
        assert_eq!(n_starts.count(), 2);
    }
}
