//! `kill -9` at any moment, while many clients are at work: nothing is done twice, every call ends,
//! and no other client notices.

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
        dice::Dice,
        fake::{Fakes, Upstream, executions},
        load::Load,
    },
    until,
};

/// The number of clients that call the killed server, and of those that call another one.
const N_CLIENTS: usize = 8;
const N_NEIGHBOURS: usize = 4;

/// The least number of kills of a process that serves.
const N_KILLS: usize = 20;

/// The largest number of kills of its successor before that has served a client.
const N_MORE: usize = 2;

/// The largest number of calls between two kills.
const N_EXECUTED: usize = 40;

/// The tool of every second client, which must not run twice. The others call one that may.
const TOOLS: [&str; 4] = ["count", "count_idempotent", "count", "read_only"];

/// The ways in which a call of a killed server may end: during its execution, at the moment of
/// sending, or while the next process was started for it.
const CODES: [&str; 5] =
    ["SERVER_EXITED", "SERVER_GONE", "SERVER_UNREACHABLE", "SESSION_LOST", "ANSWER_BROKEN_OFF"];

/// One call and its answer.
struct Called {
    tool: &'static str,
    key: String,
    answer: Value,
}

/// Calls with a key of its own, which is its id too.
async fn call(client: &Client, tool: &'static str, key: String) -> Called {
    let params = json!({ "name": tool, "arguments": { "key": key } });
    let answer = client.request(json!(key), "tools/call", params).await.answer();
    Called { tool, key, answer }
}

/// Has the clients call until it is ended.
fn load(clients: &[Client]) -> Load<Called> {
    let clients = clients.to_vec();
    Load::start(clients.len(), move |number, n_before| {
        let (client, tool) = (clients[number].clone(), TOOLS[number % TOOLS.len()]);
        async move { call(&client, tool, format!("{number}-{n_before}")).await }
    })
}

/// Has clients call another server.
fn neighbours(daemon: &Daemon) -> Load<Called> {
    let client = daemon.client("/servers/calm");
    Load::start(N_NEIGHBOURS, move |number, n_before| {
        let client = client.clone();
        async move { call(&client, "count", format!("{number}-{n_before}")).await }
    })
}

/// Checks that no call ran twice that must not, and that every answered call was executed. Each
/// failure has the id of its call and says what happened.
#[track_caller]
fn check(calls: &[Called], executions: &BTreeMap<String, u64>) {
    for Called { tool, key, answer } in calls {
        let n_done = executions.get(key).copied().unwrap_or_default();
        assert_eq!(answer["id"], *key, "{tool}: {answer}");
        assert!(n_done <= 1 || *tool != "count", "{tool} {key} was done {n_done} times");
        if answer["result"].is_object() {
            assert_eq!(answer["result"]["structuredContent"]["key"], *key, "{answer}");
            assert!(n_done >= 1, "{tool} {key} was answered and not done");
        } else {
            let code = answer["error"]["data"]["code"].as_str().unwrap_or_default();
            assert!(CODES.contains(&code), "{tool} {key}: {answer}");
        }
    }
}

/// Checks that a neighbour has noticed nothing.
#[track_caller]
fn check_calm(calls: &[Called], executions: &BTreeMap<String, u64>) {
    assert!(calls.len() >= N_NEIGHBOURS);
    for Called { key, answer, .. } in calls {
        assert_eq!(answer["result"]["structuredContent"], json!({ "key": key, "n": 1 }));
        assert_eq!(executions.get(key), Some(&1));
    }
}

/// The lines that the processes of a server write into a file.
struct Tail {
    path: PathBuf,
    at: u64,
    rest: String,
}

impl Tail {
    /// Reads on from the end.
    fn new(path: &Path) -> Self {
        let at = path.metadata().map_or(0, |metadata| metadata.len());
        Self { path: path.to_owned(), at, rest: String::new() }
    }

