//! The progress of a script, for a client that has asked for it. Pure.

use serde_json::{Value, json};

use crate::{
    protocol::{Message, payloads::method},
    sandbox::message::ScriptProgress,
};

/// The progress of a script: the number of its calls, until it reports something itself.
#[derive(Debug)]
pub(super) struct ProgressReporter {
    /// The client's progress token.
    token: Value,
    last: f64,
    n_calls: f64,
    is_own: bool,
}

impl ProgressReporter {
    /// Returns the progress for a client's token, JSON text.
    pub(super) fn new(token: &str) -> Self {
        let token = serde_json::from_str(token).unwrap_or_default();
        Self { token, last: 0.0, n_calls: 0.0, is_own: false }
    }

    /// Returns the notification that the script calls a tool, unless it reports its progress.
    pub(super) fn on_call(&mut self, server: &str, tool: &str) -> Option<Message> {
        self.n_calls += 1.0;
        if self.is_own {
            return None;
        }
        self.last = self.n_calls;
        Some(self.notice(json!({ "progress": self.last, "message": format!("{server}/{tool}") })))
    }

    /// Returns the notification of a script's own report. It must exceed the last one. Source: MCP
    /// 2025-11-25, "Progress".
    pub(super) fn on_report(&mut self, report: &ScriptProgress) -> Option<Message> {
        if report.done <= self.last && (self.is_own || self.n_calls > 0.0) {
            self.is_own = true;
            return None;
        }
        (self.is_own, self.last) = (true, report.done);
        let mut params = json!({ "progress": report.done });
        if let Some(total) = report.total {
            params["total"] = json!(total);
        }
        if !report.message.is_empty() {
            params["message"] = json!(report.message);
        }
        Some(self.notice(params))
    }

    fn notice(&self, mut params: Value) -> Message {
        params["progressToken"] = self.token.clone();
        Message::notification(method::PROGRESS, Some(&params.to_string()))
    }
}
