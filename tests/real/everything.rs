//! server-everything as an upstream: a separate process that serves HTTP.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use tokio::time::Instant;

use crate::{Installed, POLL, harness::DEADLINE};

/// The script that keeps a server from listening until the gate opens.
const GATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real/gate.cjs");

/// A running server-everything; killed and reaped on drop.
pub(crate) struct Everything {
    process: Child,
    mode: &'static str,
    port: u16,
}

impl Everything {
    /// Starts the server in `mode`, `streamableHttp` or `sse`, on a free port.
    pub(crate) fn start(servers: &Installed, mode: &'static str) -> Self {
        Self::spawn(servers, mode, 0, None).listening()
    }

    /// Kills the server and starts a replacement at once. The replacement is prepared before: on a
    /// busy machine, its start takes longer than clients wait.
    pub(crate) fn restart(self, servers: &Installed) -> Self {
        let gate = tempfile::tempdir().expect("a temporary directory");
        let mut next = Self::spawn(servers, self.mode, self.port, Some(gate.path()));
        next.wait_until(|_| gate.path().join("ready").exists().then_some(()));
        drop(self);
        fs::write(gate.path().join("open"), "").expect("the gate opens");
        next.listening()
    }

    /// Returns the URL of the server.
    pub(crate) fn url(&self) -> String {
        let path = if self.mode == "sse" { "sse" } else { "mcp" };
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    fn spawn(servers: &Installed, mode: &'static str, port: u16, gate: Option<&Path>) -> Self {
        let declared = &servers.servers()["everything"];
        let text = |value: &serde_json::Value| value.as_str().expect("a string").to_owned();
        let mut command = Command::new(text(&declared["command"]));
        if let Some(gate) = gate {
            command.env("NODE_OPTIONS", format!("--require {GATE:?}")).env("GATE", gate);
        }
        let process = command
            .args([&text(&declared["args"][0]), mode])
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("server-everything starts");
        Self { process, mode, port }
    }

    /// Waits until the server listens.
    fn listening(mut self) -> Self {
        // It does not report its port.
        self.port = self.wait_until(|process| port_of(process.id()));
        self
    }

    fn wait_until<T>(&mut self, is_it: impl Fn(&Child) -> Option<T>) -> T {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(found) = is_it(&self.process) {
                return found;
            }
            let exited = self.process.try_wait().expect("it can be waited for");
            assert!(exited.is_none() && Instant::now() < deadline, "{}: {exited:?}", self.mode);
            thread::sleep(POLL);
        }
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
        // Fields: number, local, remote, state, queues, timer, retries, user, timeout, inode.
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find_map(|fields| {
            let is_it = fields.get(3) == Some(&LISTENING) && sockets.contains(*fields.get(9)?);
            let port = fields.get(1)?.rsplit(':').next()?;
            if is_it { u16::from_str_radix(port, 16).ok() } else { None }
        })
    })
}
