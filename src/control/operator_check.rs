//! The distinction between an operator and a server that acts as one.
//!
//! A server that this service started runs as the same user, so the user does not identify it. It
//! may call tools like any client, as it may be an agent. Methods for operators are refused to it,
//! and to any process of the same user of unknown origin.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{sync::Semaphore, task, time::Instant};

use super::{ControlMethod, ControlService, Requester, peer_credentials};
use crate::{
    child::{KnownClientProcess, ServerAncestry, ServerRelation, process_ancestry},
    config::defaults,
    peer_process::ClientSocket,
    protocol::{RpcError, rpc_error::INVALID_REQUEST},
    server_name::ServerName,
};

/// The processes that may have sent a request.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// A process of a user that runs no server of this service, or of another host.
    Foreign,
    /// This process.
    Process(KnownClientProcess),
    /// The processes that have the socket with this inode open.
    Socket(u32),
    /// An unknown process.
    Unknown,
}

/// The lookups of the origin of requests for operators only.
#[derive(Debug)]
pub(super) struct OperatorCheck {
    /// The permits for concurrent lookups.
    lookups: Arc<Semaphore>,
    /// The time of the last logged refusal.
    logged: Mutex<Option<Instant>>,
    /// The number of refusals since then.
    n_silent: AtomicUsize,
}

impl Default for OperatorCheck {
    fn default() -> Self {
        Self {
            lookups: Arc::new(Semaphore::new(1)),
            logged: Mutex::default(),
            n_silent: AtomicUsize::new(0),
        }
    }
}

impl ControlService {
    /// Checks that the request of `requester` does not come from a server of this service. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if it does, or may.
    pub(super) async fn check_operator(
        &self,
        requester: &Requester,
        method: ControlMethod,
    ) -> Result<(), Box<RpcError>> {
        let origin = requester.origin();
        if matches!(origin, Origin::Foreign) || !process_ancestry::has_started_servers() {
            return Ok(());
        }
        let lookups = &self.operator_check.lookups;
        let lookup = move || origin.look_up();
        let found =
            peer_credentials::run_blocking(lookups, defaults::ANCESTRY_TIMEOUT, lookup).await;
        let (pid, relation) = found.unwrap_or((None, ServerRelation::Hidden));
        let refusal = match relation {
            ServerRelation::Stranger => return Ok(()),
            ServerRelation::Hidden => Refusal { method, pid, server: None, is_server: false },
            ServerRelation::Server(lineage) => {
                let server = self.server_of(lineage).await;
                Refusal { method, pid, server, is_server: true }
            }
        };
        self.operator_check.log(&refusal);
        Err(refusal.to_rpc().into())
    }

    /// Returns the server that a process comes from.
    async fn server_of(&self, lineage: ServerAncestry) -> Option<ServerName> {
        let board = Arc::clone(&self.parts.board);
        let lookup = move || board.server_with_process(|pid| lineage.is_server(pid));
        task::spawn_blocking(lookup).await.ok().flatten()
    }
}

impl Requester {
    fn origin(&self) -> Origin {
        let own = peer_credentials::own_user();
        match (self.peer, self.caller.socket) {
            // The kernel reports 0 for a process outside of this PID namespace; servers are inside.
            (Some(peer), _) if peer.uid != own || peer.pid == Some(0) => Origin::Foreign,
            (Some(peer), _) => peer.process.map_or(Origin::Unknown, Origin::Process),
            (None, ClientSocket::Elsewhere(_)) => Origin::Foreign,
            (None, ClientSocket::Local(found)) if found.uid != own => Origin::Foreign,
            (None, ClientSocket::Local(found)) => Origin::Socket(found.inode),
            (None, ClientSocket::Unknown) => Origin::Unknown,
        }
    }
}

impl Origin {
    /// Returns the process that asks, if known, and its relation to the servers. Blocks.
    fn look_up(self) -> (Option<i32>, ServerRelation) {
        match self {
            Self::Foreign => (None, ServerRelation::Stranger),
            Self::Unknown => (None, ServerRelation::Hidden),
            Self::Process(process) => (Some(process.pid()), process.relation()),
            Self::Socket(inode) => process_ancestry::of_socket(inode),
        }
    }
}

/// The refusal of a request that only operators may send.
#[derive(Debug)]
struct Refusal {
    method: ControlMethod,
    pid: Option<i32>,
    server: Option<ServerName>,
    is_server: bool,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is for operators", self.method.name())?;
        match self.pid {
            Some(pid) => write!(f, ", and process {pid} ")?,
            None => f.write_str(", and the calling process ")?,
        }
        match (&self.server, self.is_server) {
            (Some(server), _) => write!(f, "comes from server `{server}` of this service"),
            (None, true) => f.write_str("comes from a server of this service"),
            (None, false) => f.write_str(
                "has ended or cannot be examined, so it may come from a server of this service",
            ),
        }
    }
}

