//! A shared text file that a command edits: read, compared, and replaced.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use super::{check_target, publish, regular_text, resolved};

/// A file as a command has read it. It is replaced only if no other program has changed it since.
#[derive(Debug)]
pub struct EditedFile {
    path: PathBuf,
    text: Option<String>,
    bytes_max: u64,
    /// The locked directory.
    lock: Option<fs::File>,
    /// The directories that were made for the file, the innermost first.
    made: Vec<PathBuf>,
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
    /// Those of [`regular_text`].
    pub fn read(path: PathBuf, bytes_max: u64) -> io::Result<Self> {
        let text = match regular_text(&path, bytes_max) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self { path, text, bytes_max, lock: None, made: Vec::new() })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the text that was read; `None` without a file.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns the directories that the lock has made, the innermost first.
    pub fn made(&self) -> &[PathBuf] {
        &self.made
    }

    /// Waits until no other command of metamcp edits the file, makes its directory, and reads the file
    /// again. Others wait until [`Self::unlock`].
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn lock(&mut self) -> io::Result<()> {
        self.lock = Some(self.locked_directory()?);
        self.text = Self::read(self.path.clone(), self.bytes_max)?.text;
        Ok(())
    }

    /// Locks the file, and checks that it is as it was read. Programs other than metamcp do not know
    /// the lock: replace the file at once.
    ///
    /// # Errors
    ///
    /// [`FileWriteError`] says why the file must not be replaced.
    pub fn lock_unchanged(&mut self) -> Result<(), FileWriteError> {
        if self.lock.is_none() {
            self.lock = Some(self.locked_directory()?);
        }
        let now = Self::read(self.path.clone(), self.bytes_max)?;
        if now.text == self.text { Ok(()) } else { Err(FileWriteError::Changed) }
    }

    /// Lets other commands edit the file.
    pub fn unlock(&mut self) {
        self.lock = None;
    }

    /// Replaces the text of the locked file, or removes the file. A link stays.
    ///
    /// # Errors
    ///
    /// The error of the system; the file is unchanged then.
    pub fn replace(&self, text: Option<&str>) -> io::Result<()> {
        match text {
            Some(text) => publish(&self.path, text.as_bytes()),
            None => fs::remove_file(resolved(&self.path)?),
        }
    }

    fn locked_directory(&mut self) -> io::Result<fs::File> {
        loop {
            if let Some(directory) = self.path.parent() {
                let missing = directory.ancestors().take_while(|path| !path.exists());
                self.made.extend(missing.map(Path::to_owned));
                fs::create_dir_all(directory)?;
            }
            let target = resolved(&self.path)?;
            check_target(&self.path, &target)?;
            let path = target.parent().unwrap_or(Path::new("/"));
            let directory = fs::File::open(path)?;
            match flock(&directory, FlockOperation::LockExclusive) {
                // Some network file systems cannot lock a directory; the comparison remains.
                Ok(()) | Err(Errno::BADF | Errno::NOLCK | Errno::OPNOTSUPP) => {}
                Err(errno) => return Err(io::Error::from(errno)),
            }
            // The command that had the lock may have removed the directory with its file.
            let inode = directory.metadata()?.ino();
            if path.metadata().is_ok_and(|found| found.ino() == inode) {
                return Ok(directory);
            }
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
        let mut edited = EditedFile::read(path.clone(), 9).expect("nothing there");
        edited.lock_unchanged().expect("still none");
        edited.replace(Some("one")).expect("written");
        assert!(matches!(edited.lock_unchanged(), Err(FileWriteError::Changed)), "it has appeared");
        edited.unlock();
        let mut edited = EditedFile::read(path.clone(), 9).expect("readable");
        fs::write(&path, "two").expect("written");
        assert!(matches!(edited.lock_unchanged(), Err(FileWriteError::Changed)));
        assert_eq!(fs::read_to_string(&path).expect("there"), "two");
    }

    #[test]
    fn a_command_reads_what_the_command_before_it_has_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("made/file");
        let mut first = EditedFile::read(path.clone(), 9).expect("nothing there");
        first.lock().expect("locked");
        assert_eq!(first.made(), [directory.path().join("made")]);
        let mut second = EditedFile::read(path.clone(), 9).expect("nothing there");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| second.lock());
            first.replace(Some("one")).expect("written");
            first.unlock();
            waiting.join().expect("it ends").expect("locked");
        });
        assert_eq!((second.text(), second.made()), (Some("one"), [].as_slice()));
        second.lock_unchanged().expect("still locked");
    }

    #[test]
    fn a_directory_that_goes_while_a_command_waits_is_made_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("made/file");
        let mut first = EditedFile::read(path.clone(), 9).expect("nothing there");
        first.lock().expect("locked");
        let mut second = EditedFile::read(path.clone(), 9).expect("nothing there");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| second.lock());
            fs::remove_dir(&first.made()[0]).expect("it is empty");
            first.unlock();
            waiting.join().expect("it ends").expect("locked");
        });
        second.replace(Some("two")).expect("written");
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
        let mut edited = EditedFile::read(link.clone(), 9).expect("nothing there");
        edited.lock_unchanged().expect("still none");
        edited.replace(Some("one")).expect("written");
        edited.replace(None).expect("removed");
        assert!(link.is_symlink() && !path.exists());
    }
}
