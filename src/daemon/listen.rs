//! The sockets to serve on: inherited ones, or our own when there are none.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener as StdUnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use nix::unistd::Group;
use tokio::net::{TcpListener, UnixListener};

use crate::{config::Listen, session::key::KeyError, systemd::listen::Inherited};

/// Where the control socket is for a service of the system. Source: design ruling 1.
pub const SYSTEM_SOCKET: &str = "/run/metamcp/control.sock";

/// The sockets that the service listens on.
#[derive(Debug)]
pub struct Listeners {
    pub(super) http: Vec<TcpListener>,
    pub(super) control: Vec<UnixListener>,
    addresses: Vec<SocketAddr>,
    /// The control socket that we made and remove again.
    own_socket: Option<(PathBuf, u64)>,
    was_inherited: bool,
}

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The TCP address cannot be listened on.
    #[error("listen on {address}")]
    Http {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Another service listens on the control socket.
    #[error("another metamcp already answers at `{}`", path.display())]
    Running {
        /// The socket.
        path: PathBuf,
    },
    /// The control socket cannot be made.
    #[error("make the control socket `{}`", path.display())]
    Control {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The group that is to use the control socket cannot be let in.
    #[error("let the group `{group}` use the control socket")]
    Group {
        /// The group.
        group: String,
        /// What the system said.
        source: io::Error,
    },
    /// Something that is not a socket stands where the control socket is to be.
    #[error("`{}` is there already, and is not a socket", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The directory of the control socket belongs to somebody else.
    #[error("the directory `{}` is not ours", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// An inherited socket cannot be used.
    #[error("use an inherited socket")]
    Inherited(#[source] io::Error),
    /// Signals cannot be caught.
    #[error("catch signals")]
    Signals(#[source] io::Error),
    /// The key for session ids cannot be used.
    #[error(transparent)]
    SessionKey(#[from] KeyError),
}

impl StartError {
    /// What the operator can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Http { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                "Another program listens there, perhaps metamcp itself: see `metamcp status`, or set `listen.http`."
            }
            Self::Http { .. } => "Check `listen.http`.",
            Self::Running { .. } => {
                "See `metamcp status`, or set `listen.control` and `listen.http` for a second one."
            }
            Self::Control { .. } | Self::NotASocket { .. } | Self::Foreign { .. } => {
                "Set `listen.control` to a path in a directory of your own."
            }
            Self::Group { .. } => {
                "Create the group, and put the user of the service into it, or unset `listen.control_group`."
            }
            Self::SessionKey(error) => error.hint(),
            Self::Inherited(_) | Self::Signals(_) => "Check the limits of the service.",
        }
    }
}

impl Listeners {
    /// Takes the inherited sockets, and makes those that are missing.
    ///
    /// Under a service manager that passes sockets, a control socket that it does not pass is
    /// made only if `listen.control` asks for it.
    ///
    /// # Errors
    ///
    /// [`StartError`] names the address that cannot be used.
    pub fn open(inherited: Inherited, listen: &Listen) -> Result<Self, StartError> {
        let was_inherited = !inherited.is_empty();
        let mut http = Vec::new();
        for listener in inherited.http {
            // They come blocking, and a blocking accept would stall a worker thread.
            listener.set_nonblocking(true).map_err(StartError::Inherited)?;
            http.push(TcpListener::from_std(listener).map_err(StartError::Inherited)?);
        }
        if http.is_empty() {
            http.push(bind(listen.http)?);
        }
        let mut control = Vec::new();
        for listener in inherited.control {
            listener.set_nonblocking(true).map_err(StartError::Inherited)?;
            control.push(UnixListener::from_std(listener).map_err(StartError::Inherited)?);
        }
        let mut own_socket = None;
        let asked = listen.control.clone().or_else(|| (!was_inherited).then(default_socket));
        if control.is_empty()
            && let Some(path) = asked
        {
            control.push(make_socket(&path, listen.control_group.as_deref())?);
            own_socket = inode_of(&path).map(|inode| (path, inode));
        }
        let addresses = http.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        Ok(Self { http, control, addresses, own_socket, was_inherited })
    }

    /// Returns the TCP addresses.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the control socket that we made, if any.
    pub fn own_socket(&self) -> Option<&Path> {
        self.own_socket.as_ref().map(|(path, _)| path.as_path())
    }

    /// Tells whether a service manager passed sockets.
    pub fn was_inherited(&self) -> bool {
        self.was_inherited
    }

    /// Removes what we made.
    pub(super) fn clean_up(&self) {
        let Some((path, inode)) = &self.own_socket else { return };
        // What stands there by now may be somebody else's.
        if inode_of(path) == Some(*inode)
            && let Err(error) = fs::remove_file(path)
        {
            tracing::debug!(%error, "control socket not removed");
        }
    }
}

fn inode_of(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|found| found.ino())
}

fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    let failed = |source| StartError::Http { address, source };
    let listener = std::net::TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    TcpListener::from_std(listener).map_err(failed)
}

/// Returns where the control socket of a service without socket units is: for root the system's
/// place, else the user's runtime directory.
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

/// Makes the control socket, for our own user and for `group` if there is one. A socket that nobody
/// answers at is left over from a service that was killed, and is replaced.
fn make_socket(path: &Path, group: Option<&str>) -> Result<UnixListener, StartError> {
    let failed = |source| StartError::Control { path: path.to_owned(), source };
    let mut made = None;
    if let Some(directory) = path.parent() {
        made = (!directory.exists()).then_some(directory);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let owner = fs::metadata(directory).map_err(failed)?.uid();
        let user = rustix::process::geteuid();
        // Somebody else's directory under /tmp could hold anything.
        if owner != user.as_raw() && owner != 0 {
            return Err(StartError::Foreign { path: directory.to_owned() });
        }
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(StartError::NotASocket { path: path.to_owned() });
        }
        Ok(_) => match UnixStream::connect(path) {
            Ok(_) => return Err(StartError::Running { path: path.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        },
    }
    let listener = StdUnixListener::bind(path).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    if let Some(group) = group {
        let let_in = |path, mode| let_in(path, group, mode);
        let done = let_in(path, 0o660).and_then(|()| match made {
            // The way to it: who may go through need not see what else is there.
            Some(directory) => let_in(directory, 0o710),
            None => Ok(()),
        });
        done.map_err(|source| {
            let _nobody_uses_it = fs::remove_file(path);
            StartError::Group { group: group.to_owned(), source }
        })?;
    }
    listener.set_nonblocking(true).map_err(failed)?;
    UnixListener::from_std(listener).map_err(failed)
}

/// Gives a file to `group`, with these permissions.
fn let_in(path: &Path, group: &str, mode: u32) -> io::Result<()> {
    let found = Group::from_name(group)?;
    let found =
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such group"))?;
    std::os::unix::fs::chown(path, None, Some(found.gid.as_raw()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_group_that_is_named_can_use_the_socket_and_no_other() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("made/control.sock");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let own = Group::from_gid(nix::unistd::getegid()).expect("readable").expect("there is one");
        for (group, socket, way) in [(None, 0o600, 0o700), (Some(own.name.as_str()), 0o660, 0o710)]
        {
            drop(make_socket(&path, group).expect("made"));
            let modes = (mode(&path), mode(path.parent().expect("a directory")));
            assert_eq!(modes, (socket, way), "{group:?}");
            fs::remove_dir_all(directory.path().join("made")).expect("removed");
        }
        let refused = make_socket(&path, Some("no such group")).expect_err("no group");
        assert!(refused.hint().contains("listen.control_group") && !path.exists());
    }
}