impl Refusal {
    fn to_rpc(&self) -> RpcError {
        let suggestion = match self.is_server {
            true => "Send the request from a process that no server started.",
            false => {
                "Use the control socket, from a process that runs until the answer arrives or as another user."
            }
        };
        let context = json!({
            "method": self.method.name(), "pid": self.pid, "server": self.server,
        });
        RpcError::new(INVALID_REQUEST, "FORBIDDEN", self.to_string())
            .suggest(suggestion)
            .context(context)
    }
}

impl OperatorCheck {
    /// Logs a refusal, unless another one was logged shortly before.
    fn log(&self, refusal: &Refusal) {
        if !self.is_due(Instant::now(), defaults::REFUSAL_LOG_PAUSE) {
            self.n_silent.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let n_silent = self.n_silent.swap(0, Ordering::Relaxed);
        let server = refusal.server.as_ref().map(tracing::field::display);
        let method = refusal.method.name();
        let pid = refusal.pid;
        tracing::warn!(server, method, peer_pid = pid, n_silent, "request refused: {refusal}");
    }

    fn is_due(&self, now: Instant, pause: Duration) -> bool {
        // Held only for operations on plain data.
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = logged.is_none_or(|last| now.duration_since(last) >= pause);
        if is_due {
            *logged = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::{
        control::peer_credentials::{PeerCredentials, own_user},
        peer_process::{ConnectedClient, sock_diag::LocalSocket},
    };

    fn requester(peer: Option<PeerCredentials>, socket: ClientSocket) -> Requester {
        let caller = ConnectedClient { socket, ..ConnectedClient::of_own_user() };
        Requester { peer, caller, lines: None }
    }

    fn relation(peer: Option<PeerCredentials>, socket: ClientSocket) -> ServerRelation {
        requester(peer, socket).origin().look_up().1
    }

    fn peer(uid: u32, pid: u32) -> PeerCredentials {
        let process = i32::try_from(pid).ok().and_then(KnownClientProcess::lookup);
        PeerCredentials { uid, gid: 0, pid: None, process }
    }

    #[test]
    fn a_process_of_another_user_or_host_is_an_operator() {
        let other = own_user() + 1;
        let elsewhere = LocalSocket { uid: other, inode: 1 };
        assert_eq!(relation(Some(peer(other, 0)), ClientSocket::Unknown), ServerRelation::Stranger);
        assert_eq!(relation(None, ClientSocket::Local(elsewhere)), ServerRelation::Stranger);
        assert_eq!(
            relation(None, ClientSocket::Elsewhere(Ipv4Addr::LOCALHOST.into())),
            ServerRelation::Stranger
        );
    }

    #[test]
    fn an_unknown_process_of_the_own_user_may_be_a_server() {
        let closed = LocalSocket { uid: own_user(), inode: u32::MAX };
        assert_eq!(
            relation(Some(peer(own_user(), 0)), ClientSocket::Unknown),
            ServerRelation::Hidden
        );
        assert_eq!(relation(None, ClientSocket::Local(closed)), ServerRelation::Hidden);
        assert_eq!(relation(None, ClientSocket::Unknown), ServerRelation::Hidden);
    }

    #[test]
    fn a_process_of_the_own_user_that_no_server_started_is_an_operator() {
        let ours = Some(peer(own_user(), std::process::id()));
        assert_eq!(relation(ours, ClientSocket::Unknown), ServerRelation::Stranger);
    }

    #[test]
    fn repeated_refusals_are_logged_at_a_limited_rate() {
        let (check, pause, now) =
            (OperatorCheck::default(), Duration::from_secs(10), Instant::now());
        let after = |seconds| check.is_due(now + Duration::from_secs(seconds), pause);
        assert_eq!([0, 1, 9, 10, 11, 20].map(after), [true, false, false, true, false, true]);
    }

    #[test]
    fn a_refusal_names_the_method_the_process_and_the_server() {
        let (method, server) = (ControlMethod::DaemonStop, ServerName::new("git").ok());
        let refusal = Refusal { method, pid: Some(7), server, is_server: true };
        let expected =
            "`daemon/stop` is for operators, and process 7 comes from server `git` of this service";
        assert_eq!(refusal.to_string(), expected);
        let error = refusal.to_rpc();
        assert_eq!((error.name, error.code), ("FORBIDDEN", INVALID_REQUEST));
    }
}
