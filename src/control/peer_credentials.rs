//! The peers of the control socket, and the rule that admits them.
//!
//! The service's own user, root, and the group that the operator has named are admitted. The kernel
//! reports user, group and process of a peer at the time of its connection. If the mode of the
//! socket's file excludes others, the kernel has also checked that a peer is the owner or in the
//! group. A socket unit admits a group this way, by `SocketGroup=`. It is all that is known of
//! other users where `PrivateUsers=` hides their numbers.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use nix::unistd::{Gid, Group, Uid, User};
use serde_json::json;
use tokio::{
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    task, time,
};

use crate::{
    child::KnownClientProcess,
    config::defaults,
    protocol::{RpcError, rpc_error::INVALID_REQUEST},
};

/// The mode bit that lets others than owner and group write to a file, and so connect to a socket.
/// Source: inode(7).
const OTHERS_WRITE: u32 = 0o002;

/// The credentials of a peer. Source: `SO_PEERCRED` in unix(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeerCredentials {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) pid: Option<i32>,
    /// The process as it was when its connection was accepted; known only for the own user.
    pub(super) process: Option<KnownClientProcess>,
}

/// The reason why a peer is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum PeerRefusal {
    /// It is neither the service's own user, nor root, nor in the group.
    #[error("user {} may not use the control socket", .0.uid)]
    Foreign(PeerCredentials),
    /// The kernel does not report the peer.
    #[error("the kernel does not report the connected user")]
    Unknown(#[source] std::io::Error),
}

/// The admission rule of one listener.
#[derive(Debug)]
pub(super) struct PeerPolicy {
    /// The service's own user.
    own: u32,
    /// The file of the socket, which may exclude all but its owner and its group.
    path: Option<PathBuf>,
    /// The permits for concurrent lookups of groups.
    lookups: Arc<Semaphore>,
}

impl PeerCredentials {
    fn of(stream: &UnixStream) -> std::io::Result<Self> {
        let found = stream.peer_cred()?;
        let (uid, gid, pid) = (found.uid(), found.gid(), found.pid());
        // Another process may have its number later.
        let process = pid.filter(|_| uid == own_user()).and_then(KnownClientProcess::lookup);
        Ok(Self { uid, gid, pid, process })
    }

    /// Returns whether it is root or the service's own user, which could also stop it by a signal.
    pub(super) fn is_master(self) -> bool {
        self.uid == 0 || self.uid == own_user()
    }
}

pub(super) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl PeerRefusal {
    /// Returns the peer that is refused, if known.
    pub(super) fn peer(&self) -> Option<PeerCredentials> {
        match self {
            Self::Foreign(peer) => Some(*peer),
            Self::Unknown(_) => None,
        }
    }

    pub(super) fn to_rpc(&self) -> RpcError {
        let error = RpcError::new(INVALID_REQUEST, "FORBIDDEN", self.to_string()).suggest(
            "Run the command as root or as the user of the service, or set `listen.control_group` to a group that you are in.",
        );
        match self {
            Self::Foreign(peer) => error.context(json!({ "uid": peer.uid })),
            Self::Unknown(_) => error,
        }
    }
}

impl PeerPolicy {
    /// Returns the admission rule of `listener`.
    pub(super) fn of(listener: &UnixListener) -> Self {
        let address = listener.local_addr().ok();
        let path = address.and_then(|address| address.as_pathname().map(Path::to_owned));
        let lookups = Arc::new(Semaphore::new(defaults::GROUP_LOOKUPS_MAX));
        Self { own: own_user(), path, lookups }
    }

    /// Returns the credentials of the peer; `group` is the admitted group, if any. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`PeerRefusal`] if the peer is not admitted.
    pub(super) async fn admit(
        &self,
        stream: &UnixStream,
        group: Option<&str>,
    ) -> Result<PeerCredentials, PeerRefusal> {
        let peer = PeerCredentials::of(stream).map_err(PeerRefusal::Unknown)?;
        if self.is_known(peer) {
            return Ok(peer);
        }
        if let Some(group) = group.map(str::to_owned) {
            let lookup = move || is_member(peer, &group);
            let is_member = run_blocking(&self.lookups, defaults::GROUP_LOOKUP_TIMEOUT, lookup);
            if is_member.await == Some(true) {
                return Ok(peer);
            }
        }
        Err(PeerRefusal::Foreign(peer))
    }

