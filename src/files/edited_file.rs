//! A shared text file that a command edits: read, compared, and replaced.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use super::{check_target, publish, resolved, text};

/// A file as a command has read it. It is replaced only if no other program has changed it since.
#[derive(Debug)]
pub struct EditedFile {
    path: PathBuf,
    text: Option<String>,
    bytes_max: u64,
}

/// The lock of an unchanged file against edits by other commands of metamcp, until it is dropped.
#[derive(Debug)]
pub struct EditLock<'a> {
    path: &'a Path,
    _directory: fs::File,
}

/// The reason why an edited file is not replaced.
#[derive(Debug, thiserror::Error)]
pub enum FileWriteError {
    /// The system reports an error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Another program has changed the file.
    #[error("another program has changed it meanwhile")]
    Changed,
}

impl EditedFile {
    /// Reads a file of at most `bytes_max`, if there is one.
    ///
    /// # Errors
    ///
    /// Those of [`text`].
    pub fn read(path: PathBuf, bytes_max: u64) -> io::Result<Self> {
        // A pipe would wait for its other end, and nothing can replace a device.
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            let text = "it is not a regular file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let text = match text(&path, bytes_max) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self { path, text, bytes_max })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the text that was read; `None` without a file.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Locks the file, makes its directory, and checks that it is as it was read. Programs other
    /// than metamcp do not know the lock: replace the file at once.
    ///
    /// # Errors
    ///
    /// [`FileWriteError`] says why the file must not be replaced.
    pub fn lock(&self) -> Result<EditLock<'_>, FileWriteError> {
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let target = resolved(&self.path)?;
        check_target(&self.path, &target)?;
        let directory = fs::File::open(target.parent().unwrap_or(Path::new("/")))?;
        match flock(&directory, FlockOperation::LockExclusive) {
            // Some network file systems cannot lock a directory; the comparison remains.
            Ok(()) | Err(Errno::BADF | Errno::NOLCK | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(io::Error::from(errno).into()),
        }
        let now = Self::read(self.path.clone(), self.bytes_max)?;
        if now.text != self.text {
            return Err(FileWriteError::Changed);
        }
        Ok(EditLock { path: &self.path, _directory: directory })
    }
}

impl EditLock<'_> {
    /// Replaces the text, or removes the file. A link stays.
    ///
    /// # Errors
    ///
    /// The error of the system; the file is unchanged then.
    pub fn replace(&self, text: Option<&str>) -> io::Result<()> {
        match text {
            Some(text) => publish(self.path, text.as_bytes()),
            None => fs::remove_file(resolved(self.path)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_that_another_program_has_changed_is_not_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("made/file");
        let edited = EditedFile::read(path.clone(), 9).expect("nothing there");
        edited.lock().expect("still none").replace(Some("one")).expect("written");
        assert!(matches!(edited.lock(), Err(FileWriteError::Changed)), "it has appeared");
        let edited = EditedFile::read(path.clone(), 9).expect("readable");
        fs::write(&path, "two").expect("written");
        assert!(matches!(edited.lock(), Err(FileWriteError::Changed)));
        assert_eq!(fs::read_to_string(&path).expect("there"), "two");
    }

    #[test]
    fn a_pipe_and_a_device_are_refused_and_not_waited_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let pipe = directory.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("made");
        for path in [pipe, "/dev/null".into()] {
            let error = EditedFile::read(path, 9).expect_err("it is no file");
            assert_eq!(error.to_string(), "it is not a regular file");
        }
    }

    #[test]
    fn a_file_that_was_made_behind_a_link_is_removed_without_the_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, link) = (directory.path().join("file"), directory.path().join("link"));
        symlink(&path, &link).expect("linked");
        let edited = EditedFile::read(link.clone(), 9).expect("nothing there");
        let lock = edited.lock().expect("still none");
        lock.replace(Some("one")).expect("written");
        lock.replace(None).expect("removed");
        assert!(link.is_symlink() && !path.exists());
    }
}
