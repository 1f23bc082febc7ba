//! The control socket: its path, its lock, its file, and the service that answers there.

use std::{
    fs, io,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
        net::UnixListener as StdUnixListener,
    },
    path::{Path, PathBuf},
};

use nix::{errno::Errno, unistd::Group};
use tokio::{
    net::UnixListener,
    time::{self, Instant},
};

use super::{
    StartError,
    instance_lock::{self, InstanceLock, LockError},
};
use crate::{
    config::{ListenConfig, defaults},
    control::{
        socket_client::{self, ControlClientError},
        socket_file,
    },
    systemd::inherited_sockets::InheritedSockets,
};

/// The control socket of a system service.
pub const SYSTEM_SOCKET: &str = "/run/metamcp/control.sock";

/// Returns the path of the control socket of a service without socket units: for root the system
/// path, otherwise one in the user's runtime directory.
pub fn default_socket() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return SYSTEM_SOCKET.into();
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(directory) => Path::new(&directory).join("metamcp/control.sock"),
        None => {
            let user = rustix::process::geteuid().as_raw();
            std::env::temp_dir().join(format!("metamcp-{user}/control.sock"))
        }
    }
}

/// Returns the path of the control socket that the service creates itself, if it does.
pub(super) fn own_path(inherited: &InheritedSockets, listen: &ListenConfig) -> Option<PathBuf> {
    let default = || inherited.is_empty().then(default_socket);
    let path = listen.control.clone().or_else(default);
    path.filter(|_| inherited.control.is_empty())
}

/// Takes the lock of the control socket at `path`. No other service has the socket while the lock
/// is held.
pub(super) async fn take_lock(
    path: &Path,
    group: Option<&str>,
) -> Result<InstanceLock, StartError> {
    make_directory(path, group)?;
    let lock = instance_lock::path_of(path);
    let until = Instant::now() + defaults::RUNNING_SERVICE_TIMEOUT;
    loop {
        let pid = match InstanceLock::take(&lock) {
            Ok(lock) => return Ok(lock),
            Err(LockError::Unusable(source)) => {
                return Err(StartError::Lock(lock, source));
            }
            Err(LockError::Held(pid)) => pid,
        };
        match probe(path).await {
            ProbeResult::Answers => return Err(StartError::Running(path.to_owned(), pid)),
            // The other service may be about to end, or not ready to answer.
            ProbeResult::Silent | ProbeResult::NoProcess(_) if Instant::now() < until => {
                time::sleep(defaults::LAUNCH_POLL).await;
            }
            ProbeResult::Silent | ProbeResult::NoProcess(_) => {
                return Err(StartError::Silent(path.to_owned(), pid));
            }
        }
    }
}

/// Returns whether a service answers at a socket. Cancel safe.
pub async fn answers(socket: &Path) -> bool {
    matches!(probe(socket).await, ProbeResult::Answers)
}

/// The state of the process behind a socket's file.
enum ProbeResult {
    /// A service that answers.
    Answers,
    /// A process that accepts connections but does not answer.
    Silent,
    /// No process, with the error of the connection attempt.
    NoProcess(io::Error),
}

/// Asks the process behind a socket for its status.
async fn probe(path: &Path) -> ProbeResult {
    let asking = socket_client::ask(path, "daemon/status", None);
    match time::timeout(defaults::RUNNING_SERVICE_TIMEOUT, asking).await {
        Ok(Err(
            ControlClientError::Unreachable(_, source) | ControlClientError::Lost(_, source),
        )) if source.kind() != io::ErrorKind::UnexpectedEof => ProbeResult::NoProcess(source),
        Ok(Err(ControlClientError::Lost(..) | ControlClientError::Silent { .. })) | Err(_) => {
            ProbeResult::Silent
        }
        // An answer of any kind.
        Ok(_) => ProbeResult::Answers,
    }
}

/// Creates the directory of the control socket for the service's own user, and lets `group`, if
/// any, pass through it. An existing directory is unchanged.
///
/// # Errors
///
/// [`StartError`] if it cannot be created, or belongs to another user.
pub fn make_directory(path: &Path, group: Option<&str>) -> Result<(), StartError> {
    let failed = |source| StartError::Control(path.to_owned(), source);
    let Some(directory) = path.parent() else { return Ok(()) };
    let is_new = !directory.exists();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    let owner = fs::metadata(directory).map_err(failed)?.uid();
    let user = rustix::process::geteuid();
    // The directory of another user under /tmp could hold anything.
    if owner != user.as_raw() && owner != 0 {
        return Err(StartError::ForeignDirectory(directory.to_owned()));
    }
    match group {
        // The group may pass through the directory without listing it.
        Some(group) if is_new => grant_group(directory, group, 0o710),
        Some(_) | None => Ok(()),
    }
}

