//! The files of the calls: one for each, so that a restart of the service forgets none.
//!
//! Everything here blocks. After a failed write, only a restart forgets the call.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::SystemTime,
};

use uuid::Uuid;

use super::TaskRecord;
use crate::{config::defaults, files};

/// The directory, below the state directory.
const DIRECTORY: &str = "tasks";
/// The extension of the files.
const SUFFIX: &str = "task";
/// The extension of unreadable files.
const BROKEN: &str = "broken";

/// The directory with one file per call.
#[derive(Debug, Default)]
pub struct TaskFiles {
    directory: Option<PathBuf>,
    /// The warning about an unusable directory was logged.
    is_warned: AtomicBool,
}

impl TaskFiles {
    /// Returns the files below the directory `state`; without one, nothing is kept.
    pub fn in_directory(state: Option<&Path>) -> Self {
        let directory = state.map(|state| state.join(DIRECTORY));
        Self { directory, is_warned: AtomicBool::new(false) }
    }

    /// Writes the state of a call, readable only by its owner.
    pub fn write(&self, task: &TaskRecord) {
        let Some(path) = self.path(&task.id) else { return };
        let text = serde_json::to_vec(task).expect("our own values have string keys");
        if let Err(error) = files::replace(&path, &text)
            && !self.is_warned.swap(true, Ordering::Relaxed)
        {
            // Logged once, and not for every call.
            let path = path.display();
            tracing::warn!(
                %path, %error,
                "tasks will not survive a restart: cannot write `{path}`: {error}"
            );
        }
    }

    /// Removes the files of these calls.
    pub fn remove(&self, ids: &[String]) {
        for path in ids.iter().filter_map(|id| self.path(id)) {
            let _gone_or_never_there = fs::remove_file(path);
        }
    }

    /// Reads the calls of earlier processes: the last ones written, up to the limit. An invalid
    /// file is set aside with a warning.
    pub fn read(&self) -> Vec<TaskRecord> {
        let Some(directory) = &self.directory else { return Vec::new() };
        files::tidy(directory, defaults::CACHE_DRAFT_AGE);
        let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
        let mut found: Vec<(Option<SystemTime>, PathBuf)> =
            entries.flatten().map(|entry| (written(&entry), entry.path())).collect();
        found.sort();
        let paths: Vec<PathBuf> = found.into_iter().rev().map(|(_, path)| path).collect();
        let ends = |path: &Path, suffix| path.extension().is_some_and(|found| found == suffix);
        let mut n_broken = paths.iter().filter(|path| ends(path, BROKEN)).count();
        let (mut tasks, mut n_forgotten) = (Vec::new(), 0);
        for path in paths.into_iter().filter(|path| ends(path, SUFFIX)) {
            if tasks.len() >= defaults::TASKS_MAX {
                n_forgotten += 1;
                let _gone = fs::remove_file(&path);
                continue;
            }
            match read(&path) {
                Ok(task) => tasks.push(task),
                Err(reason) => {
                    let file = path.display();
                    tracing::warn!(path = %file, reason, "task file `{file}` set aside: {reason}");
                    n_broken += 1;
                    let _gone = match n_broken > defaults::TASK_FILES_BROKEN_MAX {
                        true => fs::remove_file(&path),
                        false => fs::rename(&path, path.with_extension(BROKEN)),
                    };
                }
            }
        }
        if n_forgotten > 0 {
            tracing::warn!(
                n_forgotten,
                "removed the {n_forgotten} oldest task files: there are too many"
            );
        }
        tasks
    }

    /// Returns the path of a call's file. Only a UUID is accepted: it has no meaning in a path.
    fn path(&self, id: &str) -> Option<PathBuf> {
        let id = Uuid::try_parse(id).ok()?;
        Some(self.directory.as_ref()?.join(format!("{id}.{SUFFIX}")))
    }
}

/// Returns the time of the last write to a file.
fn written(entry: &fs::DirEntry) -> Option<SystemTime> {
    entry.metadata().ok()?.modified().ok()
}

