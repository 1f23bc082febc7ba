//! The version of a server: findings about a server hold until its version changes.

use std::{env, fs, path::Path, time::SystemTime};

use crate::config::TransportConfig;

/// One version of a server: its declaration, and the last change of its program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ServerVersion {
    transport: TransportConfig,
    /// The time of the last change of the program, if there is one.
    changed: Option<SystemTime>,
}

impl ServerVersion {
    /// Returns the version of a server with this transport. Reads the metadata of its program.
    pub(super) fn of(transport: &TransportConfig) -> Self {
        let changed = match transport {
            TransportConfig::Stdio { command, .. } => changed(command),
            TransportConfig::Unit { .. } | TransportConfig::Http(_) => None,
        };
        Self { transport: transport.clone(), changed }
    }
}

/// Returns the time of the last change of a program: a path, or a name to look up in `PATH`.
fn changed(command: &str) -> Option<SystemTime> {
    let modified = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    if command.contains('/') {
        return modified(Path::new(command));
    }
    env::split_paths(&env::var_os("PATH")?).find_map(|folder| modified(&folder.join(command)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_program_is_another_server_version() {
        let path = env::temp_dir().join(format!("metamcp-version-{}", std::process::id()));
        fs::write(&path, "").expect("written");
        let transport = TransportConfig::Stdio {
            command: path.display().to_string(),
            args: Vec::new(),
            env: Default::default(),
            cwd: None,
        };
        let before = ServerVersion::of(&transport);
        assert_eq!(before, ServerVersion::of(&transport));
        let file = fs::File::options().write(true).open(&path).expect("opened");
        file.set_modified(SystemTime::UNIX_EPOCH).expect("changed");
        assert_ne!(before, ServerVersion::of(&transport));
        fs::remove_file(&path).expect("removed");
        assert!(changed("sh").is_some(), "found in PATH");
    }
}
