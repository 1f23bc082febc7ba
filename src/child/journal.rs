//! What the journal tells of a unit that has ended, where we may read it.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::time;

use super::process::{Child, Program};
use crate::config::defaults;

/// How much is kept of what the journal tells, in bytes.
const BYTES_MAX: usize = 64 << 10;

/// How long it is waited before it is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// The journal of the instances that our connections started.
#[derive(Debug)]
pub(super) struct Journal {
    name: Arc<str>,
    since: SystemTime,
}

impl Journal {
    /// Returns the journal of the unit `name` from now on.
    pub(super) fn from_now_on(name: &Arc<str>) -> Self {
        Self { name: Arc::clone(name), since: SystemTime::now() }
    }

    /// Returns the last lines, oldest first; none where the journal cannot be read. Of several instances
    /// at a time, what they wrote cannot be told apart, and may be about another client: `is_alone` tells
    /// that there was one, else only systemd's own lines are returned. What the server wrote is a little late, and that it ended a little later: both are waited for, for at most
    /// [`defaults::JOURNAL_PATIENCE`].
    ///
    /// # Cancel safety
    ///
    /// Safe: who reads is ended.
    pub(super) async fn last_lines(&self, is_alone: bool) -> Vec<String> {
        let query = self.query();
        let mut lines = Vec::new();
        let reading = async {
            while let Some(text) = Child::output(&query, BYTES_MAX).await {
                let is_whole = text.lines().any(|line| self.is_about_the_end(line));
                let shown = text.lines().filter(|line| is_alone || self.is_about_the_end(line));
                lines = shown.map(|line| self.without_name(line).to_owned()).collect();
                if is_whole {
                    break;
                }
                time::sleep(PAUSE).await;
            }
        };
        let _as_far_as_it_came = time::timeout(defaults::JOURNAL_PATIENCE, reading).await;
        lines
    }

    /// Returns what asks for the lines of our instances and of their socket unit, which tells when
    /// it let nobody in.
    ///
    /// Source: systemd.socket(5), `Accept=`: an instance is named by a number and by the process
    /// and user ids of who connected, as in `NAME@7-1234-0.service`. Whatever later versions put
    /// beside the process id stands behind `-` or `_`.
    fn query(&self) -> Program {
        let since = self.since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (name, pid) = (&self.name, std::process::id());
        Program {
            command: "journalctl".to_owned(),
            args: vec![
                "--quiet".to_owned(),
                "--no-pager".to_owned(),
                "--output=cat".to_owned(),
                format!("--lines={}", defaults::JOURNAL_LINES),
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
        let journal = Journal { name: "git".into(), since: SystemTime::UNIX_EPOCH };
        let pid = std::process::id();
        assert_eq!(
            journal.query().args[3..],
            [
                "--lines=10".to_owned(),
                "--since=@0.000000".to_owned(),
                format!("--unit=git@*-{pid}[-_]*.service"),
                "--unit=git.socket".to_owned(),
            ]
        );
    }

    #[test]
    fn what_systemd_says_of_the_end_is_told_from_what_the_server_says() {
        let journal = Journal::from_now_on(&"git".into());
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
