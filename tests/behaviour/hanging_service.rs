//! Clients and commands beside a service that is stopped or killed, with work under way or without.

use std::{
    fs,
    os::unix::net::UnixListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::{
    harness::{
        DEADLINE,
        daemon::{self, exit_in_time},
        fake::Fakes,
        stdio::StdioClient,
    },
    until,
};

/// A service that listens at its own socket, so that the kernel knows its process.
struct OwnService {
    directory: TempDir,
    process: Child,
    _fakes: Fakes,
}

impl OwnService {
    async fn start() -> Self {
        let (fakes, directory) = (Fakes::new(), tempfile::tempdir().expect("a directory"));
        let (config, socket) = (directory.path().join("c.toml"), directory.path().join("s"));
        let listen = format!("[listen]\nhttp = \"127.0.0.1:0\"\ncontrol = {socket:?}\n");
        fs::write(&config, listen + &fakes.server("fake", &[])).expect("written");
        let process = daemon::serve(&config);
        let service = Self { directory, process, _fakes: fakes };
        until(async || service.run(&["status"]).0 == 0).await;
        service
    }

    fn socket(&self) -> String {
        self.directory.path().join("s").display().to_string()
    }

    fn command(&self, words: &[&str]) -> Command {
        let (socket, home) = (self.socket(), self.directory.path());
        let mut command =
            daemon::command(&[&words[..1], &["--socket", &socket], &words[1..]].concat());
        command.env("HOME", home).env("XDG_CONFIG_HOME", home).current_dir(home);
        command
    }

    /// Runs a command to its end and returns code, standard output and standard error.
    fn run(&self, words: &[&str]) -> (i32, String, String) {
        daemon::finish(self.command(words))
    }

    /// Starts a call, and returns its process once the server has the call.
    fn hold(&self, options: &[&str]) -> Child {
        let words = [&["call"], options, &["fake/hold", "{\"key\":\"k\"}"]].concat();
        let call = self
            .command(&words)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (code, _, stderr) = self.run(&["call", "fake/held", "{\"at_least\":1}"]);
        assert_eq!(code, 0, "{stderr}");
        call
    }

    fn signal(&self, signal: Signal) {
        daemon::signal(self.process.id(), signal);
    }

    fn hint(&self) -> String {
        format!("run `kill -CONT {}`, or `fg` in its shell", self.process.id())
    }
}

impl Drop for OwnService {
    fn drop(&mut self) {
        if self.process.try_wait().ok().flatten().is_none() {
            self.signal(Signal::CONT);
            self.signal(Signal::TERM);
            exit_in_time(&mut self.process);
        }
    }
}

/// Waits for the end of a command; returns its exit code and standard error.
fn end(mut process: Child) -> (Option<i32>, String) {
    let ended = exit_in_time(&mut process).expect("it ends");
    let stderr = process.stderr.take().expect("piped");
    (ended.code(), std::io::read_to_string(stderr).expect("readable"))
}

#[tokio::test]
async fn a_stdio_client_and_its_user_learn_within_seconds_that_the_service_is_stopped() {
    let service = OwnService::start().await;
    service.signal(Signal::STOP);
    let begin = Instant::now();
    let without_input = service
        .command(&["stdio"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut client = StdioClient::start(&["--socket", &service.socket()], &[]);
    client.ask(1, "initialize", json!({})).await;

    let answer = client.message().await;

    assert!(begin.elapsed().as_secs() < 30, "{:?}", begin.elapsed());
    let text = answer["error"].to_string();
    let named = format!("(process {}) accepted the connection", service.process.id());
    for expected in [&named, "it hangs or is stopped", &service.hint()] {
        assert!(text.contains(expected), "`{expected}` is missing: {text}");
    }
    let (rest, stderr, ended) = client.close().await;
    assert_eq!((rest.len(), ended.code()), (0, Some(69)), "{stderr}");
    assert!(stderr.contains(&named) && stderr.contains(&service.hint()), "{stderr}");
    let (code, stderr) = end(without_input);
    assert_eq!(code, Some(69), "{stderr}");
    assert!(stderr.contains(&named) && stderr.contains(&service.hint()), "{stderr}");
}

#[tokio::test]
async fn a_call_ends_soon_after_its_timeout_if_the_service_was_stopped_meanwhile() {
    let service = OwnService::start().await;
    let call = service.hold(&["--timeout", "4s"]);
    service.signal(Signal::STOP);
    let begin = Instant::now();

    let (code, stderr) = end(call);

    assert!(begin.elapsed() < DEADLINE / 3, "{:?}", begin.elapsed());
    assert_eq!(code, Some(69), "{stderr}");
    let named = format!("(process {}) no longer answers", service.process.id());
    for expected in [&named, "may have been executed", &service.hint()] {
        assert!(stderr.contains(expected), "`{expected}` is missing: {stderr}");
    }
}

#[tokio::test]
async fn a_call_whose_service_is_killed_warns_that_the_tool_may_have_run() {
    let mut service = OwnService::start().await;
    let call = service.hold(&[]);
    service.signal(Signal::KILL);
    exit_in_time(&mut service.process).expect("it ends");

    let (code, stderr) = end(call);

    assert_eq!(code, Some(69), "{stderr}");
    for expected in ["disconnected before it answered", "may have been executed", "metamcp serve"] {
        assert!(stderr.contains(expected), "`{expected}` is missing: {stderr}");
    }
}

#[tokio::test]
async fn commands_that_change_files_warn_of_a_service_that_hangs() {
    let service = OwnService::start().await;
    let client = service.directory.path().join("mcp.json");
    fs::write(&client, r#"{"mcpServers":{"b":{"command":"true"}}}"#).expect("written");
    let file = client.display().to_string();
    service.signal(Signal::STOP);
    let begin = Instant::now();
    let commands: [&[&str]; 5] = [
        &["connect"],
        &["connect", "cursor", "--dry-run"],
        &["disconnect", "cursor", "--dry-run"],
        &["import", &file],
        &["import", &file, "--write"],
    ];
    let start = |words: &&[&str]| {
        service.command(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
    };
    let started: Vec<Child> = commands.iter().map(|words| start(words).expect("started")).collect();

    for (process, words) in started.into_iter().zip(commands) {
        let (code, stderr) = end(process);
        let is_written = words.contains(&"--write");
        assert_eq!(code, Some(if is_written { 69 } else { 0 }), "{words:?}: {stderr}");
        assert!(stderr.contains("it hangs or is stopped"), "{words:?}: {stderr}");
        assert!(stderr.contains(&service.hint()), "{words:?}: {stderr}");
    }
    // Each asks the service once.
    assert!(begin.elapsed().as_secs() < 18, "{:?}", begin.elapsed());
}

#[test]
fn doctor_reports_a_service_that_hangs_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| -> PathBuf { directory.path().join(name) };
    let http = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = http.local_addr().expect("bound");
    let _control = UnixListener::bind(path("s")).expect("bound");
    let config = format!("[listen]\nhttp = \"{address}\"\ncontrol = {:?}\n", path("s"));
    fs::write(path("c.toml"), config).expect("written");

    let (_, stdout, stderr) =
        daemon::run(&["doctor", "--config", &path("c.toml").display().to_string()]);

    assert!(stdout.contains("it hangs or is stopped"), "{stdout}{stderr}");
    assert!(!stdout.contains("does not answer\n"), "{stdout}{stderr}");
    assert!(!stdout.contains("ss -ltnp"), "{stdout}{stderr}");
}
