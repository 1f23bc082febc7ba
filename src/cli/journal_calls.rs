//! The records of calls in the journal of a unit, in the form of those that the service has in memory.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use serde_json::{Map, Value, json};

use super::{
    Failed, output,
    service_ring::{RangeArgs, journalctl, no_journalctl},
};
use crate::{systemd::own_unit::SystemdUnit, time_format};

/// The members of a record, and the fields of the journal that have their values.
const TEXTS: [(&str, &str); 15] = [
    ("client", "MCP_CLIENT"),
    ("clientVersion", "MCP_CLIENT_VERSION"),
    ("token", "MCP_TOKEN"),
    ("view", "MCP_VIEW"),
    ("method", "MCP_METHOD"),
    ("server", "MCP_SERVER"),
    ("tool", "MCP_TOOL"),
    ("outcome", "MCP_OUTCOME"),
    ("fault", "MCP_FAULT"),
    ("cause", "MCP_CAUSE"),
    ("arguments", "MCP_ARGUMENTS"),
    ("arguments", "MCP_ARGUMENTS_HASH"),
    ("result", "MCP_RESULT"),
    ("result", "MCP_RESULT_HASH"),
    ("traceId", "TRACE_ID"),
];
const NUMBERS: [(&str, &str); 9] = [
    ("call", "MCP_CALL"),
    ("uid", "MCP_UID"),
    ("session", "MCP_SESSION"),
    ("calls", "MCP_CALLS"),
    ("requestBytes", "MCP_REQUEST_BYTES"),
    ("answerBytes", "MCP_ANSWER_BYTES"),
    ("generation", "MCP_GENERATION"),
    ("parent", "MCP_PARENT"),
    ("dropped", "MCP_DROPPED"),
];

/// Shows the records of `unit` that `matches` find, and then those of `page`, the answer of the
/// running service. Its records are in the journal as well, and are shown once.
pub(super) fn show_calls(
    range: &RangeArgs,
    unit: &SystemdUnit,
    matches: &[String],
    page: Option<&Value>,
    show: impl Fn(&Value),
) -> Result<(), Failed> {
    let page = page.filter(|_| !range.follow);
    let in_memory = page.map_or(&[][..], |page| output::items(&page["calls"]));
    let numbers: BTreeSet<u64> =
        in_memory.iter().filter_map(|call| call["call"].as_u64()).collect();
    let is_in_memory = |entry: &Value| {
        page.is_some_and(|page| number(entry, "_PID") == page["pid"].as_u64())
            && number(entry, "MCP_CALL").is_some_and(|call| numbers.contains(&call))
    };
    let mut journalctl = journalctl(range, unit, matches)
        .args(["--output=json", "--all"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| no_journalctl(&error, unit))?;
    let lines = journalctl.stdout.take().map(|output| BufReader::new(output).lines());
    let entries = lines
        .into_iter()
        .flatten()
        .map_while(Result::ok)
        .filter_map(|line| serde_json::from_str(&line).ok())
        .filter(|entry| !is_in_memory(entry));
    match range.lines.filter(|_| !range.follow) {
        None => entries.for_each(|entry| show(&call_of(&entry))),
        Some(n_wanted) => {
            let entries: Vec<Value> = entries.collect();
            let n_skipped = (entries.len() + in_memory.len()).saturating_sub(n_wanted);
            entries.iter().skip(n_skipped).for_each(|entry| show(&call_of(entry)));
        }
    }
    in_memory.iter().for_each(show);
    let is_read = journalctl.wait().is_ok_and(|status| status.success());
    if !is_read && !range.follow {
        output::eprint("note: the journal was not read: calls of an earlier service are missing\n");
    }
    Ok(())
}

/// Returns the record of an entry of the journal.
fn call_of(entry: &Value) -> Value {
    let mut call = Map::new();
    let at_us = number(entry, "MCP_START_USEC").or(number(entry, "__REALTIME_TIMESTAMP"));
    let at_ms = at_us.and_then(|at_us| i64::try_from(at_us / 1000).ok()).unwrap_or_default();
    call.insert("time".to_owned(), time_format::rfc3339(at_ms, 0).into());
    let mut add = |member: &str, value: Option<Value>| {
        if let Some(value) = value {
            call.insert(member.to_owned(), value);
        }
    };
    for (member, field) in TEXTS {
        add(member, entry.get(field).filter(|value| value.is_string()).cloned());
    }
    for (member, field) in NUMBERS {
        add(member, number(entry, field).map(Value::from));
    }
    for (member, field) in [("durationMs", "MCP_DURATION_USEC"), ("longestMs", "MCP_LONGEST_USEC")]
    {
        let ms = entry[field].as_str().and_then(|us| us.parse::<f64>().ok()).map(|us| us / 1000.0);
        add(member, ms.map(Value::from));
    }
    add(
        "retries",
        number(entry, "MCP_RETRIES").filter(|n_retries| *n_retries > 0).map(Value::from),
    );
    // The code of a server is a number.
    let error = entry["MCP_ERROR"].as_str();
    add("error", error.map(|error| error.parse::<i64>().map_or(json!(error), Value::from)));
    let is_hash = entry.get("MCP_ARGUMENTS_HASH").or(entry.get("MCP_RESULT_HASH")).is_some();
    let is_text = entry.get("MCP_ARGUMENTS").or(entry.get("MCP_RESULT")).is_some();
    add("texts", is_hash.then(|| json!("hash")).or(is_text.then(|| json!("text"))));
    Value::Object(call)
}

fn number(entry: &Value, field: &str) -> Option<u64> {
    entry[field].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_the_journal_has_the_form_of_a_record_in_memory() {
        let entry = json!({
            "__REALTIME_TIMESTAMP": "1795737600020000", "_PID": "7", "MESSAGE": "…",
            "MCP_RECORD": "call", "MCP_CALL": "12", "MCP_START_USEC": "1795737600000000",
            "MCP_SERVER": "git", "MCP_TOOL": "log", "MCP_OUTCOME": "error", "MCP_ERROR": "-7",
            "MCP_DURATION_USEC": "12345", "MCP_RETRIES": "0", "MCP_UID": "1000",
        });
        assert_eq!(
            call_of(&entry),
            json!({
                "time": "2026-11-27T00:00:00.000Z", "call": 12, "server": "git", "tool": "log",
                "outcome": "error", "error": -7, "durationMs": 12.345, "uid": 1000,
            })
        );
        let gap = json!({ "__REALTIME_TIMESTAMP": "1795737600000000", "MCP_DROPPED": "3" });
        assert_eq!(call_of(&gap), json!({ "time": "2026-11-27T00:00:00.000Z", "dropped": 3 }));
    }
}
