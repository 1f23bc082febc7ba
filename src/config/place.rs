//! Which configuration file is read: the one that `--config` names, else the one that [`VARIABLE`] names,
//! else that of the user, else that of the host.

use std::path::PathBuf;

use crate::files;

/// The variable that names a configuration file.
pub(super) const VARIABLE: &str = "METAMCP_CONFIG";

/// The configuration of the host.
const HOST_FILE: &str = "/etc/metamcp/metamcp.toml";

/// Returns the configuration file where no flag names one; nothing where there is none.
pub fn usual_file() -> Option<PathBuf> {
    let own = files::own_directory("XDG_CONFIG_HOME", ".config");
    let own = own.map(|directory| directory.join("metamcp/metamcp.toml"));
    let usual = own.into_iter().chain([HOST_FILE.into()]).find(|file| file.exists());
    // One that is named is read, and its absence is told.
    file_of_environment().or(usual)
}

/// Returns the configuration file that a variable of this process names.
pub fn file_of_environment() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|named| !named.is_empty()).map(PathBuf::from)
}
