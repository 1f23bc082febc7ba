//! A record as a line of JSON, for the file, for `metamcp calls` and for the page.

use std::time::Duration;

use serde::Serialize;

use super::{CallEntry, CallOutcome, CallRecord, CallSum};
use crate::time_format::{self, TimeTexts};

/// Returns the key of a member that is not the first one. The name needs no escapes.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}
/// The room for most lines, in bytes, so that a line is not moved while it grows.
const BYTES: usize = 400;

/// Appends the line of an entry.
pub(super) fn add_line(entry: &CallEntry, times: &mut TimeTexts, lines: &mut Vec<u8>) {
    lines.reserve(BYTES);
    match entry {
        CallEntry::Call(record) => add_call(record, times, lines),
        CallEntry::Sum(sum) => add_sum(sum, times, lines),
        CallEntry::Dropped(n_dropped) => {
            let mut line = JsonObject::begin(time_format::now_ms(), times, lines);
            line.add(key!("dropped"), n_dropped);
            line.end();
        }
    }
    lines.push(b'\n');
}

/// Appends the object of a record.
fn add_call(record: &CallRecord, times: &mut TimeTexts, text: &mut Vec<u8>) {
    let CallRecord { caller, outcome, texts, .. } = record;
    let mut line = JsonObject::begin(record.started_us / 1000, times, text);
    line.add(key!("call"), record.number);
    line.add_text(key!("client"), &caller.name.name);
    line.add_text(key!("clientVersion"), &caller.name.version);
    line.add_some(key!("uid"), caller.uid());
    line.add_some(key!("token"), caller.token());
    line.add_some(key!("session"), caller.session());
    add_target(&mut line, record, true);
    match outcome {
        CallOutcome::Failed { code, fault, cause } => {
            line.add(key!("error"), code);
            line.add_text(key!("fault"), fault.name());
            line.add_text(key!("cause"), cause);
        }
        CallOutcome::ServerError(code) => line.add(key!("error"), code),
        CallOutcome::Ok | CallOutcome::ToolError | CallOutcome::Cancelled => {}
    }
    line.add(key!("durationMs"), milliseconds(record.duration));
    line.add(key!("requestBytes"), record.request_bytes);
    line.add(key!("answerBytes"), record.answer_bytes);
    line.add_some(key!("generation"), record.generation);
    line.add_some(key!("retries"), Some(record.n_retries).filter(|n_retries| *n_retries > 0));
    if let Some(texts) = texts {
        line.add(key!("texts"), texts.form);
        line.add_some(key!("arguments"), texts.arguments.as_deref());
        line.add_some(key!("result"), texts.result.as_deref());
    }
    // The number of the call that caused this one.
    line.add_some(key!("parent"), record.parent);
    line.add_some(key!("traceId"), record.trace_id());
    line.end();
}

/// Appends the object of a sum. Its durations are those of all calls together, and the longest one.
fn add_sum(sum: &CallSum, times: &mut TimeTexts, text: &mut Vec<u8>) {
    let CallSum { last, .. } = sum;
    let mut line = JsonObject::begin(last.started_us / 1000, times, text);
    line.add_text(key!("client"), &last.caller.name.name);
    line.add_text(key!("clientVersion"), &last.caller.name.version);
    add_target(&mut line, last, sum.is_of_one_tool);
    line.add(key!("calls"), sum.n_calls);
    line.add(key!("durationMs"), milliseconds(sum.total));
    line.add(key!("longestMs"), milliseconds(sum.longest));
    line.add(key!("requestBytes"), sum.request_bytes);
    line.add(key!("answerBytes"), sum.answer_bytes);
    line.end();
}

fn add_target(line: &mut JsonObject<'_>, record: &CallRecord, names_tool: bool) {
    line.add_text(key!("view"), record.caller.view.name());
    line.add_text(key!("method"), record.method);
    if names_tool {
        if let Some(server) = record.server() {
            line.add_text(key!("server"), server.as_str());
        }
        if let Some(item) = record.item() {
            line.add_text(key!("tool"), item);
        }
    }
    line.add_text(key!("outcome"), record.outcome.name());
}

