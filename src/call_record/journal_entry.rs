//! A record as an entry of the journal, in its native form.
//!
//! Source: systemd, "Native Journal Protocol".

use std::sync::LazyLock;

use super::{CallEntry, CallOutcome, CallRecord, CallSum};
use crate::{
    config::RecordedText,
    telemetry::{
        journal_socket::JournalEntry,
        message_id::{CALL, CALL_SUM, CALLS_DROPPED, message_id},
    },
    time_format,
};

/// The priorities of entries. Source: syslog(3).
const WARNING: u8 = 4;
const NOTICE: u8 = 5;
const INFORMATIONAL: u8 = 6;

/// The id of most entries.
static CALL_ID: LazyLock<String> = LazyLock::new(|| message_id(CALL));

/// Returns a record, a sum or a gap as an entry.
pub(super) fn journal_entry(entry: &CallEntry) -> JournalEntry {
    let priority = match entry {
        CallEntry::Call(record) => priority(&record.outcome),
        CallEntry::Sum(_) => INFORMATIONAL,
        CallEntry::Dropped(_) => WARNING,
    };
    let mut fields = JournalEntry::new(priority);
    match entry {
        CallEntry::Call(record) => add_call(&mut fields, record),
        CallEntry::Sum(sum) => add_sum(&mut fields, sum),
        CallEntry::Dropped(n_dropped) => {
            fields.add("MESSAGE_ID", message_id(CALLS_DROPPED));
            fields.add(
                "MESSAGE",
                format_args!(
                    "{n_dropped} records of calls were dropped: the journal is slower than the calls"
                ),
            );
            fields.add("MCP_RECORD", "gap");
            fields.add("MCP_DROPPED", n_dropped);
        }
    }
    fields
}

fn add_call(fields: &mut JournalEntry, record: &CallRecord) {
    let CallRecord { caller, outcome, .. } = record;
    add_common(fields, record, true);
    match outcome {
        CallOutcome::Failed { code, .. } => fields.add("MESSAGE_ID", message_id(code)),
        _ => fields.add("MESSAGE_ID", &*CALL_ID),
    }
    fields.add("MESSAGE", message(record));
    fields.add("MCP_RECORD", "call");
    fields.add_some("MCP_UID", caller.uid());
    fields.add_some("MCP_TOKEN", caller.token());
    fields.add_some("MCP_SESSION", caller.session());
    match outcome {
        CallOutcome::Failed { code, fault, cause } => {
            fields.add("MCP_ERROR", code);
            fields.add("MCP_FAULT", fault.name());
            fields.add("MCP_CAUSE", cause);
        }
        CallOutcome::ServerError(code) => fields.add("MCP_ERROR", code),
        CallOutcome::Ok | CallOutcome::ToolError | CallOutcome::Cancelled => {}
    }
    fields.add("MCP_DURATION_USEC", record.duration.as_micros());
    fields.add("MCP_REQUEST_BYTES", record.request_bytes);
    fields.add("MCP_ANSWER_BYTES", record.answer_bytes);
    if let Some(texts) = &record.texts {
        let [arguments, result] = match texts.form {
            RecordedText::Hash => ["MCP_ARGUMENTS_HASH", "MCP_RESULT_HASH"],
            _ => ["MCP_ARGUMENTS", "MCP_RESULT"],
        };
        fields.add_some(arguments, texts.arguments.as_deref());
        fields.add_some(result, texts.result.as_deref());
    }
    fields.add_some("MCP_GENERATION", record.generation);
    fields.add("MCP_RETRIES", record.n_retries);
    fields.add_some("MCP_PARENT", record.parent);
    fields.add_some("TRACE_ID", record.trace_id());
}

fn add_sum(fields: &mut JournalEntry, sum: &CallSum) {
    let client = &sum.last.caller.name;
    let target = match sum.is_of_one_tool {
        true => format!("`{}`", sum.last.target()),
        false => "several tools".to_owned(),
    };
    let [average, longest] = [sum.average(), sum.longest].map(time_format::to_the_millisecond);
    let n_calls = sum.n_calls;
    add_common(fields, &sum.last, sum.is_of_one_tool);
    fields.add("MESSAGE_ID", message_id(CALL_SUM));
    fields.add(
        "MESSAGE",
        format_args!(
            "{client} called {target} {n_calls} times in a second: all answered, after {average} on average and {longest} at most"
        ),
    );
    fields.add("MCP_RECORD", "sum");
    fields.add("MCP_CALLS", n_calls);
    fields.add("MCP_DURATION_USEC", sum.total.as_micros());
    fields.add("MCP_LONGEST_USEC", sum.longest.as_micros());
    fields.add("MCP_REQUEST_BYTES", sum.request_bytes);
    fields.add("MCP_ANSWER_BYTES", sum.answer_bytes);
}

fn add_common(fields: &mut JournalEntry, record: &CallRecord, names_tool: bool) {
    fields.add("MCP_CALL", record.number);
    fields.add("MCP_START_USEC", record.started_us);
    fields.add("MCP_METHOD", record.method);
    if names_tool {
        fields.add_some("MCP_SERVER", record.server());
        fields.add_some("MCP_TOOL", record.item());
    }
    fields.add("MCP_CLIENT", &record.caller.name.name);
    fields.add("MCP_CLIENT_VERSION", &record.caller.name.version);
    fields.add("MCP_VIEW", record.caller.view.name());
    fields.add("MCP_OUTCOME", record.outcome.name());
}