    /// Returns the peer, if it is admitted without a lookup of its groups.
    pub(super) fn known(&self, stream: &UnixStream) -> Option<PeerCredentials> {
        PeerCredentials::of(stream).ok().filter(|peer| self.is_known(*peer))
    }

    /// Returns whether a peer is admitted without a lookup of its groups.
    fn is_known(&self, peer: PeerCredentials) -> bool {
        // Checked each time: the file may be opened to all while the service runs.
        peer.uid == 0 || peer.uid == self.own || self.path.as_deref().is_some_and(is_guarded)
    }
}

/// Returns whether the file of a socket excludes all but its owner and its group. A file that this
/// user cannot reach does not count, as others may reach it.
fn is_guarded(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.mode() & OTHERS_WRITE == 0)
}

/// Runs a lookup that blocks, as soon as there is a permit; `None` if both together take longer
/// than `limit`. Cancel safe.
pub(super) async fn run_blocking<T: Send + 'static>(
    permits: &Arc<Semaphore>,
    limit: Duration,
    lookup: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let running = async {
        let permit = Arc::clone(permits).acquire_owned().await.ok()?;
        let running = task::spawn_blocking(move || {
            let found = lookup();
            // Held until the lookup ends, even if the caller has gone.
            drop(permit);
            found
        });
        running.await.ok()
    };
    time::timeout(limit, running).await.ok().flatten()
}

/// Returns whether a peer is in `group`: as the group of its connection, or according to the group
/// database. Blocks.
fn is_member(peer: PeerCredentials, group: &str) -> bool {
    let Ok(Some(group)) = Group::from_name(group) else { return false };
    if group.gid == Gid::from_raw(peer.gid) {
        return true;
    }
    let user = User::from_uid(Uid::from_raw(peer.uid)).ok().flatten();
    user.is_some_and(|user| user.gid == group.gid || group.mem.contains(&user.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(uid: u32) -> PeerCredentials {
        PeerCredentials { uid, gid: 70_000, pid: None, process: None }
    }

    #[test]
    fn the_own_user_and_root_are_admitted_and_others_only_if_the_socket_file_excludes_the_rest() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = Some(file.path().to_owned());
        let policy = PeerPolicy { own: 1000, path, lookups: Arc::new(Semaphore::new(1)) };
        for (mode, uid, expected) in
            [(0o666, 0, true), (0o666, 1000, true), (0o666, 1001, false), (0o660, 1001, true)]
        {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(file.path(), permissions).expect("set");
            assert_eq!(policy.is_known(peer(uid)), expected, "{mode:o} {uid}");
        }
        let nowhere = PeerPolicy { path: None, ..policy };
        assert!(!nowhere.is_known(peer(1001)), "no file excludes other users");
    }

    #[test]
    fn a_peer_is_a_member_of_the_group_of_its_connection() {
        let root = Group::from_gid(Gid::from_raw(0)).expect("readable").expect("there is one");
        assert!(is_member(PeerCredentials { gid: 0, ..peer(70_000) }, &root.name));
        assert!(!is_member(peer(70_000), &root.name));
        assert!(!is_member(PeerCredentials { gid: 0, ..peer(70_000) }, "no such group"));
    }

    #[tokio::test]
    async fn an_unknown_user_at_a_socket_that_is_open_to_all_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("bound");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("set");
        let (_client, accepted) = tokio::join!(UnixStream::connect(&path), listener.accept());
        let (stream, _) = accepted.expect("accepted");
        // No peer has this user; 0 is root.
        let policy = PeerPolicy { own: u32::MAX, ..PeerPolicy::of(&listener) };
        let admitted = policy.admit(&stream, None).await;
        if own_user() == 0 {
            assert!(admitted.is_ok(), "root is admitted");
        } else {
            let refused = admitted.expect_err("a stranger").to_rpc();
            assert_eq!(refused.name, "FORBIDDEN");
        }
        assert_eq!(PeerPolicy::of(&listener).path, Some(path));
    }
}
