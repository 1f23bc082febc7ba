//! The place where the records of calls are written: the journal or a file.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{CallEntry, journal_entry, json_line, rotated_file::RotatedFile};
use crate::{
    config::{RecordedCalls, defaults},
    telemetry::{journal_socket::JournalSocket, log},
    time_format::TimeTexts,
};

/// The file below the state directory.
const FILE: &str = "calls.jsonl";

/// The place where the records of calls are written. Everything here blocks.
#[derive(Debug)]
pub enum CallLog {
    /// The journal.
    Journal(JournalSocket),
    /// A file with one JSON object on each line.
    File(RotatedFile, TimeTexts),
}

impl CallLog {
    /// Returns the journal if the service logs to it, and else the file below the directory
    /// `state`. Without a directory, records are in memory only.
    pub fn of_service(state: Option<&Path>) -> Option<Self> {
        if log::is_journal(io::stderr())
            // A journal that reads nothing must not keep the service from its end.
            && let Ok(journal) = JournalSocket::open(defaults::JOURNAL_WRITE_TIMEOUT)
        {
            return Some(Self::Journal(journal));
        }
        Some(Self::in_file(Self::file_in(state?)))
    }

    fn in_file(path: PathBuf) -> Self {
        Self::File(RotatedFile::new(path), TimeTexts::default())
    }

    /// Returns the file below the directory `state`.
    pub fn file_in(state: &Path) -> PathBuf {
        state.join(FILE)
    }

    /// Returns all files with the records of `file`, the oldest first.
    pub fn files(file: &Path) -> Vec<PathBuf> {
        RotatedFile::all(file)
    }

    /// Returns the file, if the records are in one.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Journal(_) => None,
            Self::File(file, _) => Some(file.path().to_owned()),
        }
    }

    /// Writes entries, as far as the journal takes them in time.
    pub(super) fn write(&mut self, entries: Vec<CallEntry>, calls: RecordedCalls) -> WriteOutcome {
        let mut wanted = entries.into_iter().filter(|entry| entry.is_wanted(calls));
        let mut outcome = WriteOutcome::default();
        match self {
            Self::Journal(journal) => {
                while let Some(entry) = wanted.next() {
                    let Err(error) = journal.send(&journal_entry::journal_entry(&entry)) else {
                        continue;
                    };
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
                        outcome.waiting = [entry].into_iter().chain(wanted.by_ref()).collect();
                    } else {
                        outcome.n_lost += entry.n_calls();
                        outcome.n_newly_lost += entry.n_own_calls();
                    }
                    outcome.error = Some(error);
                }
            }
            Self::File(file, times) => {
                let (mut lines, mut n_calls, mut n_own) = (Vec::new(), 0, 0);
                for entry in wanted {
                    json_line::add_line(&entry, times, &mut lines);
                    n_calls += entry.n_calls();
                    n_own += entry.n_own_calls();
                }
                if n_calls > 0
                    && let Err(error) = file.append(&lines)
                {
                    outcome = WriteOutcome {
                        n_lost: n_calls,
                        n_newly_lost: n_own,
                        error: Some(error),
                        waiting: Vec::new(),
                    };
                }
            }
        }
        outcome
    }
}

/// The outcome of writing entries.
#[derive(Debug, Default)]
pub(super) struct WriteOutcome {
    /// The number of calls whose entries were not written.
    pub(super) n_lost: u64,
    /// Those of them that no earlier outcome counted.
    pub(super) n_newly_lost: u64,
    /// The entries that the journal has not taken in time.
    pub(super) waiting: Vec<CallEntry>,
    /// The last reason.
    pub(super) error: Option<io::Error>,
}

impl CallEntry {
    /// Returns the number of calls that the entry stands for.
    fn n_calls(&self) -> u64 {
        match self {
            Self::Call(_) => 1,
            Self::Sum(sum) => sum.n_calls,
            Self::Dropped(n_dropped) => *n_dropped,
        }
    }

    /// Returns the number of calls that are lost with the entry: one about lost calls loses none.
    fn n_own_calls(&self) -> u64 {
        if matches!(self, Self::Dropped(_)) { 0 } else { self.n_calls() }
    }

    fn is_wanted(&self, calls: RecordedCalls) -> bool {
        match (calls, self) {
            (RecordedCalls::None, _) => false,
            (RecordedCalls::All, _) | (RecordedCalls::Failures, Self::Dropped(_)) => true,
            (RecordedCalls::Failures, Self::Call(call)) => !call.outcome.is_ok(),
            (RecordedCalls::Failures, Self::Sum(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_record::{CallSum, record::tests::record};

    #[test]
    fn entries_that_cannot_be_written_are_counted_by_their_calls() {
        let directory = tempfile::tempdir().unwrap();
        // A directory is in the place of the file.
        let mut log = CallLog::in_file(directory.path().to_owned());
        let last = record("git", "log");
        let sum = CallSum { n_calls: 812, ..CallSum::empty(last.clone()) };
        let entries =
            vec![CallEntry::Dropped(7), CallEntry::Call(last), CallEntry::Sum(Box::new(sum))];
        let outcome = log.write(entries, RecordedCalls::All);
        assert_eq!((outcome.n_lost, outcome.n_newly_lost), (7 + 1 + 812, 1 + 812));
        assert!(outcome.error.is_some());
    }
}