/// Returns the sentence about a call.
pub(super) fn message(record: &CallRecord) -> String {
    let (target, client) = (record.target(), &record.caller.name);
    let time = time_format::to_the_millisecond(record.duration);
    match &record.outcome {
        CallOutcome::Ok => format!("{client} called `{target}`: answered after {time}"),
        CallOutcome::ToolError => {
            format!("{client} called `{target}`: the tool reported a failure after {time}")
        }
        CallOutcome::ServerError(code) => {
            format!("{client} called `{target}`: the server answered error {code} after {time}")
        }
        CallOutcome::Failed { code, cause, .. } => {
            format!("{client} called `{target}`: failed after {time}: {cause} ({code})")
        }
        CallOutcome::Cancelled => format!("{client} called `{target}`: cancelled after {time}"),
    }
}

fn priority(outcome: &CallOutcome) -> u8 {
    match outcome {
        CallOutcome::Failed { .. } => WARNING,
        CallOutcome::ToolError | CallOutcome::ServerError(_) => NOTICE,
        CallOutcome::Ok | CallOutcome::Cancelled => INFORMATIONAL,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{call_record::record::tests::record, fault_class::Fault};

    fn shown(entry: CallEntry) -> String {
        String::from_utf8_lossy(journal_entry(&entry).bytes()).into_owned()
    }

    fn failed(cause: &str) -> CallRecord {
        let (code, fault) = ("SERVER_TIMEOUT", Fault::Offline);
        let outcome = CallOutcome::Failed { code, fault, cause: cause.into() };
        CallRecord { outcome, ..record("git", "log") }
    }

    #[test]
    fn an_entry_names_the_client_the_tool_and_the_outcome() {
        insta::assert_snapshot!(shown(CallEntry::Call(record("git", "log"))), @"
        SYSLOG_IDENTIFIER=metamcp
        PRIORITY=6
        MCP_CALL=12
        MCP_START_USEC=1795737600000000
        MCP_METHOD=tools/call
        MCP_SERVER=git
        MCP_TOOL=log
        MCP_CLIENT=claude-code
        MCP_CLIENT_VERSION=2.1.4
        MCP_VIEW=direct
        MCP_OUTCOME=ok
        MESSAGE_ID=961304ada7770e006069d2cc7de964d3
        MESSAGE=claude-code 2.1.4 called `git__log`: answered after 12 ms
        MCP_RECORD=call
        MCP_UID=1000
        MCP_SESSION=7
        MCP_DURATION_USEC=12345
        MCP_REQUEST_BYTES=100
        MCP_ANSWER_BYTES=2000
        MCP_GENERATION=3
        MCP_RETRIES=0
        ");
        insta::assert_snapshot!(shown(CallEntry::Call(failed("no answer"))), @"
        SYSLOG_IDENTIFIER=metamcp
        PRIORITY=4
        MCP_CALL=12
        MCP_START_USEC=1795737600000000
        MCP_METHOD=tools/call
        MCP_SERVER=git
        MCP_TOOL=log
        MCP_CLIENT=claude-code
        MCP_CLIENT_VERSION=2.1.4
        MCP_VIEW=direct
        MCP_OUTCOME=error
        MESSAGE_ID=16699e73ce73638058a8b1fd92f8f0a4
        MESSAGE=claude-code 2.1.4 called `git__log`: failed after 12 ms: no answer (SERVER_TIMEOUT)
        MCP_RECORD=call
        MCP_UID=1000
        MCP_SESSION=7
        MCP_ERROR=SERVER_TIMEOUT
        MCP_FAULT=offline
        MCP_CAUSE=no answer
        MCP_DURATION_USEC=12345
        MCP_REQUEST_BYTES=100
        MCP_ANSWER_BYTES=2000
        MCP_GENERATION=3
        MCP_RETRIES=0
        ");
    }

    #[test]
    fn a_sum_says_how_many_calls_it_stands_for() {
        let (total, longest) = (Duration::from_secs(3), Duration::from_millis(40));
        let sum = CallSum {
            last: record("git", "log"),
            is_of_one_tool: true,
            n_calls: 812,
            total,
            longest,
            request_bytes: 1,
            answer_bytes: 2,
        };
        let mixed = CallSum { is_of_one_tool: false, ..sum.clone() };
        let mixed = shown(CallEntry::Sum(Box::new(mixed)));
        assert!(mixed.contains("=claude-code 2.1.4 called several tools 812 times"), "{mixed}");
        assert!(!mixed.contains("MCP_SERVER") && !mixed.contains("MCP_TOOL"), "{mixed}");
        insta::assert_snapshot!(shown(CallEntry::Sum(Box::new(sum))), @"
        SYSLOG_IDENTIFIER=metamcp
        PRIORITY=6
        MCP_CALL=12
        MCP_START_USEC=1795737600000000
        MCP_METHOD=tools/call
        MCP_SERVER=git
        MCP_TOOL=log
        MCP_CLIENT=claude-code
        MCP_CLIENT_VERSION=2.1.4
        MCP_VIEW=direct
        MCP_OUTCOME=ok
        MESSAGE_ID=eadb29217fbd298c986b8f4e5cb95389
        MESSAGE=claude-code 2.1.4 called `git__log` 812 times in a second: all answered, after 3 ms on average and 40 ms at most
        MCP_RECORD=sum
        MCP_CALLS=812
        MCP_DURATION_USEC=3000000
        MCP_LONGEST_USEC=40000
        MCP_REQUEST_BYTES=1
        MCP_ANSWER_BYTES=2
        ");
    }
}
