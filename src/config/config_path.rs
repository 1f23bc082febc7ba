//! The path of the configuration file: from `--config`, else from [`VARIABLE`], else the file of
//! the user, else that of the host.

use std::{io::ErrorKind, path::PathBuf};

use crate::files;

/// The variable that names a configuration file.
pub const VARIABLE: &str = "METAMCP_CONFIG";

/// The configuration file of the host.
const HOST_FILE: &str = "/etc/metamcp/metamcp.toml";

/// Returns the configuration file to read without `--config`, or `None` if there is none.
pub fn usual_file() -> Option<PathBuf> {
    let own = own_file();
    // An unreadable file is returned too: loading it reports the error.
    let is_there = |file: &PathBuf| match file.symlink_metadata() {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    };
    let usual = own.into_iter().chain([HOST_FILE.into()]).find(is_there);
    // A file that the variable names is returned even if absent: loading it reports that.
    file_of_environment().or(usual)
}

/// Returns the configuration file of this user, which need not exist.
pub fn own_file() -> Option<PathBuf> {
    let own = files::own_directory("XDG_CONFIG_HOME", ".config");
    own.map(|directory| directory.join("metamcp/metamcp.toml"))
}

/// Returns the configuration file that [`VARIABLE`] names.
pub fn file_of_environment() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).filter(|named| !named.is_empty())?;
    // Absolute, because the reader of a message may be in another directory.
    std::path::absolute(&named).ok().or_else(|| Some(named.into()))
}
