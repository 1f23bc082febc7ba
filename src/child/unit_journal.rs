//! The last journal lines of a unit that has ended, if the service may read them.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value};
use tokio::time;

use super::process::{Child, ChildProgram};
use crate::config::defaults;

/// The bytes of journal output that are kept.
const BYTES_MAX: usize = 64 << 10;

/// The pause between two queries of the journal.
const PAUSE: Duration = Duration::from_millis(50);

/// The number of journal lines to read. More than are shown, as some may be of another instance
/// that ends at the same time.
const ENTRIES_MAX: usize = 100;

/// The fields that name the unit of a line: the unit that systemd writes about, or else the unit
/// that wrote it. Source: systemd.journal-fields(7).
const UNITS: [&str; 4] = ["UNIT", "COREDUMP_UNIT", "OBJECT_SYSTEMD_UNIT", "_SYSTEMD_UNIT"];

struct JournalLine {
    /// The unit that the line is about.
    unit: String,
    /// Systemd reports that it starts the unit.
    is_start: bool,
    message: String,
}

impl JournalLine {
    /// Reads a line of `journalctl --output=json`; `None` if it is invalid or incomplete.
    fn read(line: &str) -> Option<Self> {
        let fields: Map<String, Value> = serde_json::from_str(line).ok()?;
        // Bytes that are not text come as numbers. Source: the journal export formats.
        let text = |name: &str| match fields.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Array(bytes) => {
                let byte = |byte: &Value| u8::try_from(byte.as_u64()?).ok();
                let bytes: Vec<u8> = bytes.iter().map(byte).collect::<Option<_>>()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            _ => None,
        };
        Some(Self {
            unit: UNITS.into_iter().find_map(text)?,
            is_start: fields.get("JOB_TYPE").is_some_and(|job| job == "start"),
            message: text("MESSAGE")?,
        })
    }
}

/// The journal of the instances that connections of this process started.
#[derive(Debug)]
pub(super) struct UnitJournal {
    name: Arc<str>,
    since: SystemTime,
}

impl UnitJournal {
    /// Returns the journal of the unit `name` from now on.
    pub(super) fn since_now(name: &Arc<str>) -> Self {
        Self { name: Arc::clone(name), since: SystemTime::now() }
    }

    /// Returns the last lines, oldest first, or none if the journal is not readable. Lines of
    /// several instances may be about another client. With `is_only_instance`, only the instance of
    /// this connection was started since, beside one that a reload left to finish. Otherwise only
    /// systemd's own lines are returned. The lines and the report of the end come late: this waits
    /// for both, for at most [`defaults::JOURNAL_TIMEOUT`]. Cancel safe: dropping the future ends
    /// the reading process.
    pub(super) async fn last_lines(&self, is_only_instance: bool) -> Vec<String> {
        let query = self.query();
        let mut lines = Vec::new();
        let reading = async {
            while let Some(text) = Child::output(&query, BYTES_MAX).await {
                let has_end;
                (lines, has_end) = self.quote(&text, is_only_instance);
                if has_end {
                    break;
                }
                time::sleep(PAUSE).await;
            }
        };
        let _as_far_as_it_came = time::timeout(defaults::JOURNAL_TIMEOUT, reading).await;
        lines
    }

    /// Returns the last lines of the journal output, and whether the end is among them.
    fn quote(&self, text: &str, is_only_instance: bool) -> (Vec<String>, bool) {
        let entries: Vec<JournalLine> = text.lines().filter_map(JournalLine::read).collect();
        let own_instance = self.own_instance(&entries);
        let quote = entries.iter().filter(|entry| match is_only_instance {
            true => entry.unit == self.socket() || Some(&*entry.unit) == own_instance,
            false => self.is_about_the_end(&entry.message),
        });
        let quote: Vec<&str> =
            quote.filter(|entry| !entry.is_start).map(|entry| &*entry.message).collect();
        let has_end = quote.iter().any(|line| self.is_about_the_end(line));
        let last = &quote[quote.len().saturating_sub(defaults::JOURNAL_LINES)..];
        (last.iter().map(|line| self.without_name(line).to_owned()).collect(), has_end)
    }