/// Creates the control socket for the service's own user and for `group`, if any. A socket without
/// a process behind it is left over from a killed service, and is replaced.
pub(super) async fn make_socket(
    path: &Path,
    group: Option<&str>,
) -> Result<UnixListener, StartError> {
    let failed = |source| StartError::Control(path.to_owned(), source);
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(StartError::NotASocket(path.to_owned()));
        }
        Ok(_) => match probe(path).await {
            // No process holds the lock, so the other service uses no locks.
            ProbeResult::Answers => {
                return Err(StartError::Running(path.to_owned(), None));
            }
            ProbeResult::Silent => {
                return Err(StartError::Silent(path.to_owned(), None));
            }
            ProbeResult::NoProcess(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(failed)?;
            }
            ProbeResult::NoProcess(error) => return Err(failed(error)),
        },
    }
    let listener = StdUnixListener::bind(path).map_err(failed)?;
    rustix::net::listen(&listener, defaults::LISTEN_BACKLOG)
        .map_err(|error| failed(error.into()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    if let Some(group) = group {
        grant_group(path, group, 0o660).inspect_err(|_| {
            let _unused = fs::remove_file(path);
        })?;
    }
    listener.set_nonblocking(true).map_err(failed)?;
    UnixListener::from_std(listener).map_err(failed)
}

/// Removes a control socket that no process listens at.
///
/// # Errors
///
/// A sentence with the reason why the socket stays.
pub async fn remove_stale(path: &Path) -> Result<(), String> {
    let name = path.display();
    let failed = |error: io::Error| format!("cannot remove `{name}`: {error}");
    // A service that starts now holds the lock.
    let _lock = InstanceLock::take(&instance_lock::path_of(path)).map_err(|error| match error {
        LockError::Held(_) => format!("a service with the socket `{name}` starts or runs"),
        LockError::Unusable(error) => failed(error),
    })?;
    if socket_file::is_served(path) == Some(true) {
        return Err(format!("a process listens at `{name}`"));
    }
    let is_socket = fs::symlink_metadata(path).map_err(failed)?.file_type().is_socket();
    match probe(path).await {
        ProbeResult::NoProcess(error)
            if is_socket && error.kind() == io::ErrorKind::ConnectionRefused =>
        {
            fs::remove_file(path).map_err(failed)
        }
        ProbeResult::NoProcess(_) | ProbeResult::Answers | ProbeResult::Silent => {
            Err(format!("a process listens at `{name}`"))
        }
    }
}

/// Gives a file to `group` with these permissions.
fn grant_group(path: &Path, group: &str, mode: u32) -> Result<(), StartError> {
    let give = || {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no such group");
        let found = match Group::from_name(group) {
            // The database of groups is missing, as in the root of a container. Source: getgrnam(3).
            Err(Errno::ENOENT) => None,
            found => found?,
        };
        let gid = found.ok_or_else(missing)?.gid;
        std::os::unix::fs::chown(path, None, Some(gid.as_raw()))?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    };
    give().map_err(|source| StartError::Group(group.to_owned(), source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stale_socket_is_removed_and_one_with_a_listener_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control.sock");
        let listener = StdUnixListener::bind(&path).expect("bound");
        assert!(remove_stale(&path).await.is_err() && path.exists());
        drop(listener);
        assert_eq!(remove_stale(&path).await, Ok(()));
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn only_the_configured_group_gets_access_to_the_control_socket() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("made/control.sock");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let own = Group::from_gid(nix::unistd::getegid()).expect("readable").expect("there is one");
        for (group, socket, way) in [(None, 0o600, 0o700), (Some(own.name.as_str()), 0o660, 0o710)]
        {
            make_directory(&path, group).expect("made");
            drop(make_socket(&path, group).await.expect("made"));
            let modes = (mode(&path), mode(path.parent().expect("a directory")));
            assert_eq!(modes, (socket, way), "{group:?}");
            fs::remove_dir_all(directory.path().join("made")).expect("removed");
        }
        make_directory(&path, None).expect("made");
        let refused = make_socket(&path, Some("no such group")).await.expect_err("no group");
        assert!(refused.hint().contains("listen.control_group") && !path.exists());
    }
}
