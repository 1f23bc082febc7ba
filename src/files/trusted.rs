//! Files that no other user can have written or replaced.
//!
//! A path is walked from the root. Each directory is opened relative to the one before and checked
//! once it is open, so that replacing a directory or link meanwhile has no effect. A link is
//! followed only from a trusted directory.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs, io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt as _,
    },
    path::{Component, Path, PathBuf},
};

use rustix::fs::{FileType, Mode, OFlags, RawMode, Stat, fstat, openat, readlinkat};

/// The maximum number of links on a path. Source: path_resolution(7), `ELOOP`.
const LINKS_MAX: usize = 40;

/// Write permission for users other than the owner. Source: inode(7).
const OTHERS_WRITE: RawMode = 0o022;

/// In a directory with this bit, only the owner of a file can replace it. Source: inode(7),
/// `S_ISVTX`.
const STICKY: RawMode = 0o1000;

/// The reason why a file is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum UntrustedFile {
    /// The file, or a part of its path, cannot be opened.
    #[error("cannot open `{}`", path.display())]
    Io {
        /// The file, directory or link.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The path has too many links.
    #[error("the path `{}` has more than {LINKS_MAX} symbolic links", path.display())]
    Links {
        /// The path.
        path: PathBuf,
    },
    /// The file is not a regular file.
    #[error("`{}` is not a regular file", path.display())]
    Kind {
        /// The file.
        path: PathBuf,
    },
    /// Another user owns the file or a part of its path.
    #[error("`{}` belongs to user {uid}, not to root or the user of the service", path.display())]
    Owner {
        /// The file, directory or link.
        path: PathBuf,
        /// The owner.
        uid: u32,
    },
    /// Other users can write the file, or replace a part of its path.
    #[error("other users can write to `{}`, whose mode is {mode:04o}", path.display())]
    Writable {
        /// The file or directory.
        path: PathBuf,
        /// The permissions.
        mode: u32,
    },
}

/// A place in the file system that was reached through trusted directories only.
struct Walk {
    /// The open directories from the root to here.
    directories: Vec<OwnedFd>,
    /// The path of the last directory.
    path: PathBuf,
    /// The remaining components.
    rest: VecDeque<OsString>,
    n_links: usize,
}

/// Opens the regular file at the absolute `path` for reading. Everything on its path must belong to
/// root or to the user of this process, and no other user may write to it. Blocks.
///
/// # Errors
///
/// [`UntrustedFile`] names the part of the path that is not trusted.
pub fn open(path: &Path) -> Result<fs::File, UntrustedFile> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open("/", flags, Mode::empty()).map_err(|error| failed("/", error))?;
    check(&root, Path::new("/"))?;
    let rest = VecDeque::new();
    let mut walk = Walk { directories: vec![root], path: "/".into(), rest, n_links: 0 };
    walk.go_on(path);
    while let Some(name) = walk.rest.pop_front() {
        if let Some(file) = walk.enter(&name)? {
            return Ok(file);
        }
    }
    Err(UntrustedFile::Kind { path: walk.path })
}

impl Walk {
    /// Prepends `path` to the remaining components; an absolute path starts at the root.
    fn go_on(&mut self, path: &Path) {
        if path.is_absolute() {
            self.directories.truncate(1);
            self.path = "/".into();
        }
        for part in path.components().rev() {
            match part {
                Component::Normal(_) | Component::ParentDir => {
                    self.rest.push_front(part.as_os_str().to_owned());
                }
                Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
            }
        }
    }

    /// Takes one step; returns the file once it is reached.
    fn enter(&mut self, name: &OsStr) -> Result<Option<fs::File>, UntrustedFile> {
        if name == ".." {
            if self.directories.len() > 1 {
                self.directories.pop();
                self.path.pop();
            }
            return Ok(None);
        }
        let path = self.path.join(name);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let next = openat(self.here(), name, flags, Mode::empty());
        let next = next.map_err(|error| failed(&path, error))?;
        match FileType::from_raw_mode(check(&next, &path)?.st_mode) {
            FileType::Directory => {
                self.directories.push(next);
                self.path = path;
                Ok(None)
            }
            FileType::Symlink => {
                self.n_links += 1;
                if self.n_links > LINKS_MAX {
                    return Err(UntrustedFile::Links { path });
                }
                let target = readlinkat(&next, c"", Vec::new());
                let target = target.map_err(|error| failed(&path, error))?.into_bytes();
                self.go_on(Path::new(&OsString::from_vec(target)));
                Ok(None)
            }
            FileType::RegularFile if self.rest.is_empty() => {
                // The opened file is checked, even if its name was reassigned meanwhile.
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = openat(self.here(), name, flags, Mode::empty());
                let file = file.map_err(|error| failed(&path, error))?;
                match FileType::from_raw_mode(check(&file, &path)?.st_mode) {
                    FileType::RegularFile => Ok(Some(file.into())),
                    _ => Err(UntrustedFile::Kind { path }),
                }
            }
            _ => Err(UntrustedFile::Kind { path }),
        }
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.directories.last().map_or(rustix::fs::CWD, AsFd::as_fd)
    }
}