    /// Returns the instance of this connection: the last one that was started since. If no start is
    /// logged, it is the only instance, unless the socket unit has logged a refusal.
    fn own_instance<'a>(&self, entries: &'a [JournalLine]) -> Option<&'a str> {
        let number = |unit: &str| {
            let rest = unit.strip_prefix(&*self.name)?.strip_prefix('@')?;
            rest.split('-').next()?.parse::<u64>().ok()
        };
        let instances = || entries.iter().filter(|entry| number(&entry.unit).is_some());
        let started =
            instances().filter(|entry| entry.is_start).max_by_key(|entry| number(&entry.unit));
        let only = || {
            let first = instances().next()?;
            let is_let_in = entries.iter().all(|entry| entry.unit == first.unit);
            is_let_in.then_some(first)
        };
        started.or_else(only).map(|entry| &*entry.unit)
    }

    fn socket(&self) -> String {
        format!("{}.socket", self.name)
    }

    /// Returns the query for the lines of this process's instances, and of their socket unit, which
    /// logs refused connections.
    ///
    /// Source: systemd.socket(5), `Accept=`: an instance is named by a number and by the process
    /// and user ids of the client, as in `NAME@7-1234-0.service`. Later versions add values to the
    /// process id, behind `-` or `_`.
    fn query(&self) -> ChildProgram {
        let since = self.since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (name, pid) = (&self.name, std::process::id());
        ChildProgram {
            command: "journalctl".to_owned(),
            args: vec![
                "--quiet".to_owned(),
                "--no-pager".to_owned(),
                "--output=json".to_owned(),
                format!(
                    "--output-fields={}",
                    [&["MESSAGE", "JOB_TYPE"], &UNITS[..]].concat().join(",")
                ),
                format!("--lines={ENTRIES_MAX}"),
                format!("--since=@{}.{:06}", since.as_secs(), since.subsec_micros()),
                format!("--unit={name}@*-{pid}[-_]*.service"),
                format!("--unit={name}.socket"),
            ],
            env: BTreeMap::new(),
            cwd: None,
        }
    }

    /// Returns whether systemd reports in `line` the end of an instance, or why there is none. Such
    /// a line starts with the name of the unit.
    fn is_about_the_end(&self, line: &str) -> bool {
        self.without_name(line).len() < line.len()
    }

    /// Returns `line` without the name of its unit, which is long and known.
    fn without_name<'a>(&self, line: &'a str) -> &'a str {
        let message = line.strip_prefix(&*self.name).and_then(|rest| {
            let (unit, message) = rest.split_once(": ")?;
            (unit == ".socket" || (unit.starts_with('@') && unit.ends_with(".service")))
                .then_some(message)
        });
        message.unwrap_or(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_query_selects_only_own_instances() {
        let journal = UnitJournal { name: "git".into(), since: SystemTime::UNIX_EPOCH };
        let pid = std::process::id();
        assert_eq!(
            journal.query().args[4..],
            [
                "--lines=100".to_owned(),
                "--since=@0.000000".to_owned(),
                format!("--unit=git@*-{pid}[-_]*.service"),
                "--unit=git.socket".to_owned(),
            ]
        );
    }

    /// Returns a line of the journal.
    fn line(unit: &str, start: bool, message: &str) -> String {
        let field = if start || message.contains(": ") { "UNIT" } else { "_SYSTEMD_UNIT" };
        let job = if start { Value::from("start") } else { Value::Null };
        serde_json::json!({ field: unit, "JOB_TYPE": job, "MESSAGE": message }).to_string()
    }

    #[test]
    fn the_journal_quotes_only_the_newer_of_two_unit_instances() {
        let journal = UnitJournal::since_now(&"git".into());
        let (old, new) = ("git@9-1-0.service", "git@10-1-0.service");
        let started = |unit: &str| line(unit, true, "Started git.");
        let ended = |unit: &str| line(unit, false, &format!("{unit}: Main process exited."));
        let says = |unit: &str, what: &str| line(unit, false, what);
        let refused = line("git.socket", false, "git.socket: Too many incoming connections (1).");
        for (lines, quote, has_end) in [
            (
                vec![says(old, "old"), started(new), says(new, "new"), ended(old)],
                vec!["new"],
                false,
            ),
            (
                vec![says(old, "old"), started(new), says(new, "new"), ended(new)],
                vec!["new", "Main process exited."],
                true,
            ),
            // The journal has no line about its start.
            (vec![says(new, "new"), ended(new)], vec!["new", "Main process exited."], true),
            (vec![says(old, "old"), says(new, "new")], vec![], false),
            (vec![says(old, "old"), refused], vec!["Too many incoming connections (1)."], true),
            (vec!["half of a line\"}".to_owned()], vec![], false),
        ] {
            assert_eq!(
                journal.quote(&lines.join("\n"), true),
                (quote.iter().map(ToString::to_string).collect(), has_end),
                "{lines:?}"
            );
            let quoted = journal.quote(&lines.join("\n"), false).0;
            assert!(!quoted.iter().any(|line| line == "old" || line == "new"), "{quoted:?}");
        }
    }

    #[test]
    fn the_journal_reader_accepts_bytes_that_are_not_text() {
        let line = r#"{"_SYSTEMD_UNIT":"git@1-1-0.service","MESSAGE":[104,105,255]}"#;
        assert_eq!(
            JournalLine::read(line).map(|entry| entry.message),
            Some("hi\u{fffd}".to_owned())
        );
    }

    #[test]
    fn the_journal_distinguishes_lines_of_systemd_from_lines_of_the_server() {
        let journal = UnitJournal::since_now(&"git".into());
        for (line, message) in [
            (
                "git@0-12-0.service: Failed with result 'signal'.",
                Some("Failed with result 'signal'."),
            ),
            (
                "git.socket: Too many incoming connections (1), dropping connection.",
                Some("Too many incoming connections (1), dropping connection."),
            ),
            ("Started git@0-12-0.service - git.", None),
            ("git: usage", None),
            ("git@home: a line of the server", None),
        ] {
            assert_eq!(journal.is_about_the_end(line), message.is_some(), "{line}");
            assert_eq!(journal.without_name(line), message.unwrap_or(line));
        }
    }
}