impl CallRecord {
    /// Returns the record as a JSON object. Members without a value are left out.
    pub fn to_json(&self) -> serde_json::Value {
        let mut text = Vec::new();
        add_call(self, &mut TimeTexts::default(), &mut text);
        // Cannot fail: it was just written.
        serde_json::from_slice(&text).unwrap_or_default()
    }
}

/// A JSON object that is written member by member: a derived `Serialize` takes three times as many
/// instructions.
struct JsonObject<'a>(&'a mut Vec<u8>);

impl<'a> JsonObject<'a> {
    /// Begins an object with the time `at_ms`, in milliseconds since 1970.
    fn begin(at_ms: u64, times: &mut TimeTexts, text: &'a mut Vec<u8>) -> Self {
        text.extend_from_slice(b"{\"time\":\"");
        text.extend_from_slice(times.rfc3339(at_ms).as_bytes());
        text.push(b'"');
        Self(text)
    }

    fn add(&mut self, key: &'static str, value: impl Serialize) {
        let Self(text) = self;
        text.extend_from_slice(key.as_bytes());
        // Cannot fail: the values are plain, and memory takes all.
        let _infallible = serde_json::to_writer(&mut **text, &value);
    }

    /// Adds a member that is a string.
    fn add_text(&mut self, key: &'static str, value: &str) {
        // Without an early end, this is a few vector instructions. Most texts need no escapes.
        let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
        if !value.bytes().fold(true, |all, byte| all & is_plain(byte)) {
            return self.add(key, value);
        }
        let Self(text) = self;
        text.extend_from_slice(key.as_bytes());
        text.push(b'"');
        text.extend_from_slice(value.as_bytes());
        text.push(b'"');
    }

    /// Adds a member, if there is a value.
    fn add_some(&mut self, key: &'static str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.add(key, value);
        }
    }

    fn end(self) {
        self.0.push(b'}');
    }
}

/// Returns a duration in milliseconds, to the microsecond.
fn milliseconds(duration: Duration) -> f64 {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    #[expect(clippy::cast_precision_loss, reason = "exact for 285 years")]
    let ms = micros as f64 / 1000.0;
    ms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_record::record::tests::record;

    fn shown(entry: &CallEntry) -> String {
        let mut lines = Vec::new();
        add_line(entry, &mut TimeTexts::default(), &mut lines);
        String::from_utf8(lines).expect("text")
    }

    #[test]
    fn a_line_has_the_members_that_have_a_value() {
        insta::assert_snapshot!(shown(&CallEntry::Call(record("git", "log"))), @r#"{"time":"2026-11-27T00:00:00.000Z","call":12,"client":"claude-code","clientVersion":"2.1.4","uid":1000,"session":7,"view":"direct","method":"tools/call","server":"git","tool":"log","outcome":"ok","durationMs":12.345,"requestBytes":100,"answerBytes":2000,"generation":3}"#);
        let gap = shown(&CallEntry::Dropped(3));
        let sum = CallSum { n_calls: 812, ..CallSum::empty(record("git", "log")) };
        let of_one = shown(&CallEntry::Sum(Box::new(sum.clone())));
        assert!(of_one.contains(r#""server":"git","tool":"log","outcome":"ok","calls":812"#));
        let sum = CallSum { is_of_one_tool: false, ..sum };
        let mixed = shown(&CallEntry::Sum(Box::new(sum)));
        assert!(mixed.contains(r#""method":"tools/call","outcome":"ok","calls":812"#), "{mixed}");
        assert!(gap.starts_with(r#"{"time":"2"#) && gap.ends_with("\"dropped\":3}\n"), "{gap}");
    }
}
