//! The signs that a client is installed on this host.

use std::{fs, path::Path};

use crate::import::KnownClient;

/// Returns whether a program of the client is in the search path.
pub(super) fn is_installed(client: KnownClient) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories = std::env::split_paths(&path);
    directories.any(|directory| {
        client.profile().programs.iter().any(|program| directory.join(program).is_file())
    })
}

/// Returns whether the client has made its directory. The home itself is no sign of a client.
pub(super) fn has_directory(path: &Path) -> bool {
    let directory = path.parent();
    directory.is_some_and(|directory| {
        directory.is_dir()
            && std::env::home_dir().as_deref() != Some(directory)
            && fs::canonicalize(directory).ok() != std::env::current_dir().ok()
    })
}
