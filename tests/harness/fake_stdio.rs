//! The fake server on standard input and output, connected directly to the test.

use std::process::Stdio;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use super::{DEADLINE, fake};

/// A fake on standard input and output; ended on drop.
pub(crate) struct FakeStdio {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl FakeStdio {
    /// Starts a fake with these options.
    pub(crate) fn start(options: &[&str]) -> Self {
        let mut process = Command::new(fake::program())
            .arg("stdio")
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the fake starts");
        let input = process.stdin.take().expect("piped");
        let output = BufReader::new(process.stdout.take().expect("piped")).lines();
        Self { process, input, output }
    }

    /// Writes a message.
    pub(crate) async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).await.expect("it reads");
    }

    /// Waits for the next message.
    pub(crate) async fn message(&mut self) -> Value {
        let line = tokio::time::timeout(DEADLINE, self.output.next_line()).await;
        let line = line.expect("a line in time").expect("readable").expect("a line");
        serde_json::from_str(&line).expect(&line)
    }

    /// Writes a message and waits for the next one.
    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.message().await
    }

    /// Closes standard input and waits for the end.
    pub(crate) async fn close(self) {
        let Self { mut process, input, output: _ } = self;
        drop(input);
        let ended = tokio::time::timeout(DEADLINE, process.wait()).await;
        assert!(ended.expect("it ends in time").expect("it is waited for").success());
    }
}
