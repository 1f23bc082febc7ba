//! SIGKILL at any moment under load: no call runs twice, every call ends, and clients of other
//! servers are unaffected.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    all,
    harness::{
        client::Client,
        daemon::{Daemon, signal},
        fake::{Fakes, Upstream, executions},
        load::Load,
        random::SeededRandom,
    },
    until,
};

/// The number of clients that call the killed server, and of those that call another one.
const N_CLIENTS: usize = 8;
const N_NEIGHBOURS: usize = 4;

/// The number of kills of a process that serves clients.
const N_KILLS: usize = 20;

/// The maximum number of kills of successors before one has served a client.
const N_MORE: usize = 2;

/// The maximum number of calls between two kills.
const N_EXECUTED: usize = 40;

/// The tools of the clients, in turn. Only `count` must not run twice.
const TOOLS: [&str; 4] = ["count", "count_idempotent", "count", "read_only"];

/// The codes with which a call of a killed server may fail: during its execution, while it is sent,
/// or while the next process starts for it.
const CODES: [&str; 5] =
    ["SERVER_EXITED", "SERVER_GONE", "SERVER_UNREACHABLE", "SESSION_LOST", "ANSWER_BROKEN_OFF"];

/// One call and its answer.
struct CallRecord {
    tool: &'static str,
    key: String,
    answer: Value,
}

/// Calls a tool with a unique key, which is also the request id.
async fn call(client: &Client, tool: &'static str, key: String) -> CallRecord {
    let params = json!({ "name": tool, "arguments": { "key": key } });
    let answer = client.request(json!(key), "tools/call", params).await.answer();
    CallRecord { tool, key, answer }
}

/// Lets the clients call until stopped.
fn load(clients: &[Client]) -> Load<CallRecord> {
    let clients = clients.to_vec();
    Load::start(clients.len(), move |number, n_before| {
        let (client, tool) = (clients[number].clone(), TOOLS[number % TOOLS.len()]);
        async move { call(&client, tool, format!("{number}-{n_before}")).await }
    })
}

/// Lets other clients call another server until stopped.
fn neighbours(daemon: &Daemon) -> Load<CallRecord> {
    let client = daemon.client("/servers/calm");
    Load::start(N_NEIGHBOURS, move |number, n_before| {
        let client = client.clone();
        async move { call(&client, "count", format!("{number}-{n_before}")).await }
    })
}

/// Asserts that only repeatable calls ran twice, that every answered call was executed, and that
/// each failure has the id of its call and an expected code.
#[track_caller]
fn check(calls: &[CallRecord], executions: &BTreeMap<String, u64>) {
    for CallRecord { tool, key, answer } in calls {
        let n_done = executions.get(key).copied().unwrap_or_default();
        assert_eq!(answer["id"], *key, "{tool}: {answer}");
        assert!(n_done <= 1 || *tool != "count", "{tool} {key} ran {n_done} times");
        if answer["result"].is_object() {
            assert_eq!(answer["result"]["structuredContent"]["key"], *key, "{answer}");
            assert!(n_done >= 1, "{tool} {key} was answered and did not run");
        } else {
            let code = answer["error"]["data"]["code"].as_str().unwrap_or_default();
            assert!(CODES.contains(&code), "{tool} {key}: {answer}");
        }
    }
}

/// Asserts that every call of the other server succeeded and ran once.
#[track_caller]
fn check_neighbours(calls: &[CallRecord], executions: &BTreeMap<String, u64>) {
    assert!(calls.len() >= N_NEIGHBOURS);
    for CallRecord { key, answer, .. } in calls {
        assert_eq!(answer["result"]["structuredContent"], json!({ "key": key, "n": 1 }));
        assert_eq!(executions.get(key), Some(&1));
    }
}

/// The lines that the processes of a server append to a file.
struct LogTail {
    path: PathBuf,
    at: u64,
    rest: String,
}

impl LogTail {
    /// Starts at the current end of the file.
    fn new(path: &Path) -> Self {
        let at = path.metadata().map_or(0, |metadata| metadata.len());
        Self { path: path.to_owned(), at, rest: String::new() }
    }

    /// Waits for `n_lines` matching lines and returns the last one.
    async fn wait(&mut self, n_lines: usize, is_match: impl Fn(&Value) -> bool) -> Value {
        let mut n_left = n_lines;
        let mut found = Value::Null;
        until(async || {
            self.read();
            while n_left > 0
                && let Some((line, rest)) = self.rest.split_once('\n')
            {
                let line: Value = serde_json::from_str(line).expect("a line");
                self.rest = rest.to_owned();
                if is_match(&line) {
                    n_left -= 1;
                    found = line;
                }
            }
            n_left == 0
        })
        .await;
        found
    }

    fn read(&mut self) {
        let Ok(mut file) = File::open(&self.path) else { return };
        file.seek(SeekFrom::Start(self.at)).expect("the position is set");
        let n_bytes = file.read_to_string(&mut self.rest).expect("readable");
        self.at += u64::try_from(n_bytes).expect("it fits");
    }
}