fn read(path: &Path) -> Result<TaskRecord, String> {
    let bytes = files::content(path, defaults::TASK_FILE_BYTES_MAX)
        .map_err(|error| error.to_string())?
        .ok_or("it was removed")?;
    let task: TaskRecord = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    let is_named = path.file_stem().is_some_and(|stem| stem == task.id.as_str())
        && Uuid::try_parse(&task.id).is_ok();
    match (is_named, task.status.has_ended() == task.ended_ms.is_some()) {
        (false, _) => Err("it belongs to another task".to_owned()),
        (_, false) => Err("its status and its end contradict each other".to_owned()),
        (true, true) => Ok(task),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::unix::fs::PermissionsExt as _, time::Duration};

    use super::*;
    use crate::task::{TaskEnd, TaskStatus, TaskSubject};

    fn task() -> TaskRecord {
        let subject = TaskSubject::Call { server: "git".to_owned(), tool: "log".to_owned() };
        TaskRecord::new(Uuid::new_v4().to_string(), subject, 7)
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory.join(DIRECTORY)).expect("a directory").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().display().to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_task_file_is_read_back_and_only_its_owner_may_read_it() {
        let state = tempfile::tempdir().expect("a directory");
        let files = TaskFiles::in_directory(Some(state.path()));
        assert!(files.read().is_empty(), "there is nothing yet");
        let (runs, mut ended) = (task(), task());
        ended.end(TaskEnd::Result(r#"{"content":["ü\""]}"#.to_owned()), 9);
        files.write(&runs);
        files.write(&ended);
        let found = fs::metadata(files.path(&runs.id).expect("a path")).expect("written");
        assert_eq!(found.permissions().mode() & 0o777, 0o600);
        let found = files.read();
        assert!(found.len() == 2 && found.contains(&runs) && found.contains(&ended), "{found:?}");
        files.remove(&[runs.id, "../../etc/passwd".to_owned(), task().id]);
        assert_eq!(files.read(), [ended]);
    }

    #[test]
    fn a_broken_task_file_is_set_aside_and_the_other_files_are_read() {
        let state = tempfile::tempdir().expect("a directory");
        let files = TaskFiles::in_directory(Some(state.path()));
        let good = task();
        files.write(&good);
        let broken: Vec<String> = (0..3).map(|_| task().id).collect();
        let whole = serde_json::to_string(&good).expect("JSON");
        let wrong = whole.replace(&good.id, &broken[2]).replace("working", "completed");
        for (id, text) in broken.iter().zip(["", whole.as_str(), wrong.as_str()]) {
            fs::write(files.path(id).expect("a path"), text).expect("written");
        }
        assert_eq!(files.read(), std::slice::from_ref(&good));
        let mut expected: Vec<String> = broken.iter().map(|id| format!("{id}.broken")).collect();
        expected.push(format!("{}.task", good.id));
        expected.sort();
        assert_eq!(names(state.path()), expected);
        for _ in 0..defaults::TASK_FILES_BROKEN_MAX {
            fs::write(files.path(&task().id).expect("a path"), "{").expect("written");
        }
        files.read();
        assert_eq!(names(state.path()).len(), defaults::TASK_FILES_BROKEN_MAX + 1);
    }

    #[test]
    fn the_most_recently_written_task_files_are_read_if_there_are_too_many() {
        let state = tempfile::tempdir().expect("a directory");
        let files = TaskFiles::in_directory(Some(state.path()));
        let last = task();
        files.write(&last);
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        for _ in 0..defaults::TASKS_MAX + 1 {
            let task = task();
            let path = files.path(&task.id).expect("a path");
            fs::write(&path, serde_json::to_vec(&task).expect("JSON")).expect("written");
            let file = File::options().write(true).open(&path).expect("there");
            file.set_modified(long_ago).expect("aged");
        }
        let found = files.read();
        assert_eq!(found.len(), defaults::TASKS_MAX);
        assert!(found.contains(&last), "the last one may run");
        assert_eq!(names(state.path()).len(), defaults::TASKS_MAX);
    }

    #[test]
    fn without_a_directory_no_task_is_stored_and_no_operation_fails() {
        let nowhere = TaskFiles::in_directory(None);
        nowhere.write(&task());
        assert!(nowhere.read().is_empty());
        let state = tempfile::tempdir().expect("a directory");
        fs::write(state.path().join(DIRECTORY), "").expect("a file in its place");
        let blocked = TaskFiles::in_directory(Some(state.path()));
        blocked.write(&task());
        assert!(blocked.read().is_empty());
        assert_eq!(task().status, TaskStatus::Working);
    }
}
