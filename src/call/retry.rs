//! The decision whether a failed request is sent again.
//!
//! | failure | `safe` | `vital` | `fresh` | `never` |
//! |---|---|---|---|---|
//! | a failed attempt to connect that may succeed next time | again | again | again | |
//! | a request that was not executed | again | again | again | |
//! | an interrupted request that may be executed twice | again | again | again | |
//! | a request that may have been executed, or still runs | | again | again, on the first connection | |
//! | a failure that is not the server's fault, or is permanent | | | | |
//!
//! Pure.

use std::time::Duration;

use super::CallError;
use crate::config::{RetryPolicy, defaults};

/// The class of a request's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureClass {
    /// Connecting failed, and another attempt may succeed.
    Dial,
    /// The request provably was not executed, and needs only a new connection.
    Unexecuted,
    /// The request was interrupted, and may be executed twice.
    Repeatable,
    /// The request failed by the server's fault, and may have been executed.
    Unknown,
    /// Another attempt is useless.
    Final,
}

impl FailureClass {
    /// Returns the class of `error`. `is_repeatable` returns whether the request can be sent again
    /// although it may have been executed.
    pub(super) fn of(error: &CallError, is_repeatable: impl FnOnce() -> bool) -> Self {
        match error.failure() {
            None if error.may_reconnect() => Self::Dial,
            None => Self::Final,
            Some(failure) if failure.is_replayable() => Self::Unexecuted,
            Some(failure) if failure.is_interruption() && is_repeatable() => Self::Repeatable,
            Some(failure) if failure.fault().counts() => Self::Unknown,
            Some(_) => Self::Final,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryKind {
    /// Connect again.
    Redial,
    /// Send the request on another connection.
    Replay,
    /// Send the request again, which does no harm.
    Repeat,
    /// Send the request again, although it may be executed twice.
    Blind,
}

/// The retries that a request has left, counted separately for each kind: an interrupted request is
/// often the first to find that the server has gone.
#[derive(Debug)]
pub(super) struct RetryBudget {
    redials: u32,
    replays: u32,
    repeats: u32,
    blinds: u32,
    /// The number of server starts left, for any reason.
    starts: u32,
}

/// Returns the kind of retry, if any. `is_fresh`: no earlier connection was lost.
pub(super) fn decide(retry: RetryPolicy, class: FailureClass, is_fresh: bool) -> Option<RetryKind> {
    match (retry, class) {
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
            redials: defaults::RECONNECTS_MAX,
            replays: defaults::REPLAYS,
            repeats: defaults::REPEATS,
            blinds: defaults::BLIND_RETRIES,
            starts: defaults::STARTS_MAX,
        }
    }
}

impl RetryBudget {
    /// Takes one retry. Returns the pause before it, or `None` if no retry is left.
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

    /// Records that the request has caused `n_starts` server starts.
    pub(super) fn started(&mut self, n_starts: u32) {
        self.starts = self.starts.saturating_sub(n_starts);
    }

    /// Returns whether the request may start the server once more.
    pub(super) fn may_start(&self) -> bool {
        self.starts > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_retry_policy_retries_its_failure_classes() {
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
        for (class, expected) in rows {
            let decided = [
                decide(RetryPolicy::Safe, class, true),
                decide(RetryPolicy::Vital, class, false),
                decide(RetryPolicy::Fresh, class, true),
                decide(RetryPolicy::Fresh, class, false),
                decide(RetryPolicy::Never, class, true),
            ];
            assert_eq!(decided, expected, "{class:?}");
        }
    }

    #[test]
    fn each_kind_of_retry_is_limited() {
        let mut budget = RetryBudget::default();
        let n_taken = |budget: &mut RetryBudget, again| {
            std::iter::from_fn(|| budget.take(again)).take(100).count()
        };
        let counts = [RetryKind::Redial, RetryKind::Replay, RetryKind::Repeat, RetryKind::Blind]
            .map(|again| n_taken(&mut budget, again));
        assert_eq!(counts, [1, 1, 2, 1]);
    }

    #[test]
    fn a_request_starts_its_server_at_most_twice() {
        let mut budget = RetryBudget::default();
        let n_starts = (0..10).filter(|_| {
            let may_start = budget.may_start();
            budget.started(1);
            may_start
        });
        assert_eq!(n_starts.count(), 2);
    }
}
