//! The files of the disk cache: one for each server.
//!
//! Everything here blocks, and is called where that does no harm. Nothing here fails: a cache that
//! cannot be read is none, and one that cannot be written costs a start its speed and nothing else.

use std::{
    ffi::OsString,
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::fs::{Mode, OFlags};

use super::{
    cached::{self, Unusable},
    digest::Digest,
    known::Known,
};
use crate::{
    config::{CacheChoice, defaults},
    name::ServerName,
};

/// How the files end.
const SUFFIX: &str = ".catalog";

/// Where the disk cache is.
#[derive(Debug, Default)]
pub struct Store {
    directory: Option<PathBuf>,
    /// Somebody was told that the directory is of no use.
    is_lamented: AtomicBool,
}

/// Why a file cannot be had.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it is not a file of ours")]
    NotOurs,
    #[error("it has more than {} bytes", defaults::CACHE_FILE_BYTES_MAX)]
    TooLarge,
}

impl Store {
    /// Returns the cache in `directory`; without one nothing is kept.
    pub fn new(directory: Option<PathBuf>) -> Self {
        Self { directory, is_lamented: AtomicBool::new(false) }
    }

    /// Returns the cache that is declared. Where nothing is, it is in the directory that the service
    /// manager has made, else in the one of the user.
    pub fn declared(choice: &CacheChoice) -> Self {
        Self::new(match choice {
            CacheChoice::Found => directory(|name| std::env::var_os(name)),
            CacheChoice::Off => None,
            CacheChoice::Directory(directory) => Some(directory.clone()),
        })
    }

    /// Returns what is kept of a server that is declared as `declared`.
    pub(super) fn read(&self, server: &ServerName, declared: Digest) -> Option<Known> {
        let path = self.path(server)?;
        let reason = match content(&path) {
            Ok(bytes) => match cached::read(server, declared, &bytes) {
                Ok(known) => return Some(known),
                // Written when the server was declared another way, or by another version of us.
                Err(Unusable::Foreign) => return None,
                Err(corrupt @ Unusable::Corrupt(_)) => corrupt.to_string(),
            },
            Err(Unreadable::Io(error)) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => error.to_string(),
        };
        let path = path.display();
        tracing::warn!(mcp_server = %server, %path, reason, "cached lists ignored");
        None
    }

    /// Keeps what is known of a server, unless that is on the disk already. Returns what is there.
    pub(super) fn write(&self, server: &ServerName, known: &Known) -> Option<Digest> {
        let path = self.path(server)?;
        let (bytes, digest) = cached::write(server, known);
        if known.saved == Some(digest) {
            return Some(digest);
        }
        if bytes.len() > defaults::CACHE_FILE_BYTES_MAX {
            tracing::warn!(mcp_server = %server, n_bytes = bytes.len(), "lists not cached: too large");
            return None;
        }
        match replace(&path, &bytes) {
            Ok(()) => {
                tracing::debug!(mcp_server = %server, path = %path.display(), "lists cached");
                Some(digest)
            }
            Err(error) => {
                // Said once, and not with every change.
                if !self.is_lamented.swap(true, Ordering::Relaxed) {
                    tracing::warn!(path = %path.display(), %error, "lists are not cached");
                }
                None
            }
        }
    }

    /// Removes what an earlier process has left half written.
    pub(super) fn tidy(&self) {
        let Some(entries) = self.directory.as_ref().and_then(|found| fs::read_dir(found).ok())
        else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_draft = name
                .to_str()
                .is_some_and(|name| name.starts_with('.') && name.contains(&format!("{SUFFIX}.")));
            let age = entry.metadata().ok().and_then(|found| found.modified().ok()?.elapsed().ok());
            // Another service may be at it just now.
            if is_draft && age.is_some_and(|age| age > defaults::CACHE_DRAFT_AGE) {
                let _gone_or_not_ours = fs::remove_file(entry.path());
            }
        }
    }

    /// Returns the path of a server's file. The grammar of names makes it one of this directory.
    fn path(&self, server: &ServerName) -> Option<PathBuf> {
        let name = format!("{server}{SUFFIX}");
        let is_plain = Path::new(&name).file_name().is_some_and(|plain| plain == name.as_str());
        let directory = self.directory.as_ref().filter(|_| is_plain)?;
        Some(directory.join(name))
    }
}

/// Returns where the service may keep what it can do without.
/// Source: systemd.exec(5), `CacheDirectory=`, and the XDG base directories.
fn directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let value = variable(name)?;
        // systemd separates several by colons; the first one is the service's own.
        let first = std::env::split_paths(&value).next()?;
        first.is_absolute().then_some(first)
    };
    let own = absolute("CACHE_DIRECTORY")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|home| home.join("metamcp")))
        .or_else(|| absolute("HOME").map(|home| home.join(".cache/metamcp")))?;
    // Servers that run as the same user keep theirs beside it.
    Some(own.join("catalog"))
}

/// Reads a file of ours; follows no link, and waits for nobody at the other end of a pipe.
fn content(path: &Path) -> Result<Vec<u8>, Unreadable> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(opened) => opened,
        Err(rustix::io::Errno::LOOP) => return Err(Unreadable::NotOurs),
        Err(errno) => return Err(io::Error::from(errno).into()),
    };
    let file = fs::File::from(opened);
    let found = file.metadata()?;
    let user = rustix::process::geteuid().as_raw();
    if !found.is_file() || found.uid() != user || found.mode() & 0o022 != 0 {
        return Err(Unreadable::NotOurs);
    }
    let most = defaults::CACHE_FILE_BYTES_MAX;
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most { Err(Unreadable::TooLarge) } else { Ok(bytes) }
}

/// Puts another content in the place of a file: whoever reads it finds the one or the other.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let draft = format!(".{}.{}", name.display(), uuid::Uuid::new_v4().simple());
    let draft = directory.join(draft);
    let written = (|| {
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(bytes)?;
        // Else a loss of power may leave an empty file. The checksum would tell, and a start be slow.
        file.sync_data()?;
        fs::rename(&draft, path)
    })();
    if written.is_err() {
        let _never_made = fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests;