fn pid(line: &Value) -> u32 {
    line["pid"].as_u64().and_then(|pid| pid.try_into().ok()).expect("a process")
}

/// Asserts that a call succeeds after at most one failure for each killed process.
///
/// A call fails if the process that starts for it is killed; hence the repetitions.
async fn assert_next_call_succeeds(client: &Client, name: &str) {
    let mut answers = Vec::new();
    for number in 0..=N_MORE + 1 {
        let called = call(client, "read_only", format!("next-{name}-{number}")).await;
        check(std::slice::from_ref(&called), &BTreeMap::from([(called.key.clone(), 1)]));
        let is_served = called.answer["result"].is_object();
        answers.push(called.answer);
        if is_served {
            break;
        }
    }
    let last = answers.last().expect("at least one");
    assert!(last["result"].is_object(), "at most one failure for each process: {answers:?}");
}

/// Kills processes of a server repeatedly while its clients send calls.
async fn kill_at_random(sharing: &str, have_sessions: bool) {
    let fakes = Fakes::new();
    let (state, calm) = (fakes.path("state"), fakes.path("calm-state"));
    let server =
        |name: &str, state: &Path| fakes.server(name, &["--state", state.to_str().expect("UTF-8")]);
    let config = server("up", &state) + sharing + &server("calm", &calm);
    let daemon = Daemon::with(config).ready();
    let clients = all((0..=N_CLIENTS).map(|_| async {
        let client = daemon.client("/servers/up");
        if have_sessions { client.initialized().await } else { client }
    }))
    .await;
    let (probe, clients) = clients.split_last().expect("several");
    let (load, neighbours) = (load(clients), neighbours(&daemon));
    load.wait_for_answers(1).await;

    let mut random = SeededRandom::new();
    let mut killed = BTreeSet::new();
    for number in 0..N_KILLS {
        let n_executed = 1 + random.below(N_EXECUTED);
        let mut starts = LogTail::new(&fakes.path("up.log"));
        let is_alive = |line: &Value| line["key"].is_string() && !killed.contains(&pid(line));
        let executed = LogTail::new(&state).wait(n_executed, is_alive).await;
        killed.insert(pid(&executed));
        signal(pid(&executed), Signal::KILL);
        for _ in 0..random.below(N_MORE + 1) {
            let event = ["start", "initialize"][random.below(2)];
            let is_match = |line: &Value| line["event"] == event && !killed.contains(&pid(line));
            let started = starts.wait(1, is_match).await;
            killed.insert(pid(&started));
            signal(pid(&started), Signal::KILL);
        }
        assert_next_call_succeeds(probe, &number.to_string()).await;
    }
    // Every client still receives answers.
    load.wait_for_answers(1).await;
    neighbours.wait_for_answers(1).await;

    check(&load.end().await, &executions(&state));
    check_neighbours(&neighbours.end().await, &executions(&calm));
    assert_eq!(fakes.pids("calm").len(), 1);
}

#[tokio::test]
async fn a_shared_child_killed_at_any_moment_runs_no_call_twice_and_serves_the_next_one() {
    kill_at_random("", false).await;
}

#[tokio::test]
async fn an_exclusive_child_killed_at_any_moment_runs_no_call_twice_and_serves_the_next_one() {
    kill_at_random("sharing = \"exclusive\"\n", false).await;
}

#[tokio::test]
async fn a_per_session_child_killed_at_any_moment_runs_no_call_twice_and_serves_the_next_one() {
    kill_at_random("sharing = \"session\"\n", true).await;
}

#[tokio::test]
async fn an_upstream_killed_at_any_moment_runs_no_call_twice_and_serves_the_next_one() {
    let fakes = Fakes::new();
    let (state, calm) = (fakes.path("state"), fakes.path("calm-state"));
    let start_upstream =
        |port: &str| Upstream::start(&["--port", port, "--state", state.to_str().expect("UTF-8")]);
    let mut upstream = start_upstream("0");
    let port = upstream.port();
    let calm_server = fakes.server("calm", &["--state", calm.to_str().expect("UTF-8")]);
    let daemon = Daemon::with(upstream.server("up", "") + &calm_server).ready();
    let clients = vec![daemon.client("/servers/up"); N_CLIENTS];
    let (load, neighbours) = (load(&clients), neighbours(&daemon));
    load.wait_for_answers(1).await;

    let mut random = SeededRandom::new();
    for number in 0..N_KILLS {
        let n_executed = 1 + random.below(N_EXECUTED);
        LogTail::new(&state).wait(n_executed, |line| line["key"].is_string()).await;
        upstream.signal(Signal::KILL);
        upstream.wait_exit();
        upstream = start_upstream(&port);
        assert_next_call_succeeds(&daemon.client("/servers/up"), &number.to_string()).await;
    }
    load.wait_for_answers(1).await;
    neighbours.wait_for_answers(1).await;

    check(&load.end().await, &executions(&state));
    check_neighbours(&neighbours.end().await, &executions(&calm));
}
