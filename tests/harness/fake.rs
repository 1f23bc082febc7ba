//! The fake server, as configuration of a child or as an upstream.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::{
    client::{Client, Reply},
    daemon,
};

/// Returns the path of the fake, which cargo builds next to the tests.
pub(crate) fn program() -> PathBuf {
    let mut path = std::env::current_exe().expect("a test knows its own path");
    // target/PROFILE/deps/TEST → target/PROFILE/examples/fake_mcp
    path.pop();
    path.pop();
    path.push("examples/fake_mcp");
    assert!(path.exists(), "`{}` is missing: run `cargo build --examples`", path.display());
    path
}

/// The event logs of fakes that the service starts.
pub(crate) struct Fakes {
    directory: TempDir,
}

impl Fakes {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    /// Returns a path next to the logs.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the configuration table of a server that is a fake with these options.
    pub(crate) fn server(&self, name: &str, options: &[&str]) -> String {
        let log = self.path(&format!("{name}.log"));
        let log = log.display().to_string();
        let mut arguments = vec!["stdio", "--log", &log];
        arguments.extend(options);
        format!("[servers.{name}]\ncommand = {:?}\nargs = {arguments:?}\n", program())
    }

    /// Returns the logged events of the processes of a server.
    pub(crate) fn events(&self, name: &str) -> Vec<Value> {
        events(&self.path(&format!("{name}.log")))
    }

    /// Returns the number of events of this kind in the logs of the processes of a server.
    pub(crate) fn n_events(&self, name: &str, event: &str) -> usize {
        self.events(name).iter().filter(|line| line["event"] == event).count()
    }

    /// Returns the ids of all past and present processes of a server.
    pub(crate) fn pids(&self, name: &str) -> BTreeSet<u64> {
        self.events(name).iter().filter_map(|event| event["pid"].as_u64()).collect()
    }
}

fn events(log: &Path) -> Vec<Value> {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Returns whether a process is alive; a zombie is not.
pub(crate) fn is_alive(pid: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Returns the execution counts of keys, from the file of `--state`.
pub(crate) fn executions(state: &Path) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for key in events(state).iter().filter_map(|line| line["key"].as_str()) {
        *counts.entry(key.to_owned()).or_default() += 1;
    }
    counts
}

/// A fake upstream over HTTP; ended and reaped on drop.
pub(crate) struct Upstream {
    process: Child,
    pub(crate) url: String,
    control: Client,
}

impl Upstream {
    /// Starts an upstream over Streamable HTTP.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::spawn("http", options)
    }

    /// Starts an upstream over HTTP+SSE of protocol 2024-11-05.
    pub(crate) fn sse(options: &[&str]) -> Self {
        Self::spawn("sse", options)
    }

    fn spawn(mode: &str, options: &[&str]) -> Self {
        let mut process = Command::new(program())
            .arg(mode)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the fake starts");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("it prints its addresses");
        let printed: Value = serde_json::from_str(&line).expect(&line);
        let address = |name: &str| printed[name].as_str().expect("an address").to_owned();
        Self { process, url: address("listening"), control: Client::new(address("control")) }
    }

    /// Returns a client of the upstream itself.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.url.clone())
    }

    /// Returns the port, on which a replacement can start with `--port`.
    pub(crate) fn port(&self) -> String {
        self.url.rsplit([':', '/']).nth(1).expect("a port").to_owned()
    }

    /// Returns the configuration table of a server that is this upstream.
    pub(crate) fn server(&self, name: &str, more: &str) -> String {
        format!("[servers.{name}]\nurl = {:?}\n{more}\n", self.url)
    }

    /// Requests a control route, which works even while the upstream does not listen.
    pub(crate) async fn control(&self, route: &str) -> Reply {
        self.control_with(route, "").await
    }

    /// Writes a message to all GET streams, verbatim.
    pub(crate) async fn push(&self, message: &Value) -> Reply {
        self.control_with("push", &message.to_string()).await
    }

    async fn control_with(&self, route: &str, body: &str) -> Reply {
        let is_read = route.starts_with("log");
        let method = if is_read { hyper::Method::GET } else { hyper::Method::POST };
        let client = self.control.at(&format!("/control/{route}"));
        client.send(method, &[], body.to_owned()).await
    }

    /// Returns the events, once the named counts are reached: `initializes=2`.
    pub(crate) async fn log(&self, counts: &str) -> Value {
        let reply = self.control(&format!("log?{counts}")).await;
        serde_json::from_str(&reply.body).expect(&reply.body)
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        daemon::signal(self.process.id(), signal);
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub(crate) fn wait_exit(&mut self) -> ExitStatus {
        daemon::exit_in_time(&mut self.process).expect("the fake ends in time")
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
