//! Where the configuration is that nobody has named.

use std::path::PathBuf;

use crate::files;

/// The configuration of the host.
const HOST_FILE: &str = "/etc/metamcp/metamcp.toml";

/// Returns the configuration file that is served where nobody names one: the user's, or else the
/// host's.
pub fn usual_file() -> Option<PathBuf> {
    let own = files::own_directory("XDG_CONFIG_HOME", ".config");
    let own = own.map(|directory| directory.join("metamcp/metamcp.toml"));
    own.into_iter().chain([HOST_FILE.into()]).find(|file| file.exists())
}
