//! The files of the disk cache, one for each server.
//!
//! Everything here blocks: call it off the event loops. Nothing here fails: an unreadable cache
//! counts as empty, and one that cannot be written only slows the next start.

use std::{
    ffi::OsString,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use super::{
    cache_format::{self, CacheFileError},
    definition_hash::CatalogDigest,
    server_lists::{KnownLists, LISTS},
};
use crate::{
    config::{CatalogCache, defaults},
    files,
    server_name::ServerName,
};

/// The suffix of the file names.
const SUFFIX: &str = ".catalog";

/// The disk cache in one directory, or none.
#[derive(Debug, Default)]
pub struct DiskCache {
    directory: Option<PathBuf>,
    /// The operator was warned that the directory cannot be written.
    is_warned: AtomicBool,
}

impl DiskCache {
    /// Returns the cache in `directory`. Without a directory it stores nothing.
    pub fn new(directory: Option<PathBuf>) -> Self {
        Self { directory, is_warned: AtomicBool::new(false) }
    }

    /// Returns the cache for `choice`. The default is the directory that the service manager
    /// provides, else the user's cache directory.
    pub fn declared(choice: &CatalogCache) -> Self {
        Self::new(match choice {
            CatalogCache::Found => directory(|name| std::env::var_os(name)),
            CatalogCache::Off => None,
            CatalogCache::Directory(directory) => Some(directory.clone()),
        })
    }

    /// Returns the directory, if the cache has one.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Returns the stored lists of a server whose declaration has the digest `declared`.
    pub(super) fn read(&self, server: &ServerName, declared: CatalogDigest) -> Option<KnownLists> {
        let path = self.path(server)?;
        let reason = match files::content(&path, defaults::CACHE_FILE_BYTES_MAX) {
            Ok(None) => return None,
            Ok(Some(bytes)) => match cache_format::read(server, declared, &bytes) {
                Ok(known) => return Some(known),
                // Written for another declaration of the server, or by another version of metamcp.
                Err(CacheFileError::Foreign) => return None,
                Err(corrupt @ CacheFileError::Corrupt(_)) => corrupt.to_string(),
            },
            Err(error) => error.to_string(),
        };
        let path = path.display();
        tracing::warn!(
            mcp_server = %server, %path, reason,
            "cached lists ignored: `{path}` of server `{server}`: {reason}"
        );
        None
    }

    /// Stores what is known of a server, unless the file has it already. Returns the stored digest.
    pub(super) fn write(&self, server: &ServerName, known: &KnownLists) -> Option<CatalogDigest> {
        let path = self.path(server)?;
        let (bytes, digest) = cache_format::write(server, known);
        if known.saved == Some(digest) && !self.is_missing(server) {
            return Some(digest);
        }
        let lists = LISTS.into_iter().filter_map(|list| known.listing(list));
        let n_items = lists.map(|listing| listing.len()).max().unwrap_or(0);
        // Such a file would not be read again.
        if bytes.len() > defaults::CACHE_FILE_BYTES_MAX || n_items > defaults::CACHED_ITEMS_MAX {
            let n_bytes = bytes.len();
            tracing::warn!(
                mcp_server = %server, n_bytes, n_items,
                "lists of server `{server}` not cached: {n_bytes} bytes, {n_items} items are too large"
            );
            return None;
        }
        let (replaced, path) = (files::replace(&path, &bytes), path.display());
        if let Err(error) = replaced {
            // Warns once, not at every change.
            if !self.is_warned.swap(true, Ordering::Relaxed) {
                tracing::warn!(%path, %error, "lists are not cached: cannot write `{path}`: {error}");
            }
            return None;
        }
        tracing::debug!(mcp_server = %server, %path, "lists of server `{server}` cached");
        Some(digest)
    }

    pub(super) fn has_files(&self) -> bool {
        let files = self.directory().and_then(|directory| directory.read_dir().ok());
        files.is_some_and(|mut files| files.next().is_some())
    }

    /// Returns whether the file of a server is missing although the cache is on.
    pub(super) fn is_missing(&self, server: &ServerName) -> bool {
        // A dangling symbolic link counts as present.
        self.path(server).is_some_and(|path| {
            path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
        })
    }

    /// Removes the partial files that earlier processes left behind.
    pub(super) fn tidy(&self) {
        if let Some(directory) = &self.directory {
            files::tidy(directory, defaults::CACHE_DRAFT_AGE);
        }
    }

    /// Returns the path of a server's file. The grammar of names keeps it inside the directory.
    fn path(&self, server: &ServerName) -> Option<PathBuf> {
        let name = format!("{server}{SUFFIX}");
        let is_plain = Path::new(&name).file_name().is_some_and(|plain| plain == name.as_str());
        let directory = self.directory.as_ref().filter(|_| is_plain)?;
        Some(directory.join(name))
    }
}

/// Returns the directory for data that the service can do without. Source: systemd.exec(5),
/// `CacheDirectory=`, and the XDG base directories.
fn directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let value = variable(name)?;
        // systemd separates several directories by colons; the first one is the service's own.
        let first = std::env::split_paths(&value).next()?;
        first.is_absolute().then_some(first)
    };
    let own = absolute("CACHE_DIRECTORY")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|home| home.join("metamcp")))
        .or_else(|| absolute("HOME").map(|home| home.join(".cache/metamcp")))?;
    // A subdirectory, since servers that run as the same user may keep files beside it.
    Some(own.join("catalog"))
}

#[cfg(test)]
mod tests;
