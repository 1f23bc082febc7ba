//! The records of scripts that wait for their clients, or that must survive this process: one file
//! for each, which only its owner can read.
//!
//! A record holds what tools have answered. It is deleted at the end of its script, and after an
//! hour in any case.

use std::{
    collections::HashMap,
    fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::{sync::Notify, task::spawn_blocking, time};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{record::RecordError, script_state::RECORD_BYTES_MAX};
use crate::files::{self, FileReadError};

/// The prefix of the states that lead to a record.
const STATE_PREFIX: &str = "metamcp.script.";

/// The directory, below the state directory.
const DIRECTORY: &str = "scripts";
/// The extension of the files.
const SUFFIX: &str = "script";

/// The most bytes of all records together.
const RECORDS_BYTES_MAX: usize = 64 << 20;

/// The largest file: a record, as JSON.
const FILE_BYTES_MAX: usize = 2 * RECORD_BYTES_MAX;

/// The age at which a record is deleted. A person has answered by then, or has left.
const RECORD_AGE_MAX: Duration = Duration::from_secs(60 * 60);

/// The records of scripts.
#[derive(Debug, Default)]
pub struct ScriptRecords {
    directory: Option<PathBuf>,
    kept: Mutex<HashMap<Uuid, KeptRecord>>,
    /// Notified when a script leaves its record to another request.
    left: Notify,
}

#[derive(Debug)]
struct KeptRecord {
    n_bytes: usize,
    created: SystemTime,
    is_running: bool,
    /// The lines, if there is no directory.
    text: Option<Vec<u8>>,
}

impl KeptRecord {
    /// Returns the time until it is too old, unless its script runs.
    fn time_left(&self, now: SystemTime) -> Option<Duration> {
        let age = now.duration_since(self.created).unwrap_or_default();
        (!self.is_running).then(|| RECORD_AGE_MAX.saturating_sub(age))
    }
}

/// The record of one script that runs. Dropping it leaves the record to another request.
#[derive(Debug)]
pub(super) struct RecordFile {
    records: Arc<ScriptRecords>,
    id: Uuid,
}

/// The reason why a script cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// There is no such record, or not any more.
    #[error("the script is unknown, has ended, or has waited for more than an hour")]
    Unknown,
    /// The client has sent answers without a state.
    #[error("the answers have no `requestState`, so that no script can go on with them")]
    NoState,
    /// It goes on for another request already.
    #[error("the script goes on already")]
    Running,
    /// The record is of another request.
    #[error("the state belongs to another script")]
    OtherRequest,
    /// The record cannot be read.
    #[error("the record of the script is damaged")]
    Damaged,
}

impl From<RecordError> for ResumeError {
    fn from(error: RecordError) -> Self {
        tracing::warn!(%error, "the record of a script is damaged: {error}");
        Self::Damaged
    }
}

impl ScriptRecords {
    /// Returns the records below the directory `state`; without one, they end with this process.
    /// Blocks.
    pub fn in_directory(state: Option<&Path>) -> Arc<Self> {
        let directory = state.map(|state| state.join(DIRECTORY));
        let records = Self { directory, ..Self::default() };
        records.find_files();
        Arc::new(records)
    }

    /// Finds the records of earlier processes.
    fn find_files(&self) {
        let Some(directory) = &self.directory else { return };
        let Ok(entries) = fs::read_dir(directory) else { return };
        let mut kept = self.kept();
        for entry in entries.flatten() {
            let path = entry.path();
            let id = path.file_stem().and_then(|stem| Uuid::try_parse(stem.to_str()?).ok());
            let (Some(id), Ok(found)) = (id, entry.metadata()) else { continue };
            let n_bytes = usize::try_from(found.len()).unwrap_or(usize::MAX);
            let created = found.created().or_else(|_| found.modified());
            let created = created.unwrap_or(SystemTime::UNIX_EPOCH);
            kept.insert(id, KeptRecord { n_bytes, created, is_running: false, text: None });
        }
    }

