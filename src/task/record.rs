//! What is known of one call.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::TaskStatus;

/// What is known of one call. What it was called with is not: that may be secret, and nobody asks.
///
/// Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskRecord {
    /// Its id, ours.
    pub id: String,
    /// The name of the server.
    pub server: String,
    /// The tool, as the server calls it.
    pub tool: String,
    /// How it is doing.
    pub status: TaskStatus,
    /// Why, in words, where there is something to say.
    pub message: Option<String>,
    /// When it was started.
    pub created_ms: u64,
    /// When its status changed last.
    pub updated_ms: u64,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// The task that it is at its server.
    pub upstream: Option<UpstreamTask>,
    /// What came of it.
    pub outcome: Option<TaskOutcome>,
    /// How far it has come, as its server has told it last. Not kept.
    #[serde(skip)]
    pub progress: Option<Value>,
}

/// A task of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamTask {
    /// Its id there.
    pub id: String,
    /// How long the server wants its clients to wait before they ask again, in milliseconds.
    pub poll_ms: Option<u64>,
    /// The server is a process of its own, which need not end with ours.
    pub survives: bool,
}

/// What came of a call, JSON text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskOutcome {
    /// The result of the tool, which may say that it has failed.
    Result(String),
    /// An error of the protocol.
    Error(String),
}

impl TaskOutcome {
    /// Returns how large it is, in bytes.
    pub fn n_bytes(&self) -> usize {
        match self {
            Self::Result(text) | Self::Error(text) => text.len(),
        }
    }
}

impl TaskRecord {
    /// Returns a call that has just been started.
    pub fn new(id: String, server: &str, tool: &str, now_ms: u64) -> Self {
        Self {
            id,
            server: server.to_owned(),
            tool: tool.to_owned(),
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

    /// Returns how large its outcome is, in bytes.
    pub fn n_bytes(&self) -> usize {
        self.outcome.as_ref().map_or(0, TaskOutcome::n_bytes)
    }

    /// Returns what an operator is told of it, without its outcome. It is kept for `expiry` after its
    /// end.
    pub fn to_operator_json(&self, expiry: Duration) -> Value {
        let expiry_ms = u64::try_from(expiry.as_millis()).unwrap_or(u64::MAX);
        let mut told = json!({
            "taskId": self.id,
            "server": self.server,
            "tool": self.tool,
            "status": self.status.name(),
            "createdAt": stamp(self.created_ms),
            "lastUpdatedAt": stamp(self.updated_ms),
            "ttl": expiry_ms,
        });
        let mut add = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                told[name] = value;
            }
        };
        add("statusMessage", self.message.clone().map(Value::from));
        add("endedAt", self.ended_ms.map(stamp).map(Value::from));
        let expires = self.ended_ms.map(|ended| ended.saturating_add(expiry_ms));
        add("expiresAt", expires.map(stamp).map(Value::from));
        add("progress", self.progress.clone());
        add("serverTaskId", self.upstream.as_ref().map(|upstream| json!(upstream.id)));
        add(
            "pollInterval",
            self.upstream.as_ref().and_then(|upstream| upstream.poll_ms).map(Value::from),
        );
        told
    }
}

/// Returns a moment as people write it; that of the beginning where it is beyond the calendar.
fn stamp(ms: u64) -> String {
    let moment: Option<DateTime<Utc>> =
        i64::try_from(ms).ok().and_then(DateTime::from_timestamp_millis);
    moment.unwrap_or_default().to_rfc3339_opts(SecondsFormat::Millis, true)
}
