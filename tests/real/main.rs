//! Real MCP servers behind metamcp, and real clients in front of it.
//!
//! `tests/real/install` fills the directory `METAMCP_REAL_SERVERS`. See `tests/run real-servers`.
#![expect(
    clippy::disallowed_methods,
    reason = "starts the program it tests and the clients that talk to it"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use harness::daemon::{Daemon, PROGRAM};
use serde_json::{Value, json};

mod browser;
mod clients;
mod embedding;
mod everything;
mod features;
#[path = "../harness/mod.rs"]
#[expect(dead_code, reason = "the behaviour tests use the rest")]
mod harness;
mod https;
mod login_rig;
mod login_secrets;
mod logins;
mod prometheus;
mod screens;
mod status_page;
mod stdio;
mod tasks;
mod tls_front;
mod token_costs;
mod traces;
mod typegen;

const POLL: Duration = Duration::from_millis(20);

#[test]
fn ten_clients_of_each_sdk_share_one_process_per_server() {
    let servers = Installed::find();
    // Connected before the first client, because a list of all servers omits late ones.
    let metamcp = Daemon::with(servers.config_with("prewarm")).ready();
    let watch = watch(&metamcp);

    let plan = json!({
        "clients": 10,
        "tools": ["everything__echo", "git__git_log", "time__convert_time", "filesystem__list_directory"],
        "calls": [
            {"tool": "everything__echo", "arguments": {"message": "{value}"}, "expect": "Echo: {value}", "times": 5},
            {"tool": "everything__get-sum", "arguments": {"a": "{number}", "b": 0}, "expect": "is {number}."},
            {"tool": "git__git_log", "arguments": {"repo_path": servers.path("repository")}, "expect": "commit three"},
            {"tool": "filesystem__read_text_file", "arguments": {"path": servers.path("files/hello.txt")}, "expect": "hello from"},
            {"tool": "time__get_current_time", "arguments": {"timezone": "UTC"}, "expect": "UTC"},
        ],
        "progress": {
            "tool": "everything__trigger-long-running-operation",
            "arguments": {"duration": 1, "steps": "{steps}"},
            "total": "{steps}",
        },
    });
    for era in ["legacy", "modern"] {
        for client in [servers.python("client.py"), servers.typescript("client.mjs")] {
            assert_succeeds(client, &metamcp.url("/"), &plan, era);
        }
    }

    let seen = watch.stop();
    for (server, processes) in servers.by_command_line(&seen) {
        assert_eq!(processes.len(), 1, "{server} ran as {processes:?}");
    }
    assert_stops_without_processes(metamcp, seen.keys());
}

#[test]
fn a_server_behind_metamcp_behaves_like_the_server_itself() {
    let servers = Installed::find();
    let metamcp = Daemon::with(servers.config()).ready();

    // Slow calls with different answers, so that a mix-up is visible.
    let plan = json!({
        "clients": 10,
        "tools": ["echo", "get-sum"],
        "calls": [
            {"tool": "echo", "arguments": {"message": "{value}"}, "expect": "Echo: {value}"},
            {
                "tool": "trigger-long-running-operation",
                "arguments": {"duration": 0.5, "steps": "{steps}"},
                "expect": "Steps: {steps}.",
                "times": 3,
            },
        ],
        "resources": true,
        "prompts": true,
    });
    for era in ["legacy", "modern"] {
        for client in [servers.python("client.py"), servers.typescript("client.mjs")] {
            assert_succeeds(client, &metamcp.url("/servers/everything"), &plan, era);
        }
    }
}

#[test]
fn clients_of_2024_11_05_are_served_over_http_with_sse() {
    let servers = Installed::find();
    let config = "[listen]\nlegacy_sse = true\n".to_owned() + &servers.config();
    let metamcp = Daemon::with(config).ready();
    let mut plan = json!({
        "clients": 10,
        "calls": [
            {"tool": "echo", "arguments": {"message": "{value}"}, "expect": "Echo: {value}", "times": 5},
        ],
    });
    let url = metamcp.url("/servers/everything/sse");
    assert_succeeds(servers.typescript("client.mjs"), &url, &plan, "sse");
    // The other SDK drops progress that arrives in one chunk with the answer.
    plan["progress"] = json!({
        "tool": "trigger-long-running-operation",
        "arguments": {"duration": 1, "steps": "{steps}"},
        "total": "{steps}",
    });
    assert_succeeds(servers.python("client.py"), &url, &plan, "sse");
}

