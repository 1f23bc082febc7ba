//! The status of a call.

use serde::{Deserialize, Serialize};

/// The status of a call: the words of MCP, and two of metamcp.
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
    /// Its server waits for input that it cannot get here.
    InputRequired,
    /// Its server was lost, and is polled again when it is back. Not part of MCP.
    Unreachable,
    /// It has a result.
    Completed,
    /// It has no result, or one that says that the tool failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// The service ended or lost the server while it ran: its outcome is unknown. Not part of MCP.
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

    /// Returns its name.
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

    /// Returns whether the call has ended.
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
    fn the_name_of_a_status_equals_its_form_on_disk() {
        for status in TaskStatus::ALL {
            let word = serde_json::to_value(status).expect("a string");
            assert_eq!(word, status.name());
        }
    }
}
