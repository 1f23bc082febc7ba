//! The state of one task: of a call, or of a script.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::time_format;

/// The state of one task. The arguments of a call are not kept: they may be secret, and are not
/// needed. A script has a record of its own.
///
/// Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Its id at metamcp.
    pub id: String,
    /// The call or the script.
    #[serde(flatten)]
    pub subject: TaskSubject,
    /// Its status.
    pub status: TaskStatus,
    /// A description of the status, if any.
    pub message: Option<String>,
    /// The time of its start.
    pub created_ms: u64,
    /// The time of its last change of status.
    pub updated_ms: u64,
    /// The time of its end.
    pub ended_ms: Option<u64>,
    /// The task at the server that the call is, if it is one.
    pub upstream: Option<UpstreamTask>,
    /// Its outcome.
    pub outcome: Option<TaskOutcome>,
    /// Its progress, as its server last reported it. Not written to disk.
    #[serde(skip)]
    pub progress: Option<Value>,
}

/// The subject of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TaskSubject {
    /// A call of a tool.
    Call {
        /// The name of the server.
        server: String,
        /// The tool, as the server calls it.
        tool: String,
    },
    /// A script of an operator.
    Script {
        /// The state that leads to its record.
        #[serde(rename = "script")]
        state: String,
        /// Its name, as the operator gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
}

impl TaskSubject {
    /// Returns the server of a call.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Call { server, .. } => Some(server),
            Self::Script { .. } => None,
        }
    }

    /// Returns the members by which operators see it.
    pub fn to_operator_json(&self) -> Value {
        match self {
            Self::Call { server, tool } => json!({ "server": server, "tool": tool }),
            Self::Script { name: Some(name), .. } => json!({ "script": true, "name": name }),
            Self::Script { name: None, .. } => json!({ "script": true }),
        }
    }
}

/// A task of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamTask {
    /// Its id at the server.
    pub id: String,
    /// The poll interval that the server asks for, in milliseconds.
    pub poll_ms: Option<u64>,
    /// The server is a separate process that can outlive the service.
    pub survives: bool,
}

/// The outcome of a call, as JSON text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskOutcome {
    /// The result of the tool, which may say that it has failed.
    Result(String),
    /// An error of the protocol.
    Error(String),
}

impl TaskRecord {
    /// Creates a task that has just started.
    pub fn new(id: String, subject: TaskSubject, now_ms: u64) -> Self {
        Self {
            id,
            subject,
            status: TaskStatus::Working,
            message: None,
            created_ms: now_ms,
            updated_ms: now_ms,
            ended_ms: None,
            upstream: None,
            outcome: None,
            progress: None,
        }
    }

    /// Returns the size of its outcome, in bytes.
    pub fn n_bytes(&self) -> usize {
        self.outcome.as_ref().map_or(0, |outcome| match outcome {
            TaskOutcome::Result(text) | TaskOutcome::Error(text) => text.len(),
        })
    }

    /// Returns whether it can go on although the service was killed: as a task of another process,
    /// or from its record.
    pub fn survives(&self) -> bool {
        match &self.subject {
            TaskSubject::Call { .. } => {
                self.upstream.as_ref().is_some_and(|upstream| upstream.survives)
            }
            TaskSubject::Script { .. } => true,
        }
    }

    /// Returns the task as operators see it, without its outcome. It is kept for `expiry` after its
    /// end.
    pub fn to_operator_json(&self, expiry: Duration) -> Value {
        let expiry_ms = u64::try_from(expiry.as_millis()).unwrap_or(u64::MAX);
        let mut object = self.subject.to_operator_json();
        object["taskId"] = json!(self.id);
        object["status"] = json!(self.status.name());
        object["createdAt"] = json!(stamp(self.created_ms));
        object["lastUpdatedAt"] = json!(stamp(self.updated_ms));
        object["ttl"] = json!(expiry_ms);
        let mut add = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                object[name] = value;
            }
        };
        add("statusMessage", self.message.clone().map(Value::from));
        add("endedAt", self.ended_ms.map(stamp).map(Value::from));
        let expires = self.ended_ms.map(|ended| ended.saturating_add(expiry_ms));
        add("expiresAt", expires.map(stamp).map(Value::from));
        add("progress", self.progress.clone());
        let upstream = self.upstream.as_ref();
        add("serverTaskId", upstream.map(|upstream| json!(upstream.id)));
        add("pollInterval", upstream.and_then(|upstream| upstream.poll_ms).map(Value::from));
        object
    }
}

/// Returns a time in RFC 3339; that of the epoch if it is beyond the calendar.
fn stamp(ms: u64) -> String {
    time_format::rfc3339(i64::try_from(ms).unwrap_or_default(), 0)
}

/// The status of a task: the words of MCP, and two of metamcp.
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

    /// Returns whether the task has ended.
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
    fn a_file_without_a_script_is_that_of_a_call() {
        let call = TaskSubject::Call { server: "git".to_owned(), tool: "log".to_owned() };
        let script = TaskSubject::Script { state: "metamcp.script.7".to_owned(), name: None };
        for (subject, members) in
            [(call, r#""server":"git","tool":"log""#), (script, r#""script":"metamcp.script.7""#)]
        {
            let task = TaskRecord::new("a".to_owned(), subject, 7);
            let text = serde_json::to_string(&task).expect("JSON");
            assert!(text.contains(members), "{text}");
            assert_eq!(serde_json::from_str::<TaskRecord>(&text).expect("a task"), task);
        }
        let neither = r#"{"id":"a","status":"working","created_ms":7,"updated_ms":7}"#;
        assert!(serde_json::from_str::<TaskRecord>(neither).is_err());
    }

    #[test]
    fn the_name_of_a_status_equals_its_form_on_disk() {
        for status in TaskStatus::ALL {
            let word = serde_json::to_value(status).expect("a string");
            assert_eq!(word, status.name());
        }
    }
}
