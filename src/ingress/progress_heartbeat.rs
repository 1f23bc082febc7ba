//! Progress notifications of metamcp for silent tools: some clients give up silent calls.
//!
//! Pure: the caller supplies the time.

use bytes::Bytes;
use serde_json::Value;

use crate::protocol::{Message, jsonrpc::MessagePart, payloads::method};

/// The progress that the client has received for one request.
#[derive(Debug)]
pub(super) struct ProgressHeartbeat {
    /// The client's token, as JSON text; `None` if the client wants no progress.
    token: Option<Box<str>>,
    /// The last value. Progress must increase with every notification.
    progress: f64,
}

/// The increment of a heartbeat, smaller than any unit that tools count in.
const STEP: f64 = 1e-6;

impl ProgressHeartbeat {
    pub(super) fn new(token: Option<&str>) -> Self {
        Self { token: token.map(Into::into), progress: 0.0 }
    }

    /// Records a progress notification of the tool itself.
    pub(super) fn note(&mut self, progress: &Message) {
        let reported = progress.part(MessagePart::Progress).and_then(|number| number.parse().ok());
        // A decreasing value is ignored.
        self.progress =
            reported.filter(|reported: &f64| *reported > self.progress).unwrap_or(self.progress);
    }

    /// Returns a notification that the tool is still running.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        self.tell("still running")
    }

    /// Returns a notification with this text.
    pub(super) fn tell(&mut self, text: &str) -> Option<Bytes> {
        let token = self.token.as_deref()?;
        self.progress = (self.progress + STEP).max(self.progress.next_up());
        let (progress, text) = (self.progress, Value::from(text));
        Some(
            format!(
                r#"{{"jsonrpc":"2.0","method":"{}","params":{{"progressToken":{token},"progress":{progress},"message":{text}}}}}"#,
                method::PROGRESS,
            )
            .into(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress_of(progress: f64) -> Message {
        let params = format!(r#"{{"progressToken":1,"progress":{progress}}}"#);
        Message::notification(method::PROGRESS, Some(&params))
    }

    fn value(heartbeat: &mut ProgressHeartbeat) -> f64 {
        let message = Message::parse(heartbeat.next().expect("a token")).expect("a message");
        assert_eq!(message.part(MessagePart::ProgressToken), Some("\"t\""));
        message.part(MessagePart::Progress).and_then(|text| text.parse().ok()).expect("a number")
    }

    #[test]
    fn progress_grows_with_every_heartbeat_and_stays_below_the_next_value_of_the_tool() {
        let mut heartbeat = ProgressHeartbeat::new(Some("\"t\""));
        let first = value(&mut heartbeat);
        let second = value(&mut heartbeat);
        assert!(0.0 < first && first < second && second < 1.0);
        for number in [1.0, 2.0, 1e15] {
            heartbeat.note(&progress_of(number));
            let next = value(&mut heartbeat);
            assert!(number < next && next < number + 1.0, "{next}");
        }
    }

    #[test]
    fn a_client_without_a_progress_token_gets_no_heartbeat() {
        assert_eq!(ProgressHeartbeat::new(None).next(), None);
    }
}
