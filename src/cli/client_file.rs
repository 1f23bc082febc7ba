//! A client's file that is changed, with its backup and the record of its changes.

use std::{
    fs,
    io::{self, Write as _},
    iter,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use super::{FAILED, Failed, client_change::ChangeArgs, config_edit::not_written, unwritable};
use crate::{
    config::defaults,
    connect::{self, ClientLink, ConnectionRecord, FileChange},
    files::{self, EditedFile},
    import::{FileRoot, FileRoots, KnownClient},
};

/// The suffix of a backup.
const BACKUP: &str = ".before-metamcp";

/// A client's file that is changed.
pub(super) struct OpenedFile {
    pub(super) client: KnownClient,
    edited: EditedFile,
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
        let edited = EditedFile::read(path.clone(), defaults::IMPORT_BYTES_MAX as u64);
        let edited = edited.map_err(|error| {
            Failed::new(FAILED, format!("cannot read `{}`: {error}", path.display()))
        })?;
        let mut file = Self { client, edited, record: None };
        file.record = file.read_record();
        Ok(file)
    }

    /// Waits until no other command changes the file, and reads it and its record again.
    ///
    /// # Errors
    ///
    /// [`Failed`] if the file cannot be locked or read.
    pub(super) fn lock(&mut self) -> Result<(), Failed> {
        // A lock makes the directory of a missing file.
        if self.text().is_none() {
            unwritable::check(self.path())?;
        }
        let locked = self.edited.lock();
        locked.map_err(|error| not_written(self.path(), &error.into()))?;
        self.record = self.read_record();
        Ok(())
    }

    /// Returns the path.
    pub(super) fn path(&self) -> &Path {
        self.edited.path()
    }

    /// Returns the text; `None` if the file does not exist.
    pub(super) fn text(&self) -> Option<&str> {
        self.edited.text()
    }

    /// Returns the change to the state before all changes, if the file is as `connect` left it.
    pub(super) fn former(&self) -> Option<FileChange> {
        let record = self.record.as_ref()?;
        if ConnectionRecord::digest(self.text()?.as_bytes()) != record.after {
            return None;
        }
        let before = match record.was_made {
            true => None,
            false => {
                let bytes = fs::read(record.backup.as_ref()?).ok()?;
                let is_former = Some(ConnectionRecord::digest(&bytes)) == record.before;
                Some(String::from_utf8(bytes).ok().filter(|_| is_former)?)
            }
        };
        let entries = record.entries.keys().cloned().collect();
        let switched = record.switched.clone();
        Some(FileChange { text: before, entries, switched, ..FileChange::default() })
    }

    /// Writes a change that connects the client by `link`: the backup and the record before the file.
    ///
    /// # Errors
    ///
    /// [`Failed`] if something cannot be written, or the file is not as it was read; it is unchanged
    /// then.
    pub(super) fn write(&mut self, change: &FileChange, link: &ClientLink) -> Result<(), Failed> {
        self.lock_unchanged()?;
        let after = change.text.as_deref().unwrap_or_default();
        let now = self.text().map(|text| ConnectionRecord::digest(text.as_bytes()));
        // A file that is gone has nothing of the former changes.
        let mut record = self.record.clone().filter(|_| now.is_some()).unwrap_or_default();
        let is_new = record.after.is_empty();
        // Changes by others since then would be lost if an earlier state came back.
        if is_new || Some(&record.after) != now.as_ref() {
            record.backup = self.back_up()?;
            record.was_made = is_new && now.is_none();
            record.before = now.filter(|_| is_new);
            let text = self.text().unwrap_or_default();
            connect::retain_current(&mut record, self.client, text);
        }
        record.client = self.client.word().to_owned();
        record.file = self.real_path();
        let entries = change.entries.iter().map(|name| (name.clone(), link.clone()));
        record.entries.extend(entries);
        record.switched.extend(change.switched.iter().cloned());
        record.directories.extend(self.edited.made().iter().cloned());
        record.n_tables_made = record.n_tables_made.max(change.n_tables_made);
        record.after = ConnectionRecord::digest(after.as_bytes());
        if let Some(path) = record_path(&record) {
            let json = serde_json::to_vec_pretty(&record).unwrap_or_default();
            files::replace(&path, &json).map_err(|error| not_written(&path, &error.into()))?;
        }
        self.replace(Some(after))?;
        self.record = Some(record);
        Ok(())
    }

    /// Writes a change that disconnects the client, and removes what is not needed any more.
    ///
    /// # Errors
    ///
    /// [`Failed`] if the file cannot be written or removed, or is not as it was read.
    pub(super) fn undo(&mut self, change: &FileChange) -> Result<(), Failed> {
        self.lock_unchanged()?;
        self.replace(change.text.as_deref())?;
        let is_former = self.former().is_some();
        // The backup has the same text as the file now.
        if let Some(record) = self.record.as_mut().filter(|_| is_former)
            && let Some(backup) = record.backup.take()
        {
            let _gone = fs::remove_file(backup);
        }
        self.forget();
        Ok(())
    }

    /// Removes the record of what `connect` did, and the directories that it made, if they are empty.
    pub(super) fn forget(&self) {
        let Some(record) = &self.record else { return };
        for directory in &record.directories {
            let _in_use = fs::remove_dir(directory);
        }
        if let Some(path) = record_path(record) {
            let _gone = fs::remove_file(path);
        }
    }

    fn lock_unchanged(&mut self) -> Result<(), Failed> {
        unwritable::check(self.path())?;
        let locked = self.edited.lock_unchanged();
        locked.map_err(|error| not_written(self.path(), &error))
    }

    fn replace(&self, text: Option<&str>) -> Result<(), Failed> {
        let replaced = self.edited.replace(text);
        replaced.map_err(|error| not_written(self.path(), &error.into()))
    }

    /// Writes the text that was read into a new file beside the file, with the same permissions.
    /// Earlier backups stay.
    fn back_up(&self) -> Result<Option<PathBuf>, Failed> {
        let (Some(text), Some(name)) = (self.text(), self.path().file_name()) else {
            return Ok(None);
        };
        let name = format!("{}{BACKUP}", name.display());
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        for name in iter::once(name.clone()).chain(numbered) {
            let backup = self.path().with_file_name(name);
            let written = (|| {
                let permissions = fs::metadata(self.path())?.permissions();
                let mut options = fs::OpenOptions::new();
                let mut file = options.write(true).create_new(true).mode(0o600).open(&backup)?;
                file.set_permissions(permissions)?;
                file.write_all(text.as_bytes())
            })();
            match written {
                Ok(()) => return Ok(Some(backup)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(not_written(&backup, &error.into())),
            }
        }
        Ok(None)
    }

    /// Returns the path without links, which is the same however the file is named.
    fn real_path(&self) -> PathBuf {
        files::resolved(self.path()).unwrap_or_else(|_| self.path().to_owned())
    }

    fn read_record(&self) -> Option<ConnectionRecord> {
        let wanted = ConnectionRecord {
            client: self.client.word().to_owned(),
            file: self.real_path(),
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
