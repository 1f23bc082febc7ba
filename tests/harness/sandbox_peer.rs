//! The other end of the pipe of a real sandbox: a test in the place of the service.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::Shutdown,
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Child, Command, ExitStatus, Stdio},
};

use metamcp::confine::isolation_support;
use serde_json::{Value, json};

use super::{
    DEADLINE,
    daemon::{PROGRAM, exit_in_time},
};

/// The seed and the time of each script.
const SEED: u64 = 7;
const NOW_MS: u64 = 1_700_000_000_000;

/// A process `metamcp sandbox`, which must be started by the thread that waits for it.
pub(crate) struct SandboxPeer {
    process: Child,
    pipe: UnixStream,
    /// The operations that the script has begun and that are not settled, in order.
    begun: Vec<Value>,
    n_settled: u64,
}

impl SandboxPeer {
    /// Starts a sandbox with these variables, besides that of the service. It is confined, unless
    /// this host lacks what that needs.
    pub(crate) fn start(environment: &[(&str, &str)]) -> Self {
        let (pipe, theirs) = UnixStream::pair().expect("a socket");
        pipe.set_read_timeout(Some(DEADLINE)).expect("a time");
        pipe.set_write_timeout(Some(DEADLINE)).expect("a time");
        let profile = if isolation_support().is_ok() { "standard" } else { "dev" };
        let process = Command::new(PROGRAM)
            .args(["sandbox", profile, &std::process::id().to_string()])
            .env_clear()
            .env("TZ", "UTC0")
            .envs(environment.iter().copied())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        Self { process, pipe, begun: Vec::new(), n_settled: 0 }
    }

    /// Returns the message that starts a script.
    pub(crate) fn start_message(code: &str, memory_bytes: u64) -> Value {
        let limits =
            json!({ "memory_bytes": memory_bytes, "sleep_max_ms": 30_000, "pending_max": 4096 });
        json!({ "start": { "code": code, "seed": SEED, "now_ms": NOW_MS, "limits": limits } })
    }

    /// Sends bytes. The process may have ended.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        let _gone = self.pipe.write_all(bytes);
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &Value) {
        self.send_bytes(&frame(message.to_string().as_bytes()));
    }

    /// Ends the input of the process.
    pub(crate) fn end_input(&mut self) {
        let _gone = self.pipe.shutdown(Shutdown::Write);
    }

    /// Receives a message; `None` if the process has closed the pipe.
    #[track_caller]
    pub(crate) fn receive(&mut self) -> Option<Value> {
        let mut head = [0; 4];
        self.read(&mut head)?;
        let mut text = vec![0; u32::from_le_bytes(head) as usize];
        self.read(&mut text).expect("a frame is whole");
        Some(serde_json::from_slice(&text).expect("a message is JSON"))
    }

    #[track_caller]
    fn read(&mut self, bytes: &mut [u8]) -> Option<()> {
        match self.pipe.read_exact(bytes) {
            Ok(()) => Some(()),
            Err(error) => {
                let hangs = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                assert!(!hangs, "the sandbox hangs");
                None
            }
        }
    }

    /// Runs a script to its end, with an `answer` to each operation, and returns all messages.
    #[track_caller]
    pub(crate) fn run(
        &mut self,
        code: &str,
        memory_bytes: u64,
        answer: impl Fn(&Value) -> Value,
    ) -> Vec<Value> {
        self.send(&Self::start_message(code, memory_bytes));
        let mut messages = Vec::new();
        while let Some(message) = self.receive() {
            messages.push(message.clone());
            if let Some(begun) = message.get("begin") {
                self.begun.push(begun.clone());
            } else if message.get("idle").is_some() {
                // The latest operation ends first.
                let begun = self.begun.pop().expect("a script waits for something");
                self.n_settled += 1;
                let settlement = json!({
                    "operation": begun["operation"], "now_ms": NOW_MS + 10 * self.n_settled,
                    "outcome": answer(&begun["what"]),
                });
                self.send(&json!({ "settle": settlement }));
            }
        }
        messages
    }

    /// Closes the pipe, and waits for the end of the process.
    #[track_caller]
    pub(crate) fn hang_up(self) -> ExitStatus {
        let _closed = self.pipe.shutdown(Shutdown::Both);
        self.exit()
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub(crate) fn exit(mut self) -> ExitStatus {
        exit_in_time(&mut self.process).expect("the sandbox ends")
    }
}

impl Drop for SandboxPeer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Returns the frame of a text.
pub(crate) fn frame(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("a short text");
    [&length.to_le_bytes()[..], text].concat()
}