    /// Waits for so many lines that are meant and returns the last one.
    async fn wait(&mut self, n_lines: usize, is_meant: impl Fn(&Value) -> bool) -> Value {
        let mut n_left = n_lines;
        let mut found = Value::Null;
        until(async || {
            self.read();
            while n_left > 0
                && let Some((line, rest)) = self.rest.split_once('\n')
            {
                let line: Value = serde_json::from_str(line).expect("a line");
                self.rest = rest.to_owned();
                if is_meant(&line) {
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
        file.seek(SeekFrom::Start(self.at)).expect("it can be sought");
        let n_bytes = file.read_to_string(&mut self.rest).expect("it can be read");
        self.at += u64::try_from(n_bytes).expect("it fits");
    }
}

fn pid(line: &Value) -> u32 {
    line["pid"].as_u64().and_then(|pid| pid.try_into().ok()).expect("a process")
}

/// Waits for another call, whichever comes first, and tells whether it was answered with a result.
///
/// It may have been begun while a process was started that was killed then; hence the second try.
async fn next_call_succeeds(client: &Client, what: &str) {
    let mut ends = Vec::new();
    for number in 0..=N_MORE + 1 {
        let called = call(client, "read_only", format!("next-{what}-{number}")).await;
        check(std::slice::from_ref(&called), &BTreeMap::from([(called.key.clone(), 1)]));
        let is_served = called.answer["result"].is_object();
        ends.push(called.answer);
        if is_served {
            break;
        }
    }
    let last = ends.last().expect("one at least");
    assert!(last["result"].is_object(), "one failure for each process at most: {ends:?}");
}

/// Kills processes of a server again and again while its clients are at work.
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
    load.goes_on(1).await;

    let mut dice = Dice::new();
    let mut killed = BTreeSet::new();
    for number in 0..N_KILLS {
        let n_executed = 1 + dice.below(N_EXECUTED);
        let mut starts = Tail::new(&fakes.path("up.log"));
        let is_alive = |line: &Value| line["key"].is_string() && !killed.contains(&pid(line));
        let executed = Tail::new(&state).wait(n_executed, is_alive).await;
        killed.insert(pid(&executed));
        signal(pid(&executed), Signal::KILL);
        for _ in 0..dice.below(N_MORE + 1) {
            let event = ["start", "initialize"][dice.below(2)];
            let is_meant = |line: &Value| line["event"] == event && !killed.contains(&pid(line));
            let started = starts.wait(1, is_meant).await;
            killed.insert(pid(&started));
            signal(pid(&started), Signal::KILL);
        }
        next_call_succeeds(probe, &number.to_string()).await;
    }
    // No process was left behind.
    load.goes_on(1).await;
    neighbours.goes_on(1).await;

    check(&load.end().await, &executions(&state));
    check_calm(&neighbours.end().await, &executions(&calm));
    assert_eq!(fakes.pids("calm").len(), 1);
}

#[tokio::test]
async fn a_child_that_is_killed_at_any_moment_does_nothing_twice_and_serves_the_next_call() {
    kill_at_random("", false).await;
}

#[tokio::test]
async fn so_it_is_with_a_process_for_each_request() {
    kill_at_random("sharing = \"exclusive\"\n", false).await;
}

#[tokio::test]
async fn so_it_is_with_a_process_for_each_client() {
    kill_at_random("sharing = \"session\"\n", true).await;
}

#[tokio::test]
async fn so_it_is_with_an_upstream_that_comes_back() {
    let fakes = Fakes::new();
    let (state, calm) = (fakes.path("state"), fakes.path("calm-state"));
    let come_back =
        |port: &str| Upstream::start(&["--port", port, "--state", state.to_str().expect("UTF-8")]);
    let mut upstream = come_back("0");
    let port = upstream.port();
    let calm_server = fakes.server("calm", &["--state", calm.to_str().expect("UTF-8")]);
    let daemon = Daemon::with(upstream.server("up", "") + &calm_server).ready();
    let clients = vec![daemon.client("/servers/up"); N_CLIENTS];
    let (load, neighbours) = (load(&clients), neighbours(&daemon));
    load.goes_on(1).await;

    let mut dice = Dice::new();
    for number in 0..N_KILLS {
        let n_executed = 1 + dice.below(N_EXECUTED);
        Tail::new(&state).wait(n_executed, |line| line["key"].is_string()).await;
        upstream.signal(Signal::KILL);
        upstream.wait_exit();
        upstream = come_back(&port);
        next_call_succeeds(&daemon.client("/servers/up"), &number.to_string()).await;
    }
    load.goes_on(1).await;
    neighbours.goes_on(1).await;

    check(&load.end().await, &executions(&state));
    check_calm(&neighbours.end().await, &executions(&calm));
}
