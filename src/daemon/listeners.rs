//! The sockets to serve on: inherited ones, or the service's own if there are none.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use tokio::net::{TcpListener, UnixListener};

use super::{
    StartError,
    control_socket::{make_socket, own_path, take_lock},
    instance_lock::InstanceLock,
};
use crate::{
    config::{ListenConfig, defaults},
    systemd::inherited_sockets::InheritedSockets,
};

/// The sockets that the service listens on.
#[derive(Debug)]
pub struct Listeners {
    pub(super) http: Vec<TcpListener>,
    pub(super) control: Vec<UnixListener>,
    pub(super) metrics: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    /// The control socket that the service created and removes: its path and its inode.
    own_socket: Option<(PathBuf, u64)>,
    /// Held as long as the control socket belongs to this service.
    lock: Option<InstanceLock>,
    was_inherited: bool,
}

impl Listeners {
    /// Takes the inherited sockets, and creates the missing ones.
    ///
    /// Under a service manager that passes sockets, a control socket that it does not pass is
    /// created only if `listen.control` asks for it. Cancel safe: opened sockets are closed, but the
    /// file of a socket stays.
    ///
    /// # Errors
    ///
    /// [`StartError`] names the address that cannot be used.
    pub async fn open(
        inherited: InheritedSockets,
        listen: &ListenConfig,
    ) -> Result<Self, StartError> {
        let was_inherited = !inherited.is_empty();
        // Whichever process made them: the configuration declares only the service's own sockets.
        for listener in &inherited.http {
            listen.may_use(listener.local_addr().map_err(StartError::Inherited)?)?;
        }
        // First of all: the lock decides between two services, not the port.
        let (own, group) = (own_path(&inherited, listen), listen.control_group.as_deref());
        let lock = match &own {
            Some(path) => Some(take_lock(path, group).await?),
            None => None,
        };
        let mut http = inherited_tcp(inherited.http)?;
        if http.is_empty() {
            http.push(bind(listen.http, StartError::Http)?);
        }
        let mut metrics = inherited_tcp(inherited.metrics)?;
        if metrics.is_empty()
            && let Some(address) = listen.metrics
        {
            metrics.push(bind(address, StartError::Metrics)?);
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
        Ok(Self { http, control, metrics, addresses, own_socket, lock, was_inherited })
    }

    /// Returns no listeners, for a service with one client on a pipe.
    pub fn none() -> Self {
        Self {
            http: Vec::new(),
            control: Vec::new(),
            metrics: Vec::new(),
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

    /// Returns the control socket that the service created, if any.
    pub fn own_socket(&self) -> Option<&Path> {
        self.own_socket.as_ref().map(|(path, _)| path.as_path())
    }

    /// Returns whether a service manager passed sockets.
    pub fn was_inherited(&self) -> bool {
        self.was_inherited
    }

    /// Removes the service's own control socket, and clears its lock file.
    pub(super) fn clean_up(&self) {
        // Another service may have put its socket there.
        if let Some((path, inode)) = &self.own_socket
            && inode_of(path) == Some(*inode)
            && let Err(error) = fs::remove_file(path)
        {
            tracing::debug!(%error, "cannot remove the control socket `{}`: {error}", path.display());
        }
        if let Some(lock) = &self.lock {
            lock.clean_up();
        }
    }
}

fn inode_of(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|found| found.ino())
}

fn inherited_tcp(listeners: Vec<std::net::TcpListener>) -> Result<Vec<TcpListener>, StartError> {
    let usable = |listener: std::net::TcpListener| {
        // Inherited sockets block, and a blocking accept would stall a worker thread.
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    };
    listeners.into_iter().map(usable).collect::<io::Result<_>>().map_err(StartError::Inherited)
}

fn bind(
    address: SocketAddr,
    error: fn(SocketAddr, io::Error) -> StartError,
) -> Result<TcpListener, StartError> {
    let failed = |source| error(address, source);
    let listener = std::net::TcpListener::bind(address).map_err(failed)?;
    // The standard library has 128: a client that finds no room retries after a second.
    rustix::net::listen(&listener, defaults::LISTEN_BACKLOG)
        .map_err(|error| failed(error.into()))?;
    listener.set_nonblocking(true).map_err(failed)?;
    TcpListener::from_std(listener).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_backlog_has_room_for_many_simultaneous_clients() {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = bind(address, StartError::Http).expect("bound");
        let address = listener.local_addr().expect("bound");
        let connecting = tokio::task::spawn_blocking(move || {
            let connect = |_| {
                std::net::TcpStream::connect_timeout(&address, std::time::Duration::from_secs(1))
            };
            (0..300).map(connect).collect::<io::Result<Vec<_>>>()
        });
        // They are not accepted.
        assert_eq!(connecting.await.expect("no panic").expect("all connect").len(), 300);
    }
}
