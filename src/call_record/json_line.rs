//! A record as JSON, for `metamcp calls`, for the file and for the page.

use std::time::Duration;

use serde::Serialize;

use super::{CallEntry, CallOutcome, CallRecord, CallSum};
use crate::{config::RecordedText, time_format};

/// A record, a sum or a gap as a JSON object. Members without a value are left out.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallLine<'a> {
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    view: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
    /// The number of calls that a sum stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
    /// The duration of the call, or of all calls of a sum together.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<u32>,
    /// The texts, or their hashes, where the operator asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    texts: Option<RecordedText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a str>,
    /// The number of the call that caused this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    /// The number of records that were dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u64>,
}

/// The name of an error of metamcp, or the code of an error of a server.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ErrorName {
    Metamcp(&'static str),
    Server(i64),
}

impl<'a> CallLine<'a> {
    /// Returns the object of a record.
    pub fn of_call(record: &'a CallRecord) -> Self {
        let CallRecord { caller, outcome, .. } = record;
        let line = Self {
            call: Some(record.number),
            uid: caller.uid(),
            token: caller.token(),
            session: caller.session(),
            duration_ms: Some(milliseconds(record.duration)),
            request_bytes: Some(record.request_bytes),
            answer_bytes: Some(record.answer_bytes),
            generation: record.generation,
            retries: Some(record.n_retries).filter(|n_retries| *n_retries > 0),
            texts: record.texts.as_ref().map(|texts| texts.form),
            arguments: record.texts.as_ref().and_then(|texts| texts.arguments.as_deref()),
            result: record.texts.as_ref().and_then(|texts| texts.result.as_deref()),
            parent: record.parent,
            trace_id: record.trace_id(),
            ..Self::common(record)
        };
        match outcome {
            CallOutcome::Failed { code, fault, cause } => Self {
                error: Some(ErrorName::Metamcp(code)),
                fault: Some(fault.name()),
                cause: Some(cause),
                ..line
            },
            CallOutcome::ServerError(code) => {
                Self { error: Some(ErrorName::Server(*code)), ..line }
            }
            CallOutcome::Ok | CallOutcome::ToolError | CallOutcome::Cancelled => line,
        }
    }

    /// Returns the object of an entry.
    pub(super) fn of_entry(entry: &'a CallEntry) -> Self {
        match entry {
            CallEntry::Call(record) => Self::of_call(record),
            CallEntry::Sum(sum) => Self::of_sum(sum),
            CallEntry::Dropped(n_dropped) => Self {
                time: time_format::rfc3339(unix_ms(time_format::now_ms()), 0),
                dropped: Some(*n_dropped),
                ..Self::default()
            },
        }
    }

    fn of_sum(sum: &'a CallSum) -> Self {
        let common = Self::common(&sum.last);
        let (server, tool) = match sum.is_of_one_tool {
            true => (common.server, common.tool),
            false => (None, None),
        };
        Self {
            server,
            tool,
            calls: Some(sum.n_calls),
            duration_ms: Some(milliseconds(sum.total)),
            longest_ms: Some(milliseconds(sum.longest)),
            request_bytes: Some(sum.request_bytes),
            answer_bytes: Some(sum.answer_bytes),
            ..common
        }
    }

    fn common(record: &'a CallRecord) -> Self {
        Self {
            time: time_format::rfc3339(unix_ms(record.started_us / 1000), 0),
            client: Some(&record.caller.name.name),
            client_version: Some(&record.caller.name.version),
            view: Some(record.caller.view.name()),
            method: Some(record.method),
            server: record.server.as_ref().map(|server| server.as_str()),
            tool: record.item.as_deref(),
            outcome: Some(record.outcome.name()),
            ..Self::default()
        }
    }
}

/// Appends the line of an entry.
pub(super) fn add_line(entry: &CallEntry, lines: &mut Vec<u8>) {
    // Cannot fail: the members are plain values, and memory takes all.
    let _infallible = serde_json::to_writer(&mut *lines, &CallLine::of_entry(entry));
    lines.push(b'\n');
}

fn unix_ms(at_ms: u64) -> i64 {
    i64::try_from(at_ms).unwrap_or(i64::MAX)
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
    use std::sync::Arc;

    use super::*;
    use crate::call_record::record::tests::record;

    fn shown(entry: &CallEntry) -> String {
        let mut lines = Vec::new();
        add_line(entry, &mut lines);
        String::from_utf8(lines).expect("text")
    }

    #[test]
    fn a_line_has_the_members_that_have_a_value() {
        insta::assert_snapshot!(shown(&CallEntry::Call(Arc::new(record("git", "log")))), @r#"{"time":"2026-11-27T00:00:00.000Z","call":12,"client":"claude-code","clientVersion":"2.1.4","uid":1000,"session":7,"view":"direct","method":"tools/call","server":"git","tool":"log","outcome":"ok","durationMs":12.345,"requestBytes":100,"answerBytes":2000,"generation":3}"#);
        let gap = shown(&CallEntry::Dropped(3));
        let sum = CallSum { n_calls: 812, ..CallSum::empty(Arc::new(record("git", "log"))) };
        let of_one = shown(&CallEntry::Sum(Box::new(sum.clone())));
        assert!(of_one.contains(r#""server":"git","tool":"log","outcome":"ok","calls":812"#));
        let sum = CallSum { is_of_one_tool: false, ..sum };
        let mixed = shown(&CallEntry::Sum(Box::new(sum)));
        assert!(mixed.contains(r#""method":"tools/call","outcome":"ok","calls":812"#), "{mixed}");
        assert!(gap.starts_with(r#"{"time":"2"#) && gap.ends_with("\"dropped\":3}\n"), "{gap}");
    }
}
