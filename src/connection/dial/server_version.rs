//! Which version of a server it is: what was found out about one holds until it is another.

use std::{env, fs, path::Path, time::SystemTime};

use crate::config::TransportConfig;

/// One version of a server: its declaration, and when its program was changed last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ServerVersion {
    transport: TransportConfig,
    /// When the program was changed last, where there is one.
    changed: Option<SystemTime>,
}

impl ServerVersion {
    /// Returns the version of a server that is reached so. Looks at the file of its program.
    pub(super) fn of(transport: &TransportConfig) -> Self {
        let changed = match transport {
            TransportConfig::Stdio { command, .. } => changed(command),
            TransportConfig::Unit { .. } | TransportConfig::Http { .. } => None,
        };
        Self { transport: transport.clone(), changed }
    }
}

/// Returns when a program was changed last: a path, or a name that is looked up in `PATH`.
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
    fn a_program_that_was_changed_is_another_version() {
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
