//! How a call is doing.

use serde::{Deserialize, Serialize};

/// How a call is doing: the words of MCP, and two of ours.
///
/// ```text
///  working ◀──▶ input_required ──┐
///     ▲ ▲            ▲           ├──▶ completed, failed, cancelled, unknown_outcome
///     │ └─ unreachable ◀─────────┘
/// ```
///
/// Source: MCP 2025-11-25, "Tasks", "Task Status Lifecycle".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It runs.
    Working,
    /// Its server waits for something that nobody can tell it here.
    InputRequired,
    /// Its server was lost, and is asked again when it is there. Ours.
    Unreachable,
    /// It has a result.
    Completed,
    /// It has none, or one that says that the tool has failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// The service was gone while it ran: nobody knows what came of it. Ours.
    UnknownOutcome,
}

impl TaskStatus {
    /// Every status.
    pub const ALL: [Self; 7] = [
        Self::Working,
        Self::InputRequired,
        Self::Unreachable,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::UnknownOutcome,
    ];

    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Unreachable => "unreachable",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::UnknownOutcome => "unknown_outcome",
        }
    }

    /// Tells whether nothing more will come of it.
    pub fn has_ended(self) -> bool {
        match self {
            Self::Working | Self::InputRequired | Self::Unreachable => false,
            Self::Completed | Self::Failed | Self::Cancelled | Self::UnknownOutcome => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_on_the_disk_is_the_word_that_is_told() {
        for status in TaskStatus::ALL {
            let word = serde_json::to_value(status).expect("a string");
            assert_eq!(word, status.name());
        }
    }
}
