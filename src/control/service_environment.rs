//! The environment of the running service: its user, its paths, and the files that it can reach.
//!
//! `metamcp doctor` examines the same files in its own process and reports the differences.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use nix::unistd::{Gid, Group, Uid, User};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use serde::{Deserialize, Serialize};
use tokio::task;

use super::{ControlRequest, MethodResult, to_text};
use crate::{
    config::{ServerConfig, TransportConfig, defaults},
    protocol::RpcError,
    systemd::own_unit::SystemdUnit,
};

/// The environment of the running service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceEnvironment {
    /// The user of the process.
    pub user: String,
    /// The groups of the process.
    pub groups: Vec<String>,
    /// Its home directory, `$HOME`.
    pub home: Option<PathBuf>,
    /// Its working directory.
    pub working_directory: Option<PathBuf>,
    /// The directories in which it looks for programs, `$PATH`.
    pub path: Option<String>,
    /// Its systemd unit.
    pub unit: Option<String>,
    /// Its configuration file.
    pub configuration: Option<PathBuf>,
    /// The files of each stdio server.
    pub servers: BTreeMap<String, ServerFiles>,
}

/// The files of a stdio server, as one process sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerFiles {
    /// The program that would start.
    pub program: Option<PathBuf>,
    /// The paths among the arguments that this process cannot read, each with the reason.
    pub unreadable: BTreeMap<PathBuf, String>,
}

impl ServerFiles {
    /// Examines the files of a server in this process; `None` if it starts no program. Blocks.
    pub fn examine(server: &ServerConfig) -> Option<Self> {
        let TransportConfig::Stdio { command, args, env, cwd, .. } = &server.transport else {
            return None;
        };
        let base = cwd.as_deref().unwrap_or(Path::new(""));
        // A server with its own `PATH` is looked up there, in either process.
        let own_path = env.get("PATH").and_then(|path| path.resolve(None).ok());
        let path = own_path.map(Into::into).or_else(|| std::env::var_os("PATH"));
        let program = program(command, base, path.as_deref()).map(|it| lossy(&it));
        let words = args.iter().map(|word| word.split_once('=').map_or(word.as_str(), |it| it.1));
        let files =
            words.filter(|word| word.starts_with('/')).map(PathBuf::from).chain(cwd.clone());
        let reason = |file: PathBuf| access(&file, Access::READ_OK).err().map(|why| (file, why));
        let unreadable = files.take(defaults::ENVIRONMENT_FILES_MAX).filter_map(reason).collect();
        Some(Self { program, unreadable })
    }
}

/// Returns the program that `command` starts: itself if it is a path, else the first in `path`.
fn program(command: &str, base: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    if command.contains('/') {
        return Some(base.join(command)).filter(is_program);
    }
    std::env::split_paths(path?).map(|directory| directory.join(command)).find(is_program)
}

/// Returns a path as JSON can hold it.
fn lossy(path: &Path) -> PathBuf {
    path.to_string_lossy().into_owned().into()
}

/// Checks an access as the effective user, as `execve` and `open` do.
fn access(file: &Path, wanted: Access) -> Result<(), String> {
    accessat(CWD, file, wanted, AtFlags::EACCESS)
        .map_err(|errno| std::io::Error::from(errno).kind().to_string())
}

/// Answers `daemon/environment`.
pub(super) async fn environment(request: &ControlRequest<'_>) -> MethodResult {
    let parts = &request.service.parts;
    let (config, file) = (parts.operators.config(), parts.board.config_file());
    let examining = task::spawn_blocking(move || {
        let servers = config.servers.iter();
        let files = servers
            .filter_map(|(name, server)| Some((name.to_string(), ServerFiles::examine(server)?)));
        let configuration = file.map(|file| lossy(&file));
        ServiceEnvironment { configuration, servers: files.collect(), ..of_process() }
    });
    let environment = examining.await.map_err(|_panicked| Box::new(RpcError::stopping(false)))?;
    Ok(to_text(&environment))
}

/// Returns the environment of this process, without its configuration. Blocks.
fn of_process() -> ServiceEnvironment {
    let user = Uid::from_raw(rustix::process::geteuid().as_raw());
    let mut groups = rustix::process::getgroups().unwrap_or_default();
    groups.insert(0, rustix::process::getegid());
    let mut groups: Vec<String> = groups.into_iter().map(|id| group_name(id.as_raw())).collect();
    groups.dedup();
    ServiceEnvironment {
        user: User::from_uid(user).ok().flatten().map_or_else(|| user.to_string(), |it| it.name),
        groups,
        home: std::env::var_os("HOME").map(|home| lossy(Path::new(&home))),
        working_directory: std::env::current_dir().ok().map(|directory| lossy(&directory)),
        path: std::env::var("PATH").ok(),
        unit: SystemdUnit::of_process(std::process::id().into()).map(|unit| unit.name),
        ..ServiceEnvironment::default()
    }
}

fn group_name(id: u32) -> String {
    let group = Group::from_gid(Gid::from_raw(id)).ok().flatten();
    group.map_or_else(|| id.to_string(), |group| group.name)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::config::load;

    #[test]
    fn a_program_is_found_in_path_only_if_it_can_be_executed() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("tool");
        fs::write(&file, "#!/bin/sh\n").expect("written");
        let path = Some(directory.path().as_os_str());
        let set = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode));
        set(0o644).expect("changed");
        assert_eq!(program("tool", Path::new(""), path), None);
        set(0o755).expect("changed");
        assert_eq!(program("tool", Path::new(""), path), Some(file.clone()));
        assert_eq!(
            program("./tool", directory.path(), None),
            Some(directory.path().join("./tool"))
        );
        assert_eq!(program("other", Path::new(""), path), None);
    }

    #[test]
    fn an_argument_that_is_a_missing_file_is_unreadable() {
        let text =
            "[servers.a]\ncommand = \"sh\"\nargs = [\"/\", \"--root=/no/such/file\", \"x\"]\n";
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), text).expect("written");
        let config = load::file(file.path()).expect("valid");
        let server = config.servers.values().next().expect("one");
        let files = ServerFiles::examine(server).expect("it is a program");
        let unreadable: Vec<_> = files.unreadable.into_iter().collect();
        let expected = (PathBuf::from("/no/such/file"), "entity not found".to_owned());
        assert_eq!(unreadable, [expected]);
        assert!(files.program.is_some_and(|program| program.ends_with("sh")));
    }
}
