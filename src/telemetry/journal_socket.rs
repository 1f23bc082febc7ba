//! The socket of the journal, and the entries that it takes.
//!
//! Source: systemd, "Native Journal Protocol".

use std::{
    fmt::{Display, Write as _},
    io,
    os::unix::net::UnixDatagram,
    time::Duration,
};

const PATH: &str = "/run/systemd/journal/socket";

/// A socket that sends entries to the journal. Sending blocks while the journal is slow.
#[derive(Debug)]
pub struct JournalSocket(UnixDatagram);

impl JournalSocket {
    /// Opens a socket. Sending fails after `timeout`.
    ///
    /// # Errors
    ///
    /// The process has no descriptor left.
    pub fn open(timeout: Duration) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(timeout))?;
        Ok(Self(socket))
    }

    /// Sends an entry. Each one names the path, because the journal may start again.
    ///
    /// # Errors
    ///
    /// The journal does not run, or did not take the entry in time.
    pub fn send(&self, entry: &JournalEntry) -> io::Result<()> {
        self.0.send_to(&entry.bytes, PATH).map(drop)
    }
}

/// An entry in its native form.
#[derive(Debug)]
pub struct JournalEntry {
    bytes: Vec<u8>,
    value: String,
}

impl JournalEntry {
    /// Returns an entry of this priority. Source: syslog(3).
    pub fn new(priority: u8) -> Self {
        let mut entry = Self { bytes: Vec::new(), value: String::new() };
        entry.add("SYSLOG_IDENTIFIER", "metamcp");
        entry.add("PRIORITY", priority);
        entry
    }

    /// Adds a field. A value with several lines has its length in front.
    pub fn add(&mut self, name: &str, value: impl Display) {
        self.value.clear();
        // Writing to a string cannot fail.
        let _infallible = write!(self.value, "{value}");
        self.bytes.extend_from_slice(name.as_bytes());
        if self.value.contains('\n') {
            self.bytes.push(b'\n');
            self.bytes.extend_from_slice(&(self.value.len() as u64).to_le_bytes());
        } else {
            self.bytes.push(b'=');
        }
        self.bytes.extend_from_slice(self.value.as_bytes());
        self.bytes.push(b'\n');
    }

    /// Adds a field, if there is a value.
    pub fn add_some(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// Returns the bytes as they are sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_with_several_lines_has_its_length_in_front() {
        let mut entry = JournalEntry::new(4);
        entry.add("MCP_CAUSE", "a\nMCP_SERVER=b");
        let mut expected = b"SYSLOG_IDENTIFIER=metamcp\nPRIORITY=4\nMCP_CAUSE\n".to_vec();
        expected.extend_from_slice(&14_u64.to_le_bytes());
        expected.extend_from_slice(b"a\nMCP_SERVER=b\n");
        assert_eq!(entry.bytes(), expected);
    }
}