    /// Removes each record once it is too old, until `stop`.
    pub async fn supervise(self: Arc<Self>, stop: CancellationToken) {
        loop {
            let records = Arc::clone(&self);
            let removing = spawn_blocking(move || records.remove_expired(SystemTime::now()));
            let next = removing.await.ok().flatten();
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.left.notified() => {}
                () = time::sleep(next.unwrap_or_default()), if next.is_some() => {}
            }
        }
    }

    /// Removes the records that are too old. Returns the time until the next one is. Blocks.
    fn remove_expired(&self, now: SystemTime) -> Option<Duration> {
        let (expired, next) = {
            let mut kept = self.kept();
            let expired = kept
                .extract_if(|_, record| record.time_left(now).is_some_and(|left| left.is_zero()));
            let expired: Vec<Uuid> = expired.map(|(id, _)| id).collect();
            (expired, kept.values().filter_map(|record| record.time_left(now)).min())
        };
        for id in expired {
            self.remove_file(id);
        }
        next
    }

    /// Makes room for `n_bytes` more: the oldest record that waits goes first.
    fn make_room(&self, n_bytes: usize) -> io::Result<()> {
        loop {
            let mut kept = self.kept();
            let used: usize = kept.values().map(|record| record.n_bytes).sum();
            if used.saturating_add(n_bytes) <= RECORDS_BYTES_MAX {
                return Ok(());
            }
            let waiting = kept.iter().filter(|(_, record)| !record.is_running);
            let oldest = waiting.min_by_key(|(_, record)| record.created).map(|(id, _)| *id);
            let Some(oldest) = oldest else {
                let text =
                    format!("the records of scripts have {RECORDS_BYTES_MAX} bytes together");
                return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
            };
            kept.remove(&oldest);
            drop(kept);
            self.remove_file(oldest);
        }
    }

    /// Writes a new record, of a script that runs.
    pub(super) async fn create(self: &Arc<Self>, text: Vec<u8>) -> io::Result<RecordFile> {
        let file = RecordFile { records: Arc::clone(self), id: Uuid::new_v4() };
        let (records, id) = (Arc::clone(self), file.id);
        blocking(move || {
            let n_bytes = text.len();
            records.make_room(n_bytes)?;
            let kept_text = match records.path(id) {
                Some(path) => {
                    files::replace(&path, &text)?;
                    None
                }
                None => Some(text),
            };
            let created = SystemTime::now();
            let record = KeptRecord { n_bytes, created, is_running: true, text: kept_text };
            records.kept().insert(id, record);
            Ok(())
        })
        .await?;
        Ok(file)
    }

    /// Takes the record that `state` leads to, for a run. Returns it with its lines.
    pub(super) async fn take(
        self: &Arc<Self>,
        state: &str,
    ) -> Result<(RecordFile, Vec<u8>), ResumeError> {
        let (file, text) = self.claim(state)?;
        if let Some(text) = text {
            return Ok((file, text));
        }
        let path = self.path(file.id).ok_or(ResumeError::Unknown)?;
        let read = spawn_blocking(move || whole_lines(&path)).await;
        match read {
            Ok(Ok(Some(text))) => Ok((file, text)),
            Ok(Ok(None)) => Err(ResumeError::Unknown),
            Ok(Err(_)) | Err(_) => Err(ResumeError::Damaged),
        }
    }

    /// Claims the record that `state` leads to, for this script alone. Returns it with its lines,
    /// if they are in memory.
    fn claim(self: &Arc<Self>, state: &str) -> Result<(RecordFile, Option<Vec<u8>>), ResumeError> {
        let id = state.strip_prefix(STATE_PREFIX).and_then(|id| Uuid::try_parse(id).ok());
        let id = id.ok_or(ResumeError::Unknown)?;
        let mut kept = self.kept();
        let record = kept.get_mut(&id).ok_or(ResumeError::Unknown)?;
        match record.time_left(SystemTime::now()) {
            None => return Err(ResumeError::Running),
            Some(left) if left.is_zero() => return Err(ResumeError::Unknown),
            Some(_) => record.is_running = true,
        }
        Ok((RecordFile { records: Arc::clone(self), id }, record.text.clone()))
    }

    /// Removes the record that `state` leads to, unless its script runs.
    pub async fn discard(self: &Arc<Self>, state: &str) {
        if let Ok((file, _)) = self.claim(state) {
            file.remove().await;
        }
    }

    fn path(&self, id: Uuid) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(format!("{id}.{SUFFIX}")))
    }

    fn remove_file(&self, id: Uuid) {
        if let Some(path) = self.path(id) {
            let _gone = fs::remove_file(path);
        }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Uuid, KeptRecord>> {
        // Held for statements on plain data.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordFile {
    /// Returns the state that leads to the record. It cannot be guessed.
    pub(super) fn state(&self) -> String {
        format!("{STATE_PREFIX}{}", self.id.simple())
    }

    /// Adds lines at the end.
    pub(super) async fn append(&self, text: Vec<u8>) -> io::Result<()> {
        let (records, id) = (Arc::clone(&self.records), self.id);
        blocking(move || {
            records.make_room(text.len())?;
            if let Some(path) = records.path(id) {
                writable(&path, true)?.write_all(&text)?;
            }
            if let Some(record) = records.kept().get_mut(&id) {
                record.n_bytes += text.len();
                if let Some(kept) = &mut record.text {
                    kept.extend_from_slice(&text);
                }
            }
            Ok(())
        })
        .await
    }

    /// Removes the record: its script has ended.
    pub(super) async fn remove(self) {
        let (records, id) = (Arc::clone(&self.records), self.id);
        records.kept().remove(&id);
        let _removed = spawn_blocking(move || records.remove_file(id)).await;
    }
}

impl Drop for RecordFile {
    fn drop(&mut self) {
        if let Some(record) = self.records.kept().get_mut(&self.id) {
            record.is_running = false;
            self.records.left.notify_one();
        }
    }
}

/// Reads the whole lines of a record. A last line without its end was not written to its end: it is
/// removed, so that the next one does not join it.
fn whole_lines(path: &Path) -> Result<Option<Vec<u8>>, FileReadError> {
    let Some(mut text) = files::content(path, FILE_BYTES_MAX)? else { return Ok(None) };
    let n_whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if n_whole < text.len() {
        text.truncate(n_whole);
        writable(path, false)?.set_len(n_whole as u64)?;
    }
    Ok(Some(text))
}

/// Opens a record to write, which may be no link.
fn writable(path: &Path, is_append: bool) -> io::Result<fs::File> {
    fs::OpenOptions::new()
        .write(true)
        .append(is_append)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

async fn blocking(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_record_whose_script_does_not_run_is_removed_when_it_is_an_hour_old() {
        let directory = tempfile::tempdir().expect("a directory");
        let records = ScriptRecords::in_directory(Some(directory.path()));
        let n_files = || fs::read_dir(directory.path().join(DIRECTORY)).expect("there").count();
        let left = records.create(b"left\n".to_vec()).await.expect("room");
        let state = left.state();
        let running = records.create(b"running\n".to_vec()).await.expect("room");
        drop(left);
        let later = |seconds| SystemTime::now() + RECORD_AGE_MAX + Duration::from_secs(seconds);
        let early = SystemTime::now() + RECORD_AGE_MAX / 2;
        let left = records.remove_expired(early).expect("one is left");
        assert!(left <= RECORD_AGE_MAX / 2, "{left:?}");
        assert_eq!(n_files(), 2);
        assert_eq!(records.remove_expired(later(1)), None, "the other one runs");
        assert_eq!(n_files(), 1);
        assert!(matches!(records.take(&state).await, Err(ResumeError::Unknown)));
        drop(running);
        records.remove_expired(later(1));
        assert_eq!(n_files(), 0);
    }

    #[tokio::test]
    async fn the_records_of_an_earlier_process_are_found_and_removed_in_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let records = || ScriptRecords::in_directory(Some(directory.path()));
        let first = records();
        let record = first.create(b"old\n".to_vec()).await.expect("room");
        let path = first.path(record.id).expect("a directory");
        drop((record, first));
        let second = records();
        let stop = CancellationToken::new();
        stop.cancel();
        Arc::clone(&second).supervise(stop).await;
        assert!(path.exists(), "it is young");
        second.remove_expired(SystemTime::now() + RECORD_AGE_MAX + Duration::from_secs(1));
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_line_that_was_not_written_to_its_end_is_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let records = ScriptRecords::in_directory(Some(directory.path()));
        let record = records.create(b"one\ntwo\nthr".to_vec()).await.expect("room");
        let state = record.state();
        drop(record);
        let (record, text) = records.take(&state).await.expect("a record");
        assert_eq!(text, b"one\ntwo\n");
        record.append(b"three\n".to_vec()).await.expect("written");
        drop(record);
        let (_record, text) = records.take(&state).await.expect("a record");
        assert_eq!(text, b"one\ntwo\nthree\n");
    }
}
