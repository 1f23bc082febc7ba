//! The progress of a chain or a tool, as notifications.
//!
//! A chain reports each step. For a single tool, metamcp reports the start, and leaves the rest to
//! the tool. If the tool reports nothing, metamcp also reports the end.
//!
//! Progress must grow with each notification. So metamcp drops the first reports of a tool if they
//! are not above its own, and reports nothing after the tool. Pure.

use serde_json::{Value, json};

use crate::protocol::{Message, jsonrpc::MessagePart, payloads::method};

/// The progress of a chain or a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressReport {
    /// The amount done.
    pub done: usize,
    /// The total amount.
    pub total: usize,
    /// The latest event.
    pub message: &'static str,
}

impl ProgressReport {
    /// The start of a tool.
    pub const STARTED: Self = Self { done: 0, total: 1, message: "started" };

    /// The success of a tool.
    pub const COMPLETED: Self = Self { done: 1, total: 1, message: "completed" };

    /// The failure of a tool.
    pub const FAILED: Self = Self { done: 1, total: 1, message: "error" };

    /// Returns the notification for the progress token `token`, JSON text.
    pub fn to_notice(self, token: &str) -> Message {
        let Self { done, total, message } = self;
        let params = json!({
            "progressToken": serde_json::from_str::<Value>(token).unwrap_or_default(),
            "progress": done, "total": total, "message": message,
        });
        Message::notification(method::PROGRESS, Some(&params.to_string()))
    }
}

/// The progress of one tool, which may report progress itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolProgress {
    token: String,
    is_silent: bool,
}

impl ToolProgress {
    /// Returns the progress for a caller's progress token, JSON text.
    pub fn new(token: &str) -> Self {
        Self { token: token.to_owned(), is_silent: true }
    }

    /// Returns the first notification.
    pub fn start(&self) -> Message {
        ProgressReport::STARTED.to_notice(&self.token)
    }

    /// Records a notification of the tool, and returns whether to pass it on.
    pub fn observe(&mut self, notice: &Message) -> bool {
        let done = notice.part(MessagePart::Progress).and_then(|number| number.parse::<f64>().ok());
        if self.is_silent && done.is_some_and(|done| done <= 0.0) {
            return false;
        }
        self.is_silent = false;
        true
    }

    /// Returns the last notification, unless the tool has reported progress itself.
    pub fn end(&self, progress: ProgressReport) -> Option<Message> {
        self.is_silent.then(|| progress.to_notice(&self.token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(number: &str) -> Message {
        let params = format!(r#"{{"progressToken":"t","progress":{number}}}"#);
        Message::notification(method::PROGRESS, Some(&params))
    }

    fn params(notice: &Message) -> Value {
        let text: Value = serde_json::from_slice(notice.bytes()).expect("JSON");
        text["params"].clone()
    }

    #[test]
    fn metamcp_reports_the_start_and_the_end_of_a_silent_tool() {
        for (end, word) in
            [(ProgressReport::COMPLETED, "completed"), (ProgressReport::FAILED, "error")]
        {
            let progress = ToolProgress::new("\"t\"");
            let started =
                json!({ "progressToken": "t", "progress": 0, "total": 1, "message": "started" });
            assert_eq!(params(&progress.start()), started);
            let ended = progress.end(end).expect("it was silent");
            assert_eq!(
                params(&ended),
                json!({ "progressToken": "t", "progress": 1, "total": 1, "message": word })
            );
        }
    }

    #[test]
    fn metamcp_reports_no_end_of_a_tool_that_reports_progress() {
        let mut progress = ToolProgress::new("7");
        for low in ["0", "0.0", "-1"] {
            assert!(!progress.observe(&report(low)), "{low}");
        }
        assert!(
            progress.end(ProgressReport::COMPLETED).is_some(),
            "the tool has not exceeded the progress of metamcp"
        );
        for more in ["0.5", "3", "2"] {
            assert!(progress.observe(&report(more)), "the progress is now that of the tool");
        }
        assert!(progress.end(ProgressReport::COMPLETED).is_none());
    }
}
