//! Access to files: private files of the service, which are distrusted on reading and replaced
//! atomically; shared files; and the directories of the user.
//!
//! All functions here block.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, fchown},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{Mode, OFlags};

mod edited_file;
pub mod trusted;

pub use edited_file::{EditedFile, FileWriteError};

/// The suffix of a draft's name, since a directory may contain other files.
const DRAFT: &str = ".metamcp";

/// The largest number of links that lead to one file.
const LINKS_MAX: usize = 40;

/// The reason why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileReadError {
    /// The system reports an error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is a link, not regular, of another user, or writable for others.
    #[error("it is not a regular file, or another user owns it or can write to it")]
    NotOurs,
    /// The file is too large.
    #[error("it has more than {0} bytes")]
    TooLarge(usize),
}

/// Reads a private file of at most `bytes_max`; does not follow a link or block on a pipe. `None`
/// if there is no file.
///
/// # Errors
///
/// [`FileReadError`] says why the file is unusable.
pub fn content(path: &Path, bytes_max: usize) -> Result<Option<Vec<u8>>, FileReadError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(opened) => opened,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(rustix::io::Errno::LOOP) => return Err(FileReadError::NotOurs),
        Err(errno) => return Err(io::Error::from(errno).into()),
    };
    let file = fs::File::from(opened);
    let found = file.metadata()?;
    let user = rustix::process::geteuid().as_raw();
    if !found.is_file() || found.uid() != user || found.mode() & 0o022 != 0 {
        return Err(FileReadError::NotOurs);
    }
    let mut bytes = Vec::new();
    // The file may grow meanwhile.
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max { Err(FileReadError::TooLarge(bytes_max)) } else { Ok(Some(bytes)) }
}

/// Reads any file of at most `bytes_max`, since a device or a log may have no end.
///
/// # Errors
///
/// The error of the system, or [`io::ErrorKind::FileTooLarge`].
pub fn bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The file may grow meanwhile.
    fs::File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= bytes_max {
        return Ok(bytes);
    }
    let message = format!("it has more than {bytes_max} bytes");
    Err(io::Error::new(io::ErrorKind::FileTooLarge, message))
}

/// Reads any text of at most `bytes_max`.
///
/// # Errors
///
/// Those of [`bounded`], or [`io::ErrorKind::InvalidData`].
pub fn text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(bounded(path, bytes_max)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Reads a text as [`text`] does, from a regular file only: a pipe would wait for its other end, and a
/// device may never end.
///
/// # Errors
///
/// Those of [`text`], or [`io::ErrorKind::InvalidInput`].
pub fn regular_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    text(path, bytes_max)
}

/// Returns the path behind all links. The file need not exist, nor its directory.
///
/// # Errors
///
/// The error of the system, for example for links in a circle.
pub fn resolved(path: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..LINKS_MAX {
        match fs::canonicalize(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        path = match fs::read_link(&path) {
            Ok(target) => directory.join(target),
            Err(_) => return Ok(resolved(directory)?.join(name)),
        };
    }
    Err(io::Error::from(rustix::io::Errno::LOOP))
}

/// Replaces the content of a private file atomically.
///
/// # Errors
///
/// The error of the system; the file is unchanged then.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    put(&directory.join(name), bytes, 0o600, None)
}

/// Replaces the content of a shared file. It keeps its permissions, and its owner as far as this user
/// may set it; a new file gets the usual ones.
/// A link is kept, and its target is replaced or made.
///
/// # Errors
///
/// The error of the system; the file is unchanged then.
pub fn publish(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = resolved(path)?;
    match fs::metadata(&target) {
        Ok(found) if found.is_file() => put(&target, bytes, 0o600, Some(&found)),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            check_target(path, &target)?;
            put(&target, bytes, 0o666, None)
        }
        Err(error) => Err(error),
    }
}

/// Checks that a link leads into a directory that exists, which may be one that is not mounted.
fn check_target(path: &Path, target: &Path) -> io::Result<()> {
    if path.is_symlink() && !target.parent().is_some_and(Path::is_dir) {
        let text = format!("it is a link to `{}`, whose directory is missing", target.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    Ok(())
}

/// Returns a directory of the user: the value of `variable`, or else `below_home` in the home. A
/// path must be absolute. Source: the XDG Base Directory Specification.
pub fn own_directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(below_home));
    named.or_else(home).filter(|path| path.is_absolute())
}

/// Writes a file next to `path` and renames it. It gets the permissions of the `replaced` file, or
/// `mode` without the umask.
fn put(path: &Path, bytes: &[u8], mode: u32, replaced: Option<&fs::Metadata>) -> io::Result<()> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let draft = draft(directory, &name.display().to_string());
    let written = (|| {
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
        file.write_all(bytes)?;
        if let Some(replaced) = replaced {
            // Only root may give a file to another user.
            let _not_root = fchown(&file, Some(replaced.uid()), Some(replaced.gid()));
            file.set_permissions(replaced.permissions())?;
        }
        // Without this, a power failure may leave an empty file.
        file.sync_data()?;
        fs::rename(&draft, path)
    })();
    if written.is_err() {
        let _never_made = fs::remove_file(&draft);
    }
    written
}

