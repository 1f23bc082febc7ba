//! The place where the records of calls are written: the journal or a file.

use std::{
    io,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
};

use super::{CallEntry, journal_entry, json_line, rotated_file::RotatedFile};
use crate::{
    config::{RecordedCalls, defaults},
    telemetry::log,
};

/// The socket of the journal. Source: systemd, "Native Journal Protocol".
const JOURNAL: &str = "/run/systemd/journal/socket";
/// The file below the state directory.
const FILE: &str = "calls.jsonl";

/// The place where the records of calls are written. Everything here blocks.
#[derive(Debug)]
pub enum CallLog {
    /// The journal.
    Journal(UnixDatagram),
    /// A file with one JSON object on each line.
    File(RotatedFile),
}

impl CallLog {
    /// Returns the journal if the service logs to it, and else the file below the directory
    /// `state`. Without a directory, records are in memory only.
    pub fn of_service(state: Option<&Path>) -> Option<Self> {
        if log::is_journal(io::stderr())
            && let Ok(journal) = journal(Path::new(JOURNAL))
        {
            return Some(Self::Journal(journal));
        }
        Some(Self::File(RotatedFile::new(Self::file_in(state?))))
    }

    /// Returns the file below the directory `state`.
    pub fn file_in(state: &Path) -> PathBuf {
        state.join(FILE)
    }

    /// Returns the file, if the records are in one.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Journal(_) => None,
            Self::File(file) => Some(file.path().to_owned()),
        }
    }

    /// Writes entries, and returns how many of them could not be written.
    pub(super) fn write(&mut self, entries: &[CallEntry], calls: RecordedCalls) -> WriteOutcome {
        let wanted = entries.iter().filter(|entry| entry.is_wanted(calls));
        let mut outcome = WriteOutcome::default();
        match self {
            Self::Journal(journal) => {
                for entry in wanted {
                    if let Err(error) = journal.send(&journal_entry::journal_entry(entry)) {
                        outcome.n_lost += 1;
                        outcome.error = Some(error);
                    }
                }
            }
            Self::File(file) => {
                let (mut lines, mut n_lines) = (Vec::new(), 0);
                for entry in wanted {
                    json_line::add_line(entry, &mut lines);
                    n_lines += 1;
                }
                if n_lines > 0
                    && let Err(error) = file.append(&lines)
                {
                    outcome = WriteOutcome { n_lost: n_lines, error: Some(error) };
                }
            }
        }
        outcome
    }
}

/// The outcome of writing entries.
#[derive(Debug, Default)]
pub(super) struct WriteOutcome {
    /// The number of entries that were not written.
    pub(super) n_lost: u64,
    /// The last reason.
    pub(super) error: Option<io::Error>,
}

impl CallEntry {
    fn is_wanted(&self, calls: RecordedCalls) -> bool {
        match (calls, self) {
            (RecordedCalls::None, _) => false,
            (RecordedCalls::All, _) | (RecordedCalls::Failures, Self::Dropped(_)) => true,
            (RecordedCalls::Failures, Self::Call(call)) => !call.outcome.is_ok(),
            (RecordedCalls::Failures, Self::Sum(_)) => false,
        }
    }
}

fn journal(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    // A journal that reads nothing must not keep the service from its end.
    socket.set_write_timeout(Some(defaults::JOURNAL_WRITE_TIMEOUT))?;
    Ok(socket)
}