#[test]
#[ignore = "installs Claude Code, 360 MB: tests/run claude-code"]
fn claude_code_connects() {
    let servers = Installed::find();
    let metamcp = Daemon::with(servers.config()).ready();

    for path in ["/", "/servers/everything"] {
        let mut check =
            Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/claude-code"));
        check.env("METAMCP_REAL_SERVERS", &servers.0).env("METAMCP_PROGRAM", PROGRAM);
        check.args([&metamcp.url(path), "8"]);
        let status = check.status().expect("tests/real/claude-code starts");
        assert!(status.success(), "claude-code {path}: {status}");
    }
}

#[test]
#[ignore = "installs Codex, Gemini CLI and OpenCode, 900 MB: tests/run claude-code"]
fn connected_clients_show_metamcp_in_their_lists() {
    let servers = Installed::find();
    let metamcp = Daemon::with(servers.config()).ready();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/connected-clients");
    let mut check = Command::new(script);
    check.env("METAMCP_REAL_SERVERS", &servers.0).env("METAMCP_PROGRAM", PROGRAM);
    let status = check.arg(metamcp.url("/")).status().expect("the script starts");
    assert!(status.success(), "connected-clients: {status}");
}

/// Runs a client and asserts that its report has no error.
#[track_caller]
fn assert_succeeds(client: Command, url: &str, plan: &Value, era: &str) {
    if let Err(report) = report_of(client, url, plan, era) {
        panic!("{era} {url}: {report}");
    }
}

/// Runs a client, and returns its report, or its errors.
fn report_of(mut client: Command, url: &str, plan: &Value, era: &str) -> Result<Value, String> {
    let mut plan = plan.clone();
    plan["era"] = era.into();
    client.args([url, &plan.to_string()]).stdin(Stdio::null()).stderr(Stdio::inherit());

    let output = client.output().expect("the client starts");

    let report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("no report from {client:?}, {}: {error}", output.status))?;
    let is_well = output.status.success() && report["ok"] == plan["clients"];
    if is_well { Ok(report) } else { Err(format!("{report:#}")) }
}

/// Returns the status of each server.
fn statuses(metamcp: &Daemon) -> Vec<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let status = runtime.expect("a runtime").block_on(metamcp.client("/status").get());
    let mut status: Value = serde_json::from_str(&status.body).expect("JSON");
    serde_json::from_value(status["servers"].take()).expect("a list of servers")
}

#[track_caller]
fn assert_stops_without_processes<'a>(
    mut metamcp: Daemon,
    processes: impl Iterator<Item = &'a Process>,
) {
    let status = metamcp.stop();
    assert!(status.success(), "metamcp stopped with {status}");
    let left: Vec<_> = processes.filter(|process| process.is_alive()).collect();
    assert!(left.is_empty(), "still running: {left:?}");
}

/// The directory filled by `tests/real/install`.
struct Installed(PathBuf);

impl Installed {
    fn find() -> Self {
        let dir = std::env::var_os("METAMCP_REAL_SERVERS")
            .expect("METAMCP_REAL_SERVERS names no directory: use tests/run real-servers");
        Self(dir.into())
    }

    fn path(&self, below: &str) -> String {
        self.0.join(below).to_str().expect("a path in UTF-8").to_owned()
    }

    fn servers(&self) -> BTreeMap<String, Value> {
        let text = fs::read(self.0.join("servers.json")).expect("servers.json is readable");
        serde_json::from_slice(&text).expect("servers.json is valid")
    }

    fn config(&self) -> String {
        self.config_with("lazy")
    }

