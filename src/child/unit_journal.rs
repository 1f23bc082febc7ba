//! What the journal tells of a unit that has ended, where we may read it.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value};
use tokio::time;

use super::process::{Child, ChildProgram};
use crate::config::defaults;

/// How much is kept of what the journal tells, in bytes.
const BYTES_MAX: usize = 64 << 10;

/// How long it is waited before it is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// How many lines of the journal are looked at: more than are shown, as some may be of an instance that
/// finishes beside ours. Ours.
const ENTRIES_MAX: usize = 100;

/// Which unit a line is about: as systemd says it, and else of whom it is.
/// Source: systemd.journal-fields(7).
const UNITS: [&str; 4] = ["UNIT", "COREDUMP_UNIT", "OBJECT_SYSTEMD_UNIT", "_SYSTEMD_UNIT"];

/// One line of the journal.
struct Entry {
    /// The unit that it is about.
    unit: String,
    /// Systemd tells that it starts the unit.
    is_start: bool,
    message: String,
}

impl Entry {
    /// Reads a line of `journalctl --output=json`; nothing where it is none, or only a part of one.
    fn read(line: &str) -> Option<Self> {
        let fields: Map<String, Value> = serde_json::from_str(line).ok()?;
        // Source: the journal export formats: bytes that are no text come as numbers.
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

/// The journal of the instances that our connections started.
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

    /// Returns the last lines, oldest first; none where the journal cannot be read. Of several instances
    /// at a time, what they wrote may be about another client: `is_alone` tells that ours is the only one
    /// that was started since, beside one that a reload has left to finish, else only systemd's own lines
    /// are returned. What the server wrote is a little late, and that it ended a little later: both are
    /// waited for, for at most [`defaults::JOURNAL_PATIENCE`].
    ///
    /// # Cancel safety
    ///
    /// Safe: who reads is ended.
    pub(super) async fn last_lines(&self, is_alone: bool) -> Vec<String> {
        let query = self.query();
        let mut lines = Vec::new();
        let reading = async {
            while let Some(text) = Child::output(&query, BYTES_MAX).await {
                let is_whole;
                (lines, is_whole) = self.shown(&text, is_alone);
                if is_whole {
                    break;
                }
                time::sleep(PAUSE).await;
            }
        };
        let _as_far_as_it_came = time::timeout(defaults::JOURNAL_PATIENCE, reading).await;
        lines
    }

    /// Returns the last lines among what the journal tells, and whether the end is among them.
    fn shown(&self, text: &str, is_alone: bool) -> (Vec<String>, bool) {
        let entries: Vec<Entry> = text.lines().filter_map(Entry::read).collect();
        let ours = self.ours(&entries);
        let shown = entries.iter().filter(|entry| match is_alone {
            true => entry.unit == self.socket() || Some(&*entry.unit) == ours,
            false => self.is_about_the_end(&entry.message),
        });
        let shown: Vec<&str> =
            shown.filter(|entry| !entry.is_start).map(|entry| &*entry.message).collect();
        let is_whole = shown.iter().any(|line| self.is_about_the_end(line));
        let last = &shown[shown.len().saturating_sub(defaults::JOURNAL_LINES)..];
        (last.iter().map(|line| self.without_name(line).to_owned()).collect(), is_whole)
    }

    /// Returns the instance that our connection started: the last one that was started since. Where
    /// the unit keeps systemd from telling that, the only one there is, if our connection was let in.
    fn ours<'a>(&self, entries: &'a [Entry]) -> Option<&'a str> {
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

    /// Returns what asks for the lines of our instances and of their socket unit, which tells when
    /// it let nobody in.
    ///
    /// Source: systemd.socket(5), `Accept=`: an instance is named by a number and by the process
    /// and user ids of who connected, as in `NAME@7-1234-0.service`. Whatever later versions put
    /// beside the process id stands behind `-` or `_`.
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

    /// Tells whether systemd says in `line` what became of an instance, or why there is none: it
    /// puts the name of the unit first.
    fn is_about_the_end(&self, line: &str) -> bool {
        self.without_name(line).len() < line.len()
    }

    /// Returns `line` without the name of its unit, which is long and known.
    fn without_name<'a>(&self, line: &'a str) -> &'a str {
        let told = line.strip_prefix(&*self.name).and_then(|rest| {
            let (unit, told) = rest.split_once(": ")?;
            (unit == ".socket" || (unit.starts_with('@') && unit.ends_with(".service")))
                .then_some(told)
        });
        told.unwrap_or(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_instances_are_asked_for() {
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
    fn of_two_instances_only_the_newer_one_is_quoted() {
        let journal = UnitJournal::since_now(&"git".into());
        let (old, new) = ("git@9-1-0.service", "git@10-1-0.service");
        let started = |unit: &str| line(unit, true, "Started git.");
        let ended = |unit: &str| line(unit, false, &format!("{unit}: Main process exited."));
        let says = |unit: &str, what: &str| line(unit, false, what);
        let refused = line("git.socket", false, "git.socket: Too many incoming connections (1).");
        for (lines, shown, is_whole) in [
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
            // Its unit keeps systemd from telling of its start.
            (vec![says(new, "new"), ended(new)], vec!["new", "Main process exited."], true),
            (vec![says(old, "old"), says(new, "new")], vec![], false),
            (vec![says(old, "old"), refused], vec!["Too many incoming connections (1)."], true),
            (vec!["half of a line\"}".to_owned()], vec![], false),
        ] {
            assert_eq!(
                journal.shown(&lines.join("\n"), true),
                (shown.iter().map(ToString::to_string).collect(), is_whole),
                "{lines:?}"
            );
            let quoted = journal.shown(&lines.join("\n"), false).0;
            assert!(!quoted.iter().any(|line| line == "old" || line == "new"), "{quoted:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_read() {
        let line = r#"{"_SYSTEMD_UNIT":"git@1-1-0.service","MESSAGE":[104,105,255]}"#;
        assert_eq!(Entry::read(line).map(|entry| entry.message), Some("hi\u{fffd}".to_owned()));
    }

    #[test]
    fn what_systemd_says_of_the_end_is_told_from_what_the_server_says() {
        let journal = UnitJournal::since_now(&"git".into());
        for (line, told) in [
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
            assert_eq!(journal.is_about_the_end(line), told.is_some(), "{line}");
            assert_eq!(journal.without_name(line), told.unwrap_or(line));
        }
    }
}