/// Checks that an open file belongs to this user or to root, and that no other user can write to
/// it. A link has no permissions, and other types of file are not checked.
fn check(opened: &OwnedFd, path: &Path) -> Result<Stat, UntrustedFile> {
    let found = fstat(opened).map_err(|error| failed(path, error))?;
    let (uid, mode) = (found.st_uid, found.st_mode);
    if uid != 0 && uid != rustix::process::geteuid().as_raw() {
        return Err(UntrustedFile::Owner { path: path.to_owned(), uid });
    }
    let is_open = match FileType::from_raw_mode(mode) {
        FileType::Directory => mode & OTHERS_WRITE != 0 && mode & STICKY == 0,
        FileType::RegularFile => mode & OTHERS_WRITE != 0,
        _ => false,
    };
    if is_open {
        return Err(UntrustedFile::Writable { path: path.to_owned(), mode: mode & 0o7777 });
    }
    Ok(found)
}

fn failed(path: impl AsRef<Path>, error: rustix::io::Errno) -> UntrustedFile {
    UntrustedFile::Io { path: path.as_ref().to_owned(), source: error.into() }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read as _,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use super::*;

    /// Returns a directory in which `a/file` contains the word "trusted".
    fn place() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("a")).expect("made");
        fs::write(directory.path().join("a/file"), "trusted").expect("written");
        set_mode(&directory.path().join("a"), 0o755);
        set_mode(&directory.path().join("a/file"), 0o644);
        directory
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    }

    fn read(path: &Path) -> Result<String, UntrustedFile> {
        let mut text = String::new();
        open(path)?.read_to_string(&mut text).expect("readable");
        Ok(text)
    }

    #[test]
    fn a_file_of_this_user_is_trusted_through_links_and_a_sticky_directory() {
        let place = place();
        let at = |path: &str| place.path().join(path);
        symlink("file", at("a/beside")).expect("made");
        symlink(at("a"), at("far")).expect("made");
        symlink("far/../a/./beside", at("round")).expect("made");
        set_mode(place.path(), 0o1777);
        for path in ["a/file", "a/beside", "far/file", "round", "a/../far/beside"] {
            assert_eq!(read(&at(path)).expect("trusted"), "trusted", "{path}");
        }
    }

    #[test]
    fn a_file_that_others_can_write_or_replace_is_named() {
        let place = place();
        let at = |path: &str| place.path().join(path);
        symlink(at("a/file"), at("link")).expect("made");
        for (path, mode, usual) in [
            ("a/file", 0o664, 0o644),
            ("a/file", 0o646, 0o644),
            ("a", 0o775, 0o755),
            ("a", 0o757, 0o755),
        ] {
            set_mode(&at(path), mode);
            for asked in ["a/file", "link"] {
                let error = read(&at(asked)).expect_err("others can write");
                let expected = format!(
                    "other users can write to `{}`, whose mode is {mode:04o}",
                    at(path).display()
                );
                assert_eq!(error.to_string(), expected, "{asked}");
            }
            set_mode(&at(path), usual);
        }
        assert!(read(&at("a/file")).is_ok());
    }

    #[test]
    fn a_file_owned_by_another_user_is_not_trusted() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let place = place();
        let at = |path: &str| place.path().join(path);
        symlink(at("a/file"), at("link")).expect("made");
        for owned in ["a/file", "a", "link"] {
            std::os::unix::fs::lchown(at(owned), Some(4242), None).expect("root may");
            let error = read(&at("link")).expect_err("of another user");
            assert!(matches!(error, UntrustedFile::Owner { uid: 4242, .. }), "{owned}: {error}");
            assert!(error.to_string().contains(&format!("{}`", at(owned).display())), "{error}");
            std::os::unix::fs::lchown(at(owned), Some(0), None).expect("root may");
        }
    }

    #[test]
    fn a_path_that_is_not_a_regular_file_is_not_opened() {
        let place = place();
        let at = |path: &str| place.path().join(path);
        symlink("loop", at("loop")).expect("made");
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0)
            .expect("made");
        assert!(matches!(read(&at("loop")), Err(UntrustedFile::Links { .. })));
        for path in ["a", "pipe", "a/file/below", "a/.."] {
            assert!(matches!(read(&at(path)), Err(UntrustedFile::Kind { .. })), "{path}");
        }
        assert!(matches!(read(Path::new("/dev/zero")), Err(UntrustedFile::Kind { .. })));
        let nowhere = read(&at("a/nowhere")).expect_err("not there");
        assert!(
            matches!(nowhere, UntrustedFile::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
        );
    }
}
