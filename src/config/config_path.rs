//! Which configuration file is read: the one that `--config` names, else the one that [`VARIABLE`] names,
//! else that of the user, else that of the host.

use std::{io::ErrorKind, path::PathBuf};

use crate::files;

/// The variable that names a configuration file.
pub const VARIABLE: &str = "METAMCP_CONFIG";

/// The configuration of the host.
const HOST_FILE: &str = "/etc/metamcp/metamcp.toml";

/// Returns the configuration file where no flag names one; nothing where there is none.
pub fn usual_file() -> Option<PathBuf> {
    let own = files::own_directory("XDG_CONFIG_HOME", ".config");
    let own = own.map(|directory| directory.join("metamcp/metamcp.toml"));
    // One that is there and cannot be read is told, and not passed over.
    let is_there = |file: &PathBuf| match file.symlink_metadata() {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    };
    let usual = own.into_iter().chain([HOST_FILE.into()]).find(is_there);
    // One that is named is read, and its absence is told.
    file_of_environment().or(usual)
}

/// Returns the configuration file that a variable of this process names.
pub fn file_of_environment() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).filter(|named| !named.is_empty())?;
    // Whoever is told of it may be in another directory.
    std::path::absolute(&named).ok().or_else(|| Some(named.into()))
}
