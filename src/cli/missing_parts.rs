//! The programs and credentials that a configuration names and this host lacks.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use rustix::fs::Access;

use crate::config::{
    Config, PemSource, SecretValue, ServerConfig, TransportConfig, credential_directories,
};

/// A part that a server needs and that is missing here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MissingRequirement {
    /// The server and the part, in words.
    pub(super) text: String,
    /// The service cannot have it either.
    pub(super) is_certain: bool,
}

/// Returns the programs of the enabled servers that cannot be started.
pub(super) fn programs(config: &Config) -> Vec<MissingRequirement> {
    let path = env::var_os("PATH").unwrap_or_default();
    let missing = config.servers.iter().filter_map(|(name, server)| {
        let (text, is_certain) = program(server, &path)?;
        Some(MissingRequirement { text: format!("server `{name}`: {text}"), is_certain })
    });
    missing.collect()
}

/// Returns the obstacle to starting the program of a server, and whether the service meets it too.
fn program(server: &ServerConfig, own_path: &OsString) -> Option<(String, bool)> {
    let TransportConfig::Stdio { command, env, cwd, .. } = &server.transport else { return None };
    let is_program =
        |path: &Path| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok();
    let shown = |path: &Path| format!("`{}`", path.display());
    if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        return Some((format!("there is no directory {}", shown(cwd)), cwd.is_absolute()));
    }
    if command.contains('/') {
        let path = cwd.clone().unwrap_or_default().join(command);
        if !path.is_absolute() || is_program(&path) {
            return None;
        }
        return Some(match path.exists() {
            true => (format!("{} is not executable", shown(&path)), true),
            false => (format!("there is no program {}", shown(&path)), true),
        });
    }
    let (searched, of) = match env.get("PATH") {
        Some(SecretValue::Literal(path)) => (OsString::from(path), "its PATH"),
        Some(_) => return None,
        None => (own_path.clone(), "the PATH of this shell"),
    };
    let mut places = env::split_paths(&searched).map(|directory| directory.join(command));
    let found: Vec<PathBuf> = places.by_ref().filter(|path| path.exists()).collect();
    if found.iter().any(|path| is_program(path)) {
        return None;
    }
    let place = format!("{of}, `{}`", searched.to_string_lossy());
    Some((
        match found.first() {
            Some(path) => format!("{} is not executable; metamcp searched {place}", shown(path)),
            None => format!("there is no program `{command}` in {place}"),
        },
        false,
    ))
}

/// Returns the credentials that are neither with systemd nor beside the configuration file `file`.
pub(super) fn credentials(config: &Config, file: &Path) -> Vec<MissingRequirement> {
    let directory = credential_directories::beside(file);
    let systemd = credential_directories::of_systemd();
    // A directory that this user cannot search says nothing.
    let is_hidden = directory.exists() && rustix::fs::access(&directory, Access::EXEC_OK).is_err();
    if is_hidden {
        return Vec::new();
    }
    let is_there = |name: &str| {
        let systemd = systemd.as_ref().is_some_and(|systemd| systemd.join(name).exists());
        systemd || directory.join(name).exists()
    };
    let mut missing = Vec::new();
    let mut add = |whose: String, name: &str| {
        if !is_there(name) {
            let directory = directory.display();
            missing.push(MissingRequirement {
                text: format!("{whose}: there is no credential `{name}` in `{directory}`"),
                is_certain: false,
            });
        }
    };
    for (server, declared) in &config.servers {
        for name in names(declared) {
            add(format!("server `{server}`"), &name);
        }
    }
    if let Some(name) = config.listen.token.as_ref().map(ToString::to_string)
        && let Some(name) = name.strip_prefix("credential:")
    {
        add("`listen.token`".to_owned(), name);
    }
    missing
}

/// Returns the credentials that a server refers to.
fn names(server: &ServerConfig) -> BTreeSet<String> {
    let of_values = |values: &std::collections::BTreeMap<String, SecretValue>| -> Vec<String> {
        let name = |value: &SecretValue| match value {
            SecretValue::Credential(name) => Some(name.clone()),
            SecretValue::Literal(_) | SecretValue::Env(_) => None,
        };
        values.values().filter_map(name).collect()
    };
    let pem = |source: &PemSource| match source {
        PemSource::Credential(name) => Some(name.clone()),
        PemSource::File(_) => None,
    };
    match &server.transport {
        TransportConfig::Stdio { env, .. } => of_values(env).into_iter().collect(),
        TransportConfig::Http(http) => {
            let tls = http.tls.identity.iter().flat_map(|own| [&own.certificate, &own.key]);
            of_values(&http.headers)
                .into_iter()
                .chain(http.tls.ca.iter().chain(tls).filter_map(pem))
                .collect()
        }
        TransportConfig::Unit { .. } => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::config::load;

    #[test]
    fn a_program_that_is_missing_or_not_executable_is_named_with_the_searched_path() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().display().to_string();
        let put = |name: &str, mode: u32| {
            let path = directory.path().join(name);
            fs::write(&path, "").expect("written");
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
        };
        put("runs", 0o755);
        put("lies", 0o644);
        let of = |text: &str| {
            let config = load::parsed(&format!("[servers.a]\n{text}\n"));
            program(&config.servers["a"], &OsString::from(&root))
        };
        assert_eq!(of("command = 'runs'"), None);
        assert_eq!(of(&format!("command = '{root}/runs'")), None);
        let expected = format!("there is no program `no` in the PATH of this shell, `{root}`");
        assert_eq!(of("command = 'no'"), Some((expected, false)));
        let expected = "there is no program `runs` in its PATH, `/no`".to_owned();
        assert_eq!(of("command = 'runs'\nenv = { PATH = '/no' }"), Some((expected, false)));
        let expected = format!("`{root}/lies` is not executable");
        assert_eq!(of(&format!("command = '{root}/lies'")), Some((expected, true)));
        let expected = "there is no program `/no/such`".to_owned();
        assert_eq!(of("command = '/no/such'"), Some((expected, true)));
        let (text, _) = of("command = 'lies'").expect("not executable");
        assert!(text.starts_with(&format!("`{root}/lies` is not executable")), "{text}");
    }
}
