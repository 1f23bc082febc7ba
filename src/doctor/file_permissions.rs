//! The permissions of the service's files and directories.

use std::{fs, io, os::unix::fs::MetadataExt as _, path::Path};

use super::{
    finding::{Finding, FindingArea},
    sandbox::of_server,
};
use crate::{
    catalog::DiskCache,
    config::{Config, SecretValue, TransportConfig, secret::exposed_credentials},
    import::nix_name,
    session::signing_key::state_directory,
};

/// The permission bits of others: neither the owner nor the group.
const OF_OTHERS: u32 = 0o007;
/// The bits that let the group or others write.
const WRITTEN_BY_OTHERS: u32 = 0o022;
/// The sticky bit: users can remove only their own files in the directory.
const STICKY: u32 = 0o1000;

/// Examines the directories of the service. The state and cache directories are examined only if
/// `is_ours`, because a service of another user has its own.
pub(super) fn directories(config: &Config, socket: &Path, is_ours: bool, found: &mut Vec<Finding>) {
    let n_before = found.len();
    let runtime = socket.parent().map(Path::to_owned);
    found.extend(runtime.and_then(|directory| directory_of("control socket", &directory, false)));
    if is_ours {
        let catalog = DiskCache::declared(&config.catalog.cache);
        let kept =
            [("state", state_directory()), ("cache", catalog.directory().map(Path::to_owned))];
        for (what, directory) in kept {
            found.extend(directory.and_then(|directory| directory_of(what, &directory, true)));
        }
    }
    if found.len() == n_before {
        found.push(Finding::ok(FindingArea::Permissions, "directories are as they should be"));
    }
}

/// Returns the problem with the directory of `what`, if any. A missing directory is created later.
fn directory_of(what: &str, directory: &Path, is_written: bool) -> Option<Finding> {
    let name = directory.display();
    let error = |told: String| Finding::error(FindingArea::Permissions, told);
    let metadata = match fs::metadata(directory) {
        Ok(metadata) => metadata,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return None,
        Err(cause) => {
            return Some(
                error(format!("the directory of the {what}, `{name}`, cannot be looked at"))
                    .because(cause.to_string())
                    .fix("Use the command as the user of the service, or as root."),
            );
        }
    };
    let (owner, mode) = (metadata.uid(), metadata.mode());
    let user = rustix::process::geteuid();
    if mode & WRITTEN_BY_OTHERS != 0 && mode & STICKY == 0 {
        return Some(
            error(format!("others may write into the directory of the {what}, `{name}`"))
                .because("They could put something of theirs in the place of what is ours.")
                .fix(format!("chmod go-w {name}")),
        );
    }
    if is_written && owner != user.as_raw() && !user.is_root() {
        return Some(
            error(format!("the directory of the {what}, `{name}`, belongs to another user"))
                .because("A service of this user cannot write there.")
                .fix(format!("chown -R $USER {name}")),
        );
    }
    None
}

/// Examines whether other users can read credentials.
pub(super) fn credentials(directory: Option<&Path>, found: &mut Vec<Finding>) {
    let Some(directory) = directory else { return };
    for name in exposed_credentials(directory) {
        let path = directory.join(&name);
        found.push(
            Finding::warning(
                FindingArea::Permissions,
                format!("everybody can read the credential `{name}`"),
            )
            .because(format!("It is `{}`.", path.display()))
            .fix(format!("chmod o= '{}'", path.display())),
        );
    }
}

/// Examines whether a file that others can read contains secrets.
pub(super) fn secrets_in(file: &Path, config: &Config, found: &mut Vec<Finding>) {
    let is_public = fs::metadata(file).is_ok_and(|file| file.mode() & OF_OTHERS != 0);
    if !is_public {
        return;
    }
    for (name, server) in &config.servers {
        let values = match &server.transport {
            TransportConfig::Stdio { env, .. } => env,
            TransportConfig::Http { headers, .. } => headers,
            TransportConfig::Unit { .. } => continue,
        };
        let is_literal = |value: &SecretValue| !value.is_reference();
        let keys: Vec<&String> = values
            .iter()
            .filter(|(key, value)| is_literal(value) && SecretValue::is_secret_name(key))
            .map(|(key, _)| key)
            .collect();
        if let Some(key) = keys.first() {
            let listed: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
            found.push(
                Finding::warning(
                    FindingArea::Permissions,
                    format!("{} in a file that everybody can read", listed.join(", ")),
                )
                .of(name)
                .because(format!("`{}` has the value itself.", file.display()))
                .fix(format!("Write `credential:{name}` in its place, and `LoadCredential={name}:/path` into a drop-in of the unit; or chmod o= the file."))
                .nix(of_server(name, &format!("credentials.{} = \"/run/secrets/{name}\";", nix_name(key)))),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::{config::load, doctor::FindingSeverity};

    #[test]
    fn a_directory_that_others_may_write_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        assert_eq!(directory_of("state", path, true), None);
        assert_eq!(directory_of("state", &path.join("none"), true), None, "it is made");
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("opened up");
        let found = directory_of("state", path, true).expect("a finding");
        assert_eq!(found.level, FindingSeverity::Error);
        fs::set_permissions(path, fs::Permissions::from_mode(0o1777)).expect("as /tmp is");
        assert_eq!(directory_of("state", path, true), None);
    }

    #[test]
    fn a_secret_in_a_file_for_everybody_is_told_by_its_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("metamcp.toml");
        let text = "[servers.a]\ncommand = \"x\"\nenv = { GIT_TOKEN = \"abcdef\", MODE = \"fast\", API_KEY = \"credential:a\" }\n";
        fs::write(&file, text).expect("written");
        let config = load::file(&file).expect("valid");
        let examined = |mode| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("changed");
            let mut found = Vec::new();
            secrets_in(&file, &config, &mut found);
            found
        };
        assert_eq!(examined(0o640), []);
        let found = examined(0o644);
        assert_eq!(found[0].what, "`GIT_TOKEN` in a file that everybody can read");
        assert!(!format!("{found:?}").contains("abcdef"));
    }
}
