//! A file of lines with a bounded size: a full one is kept under another name for a while.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::config::defaults;

/// A file of lines. With its predecessors, it takes at most [`defaults::CALL_FILES_KEPT`] + 1 times
/// [`defaults::CALL_FILE_BYTES_MAX`].
#[derive(Debug)]
pub struct RotatedFile {
    path: PathBuf,
    open: Option<File>,
    n_bytes: u64,
    bytes_max: u64,
}

impl RotatedFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, open: None, n_bytes: 0, bytes_max: defaults::CALL_FILE_BYTES_MAX }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends whole lines: all of them, or none. Blocks.
    ///
    /// # Errors
    ///
    /// The file cannot be written. The next call opens it again.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        // Another program may have removed it.
        let is_gone = |file: &File| file.metadata().map_or(true, |found| found.nlink() == 0);
        if self.open.as_ref().is_some_and(is_gone) {
            self.open = None;
        }
        if self.n_bytes > 0 && self.n_bytes + lines.len() as u64 > self.bytes_max {
            self.rotate()?;
        }
        let written = self.open().and_then(|file| file.write_all(lines));
        if written.is_ok() {
            self.n_bytes += lines.len() as u64;
        } else if let Some(file) = self.open.take() {
            // A part of a line would spoil the next one. If it stays, the file cannot be mended.
            let _unless_broken = file.set_len(self.n_bytes);
        }
        written
    }

    /// Opens the file, readable only by its owner, and continues it.
    fn open(&mut self) -> io::Result<&mut File> {
        if self.open.is_none() {
            if let Some(directory) = self.path.parent() {
                fs::create_dir_all(directory)?;
            }
            let file = OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                // The target of a link may be readable by others.
                .custom_flags(libc::O_NOFOLLOW)
                .open(&self.path)?;
            let metadata = file.metadata()?;
            if metadata.is_file() {
                file.set_permissions(fs::Permissions::from_mode(0o600))?;
            }
            self.n_bytes = metadata.len();
            self.open = Some(file);
        }
        self.open.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the files that may have lines, the oldest first.
    pub(super) fn all(path: &Path) -> Vec<PathBuf> {
        let file = Self::new(path.to_owned());
        (0..=defaults::CALL_FILES_KEPT).rev().map(|age| file.aged(age)).collect()
    }

    /// Gives each file the name of an older one. The oldest file is replaced.
    fn rotate(&mut self) -> io::Result<()> {
        (self.open, self.n_bytes) = (None, 0);
        for age in (1..=defaults::CALL_FILES_KEPT).rev() {
            match fs::rename(self.aged(age - 1), self.aged(age)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn aged(&self, age: usize) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        if age > 0 {
            path.push(format!(".{age}"));
        }
        path.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_kept_under_another_name_and_the_oldest_one_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/calls.jsonl");
        let mut file = RotatedFile { bytes_max: 10, ..RotatedFile::new(path.clone()) };
        for number in 0..=9 {
            file.append(format!("call {number}\n").as_bytes()).unwrap();
        }
        let read = |age| fs::read_to_string(file.aged(age)).unwrap();
        assert_eq!(
            [read(0), read(1), read(2), read(3)],
            ["call 9\n", "call 8\n", "call 7\n", "call 6\n"]
        );
        assert!(!file.aged(defaults::CALL_FILES_KEPT + 1).exists());
    }

    #[test]
    fn a_file_of_an_earlier_start_is_continued() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("calls.jsonl");
        for number in 0..3 {
            RotatedFile::new(path.clone()).append(format!("{number}\n").as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(path).unwrap(), "0\n1\n2\n");
    }

    #[test]
    fn a_removed_file_is_made_again_and_a_link_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("calls.jsonl");
        let mut file = RotatedFile::new(path.clone());
        file.append(b"one\n").unwrap();
        fs::remove_file(&path).unwrap();
        file.append(b"two\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        RotatedFile::new(path.clone()).append(b"three\n").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(RotatedFile::new(link).append(b"four\n").is_err());
    }
}
