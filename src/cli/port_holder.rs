//! The program that listens on a TCP port of this host.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    time::Duration,
};

/// The state of a listening socket in `/proc/net/tcp`. Source: the kernel's `tcp_states.h`.
const LISTEN: &str = "0A";

/// The largest number of processes that are searched.
const PROCESSES_MAX: usize = 20_000;

/// The time that the program there may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// The largest part of its answer that is read.
const ANSWER_BYTES_MAX: u64 = 1024;

/// The program that listens on a port, as far as this process may see it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PortHolder {
    /// Its process id and its name.
    pub(super) process: Option<(u32, String)>,
    /// Its user.
    pub(super) uid: Option<u32>,
    /// It answers as metamcp does.
    pub(super) is_metamcp: bool,
}

impl PortHolder {
    /// Finds the program that listens on the port of `address`.
    pub(super) fn find(address: SocketAddr) -> Self {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
        let texts = tables.iter().filter_map(|table| fs::read_to_string(table).ok());
        let found: Vec<(u32, String)> =
            texts.flat_map(|text| listeners(&text, address.port())).collect();
        let links: Vec<String> =
            found.iter().map(|(_, inode)| format!("socket:[{inode}]")).collect();
        Self {
            process: process_with(&links),
            uid: found.first().map(|(uid, _)| *uid),
            is_metamcp: is_metamcp(address).unwrap_or(false),
        }
    }
}

/// Returns the process that has one of these files open.
fn process_with(links: &[String]) -> Option<(u32, String)> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds = |pid: &u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        targets.any(|target| links.iter().any(|link| target.to_str() == Some(link)))
    };
    let pid = pids.take(PROCESSES_MAX).find(holds)?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some((pid, name.trim_end().to_owned()))
}

/// Returns the users and inodes of the sockets in a table of the kernel that listen on `port`.
fn listeners(table: &str, port: u16) -> Vec<(u32, String)> {
    let port = format!(":{port:04X}");
    let listener = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_one = words.get(1)?.ends_with(&port) && *words.get(3)? == LISTEN;
        is_one.then_some(())?;
        Some((words.get(7)?.parse().ok()?, (*words.get(9)?).to_owned()))
    };
    table.lines().skip(1).filter_map(listener).collect()
}

/// Asks for the health of a service at an address.
fn is_metamcp(address: SocketAddr) -> Option<bool> {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let address = SocketAddr::new(ip, address.port());
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT)).ok()?;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // The part before an error counts, too.
    let _ended = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
    Some(String::from_utf8_lossy(&answer).contains("\"name\":\"metamcp\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_behind_a_port_is_found_by_the_inode_of_its_socket() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:2EEB 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1\n   1: 0100007F:2EEB 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1\n";
        assert_eq!(listeners(table, 12011), [(1000, "4711".to_owned())]);
        assert_eq!(listeners(table, 12012), []);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let found = PortHolder::find(listener.local_addr().expect("bound"));
        assert_eq!(found.process.expect("found").0, std::process::id());
        assert!(!found.is_metamcp);
    }
}
