//! server-everything as an upstream: a process of its own that serves HTTP.

use std::{
    collections::BTreeSet,
    fs,
    process::{Child, Command, Stdio},
    thread,
};

use tokio::time::Instant;

use crate::{Installed, POLL, harness::DEADLINE};

/// A running server-everything; killed and reaped on drop.
pub(crate) struct Everything {
    process: Child,
    mode: &'static str,
    port: u16,
}

impl Everything {
    /// Starts it in `mode`, `streamableHttp` or `sse`, on a port that the system chooses.
    pub(crate) fn start(servers: &Installed, mode: &'static str) -> Self {
        Self::listening(servers, mode, 0)
    }

    /// Kills it and starts it again where it was.
    pub(crate) fn restart(self, servers: &Installed) -> Self {
        let (mode, port) = (self.mode, self.port);
        drop(self);
        Self::listening(servers, mode, port)
    }

    /// Returns its address.
    pub(crate) fn url(&self) -> String {
        let path = if self.mode == "sse" { "sse" } else { "mcp" };
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    fn listening(servers: &Installed, mode: &'static str, port: u16) -> Self {
        let declared = &servers.servers()["everything"];
        let text = |value: &serde_json::Value| value.as_str().expect("a string").to_owned();
        let process = Command::new(text(&declared["command"]))
            .args([&text(&declared["args"][0]), mode])
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("server-everything starts");
        let mut started = Self { process, mode, port };
        let deadline = Instant::now() + DEADLINE;
        // It does not say which port it was given.
        started.port = loop {
            if let Some(port) = port_of(started.process.id()) {
                break port;
            }
            let exited = started.process.try_wait().expect("it can be waited for");
            assert!(exited.is_none() && Instant::now() < deadline, "{mode}: {exited:?}");
            thread::sleep(POLL);
        };
        started
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Returns the TCP port that a process listens on.
fn port_of(pid: u32) -> Option<u16> {
    const LISTENING: &str = "0A";
    let links = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let links = links.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let sockets: BTreeSet<String> = links
        .filter_map(|link| {
            Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    ["tcp", "tcp6"].iter().find_map(|table| {
        let table = fs::read_to_string(format!("/proc/{pid}/net/{table}")).ok()?;
        // Fields: number, local address, remote address, state, queues, timer, retries, user, timeout, inode.
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find_map(|fields| {
            let is_it = fields.get(3) == Some(&LISTENING) && sockets.contains(*fields.get(9)?);
            let port = fields.get(1)?.rsplit(':').next()?;
            if is_it { u16::from_str_radix(port, 16).ok() } else { None }
        })
    })
}