    fn config_with(&self, start: &str) -> String {
        let mut servers = self.servers();
        for server in servers.values_mut() {
            server["start"] = start.into();
        }
        toml::to_string(&json!({ "servers": servers })).expect("servers fit into TOML")
    }

    fn python(&self, script: &str) -> Command {
        self.client("python/bin/python", script)
    }

    fn first_python(&self, script: &str) -> Command {
        self.client("python-1/bin/python", script)
    }

    fn typescript(&self, script: &str) -> Command {
        self.client("node", script)
    }

    fn client(&self, program: &str, script: &str) -> Command {
        let mut client = Command::new(self.0.join(program));
        client.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real").join(script));
        client.env("METAMCP_REAL_SERVERS", &self.0);
        // No bytecode files in the source tree.
        client.env("PYTHONDONTWRITEBYTECODE", "1");
        client
    }

    /// Returns the processes of each server, found by their command line.
    ///
    /// Only direct children of metamcp count: a server may start programs, which look like the
    /// server between fork and exec.
    fn by_command_line(
        &self,
        seen: &BTreeMap<Process, ProcessDetails>,
    ) -> BTreeMap<String, Vec<Process>> {
        let about = |server: &Value| {
            let script = server["args"][0].as_str().filter(|argument| argument.ends_with(".js"));
            script.or(server["command"].as_str()).expect("a command").to_owned()
        };
        let of = |server: &Value| {
            let about = about(server);
            seen.iter()
                .filter(|(_, seen)| seen.is_child && seen.line.contains(&about))
                .map(|(process, _)| *process)
                .collect()
        };
        self.servers().iter().map(|(name, server)| (name.clone(), of(server))).collect()
    }
}

/// Records every descendant of the service until stopped.
fn watch(metamcp: &Daemon) -> ProcessWatch {
    let root = metamcp.pid();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let thread = thread::spawn(move || {
        let mut seen = BTreeMap::new();
        while !stopped.load(Ordering::Relaxed) {
            seen.extend(descendants(root));
            thread::sleep(POLL);
        }
        seen
    });
    ProcessWatch { stop, thread }
}

struct ProcessWatch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<BTreeMap<Process, ProcessDetails>>,
}

impl ProcessWatch {
    /// Returns every process that was seen.
    fn stop(self) -> BTreeMap<Process, ProcessDetails> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the thread does not panic")
    }
}

/// A unique process: its id and start time, since ids are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    pid: u32,
    started: u64,
}

/// The recorded properties of a process.
struct ProcessDetails {
    line: String,
    /// The process is a direct child of metamcp.
    is_child: bool,
}

impl Process {
    fn is_alive(self) -> bool {
        stat(self.pid).is_some_and(|(_, started)| started == self.started)
    }
}

/// Returns the parent of a process and its start time; `None` if it has ended.
fn stat(pid: u32) -> Option<(u32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; the fields after it cannot.
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let is_zombie = fields[0] == "Z";
    if is_zombie { None } else { Some((fields[1].parse().ok()?, fields[19].parse().ok()?)) }
}

fn descendants(root: u32) -> BTreeMap<Process, ProcessDetails> {
    let pids = fs::read_dir("/proc")
        .expect("/proc is mounted")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let all: BTreeMap<u32, (u32, u64)> = pids.filter_map(|pid| Some((pid, stat(pid)?))).collect();
    let mut tree = BTreeSet::from([root]);
    loop {
        let more: Vec<_> = all
            .iter()
            .filter(|(pid, (parent, _))| tree.contains(parent) && !tree.contains(pid))
            .collect();
        if more.is_empty() {
            break;
        }
        tree.extend(more.iter().map(|(pid, _)| **pid));
    }
    tree.remove(&root);
    let described = tree.into_iter().filter_map(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        // Between fork and exec, a child still looks like metamcp.
        let is_server = !line.contains(env!("CARGO_BIN_EXE_metamcp"));
        let (parent, started) = all[&pid];
        is_server.then_some((
            Process { pid, started },
            ProcessDetails { line, is_child: parent == root },
        ))
    });
    described.collect()
}
