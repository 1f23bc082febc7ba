//! `metamcp stdio`, with the test as the client at its pipes.

use std::{
    path::Path,
    process::{ExitStatus, Stdio},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
};

use super::{
    DEADLINE,
    daemon::{Daemon, PROGRAM},
};

/// The client's end of the pipes, and the process; killed on drop.
pub(crate) struct StdioClient {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    stderr: ChildStderr,
}

impl StdioClient {
    /// Starts a bridge to a service, with these options.
    pub(crate) fn to(daemon: &Daemon, options: &[&str]) -> Self {
        let socket = daemon.control().display().to_string();
        Self::start(&[&["--socket", &socket], options].concat(), &[])
    }

    /// Starts a bridge with these options and variables.
    pub(crate) fn start(options: &[&str], environment: &[(&str, &Path)]) -> Self {
        Self::run(&[&["stdio"], options].concat(), environment)
    }

    /// Starts the program with these arguments.
    pub(crate) fn run(arguments: &[&str], environment: &[(&str, &Path)]) -> Self {
        let mut process = piped(arguments, environment).spawn().expect("the program starts");
        let input = process.stdin.take().expect("piped");
        let output = BufReader::new(process.stdout.take().expect("piped")).lines();
        let stderr = process.stderr.take().expect("piped");
        Self { process, input, output, stderr }
    }

    /// Performs the handshake.
    pub(crate) async fn initialized(mut self, version: &str, capabilities: Value) -> Self {
        let params = json!({
            "protocolVersion": version, "capabilities": capabilities,
            "clientInfo": { "name": "piped", "version": "1" },
        });
        self.ask(0, "initialize", params).await;
        let profile = self.message().await;
        assert_eq!(profile["result"]["protocolVersion"], version, "{profile}");
        self.notify("notifications/initialized", json!({})).await;
        self
    }

    /// Writes a line.
    pub(crate) async fn line(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.expect("it reads");
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.line(&message.to_string()).await;
    }

    pub(crate) async fn ask(&mut self, id: u64, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&message).await;
    }

    pub(crate) async fn tool(&mut self, id: u64, name: &str, arguments: Value) {
        self.ask(id, "tools/call", json!({ "name": name, "arguments": arguments })).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Waits for the next line, which must be a message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(DEADLINE, self.output.next_line()).await;
        let line = line.expect("a line in time").expect("readable")?;
        let message: Value = serde_json::from_str(&line).expect(&line);
        assert!(
            message.is_array() || message["jsonrpc"] == "2.0",
            "standard output carries only MCP: {line}"
        );
        Some(message)
    }

    /// Waits for the next message.
    pub(crate) async fn message(&mut self) -> Value {
        match self.next().await {
            Some(message) => message,
            None => {
                let mut stderr = String::new();
                self.stderr.read_to_string(&mut stderr).await.expect("readable");
                panic!("the program has exited: {stderr}");
            }
        }
    }

    /// Calls a tool and returns its answer, without earlier messages.
    pub(crate) async fn result(&mut self, id: u64, name: &str, arguments: Value) -> Value {
        self.tool(id, name, arguments).await;
        loop {
            let message = self.message().await;
            if message["id"] == id && message["method"].is_null() {
                return message;
            }
        }
    }

    /// Returns the process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id().expect("it runs")
    }

    /// Closes standard input, and returns the last messages, standard error and the exit status.
    pub(crate) async fn close(self) -> (Vec<Value>, String, ExitStatus) {
        let Self { mut process, input, mut output, mut stderr } = self;
        drop(input);
        let ending = async {
            let mut rest = Vec::new();
            while let Some(line) = output.next_line().await.expect("readable") {
                rest.push(serde_json::from_str(&line).expect(&line));
            }
            let mut text = String::new();
            stderr.read_to_string(&mut text).await.expect("readable");
            (rest, text, process.wait().await.expect("it is waited for"))
        };
        tokio::time::timeout(DEADLINE, ending).await.expect("it ends in time")
    }
}

/// Returns the command of a bridge, for a client that starts it.
pub(crate) fn command(options: &[&str], environment: &[(&str, &Path)]) -> Command {
    piped(&[&["stdio"], options].concat(), environment)
}

fn piped(arguments: &[&str], environment: &[(&str, &Path)]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments)
        .env("XDG_RUNTIME_DIR", "/nonexistent")
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}
