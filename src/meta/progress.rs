//! How far something is, as the progress of a request tells it.
//!
//! A chain tells it step by step. Of a single tool it is told that it has started, and the rest is up
//! to the tool; of one that says nothing it is told that it has ended.
//!
//! Progress must grow with each notice, and ours is not to spoil that of the tool: what a tool tells
//! first is left out where it is no more than what was told already, and nothing of ours comes after
//! what it has told.

use serde_json::{Value, json};

use crate::protocol::{Message, jsonrpc::MessagePart, payloads::method};

/// How far something is. Source: seed 002, "progress".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressReport {
    /// How much is done.
    pub done: usize,
    /// How much there is to do.
    pub total: usize,
    /// What has just happened.
    pub message: &'static str,
}

impl ProgressReport {
    /// A tool has been called.
    pub const STARTED: Self = Self { done: 0, total: 1, message: "started" };

    /// It has returned a result.
    pub const COMPLETED: Self = Self { done: 1, total: 1, message: "completed" };

    /// It has failed.
    pub const FAILED: Self = Self { done: 1, total: 1, message: "error" };

    /// Returns the notice of it to who has given `token`, JSON text.
    pub fn to_notice(self, token: &str) -> Message {
        let Self { done, total, message } = self;
        let params = json!({
            "progressToken": serde_json::from_str::<Value>(token).unwrap_or_default(),
            "progress": done, "total": total, "message": message,
        });
        Message::notification(method::PROGRESS, Some(&params.to_string()))
    }
}

/// The progress of one tool, which may tell some itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolProgress {
    token: String,
    is_silent: bool,
}

impl ToolProgress {
    /// Returns that of a tool whose caller has given `token`, JSON text.
    pub fn to(token: &str) -> Self {
        Self { token: token.to_owned(), is_silent: true }
    }

    /// Returns what is told first.
    pub fn start(&self) -> Message {
        ProgressReport::STARTED.to_notice(&self.token)
    }

    /// Takes note of what the tool tells, and returns whether it is more than was told already.
    pub fn observe(&mut self, notice: &Message) -> bool {
        let told = notice.part(MessagePart::Progress).and_then(|number| number.parse::<f64>().ok());
        if self.is_silent && told.is_some_and(|told| told <= 0.0) {
            return false;
        }
        self.is_silent = false;
        true
    }

    /// Returns what is told last, unless the tool has told something itself.
    pub fn end(&self, progress: ProgressReport) -> Option<Message> {
        self.is_silent.then(|| progress.to_notice(&self.token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(number: &str) -> Message {
        let params = format!(r#"{{"progressToken":"t","progress":{number}}}"#);
        Message::notification(method::PROGRESS, Some(&params))
    }

    fn params(notice: &Message) -> Value {
        let text: Value = serde_json::from_slice(notice.bytes()).expect("JSON");
        text["params"].clone()
    }

    #[test]
    fn a_silent_tool_has_started_and_then_has_ended() {
        for (end, word) in
            [(ProgressReport::COMPLETED, "completed"), (ProgressReport::FAILED, "error")]
        {
            let telling = ToolProgress::to("\"t\"");
            let started =
                json!({ "progressToken": "t", "progress": 0, "total": 1, "message": "started" });
            assert_eq!(params(&telling.start()), started);
            let ended = telling.end(end).expect("it was silent");
            assert_eq!(
                params(&ended),
                json!({ "progressToken": "t", "progress": 1, "total": 1, "message": word })
            );
        }
    }

    #[test]
    fn one_that_tells_something_has_the_last_word_and_never_goes_back() {
        let mut telling = ToolProgress::to("7");
        for nothing in ["0", "0.0", "-1"] {
            assert!(!telling.observe(&told(nothing)), "{nothing}");
        }
        assert!(telling.end(ProgressReport::COMPLETED).is_some(), "that was no more than ours");
        for more in ["0.5", "3", "2"] {
            assert!(telling.observe(&told(more)), "from now on it is the tool's own");
        }
        assert!(telling.end(ProgressReport::COMPLETED).is_none());
    }
}
