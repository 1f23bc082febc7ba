//! The client at the other end of an accepted connection, as the kernel knows it.
//!
//! On a Unix socket, the kernel reports the user who connected. On TCP it reports the owner of the
//! client's socket, if that is on this host and in this network namespace; see [`sock_diag`].

use std::{
    io,
    net::IpAddr,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::net::{TcpStream, UnixStream};

use crate::capacity_holder::{Account, AccountMember, Holder};

pub mod sock_diag;

use sock_diag::LocalSocket;

/// The user id that stands for all users without a mapping in this process's user namespace.
/// Source: `DEFAULT_OVERFLOWUID` in Linux' `include/linux/highuid.h`.
const OVERFLOW_USER: u32 = 65_534;

/// The client at the other end of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectedClient {
    /// The holder that the connection counts for; its member is the connection.
    pub holder: Holder,
    /// The client's socket.
    pub socket: ClientSocket,
}

/// The client's end of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientSocket {
    /// A socket of this host.
    Local(LocalSocket),
    /// A socket of another host, or of another network namespace of this one.
    Elsewhere(IpAddr),
    /// A socket without information: its process closed it, netlink is unavailable, or the
    /// connection is not TCP.
    Unknown,
}

impl ConnectedClient {
    /// Returns the client of a TCP connection. Queries the kernel, which does not block.
    pub fn of_tcp(stream: &TcpStream) -> Self {
        let socket = client_socket(stream).unwrap_or_else(|error| {
            tracing::debug!(%error, "the user of a client connection is unknown: {error}");
            ClientSocket::Unknown
        });
        let account = match socket {
            ClientSocket::Local(found) => account_of(found.uid),
            ClientSocket::Elsewhere(_) | ClientSocket::Unknown => Account::Unknown,
        };
        Self { holder: connection_of(account), socket }
    }

    /// Returns the client of a Unix socket connection.
    pub fn of_unix(stream: &UnixStream) -> Self {
        let account = stream.peer_cred().map_or(Account::Unknown, |found| account_of(found.uid()));
        Self { holder: connection_of(account), socket: ClientSocket::Unknown }
    }

    /// Returns the client on the standard input and output of this process: its own user.
    pub fn of_own_user() -> Self {
        let account = account_of(rustix::process::geteuid().as_raw());
        Self { holder: connection_of(account), socket: ClientSocket::Unknown }
    }

    /// Returns the same client in the account of its token.
    #[must_use]
    pub fn with_token(self, fingerprint: u64) -> Self {
        let holder = Holder { account: Account::Token(fingerprint), ..self.holder };
        Self { holder, ..self }
    }
}

fn account_of(uid: u32) -> Account {
    static SHOWS_ALL: OnceLock<bool> = OnceLock::new();
    let map = || std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let shows_all = *SHOWS_ALL.get_or_init(|| shows_all_users(&map()));
    if uid == OVERFLOW_USER && !shows_all { Account::Unknown } else { Account::User(uid) }
}

