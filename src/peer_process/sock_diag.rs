//! The lookup in the kernel of a TCP client's socket on this host, by the addresses of the
//! connection. Source: sock_diag(7).
//!
//! The kernel answers during the send, so neither of the two calls blocks.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// A socket of a process on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalSocket {
    /// The user who created the socket, as numbered in this process's user namespace.
    pub uid: u32,
    /// The number that `/proc/PID/fd` shows as `socket:[NUMBER]`; 0 after its process closed it.
    pub inode: u32,
}

/// `SOCK_DIAG_BY_FAMILY`. Source: Linux' `include/uapi/linux/sock_diag.h`.
const BY_FAMILY: u16 = 20;

/// `NLM_F_REQUEST`, and the type of an error answer. Source: Linux' `include/uapi/linux/netlink.h`.
const REQUEST: u16 = 1;
const ERROR_ANSWER: u16 = 2;

/// `IPPROTO_TCP`.
const TCP: u8 = 6;

/// `AF_INET` and `AF_INET6`.
const VERSION_4: u8 = 2;
const VERSION_6: u8 = 10;

/// The length of `struct nlmsghdr`, of `struct inet_diag_sockid`, and of a whole request.
const HEADER_BYTES: usize = 16;
const ID_BYTES: usize = 48;
const REQUEST_BYTES: usize = HEADER_BYTES + 8 + ID_BYTES;

/// The length of the two ports in `struct inet_diag_sockid`.
const PORTS_BYTES: usize = 4;

/// Finds the socket at `client` connected to `own`, if it is in this network namespace.
///
/// # Errors
///
/// [`io::Error`] if the kernel refuses, as under `RestrictAddressFamilies=` without `AF_NETLINK`.
pub fn find(client: SocketAddr, own: SocketAddr) -> io::Result<Option<LocalSocket>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let kind = Some(netlink::SOCK_DIAG);
    let netlink = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, kind)?;
    let request = request(client, own);
    send(&netlink, &request, SendFlags::empty())?;
    let mut answer = [0; 512];
    let (_, n_bytes) = recv(&netlink, &mut answer, RecvFlags::empty())?;
    parse(answer.get(..n_bytes).unwrap_or_default(), &request)
}

/// Returns `struct nlmsghdr` and `struct inet_diag_req_v2`.
fn request(client: SocketAddr, own: SocketAddr) -> [u8; REQUEST_BYTES] {
    // An IPv4 client at an IPv6 listener has mapped addresses.
    let (from, to) = (client.ip().to_canonical(), own.ip().to_canonical());
    let family = if from.is_ipv4() { VERSION_4 } else { VERSION_6 };
    let mut bytes = [0; REQUEST_BYTES];
    let mut at = 0;
    let mut put = |part: &[u8]| {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    };
    put(&(REQUEST_BYTES as u32).to_ne_bytes());
    put(&BY_FAMILY.to_ne_bytes());
    put(&REQUEST.to_ne_bytes());
    put(&[0; 8]); // The sequence number, and the sender's port id.
    put(&[family, TCP, 0, 0]);
    put(&u32::MAX.to_ne_bytes()); // All states.
    put(&client.port().to_be_bytes());
    put(&own.port().to_be_bytes());
    put(&octets(from));
    put(&octets(to));
    put(&0_u32.to_ne_bytes()); // Any interface.
    put(&[0xff; 8]); // No cookie.
    bytes
}

/// Returns an address as the kernel stores it: 16 bytes for both versions.
fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
        IpAddr::V6(address) => address.octets(),
    }
}

/// Parses `struct nlmsghdr` and `struct inet_diag_msg`, which answer `request`.
fn parse(answer: &[u8], request: &[u8; REQUEST_BYTES]) -> io::Result<Option<LocalSocket>> {
    let short =
        || io::Error::new(io::ErrorKind::InvalidData, "netlink returned a truncated answer");
    let number = |at: usize| {
        let bytes = answer.get(at..)?.first_chunk()?;
        Some(u32::from_ne_bytes(*bytes))
    };
    let kind = answer.get(4..).and_then(<[u8]>::first_chunk).ok_or_else(short)?;
    if u16::from_ne_bytes(*kind) == ERROR_ANSWER {
        // `struct nlmsgerr` begins with the negative error.
        let error = number(HEADER_BYTES).ok_or_else(short)?.cast_signed();
        let error = io::Error::from_raw_os_error(error.saturating_neg());
        return if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) };
    }
    // If no connection has the addresses, the kernel returns a listener at one of them, which has
    // no second port.
    let ports = |from: &[u8]| from.first_chunk::<PORTS_BYTES>().copied();
    let found_ports = answer.get(HEADER_BYTES + 4..).and_then(ports).ok_or_else(short)?;
    if Some(found_ports) != ports(&request[HEADER_BYTES + 8..]) {
        return Ok(None);
    }
    // After the addresses come the timers and the lengths of the queues.
    let user = HEADER_BYTES + 4 + ID_BYTES + 12;
    let (uid, inode) = (number(user).ok_or_else(short)?, number(user + 4).ok_or_else(short)?);
    Ok(Some(LocalSocket { uid, inode }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn addresses_without_a_connection_have_no_socket() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        let listening = listener.local_addr().expect("bound");
        // For the first of them, the kernel returns the listener itself.
        for client in [listening, address("127.0.0.1:1"), address("192.0.2.1:1")] {
            assert_eq!(find(client, address("127.0.0.1:9")).expect("told"), None, "{client}");
        }
    }

    #[test]
    fn a_truncated_netlink_answer_is_an_error() {
        let request = request(address("127.0.0.1:1"), address("127.0.0.1:2"));
        let mut whole = vec![0; 88];
        whole[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        whole[20..24].copy_from_slice(&request[24..28]);
        whole[80] = 7;
        let found = parse(&whole, &request).expect("whole");
        assert_eq!(found, Some(LocalSocket { uid: u32::from_ne_bytes([7, 0, 0, 0]), inode: 0 }));
        assert!(
            (0..whole.len())
                .all(|length| { !matches!(parse(&whole[..length], &request), Ok(Some(_))) })
        );
    }
}
