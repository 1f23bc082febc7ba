//! A client's file that is changed, with its backup and the record of its changes.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{FAILED, Failed, connect::ChangeArgs};
use crate::{
    config::defaults,
    connect::{ConnectionRecord, FileChange},
    error_report::chain,
    files,
    import::{FileRoot, FileRoots, KnownClient},
};

/// The suffix of a backup.
const BACKUP: &str = ".before-metamcp";

/// A client's file that is changed.
pub(super) struct OpenedFile {
    pub(super) client: KnownClient,
    pub(super) path: PathBuf,
    /// Its text; `None` if it does not exist.
    pub(super) text: Option<String>,
    /// The record of earlier changes.
    pub(super) record: Option<ConnectionRecord>,
}

impl OpenedFile {
    /// Reads the file of a client, and the record of it.
    ///
    /// # Errors
    ///
    /// [`Failed`] if the client has no such file, or the file cannot be read.
    pub(super) fn open(client: KnownClient, args: &ChangeArgs) -> Result<Self, Failed> {
        let path = match &args.file {
            Some(path) => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
            None => usual_path(client, &args.scope)?,
        };
        let unreadable = |error: String| {
            Failed::new(FAILED, format!("cannot read `{}`: {error}", path.display()))
        };
        let text = match files::bounded(&path, defaults::IMPORT_BYTES_MAX as u64) {
            Ok(bytes) => Some(
                String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".to_owned()))?,
            ),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable(error.to_string())),
        };
        let mut file = Self { client, path, text, record: None };
        file.record = file.read_record();
        Ok(file)
    }

    /// Returns the path of the backup.
    pub(super) fn backup_path(&self) -> Option<PathBuf> {
        let name = self.path.file_name()?.to_str()?;
        Some(self.path.with_file_name(format!("{name}{BACKUP}")))
    }

    /// Returns the change to the state before all changes, if the file is as `connect` left it.
    pub(super) fn former(&self) -> Option<FileChange> {
        let record = self.record.as_ref()?;
        let text = self.text.as_deref()?;
        if ConnectionRecord::digest(text.as_bytes()) != record.after {
            return None;
        }
        let before = match record.was_made {
            true => None,
            false => {
                let bytes = fs::read(self.backup_path()?).ok()?;
                let is_former = Some(ConnectionRecord::digest(&bytes)) == record.before;
                Some(String::from_utf8(bytes).ok().filter(|_| is_former)?)
            }
        };
        Some(FileChange {
            text: before,
            entries: record.entries.clone(),
            switched: record.switched.clone(),
            n_tables_made: 0,
        })
    }

    /// Writes a change that connects the client: the backup and the record before the file.
    ///
    /// # Errors
    ///
    /// [`Failed`] if something cannot be written; the file is unchanged then.
    pub(super) fn write(&mut self, change: &FileChange) -> Result<(), Failed> {
        let after = change.text.clone().unwrap_or_default();
        let digest = |text: &str| ConnectionRecord::digest(text.as_bytes());
        let now = self.text.as_deref().map(digest);
        let known = self.record.take();
        // Changes by others since then would be lost if an earlier state came back.
        let is_chain = known.as_ref().is_some_and(|record| Some(&record.after) == now.as_ref());
        let mut record = known.unwrap_or_else(|| ConnectionRecord {
            client: self.client.word().to_owned(),
            file: self.path.clone(),
            was_made: self.text.is_none(),
            before: now.clone(),
            ..ConnectionRecord::default()
        });
        if !is_chain {
            self.back_up()?;
            if !record.after.is_empty() {
                record.before = None;
                record.was_made = false;
            }
        }
        record.entries.extend(change.entries.iter().cloned());
        record.switched.extend(change.switched.iter().cloned());
        record.n_tables_made = record.n_tables_made.max(change.n_tables_made);
        record.after = digest(&after);
        if let Some(path) = record_path(&record) {
            let json = serde_json::to_vec_pretty(&record).unwrap_or_default();
            files::replace(&path, &json).map_err(|error| not_written(&path, &error))?;
        }
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory).map_err(|error| not_written(directory, &error))?;
        }
        self.publish(&after)?;
        self.record = Some(record);
        Ok(())
    }

    /// Writes a change that disconnects the client, and removes what is not needed any more.
    ///
    /// # Errors
    ///
    /// [`Failed`] if the file cannot be written or removed.
    pub(super) fn undo(&mut self, change: &FileChange) -> Result<(), Failed> {
        let is_former = self.former().is_some();
        match &change.text {
            Some(text) => self.publish(text)?,
            None => {
                fs::remove_file(&self.path).map_err(|error| not_written(&self.path, &error))?;
            }
        }
        if let Some(record) = self.record.take()
            && let Some(path) = record_path(&record)
        {
            let _gone = fs::remove_file(path);
        }
        // The backup has the same text as the file now.
        if let Some(backup) = self.backup_path().filter(|_| is_former) {
            let _gone = fs::remove_file(backup);
        }
        Ok(())
    }

    fn publish(&self, text: &str) -> Result<(), Failed> {
        files::publish(&self.path, text.as_bytes()).map_err(|error| not_written(&self.path, &error))
    }

    /// Copies the file, with its permissions, beside it.
    fn back_up(&self) -> Result<(), Failed> {
        let Some(backup) = self.backup_path().filter(|_| self.text.is_some()) else {
            return Ok(());
        };
        // A link in its place would lead the copy elsewhere.
        let _none_there = fs::remove_file(&backup);
        let copied = fs::copy(&self.path, &backup);
        copied.map(|_| ()).map_err(|error| not_written(&backup, &error))
    }

    fn read_record(&self) -> Option<ConnectionRecord> {
        let wanted = ConnectionRecord {
            client: self.client.word().to_owned(),
            file: self.path.clone(),
            ..ConnectionRecord::default()
        };
        let path = record_path(&wanted)?;
        let bytes = files::content(&path, defaults::IMPORT_BYTES_MAX).ok().flatten()?;
        serde_json::from_slice(&bytes).ok().filter(|record: &ConnectionRecord| {
            record.file == wanted.file && record.client == wanted.client
        })
    }
}

/// Returns the path of a record.
fn record_path(record: &ConnectionRecord) -> Option<PathBuf> {
    let state = files::own_directory("XDG_STATE_HOME", ".local/state")?;
    Some(state.join("metamcp/clients").join(record.file_name()))
}

/// Returns the file of a client: one that exists, or whose directory exists, or else the first.
fn usual_path(client: KnownClient, scope: &str) -> Result<PathBuf, Failed> {
    let roots = FileRoots::of_process();
    let files =
        client.profile().files.iter().filter(|file| {
            file.is_written && (file.root == FileRoot::Project) == (scope == "project")
        });
    let paths: Vec<PathBuf> = files.filter_map(|file| roots.path(file)).collect();
    let exists = paths.iter().find(|path| path.exists());
    let has_directory = || paths.iter().find(|path| path.parent().is_some_and(Path::is_dir));
    exists.or_else(has_directory).or(paths.first()).cloned().ok_or_else(|| {
        let text = format!("{} has no file for the scope `{scope}` here", client.title());
        Failed::new(FAILED, text).hint("Use the other --scope, or name the file with --file.")
    })
}

fn not_written(path: &Path, error: &io::Error) -> Failed {
    Failed::new(FAILED, format!("cannot write `{}`: {}", path.display(), chain(error)))
}