/// Returns whether a user namespace with this map shows all users. Source: user_namespaces(7).
fn shows_all_users(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Returns a connection of `account` with a unique number.
fn connection_of(account: Account) -> Holder {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    Holder { account, member: AccountMember::Connection(NUMBER.fetch_add(1, Ordering::Relaxed)) }
}

fn client_socket(stream: &TcpStream) -> io::Result<ClientSocket> {
    let (client, own) = (stream.peer_addr()?, stream.local_addr()?);
    Ok(match sock_diag::find(client, own)? {
        // A socket that its process closed has no owner; the kernel may report root.
        Some(found) if found.inode == 0 => ClientSocket::Unknown,
        Some(found) => ClientSocket::Local(found),
        // A loopback client has a local socket, so it was closed or is in a hidden namespace.
        None if client.ip().to_canonical().is_loopback() => ClientSocket::Unknown,
        None => ClientSocket::Elsewhere(client.ip().to_canonical()),
    })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use rustix::process::Uid;
    use tokio::net::TcpListener;

    use super::*;

    /// Returns the information about a client that `connect` creates.
    async fn caller(
        listen: &str,
        connect: impl FnOnce(SocketAddr) -> std::net::TcpStream + Send + 'static,
    ) -> (ConnectedClient, std::net::TcpStream) {
        let listener = TcpListener::bind(listen).await.expect("bound");
        let address = listener.local_addr().expect("bound");
        let client = std::thread::spawn(move || connect(address)).join().expect("connects");
        let (stream, _) = listener.accept().await.expect("accepted");
        (ConnectedClient::of_tcp(&stream), client)
    }

    fn connected(address: SocketAddr) -> std::net::TcpStream {
        std::net::TcpStream::connect(address).expect("connects")
    }

    fn own_account() -> Account {
        Account::User(rustix::process::geteuid().as_raw())
    }

    #[tokio::test]
    async fn a_client_of_this_host_is_identified_by_its_user_and_its_socket() {
        use std::os::{fd::AsRawFd as _, unix::fs::MetadataExt as _};
        for listen in ["127.0.0.1:0", "[::1]:0"] {
            let (found, client) = caller(listen, connected).await;
            let link = format!("/proc/self/fd/{}", client.as_raw_fd());
            let inode = std::fs::metadata(link).expect("it is open").ino();
            let uid = rustix::process::geteuid().as_raw();
            let expected = LocalSocket { uid, inode: u32::try_from(inode).expect("small") };
            assert_eq!(found.socket, ClientSocket::Local(expected), "{listen}");
            assert_eq!(found.holder.account, own_account(), "{listen}");
        }
    }

    #[tokio::test]
    async fn an_ipv4_client_is_identified_at_an_ipv6_listener() {
        let to = |address: SocketAddr| format!("127.0.0.1:{}", address.port());
        let (found, _client) =
            caller("[::]:0", move |address| connected(to(address).parse().expect("one"))).await;
        assert_eq!(found.holder.account, own_account());
        let to = |address: SocketAddr| format!("[::ffff:127.0.0.1]:{}", address.port());
        let (found, _client) =
            caller("127.0.0.1:0", move |address| connected(to(address).parse().expect("one")))
                .await;
        assert_eq!(found.holder.account, own_account());
    }

    #[tokio::test]
    async fn a_client_of_another_user_is_identified_as_that_user() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (found, _client) = caller("127.0.0.1:0", |address| {
            rustix::thread::set_thread_uid(Uid::from_raw(4242)).expect("root may take any user");
            connected(address)
        })
        .await;
        assert_eq!(found.holder.account, Account::User(4242));
    }

    #[tokio::test]
    async fn a_client_that_closed_its_socket_has_an_unknown_account() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        drop(connected(listener.local_addr().expect("bound")));
        let (stream, _) = listener.accept().await.expect("accepted");
        let found = ConnectedClient::of_tcp(&stream);
        assert_eq!((found.socket, found.holder.account), (ClientSocket::Unknown, Account::Unknown));
    }

    #[tokio::test]
    async fn each_connection_is_its_own_member_and_a_token_changes_only_the_account() {
        let (one, _client) = caller("127.0.0.1:0", connected).await;
        let (other, _client) = caller("127.0.0.1:0", connected).await;
        assert_ne!(one.holder.member, other.holder.member);
        let with = one.with_token(7).holder;
        assert_eq!(with, Holder { account: Account::Token(7), member: one.holder.member });
    }

    #[tokio::test]
    async fn a_client_of_a_unix_socket_is_identified_by_its_user() {
        let (own, _theirs) = UnixStream::pair().expect("a pair");
        assert_eq!(ConnectedClient::of_unix(&own).holder.account, own_account());
        assert_eq!(ConnectedClient::of_own_user().holder.account, own_account());
    }

    #[test]
    fn a_user_namespace_that_hides_users_is_recognised_by_its_map() {
        assert!(shows_all_users("         0          0 4294967295\n"));
        for map in ["0 100000 65536\n", "0 0 1\n65534 65534 1\n", ""] {
            assert!(!shows_all_users(map), "{map}");
        }
    }
}