/// Removes half-written files of earlier processes in a directory, unless they are younger than
/// `age_min`: another process may be writing them.
pub fn tidy(directory: &Path, age_min: Duration) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let is_draft = entry.file_name().to_str().is_some_and(is_draft);
        let age = entry.metadata().ok().and_then(|found| found.modified().ok()?.elapsed().ok());
        if is_draft && age.is_some_and(|age| age > age_min) {
            let _gone_or_not_ours = fs::remove_file(entry.path());
        }
    }
}

/// Returns the path of the draft that will replace the file `name`.
fn draft(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!(".{name}.{}{DRAFT}", uuid::Uuid::new_v4().simple()))
}

/// Returns whether a file has a name as made by [`draft`].
fn is_draft(name: &str) -> bool {
    let name = name.strip_prefix('.').and_then(|name| name.strip_suffix(DRAFT));
    let word = name.and_then(|name| name.rsplit_once('.')).map(|(_, word)| word);
    word.is_some_and(|word| uuid::Uuid::try_parse(word).is_ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn an_endless_file_is_read_only_up_to_the_bound() {
        let error = bounded(Path::new("/dev/zero"), 1000).expect_err("it is larger");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "it has more than 1000 bytes");

        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), "12345").expect("written");
        assert_eq!(bounded(file.path(), 5).expect("as large as it may be"), b"12345");
        assert!(bounded(file.path(), 4).is_err());
    }

    #[test]
    fn a_file_is_read_with_its_latest_content() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("made/file");
        assert!(content(&path, 9).expect("nothing there").is_none());
        for text in ["one", "three"] {
            replace(&path, text.as_bytes()).expect("written");
            assert_eq!(content(&path, 5).expect("readable").expect("there"), text.as_bytes());
        }
        assert!(matches!(content(&path, 4), Err(FileReadError::TooLarge(4))));
        let n_files = fs::read_dir(directory.path().join("made")).expect("a directory").count();
        assert_eq!(n_files, 1, "no draft is left");
    }

    #[test]
    fn a_published_file_keeps_its_permissions_and_its_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, link) = (directory.path().join("file"), directory.path().join("link"));
        publish(&path, b"one").expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
        assert_eq!(mode(&path) & 0o600, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("changed");
        symlink(&path, &link).expect("linked");
        publish(&link, b"two").expect("written");
        assert_eq!((mode(&path), fs::read(&path).expect("there")), (0o640, b"two".to_vec()));
        assert!(link.is_symlink());
        publish(directory.path(), b"three").expect_err("a directory stays");
        publish(&directory.path().join("none/file"), b"four").expect_err("none is made");
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 2);
    }

    #[test]
    fn a_link_to_a_missing_file_is_kept_and_its_target_is_made() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("dotfiles")).expect("made");
        symlink("second", path("first")).expect("linked");
        symlink("dotfiles/file", path("second")).expect("linked");
        publish(&path("first"), b"one").expect("written");
        assert!(path("first").is_symlink() && path("second").is_symlink());
        assert_eq!(fs::read(path("dotfiles/file")).expect("made"), b"one");

        symlink(path("unmounted/file"), path("third")).expect("linked");
        let error = publish(&path("third"), b"two").expect_err("there is no directory");
        let target = resolved(directory.path()).expect("there").join("unmounted/file");
        let text = format!("it is a link to `{}`, whose directory is missing", target.display());
        assert_eq!(error.to_string(), text);
        assert!(path("third").is_symlink());
        symlink("circle", path("circle")).expect("linked");
        publish(&path("circle"), b"three").expect_err("it leads nowhere");
    }

    #[test]
    fn a_file_that_other_users_may_have_written_is_not_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, link) = (directory.path().join("file"), directory.path().join("link"));
        replace(&path, b"text").expect("written");
        symlink(&path, &link).expect("linked");
        assert!(matches!(content(&link, 9), Err(FileReadError::NotOurs)));
        assert!(matches!(content(directory.path(), 9), Err(FileReadError::NotOurs)));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).expect("opened up");
        assert!(matches!(content(&path, 9), Err(FileReadError::NotOurs)));
    }

    #[test]
    fn a_failed_write_leaves_no_file_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        fs::create_dir(&path).expect("a directory in its place");
        replace(&path, b"text").expect_err("a directory is not replaced");
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
    }

    #[test]
    fn a_draft_is_recognized_by_its_name() {
        let path = draft(Path::new("/d"), "git.catalog");
        assert!(is_draft(path.file_name().and_then(|name| name.to_str()).expect("a name")));
        let alien = ".git.67e5504410b1426f9247bb680e5fe0c8";
        for other in ["git.catalog", ".git.catalog", ".metamcp", ".git.old.metamcp", alien] {
            assert!(!is_draft(other), "{other}");
        }
    }
}
