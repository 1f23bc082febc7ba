//! The records of calls in the file of a service without a journal.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::Path,
};

use serde_json::Value;

use super::{FAILED, Failed, calls::Args, output, service_ring};
use crate::{call_record::CallLog, server_name, time_format};

/// Shows the records of `file` that are wanted, and of older files beside it. `page` is the answer of
/// the running service, whose records follow: those of them that are in the file are shown once.
///
/// # Errors
///
/// [`Failed`] if the time of `--since` is unknown, or if a file cannot be read.
pub(super) fn show_calls(args: &Args, file: &Path, page: Option<&Value>) -> Result<(), Failed> {
    wanted_calls(args, file, page)?.iter().for_each(|call| args.show(call));
    Ok(())
}

fn wanted_calls(args: &Args, file: &Path, page: Option<&Value>) -> Result<Vec<Value>, Failed> {
    let since_ms = match args.range.since.as_deref().map(service_ring::since_ms) {
        Some(None) => return Err(service_ring::unknown_time(&args.range)),
        found => found.flatten(),
    };
    let in_memory = page.map_or(&[][..], |page| output::items(&page["calls"]));
    let numbers: BTreeSet<u64> =
        in_memory.iter().filter_map(|call| call["call"].as_u64()).collect();
    let started_ms = page.and_then(|page| page["startedMs"].as_u64());
    let oldest_ms = in_memory.first().and_then(ended_ms);
    let is_in_memory = |call: &Value| {
        let at_ms = ended_ms(call);
        match call["call"].as_u64() {
            Some(number) => {
                started_ms.is_some_and(|started_ms| at_ms >= Some(started_ms))
                    && numbers.contains(&number)
            }
            // A sum of calls has no number. The service has these calls one by one.
            None => oldest_ms.is_some() && at_ms >= oldest_ms,
        }
    };
    let mut calls = Vec::new();
    for path in CallLog::files(file) {
        let lines = match File::open(&path) {
            Ok(file) => BufReader::new(file).lines(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                let text = format!("cannot read `{}`: {error}", path.display());
                return Err(Failed::new(FAILED, text));
            }
        };
        let read = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok());
        calls.extend(read.filter(|call| is_wanted(args, call, since_ms) && !is_in_memory(call)));
    }
    if let Some(n_wanted) = args.range.lines {
        let n_all = calls.len() + in_memory.len();
        calls.drain(..n_all.saturating_sub(n_wanted).min(calls.len()));
    }
    Ok(calls)
}

/// Returns whether a record is wanted. A gap is wanted whatever is asked for: it may have hidden a
/// call that is.
fn is_wanted(args: &Args, call: &Value, since_ms: Option<u64>) -> bool {
    let is = |member: &str, wanted: Option<&String>| {
        wanted.is_none_or(|wanted| call[member] == wanted.as_str())
    };
    let (server, tool) = (call["server"].as_str(), call["tool"].as_str());
    let is_of_tool =
        args.tool.as_deref().is_none_or(|name| server_name::is_tool(name, server, tool));
    let is_of_call = is("server", args.server.as_ref())
        && is("client", args.client.as_ref())
        && is_of_tool
        && !(args.failed && call["outcome"] == "ok");
    (is_of_call || call["dropped"].is_number())
        && since_ms.is_none_or(|since_ms| ended_ms(call) >= Some(since_ms))
}

/// Returns the time at which a call ended, in milliseconds since 1970.
fn ended_ms(call: &Value) -> Option<u64> {
    let started_ms = call["time"].as_str().and_then(time_format::parse_rfc3339)?;
    // The duration of a sum is that of all its calls together.
    let duration_ms = call["durationMs"].as_f64().filter(|_| call["calls"].is_null());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let duration_ms = duration_ms.unwrap_or_default() as u64;
    Some(started_ms.saturating_add(duration_ms))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::cli::service_ring::RangeArgs;

    fn call(number: u64, second: u64, duration_ms: f64) -> Value {
        json!({
            "time": format!("2026-11-26T23:02:{second:02}.000Z"), "call": number, "client": "agent",
            "server": "git", "tool": "log", "outcome": "ok", "durationMs": duration_ms,
        })
    }

    #[test]
    fn records_in_a_file_are_chosen_like_those_in_memory() {
        let found = call(1, 5, 2500.0);
        let wants = |args: Args| is_wanted(&args, &found, None);
        for tool in ["log", "git/log", "git__log"] {
            assert!(wants(Args { tool: Some(tool.to_owned()), ..Args::default() }), "{tool}");
        }
        assert!(!wants(Args { tool: Some("lo".to_owned()), ..Args::default() }));
        assert!(!wants(Args { client: Some("cursor".to_owned()), ..Args::default() }));
        assert!(!wants(Args { failed: true, ..Args::default() }));
        let failed = Args { failed: true, client: Some("cursor".to_owned()), ..Args::default() };
        let gap = json!({ "time": "2026-11-26T23:02:05.000Z", "dropped": 3 });
        assert!(is_wanted(&failed, &gap, None));
        let at_ms = time_format::parse_rfc3339("2026-11-26T23:02:07.500Z").expect("a time");
        assert!(is_wanted(&Args::default(), &found, Some(at_ms)));
        assert!(!is_wanted(&Args::default(), &found, Some(at_ms + 1)));
    }

    #[test]
    fn earlier_records_of_all_files_precede_those_of_the_running_service() {
        let state = tempfile::tempdir().expect("a directory");
        let file = CallLog::file_in(state.path());
        let write = |path: &Path, calls: &[Value]| {
            let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
            fs::write(path, lines).expect("written");
        };
        let sum = json!({ "time": "2026-11-26T23:02:40.000Z", "calls": 9, "durationMs": 9.0 });
        write(&CallLog::files(&file)[3], &[call(1, 1, 1.0), call(2, 2, 1.0)]);
        // The running service began to count again, and has dropped its first call from memory.
        write(&file, &[call(3, 3, 1.0), call(1, 31, 1.0), call(2, 32, 1.0), call(3, 33, 1.0), sum]);
        let started_ms = time_format::parse_rfc3339("2026-11-26T23:02:30.000Z");
        let page =
            json!({ "startedMs": started_ms, "calls": [call(2, 32, 1.0), call(3, 33, 1.0)] });
        let seconds = |lines| {
            let range = RangeArgs { lines, ..RangeArgs::default() };
            let calls = wanted_calls(&Args { range, ..Args::default() }, &file, Some(&page));
            let calls = calls.expect("readable");
            calls
                .iter()
                .map(|call| call["time"].as_str().expect("a time")[17..19].to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(seconds(None), ["01", "02", "03", "31"]);
        assert_eq!(seconds(Some(4)), ["03", "31"]);
        assert_eq!(seconds(Some(1)), Vec::<String>::new());
    }
}
