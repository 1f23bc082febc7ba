//! The fake server, as a line of configuration or as an upstream of its own.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use super::client::{Client, Reply};

/// Returns the path of the fake, which cargo builds beside the tests.
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

    /// Returns a path beside the logs.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the table of a server that is a fake with these options.
    pub(crate) fn server(&self, name: &str, options: &[&str]) -> String {
        let log = self.path(&format!("{name}.log"));
        let log = log.display().to_string();
        let mut arguments = vec!["stdio", "--log", &log];
        arguments.extend(options);
        format!("[servers.{name}]\ncommand = {:?}\nargs = {arguments:?}\n", program())
    }

    /// Returns the events that the processes of a server logged.
    pub(crate) fn events(&self, name: &str) -> Vec<Value> {
        events(&self.path(&format!("{name}.log")))
    }

    /// Returns the ids of all processes that a server ever was.
    pub(crate) fn pids(&self, name: &str) -> BTreeSet<u64> {
        self.events(name).iter().filter_map(|event| event["pid"].as_u64()).collect()
    }
}

fn events(log: &Path) -> Vec<Value> {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Tells whether a process lives; a zombie does not.
pub(crate) fn is_alive(pid: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// A fake upstream over HTTP; ended and reaped on drop.
pub(crate) struct Upstream {
    process: Child,
    pub(crate) url: String,
}

impl Upstream {
    pub(crate) fn start(options: &[&str]) -> Self {
        let mut process = Command::new(program())
            .arg("http")
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the fake starts");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("it tells its address");
        let told: Value = serde_json::from_str(&line).expect(&line);
        let url = told["listening"].as_str().expect("an address").to_owned();
        Self { process, url }
    }

    /// Returns the table of a server that is this upstream.
    pub(crate) fn server(&self, name: &str, more: &str) -> String {
        format!("[servers.{name}]\nurl = {:?}\n{more}\n", self.url)
    }

    /// Uses a control route.
    pub(crate) async fn control(&self, route: &str) -> Reply {
        let client = Client::new(self.url.replace("/mcp", &format!("/control/{route}")));
        let is_read = route.starts_with("log");
        let method = if is_read { hyper::Method::GET } else { hyper::Method::POST };
        client.send(method, &[], "").await
    }

    /// Returns what happened, once the named counts are reached: `initializes=2`.
    pub(crate) async fn log(&self, counts: &str) -> Value {
        let reply = self.control(&format!("log?{counts}")).await;
        serde_json::from_str(&reply.body).expect(&reply.body)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
