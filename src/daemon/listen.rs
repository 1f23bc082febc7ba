//! The sockets to serve on: inherited ones, or our own when there are none.

use std::{
    fmt, fs, io,
    net::SocketAddr,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
        net::UnixListener as StdUnixListener,
    },
    path::{Path, PathBuf},
};

use nix::unistd::Group;
use tokio::{
    net::{TcpListener, UnixListener},
    time::{self, Instant},
};

use super::instance_lock::{self, InstanceLock, LockError};
use crate::{
    config::{ExposedListener, ListenConfig, defaults},
    control::client::{self, ControlClientError},
    session::signing_key::SessionKeyError,
    systemd::listen::InheritedSockets,
};

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
    /// Held for as long as the socket is ours.
    lock: Option<InstanceLock>,
    was_inherited: bool,
}

/// A process, as a message shows it.
struct Shown(Option<u32>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |pid| write!(f, " (pid {pid})"))
    }
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
    /// Another service is there.
    #[error("another metamcp{} already answers at `{}`", Shown(*pid), path.display())]
    Running {
        /// The socket.
        path: PathBuf,
        /// Its process, where that is known.
        pid: Option<u32>,
    },
    /// Another service is there, and says nothing.
    #[error(
        "another metamcp{} is there, and does not answer at `{}` within {} s: it starts, stops or hangs",
        Shown(*pid), path.display(), defaults::PROBE_PATIENCE.as_secs()
    )]
    Silent {
        /// The socket.
        path: PathBuf,
        /// Its process, where that is known.
        pid: Option<u32>,
    },
    /// The file that only one service can lock is of no use.
    #[error("lock `{}`", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
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
    /// An address would be open to everybody.
    #[error(transparent)]
    Exposed(#[from] ExposedListener),
    /// An inherited socket cannot be used.
    #[error("use an inherited socket")]
    Inherited(#[source] io::Error),
    /// Signals cannot be caught.
    #[error("catch signals")]
    Signals(#[source] io::Error),
    /// The key for session ids cannot be used.
    #[error(transparent)]
    SessionKey(#[from] SessionKeyError),
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
            Self::Silent { .. } => {
                "Wait a moment and see `metamcp status`; end one that hangs with `kill`."
            }
            Self::Control { .. }
            | Self::Lock { .. }
            | Self::NotASocket { .. }
            | Self::Foreign { .. } => "Set `listen.control` to a path in a directory of your own.",
            Self::Group { .. } => {
                "Create the group, and put the user of the service into it, or unset `listen.control_group`."
            }
            Self::SessionKey(error) => error.hint(),
            Self::Exposed(error) => error.hint(),
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
    ///
    /// # Cancel safety
    ///
    /// Safe: what was opened is closed, but a socket's file stays.
    pub async fn open(
        inherited: InheritedSockets,
        listen: &ListenConfig,
    ) -> Result<Self, StartError> {
        let was_inherited = !inherited.is_empty();
        // Whoever has made them: the file says only what we make ourselves.
        for listener in &inherited.http {
            listen.may_use(listener.local_addr().map_err(StartError::Inherited)?)?;
        }
        // First of all: two services are told apart by what they lock, and not by who gets a port.
        let (own, group) = (own_path(&inherited, listen), listen.control_group.as_deref());
        let lock = match &own {
            Some(path) => Some(sole(path, group).await?),
            None => None,
        };
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
        if let Some(path) = own {
            control.push(make_socket(&path, group).await?);
            own_socket = inode_of(&path).map(|inode| (path, inode));
        }
        let addresses = http.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        Ok(Self { http, control, addresses, own_socket, lock, was_inherited })
    }

    /// Returns none: for a service of one client, on a pipe.
    pub fn none() -> Self {
        Self {
            http: Vec::new(),
            control: Vec::new(),
            addresses: Vec::new(),
            own_socket: None,
            lock: None,
            was_inherited: false,
        }
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
        // What stands there by now may be somebody else's.
        if let Some((path, inode)) = &self.own_socket
            && inode_of(path) == Some(*inode)
            && let Err(error) = fs::remove_file(path)
        {
            tracing::debug!(%error, "control socket not removed");
        }
        if let Some(lock) = &self.lock {
            lock.clean_up();
        }
    }
}

fn inode_of(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|found| found.ino())
}

fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    let failed = |source| StartError::Http { address, source };
    let listener = std::net::TcpListener::bind(address).map_err(failed)?;
    // The standard library has 128: a client that finds no room tries again after a second.
    rustix::net::listen(&listener, defaults::LISTEN_BACKLOG)
        .map_err(|error| failed(error.into()))?;
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

/// Returns the path of the control socket that we make ourselves, if we do.
fn own_path(inherited: &InheritedSockets, listen: &ListenConfig) -> Option<PathBuf> {
    let default = || inherited.is_empty().then(default_socket);
    let asked = listen.control.clone().or_else(default);
    asked.filter(|_| inherited.control.is_empty())
}

/// Sees to it that no other service has the control socket at `path`, now or as long as we hold what
/// is returned.
async fn sole(path: &Path, group: Option<&str>) -> Result<InstanceLock, StartError> {
    make_directory(path, group)?;
    let lock = instance_lock::path_of(path);
    let until = Instant::now() + defaults::PROBE_PATIENCE;
    loop {
        let pid = match InstanceLock::take(&lock) {
            Ok(lock) => return Ok(lock),
            Err(LockError::Unusable(source)) => {
                return Err(StartError::Lock { path: lock, source });
            }
            Err(LockError::By(pid)) => pid,
        };
        match probe(path).await {
            Probed::Answers => return Err(StartError::Running { path: path.to_owned(), pid }),
            // It may be about to end, or not to answer yet.
            Probed::Silent | Probed::Nobody(_) if Instant::now() < until => {
                time::sleep(defaults::LAUNCH_POLL).await;
            }
            Probed::Silent | Probed::Nobody(_) => {
                return Err(StartError::Silent { path: path.to_owned(), pid });
            }
        }
    }
}

/// Tells whether a service answers at a socket.
///
/// # Cancel safety
///
/// Safe.
pub async fn answers(socket: &Path) -> bool {
    matches!(probe(socket).await, Probed::Answers)
}

/// What is behind a socket's file.
enum Probed {
    /// A service that answers.
    Answers,
    /// Somebody who takes connections, and says nothing.
    Silent,
    /// Nobody: the system said this.
    Nobody(io::Error),
}

/// Asks whoever is at a socket for a sign of life. Source: seed 001, the connect test.
async fn probe(path: &Path) -> Probed {
    let asking = client::ask(path, "daemon/status", None);
    match time::timeout(defaults::PROBE_PATIENCE, asking).await {
        Ok(
            Ok(_)
            | Err(
                ControlClientError::Refused(_)
                | ControlClientError::Unreadable(_)
                | ControlClientError::Oversized { .. },
            ),
        ) => Probed::Answers,
        Ok(Err(ControlClientError::Unreachable { source, .. }))
            if source.kind() != io::ErrorKind::UnexpectedEof =>
        {
            Probed::Nobody(source)
        }
        Ok(Err(ControlClientError::Unreachable { .. } | ControlClientError::Silent { .. }))
        | Err(_) => Probed::Silent,
    }
}

/// Makes the directory of the control socket, for our own user and as a way for `group` if there is
/// one. A directory that is there already stays as it is.
///
/// # Errors
///
/// [`StartError`] when it cannot be made, or belongs to somebody else.
pub fn make_directory(path: &Path, group: Option<&str>) -> Result<(), StartError> {
    let failed = |source| StartError::Control { path: path.to_owned(), source };
    let Some(directory) = path.parent() else { return Ok(()) };
    let is_new = !directory.exists();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    let owner = fs::metadata(directory).map_err(failed)?.uid();
    let user = rustix::process::geteuid();
    // Somebody else's directory under /tmp could hold anything.
    if owner != user.as_raw() && owner != 0 {
        return Err(StartError::Foreign { path: directory.to_owned() });
    }
    match group {
        // Who may go through need not see what else is there.
        Some(group) if is_new => let_in(directory, group, 0o710),
        Some(_) | None => Ok(()),
    }
}

/// Makes the control socket, for our own user and for `group` if there is one. A socket that nobody
/// answers at is left over from a service that was killed, and is replaced.
async fn make_socket(path: &Path, group: Option<&str>) -> Result<UnixListener, StartError> {
    let failed = |source| StartError::Control { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(StartError::NotASocket { path: path.to_owned() });
        }
        Ok(_) => match probe(path).await {
            // Nobody holds the lock, so it is none that is like us.
            Probed::Answers => {
                return Err(StartError::Running { path: path.to_owned(), pid: None });
            }
            Probed::Silent => return Err(StartError::Silent { path: path.to_owned(), pid: None }),
            Probed::Nobody(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(failed)?;
            }
            Probed::Nobody(error) => return Err(failed(error)),
        },
    }
    let listener = StdUnixListener::bind(path).map_err(failed)?;
    rustix::net::listen(&listener, defaults::LISTEN_BACKLOG)
        .map_err(|error| failed(error.into()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    if let Some(group) = group {
        let_in(path, group, 0o660).inspect_err(|_| {
            let _nobody_uses_it = fs::remove_file(path);
        })?;
    }
    listener.set_nonblocking(true).map_err(failed)?;
    UnixListener::from_std(listener).map_err(failed)
}

/// Gives a file to `group`, with these permissions.
fn let_in(path: &Path, group: &str, mode: u32) -> Result<(), StartError> {
    let give = || {
        let found = Group::from_name(group)?;
        let found = found
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such group"))?;
        std::os::unix::fs::chown(path, None, Some(found.gid.as_raw()))?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    };
    give().map_err(|source| StartError::Group { group: group.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn clients_that_come_all_at_once_find_room_in_the_backlog() {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("bound");
        let address = listener.local_addr().expect("bound");
        let connecting = tokio::task::spawn_blocking(move || {
            let connect = |_| {
                std::net::TcpStream::connect_timeout(&address, std::time::Duration::from_secs(1))
            };
            (0..300).map(connect).collect::<io::Result<Vec<_>>>()
        });
        // Nobody accepts them.
        assert_eq!(connecting.await.expect("no panic").expect("all connect").len(), 300);
    }

    #[tokio::test]
    async fn the_group_that_is_named_can_use_the_socket_and_no_other() {
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
