//! The permissions of the service's files and directories.

use std::{fs, io, os::unix::fs::MetadataExt as _, path::Path};

use super::{
    finding::{Finding, FindingArea::Permissions},
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
        found.push(Finding::ok(Permissions, "the directories have safe permissions"));
    }
}

/// Returns the problem with the directory of `what`, if any. A missing directory is created later.
fn directory_of(what: &str, directory: &Path, is_written: bool) -> Option<Finding> {
    let name = directory.display();
    let error =
        |fault: &str| Finding::error(Permissions, format!("the {what} directory `{name}` {fault}"));
    let metadata = match fs::metadata(directory) {
        Ok(metadata) => metadata,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return None,
        Err(cause) => {
            let finding = error("cannot be examined").because(cause.to_string());
            return Some(finding.fix("Run this command as the user of the service, or as root."));
        }
    };
    let (owner, mode) = (metadata.uid(), metadata.mode());
    let user = rustix::process::geteuid();
    if mode & WRITTEN_BY_OTHERS != 0 && mode & STICKY == 0 {
        let finding = error("is writable by other users")
            .because("They can replace the files of the service.");
        return Some(finding.fix(format!("Run `chmod go-w {name}`.")));
    }
    if is_written && owner != user.as_raw() && !user.is_root() {
        let finding =
            error("belongs to another user").because("A service of this user cannot write there.");
        return Some(finding.fix(format!("Run `chown -R $USER {name}`.")));
    }
    None
}

/// Examines whether other users can read credentials.
pub(super) fn credentials(directory: Option<&Path>, found: &mut Vec<Finding>) {
    let Some(directory) = directory else { return };
    for name in exposed_credentials(directory) {
        let path = directory.join(&name);
        let what = format!("every user of this host can read the credential `{name}`");
        found.push(
            Finding::warning(Permissions, what)
                .because("Its file and its directory are open to other users.")
                .fix(format!("Run `chmod o= '{}'`.", path.display())),
        );
    }
}

/// Examines whether a file that others can read contains secrets.
pub(super) fn secrets_in(file: &Path, config: &Config, found: &mut Vec<Finding>) {
    let is_public = fs::metadata(file).is_ok_and(|file| file.mode() & OF_OTHERS != 0);
    if !is_public {
        return;
    }
    logins_of_proxies(file, config, found);
    for (name, server) in &config.servers {
        let values = match &server.transport {
            TransportConfig::Stdio { env, .. } => env,
            TransportConfig::Http(http) => &http.headers,
            TransportConfig::Unit { .. } => continue,
        };
        let is_exposed = |key: &str, value: &SecretValue| {
            !value.is_reference() && SecretValue::is_secret_name(key)
        };
        let keys: Vec<&str> = values
            .iter()
            .filter_map(|(key, value)| is_exposed(key, value).then_some(key.as_str()))
            .collect();
        if let Some(key) = keys.first() {
            let what = format!("a file that every user can read contains `{}`", keys.join("`, `"));
            let option = format!("credentials.{} = \"/run/secrets/{name}\";", nix_name(key));
            found.push(
                Finding::warning(Permissions, what)
                    .of(name)
                    .because(format!("`{}` contains the value itself.", file.display()))
                    .fix(format!("Write `credential:{name}` instead, and `LoadCredential={name}:/path` into a drop-in of the unit. Or run `chmod o= {}`.", file.display()))
                    .nix(of_server(name, &option)),
            );
        }
    }
}

/// Examines whether the URL of a proxy contains a login, in a file that others can read.
fn logins_of_proxies(file: &Path, config: &Config, found: &mut Vec<Finding>) {
    let service = ("service.proxy".to_owned(), &config.service.proxy);
    let servers = config.servers.iter().filter_map(|(name, server)| match &server.transport {
        TransportConfig::Http(http) => Some((format!("servers.{name}.proxy"), &http.proxy)),
        TransportConfig::Stdio { .. } | TransportConfig::Unit { .. } => None,
    });
    // A server without its own proxy has that of the service.
    let own = servers.filter(|(_, proxy)| **proxy != config.service.proxy);
    for (key, _) in std::iter::once(service).chain(own).filter(|(_, proxy)| proxy.has_login()) {
        let what = format!("a file that every user can read contains the login of `{key}`");
        found.push(
            Finding::warning(Permissions, what)
                .because(format!("`{}` contains the login itself.", file.display()))
                .fix(format!("Write `proxy = \"environment\"`, and set HTTPS_PROXY in an `EnvironmentFile=` of the unit. Or run `chmod o= {}`.", file.display())),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::{config::load, doctor::FindingSeverity};

    #[test]
    fn a_directory_that_other_users_can_write_is_an_error() {
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
    fn a_secret_in_a_public_file_is_reported_by_its_name() {
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
        assert_eq!(found[0].what, "a file that every user can read contains `GIT_TOKEN`");
        assert!(!format!("{found:?}").contains("abcdef"));
    }
    #[test]
    fn the_login_of_a_proxy_in_a_public_file_is_reported_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("metamcp.toml");
        let text = "[service]\nproxy = \"http://ada:hunter2@proxy:3128\"\n[servers.a]\nurl = \"https://h/\"\n\
            [servers.b]\nurl = \"https://h/\"\nproxy = \"http://proxy:3128\"\n";
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("changed");
        let mut found = Vec::new();
        secrets_in(&file, &load::file(&file).expect("valid"), &mut found);
        let what: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(what, ["a file that every user can read contains the login of `service.proxy`"]);
        assert!(!format!("{found:?}").contains("hunter2"));
    }
}
