//! Client sessions, causes, events and logs, as operators see them.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    command_line::status,
    harness::{
        daemon::{self, Daemon},
        fake::Fakes,
        modern::Modern,
        stdio::StdioClient as Bridge,
    },
    until,
};

/// A breaker that opens at the first failure and stays open.
const BREAKER: &str = "[breaker]\nfailure_threshold = 1\ncooldown = \"1h\"\n";

/// A server whose process writes a line and exits.
const BROKEN: &str = "[servers.git]\ncommand = \"sh\"\nargs = [\"-c\", \"echo GITHUB_TOKEN is not set >&2; exit 1\"]\n";

/// The end of the cause that this server gives.
const END: &str = "exited with code 1 (last output: `GITHUB_TOKEN is not set`)";

fn json_status(daemon: &Daemon) -> Value {
    let (code, stdout, stderr) = status(daemon, &["--json"]);
    assert_eq!(code, 0, "{stderr}");
    serde_json::from_str(&stdout).expect("JSON")
}

fn command(daemon: &Daemon, words: &[&str]) -> (i32, String, String) {
    let socket = daemon.control().display().to_string();
    let (name, rest) = words.split_first().expect("a command");
    daemon::run(&[&[*name, "--socket", &socket], rest].concat())
}

#[tokio::test]
async fn status_counts_client_sessions_by_the_name_that_clients_give() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    assert_eq!(json_status(&daemon)["sessions"], 0);

    let first = daemon.client("/").initialized().await;
    let _second = daemon.client("/").initialized().await;
    first.call("fake__echo", json!({ "value": 1 })).await;
    let modern = Modern::new(daemon.client("/")).named("modern\u{1b}[2J");
    modern.call("fake__echo", json!({ "value": 1 })).await;
    modern.call("fake__echo", json!({ "value": 1 })).await;
    let bridge = Bridge::to(&daemon, &[]).initialized("2025-06-18", json!({})).await;

    let found = json_status(&daemon);
    assert_eq!(found["sessions"], 4, "{found:#}");
    let clients = found["clientSessions"].as_array().expect("a list");
    let of = |name: &str| {
        let found = clients.iter().find(|client| client["name"] == name).expect(name);
        let called = found["lastCallAgoMs"].is_u64();
        json!([found["era"], found["transport"], found["sessions"], called, found["servers"]])
    };
    assert_eq!(of("test"), json!(["legacy", "http", 2, true, ["fake"]]));
    assert_eq!(of("modern [2J"), json!(["modern", "http", 1, true, ["fake"]]));
    assert_eq!(of("piped"), json!(["legacy", "stdio", 1, false, []]));
    assert_eq!(found["servers"][0]["clientSessions"], 2, "{found:#}");

    let (_, table, _) = status(&daemon, &[]);
    assert!(table.lines().next().is_some_and(|line| line.contains(", 4 client sessions, ")));
    let row = table.lines().find(|line| line.starts_with("test 1 ")).expect("a row");
    assert!(row.ends_with(" s ago") && row.contains("  2  legacy  http  "), "{row}");

    drop(bridge.close().await);
    until(async || json_status(&daemon)["sessions"] == 3).await;
}

#[tokio::test]
async fn memory_counts_as_saved_only_where_several_sessions_use_a_server() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let memory = || json_status(&daemon)["memory"].clone();
    let first = daemon.client("/").initialized().await;
    let second = daemon.client("/").initialized().await;
    first.call("fake__echo", json!({ "value": 1 })).await;
    let of_one = memory();
    assert!(of_one["serversBytes"].as_u64() > Some(0), "{of_one}");
    assert_eq!(of_one["savedBytes"], 0, "the second session has not used the server");

    second.call("fake__echo", json!({ "value": 1 })).await;

    let of_two = memory();
    assert_eq!(of_two["savedBytes"], of_two["serversBytes"]);
}

#[tokio::test]
async fn the_status_of_one_server_shows_its_cause_and_its_last_events() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + BREAKER + BROKEN).ready();
    daemon.client("/").tool("git__x", json!({})).await;
    daemon.client("/").call("fake__echo", json!({ "value": 1 })).await;

    let (code, shown, _) = command(&daemon, &["status", "git"]);
    assert_eq!(code, 0);
    assert!(shown.contains("failed; breaker open, next attempt in "), "{shown}");
    let has = |start: &str| {
        let mut lines = shown.lines().filter(|line| line.contains(start));
        assert!(lines.any(|line| line.ends_with(END)), "{start}: {shown}");
    };
    has("  cause       its process ");
    has(" UTC could not be connected: its process ");
    has(" UTC breaker opened: its process ");
    let (_, shown, _) = command(&daemon, &["servers", "fake"]);
    assert!(shown.contains(" UTC connected: pid "), "{shown}");

    let (_, json, _) = command(&daemon, &["status", "git", "--json"]);
    let server: Value = serde_json::from_str(&json).expect("JSON");
    let events = server["events"].as_array().expect("a list");
    assert!(events.iter().any(|event| event["event"] == "breaker-opened"), "{events:?}");
    for words in [["status", "gti"], ["servers", "gti"]] {
        let (code, _, stderr) = command(&daemon, &words);
        assert_eq!(code, 1);
        assert!(stderr.contains("`gti`") && stderr.contains("Did you mean `git`?"), "{stderr}");
    }
}

#[tokio::test]
async fn a_call_to_a_server_with_an_open_breaker_repeats_the_cause() {
    let daemon = Daemon::with(BREAKER.to_owned() + BROKEN).ready();
    daemon.client("/").tool("git__x", json!({})).await;

    let answer = daemon.client("/").tool("git__x", json!({})).await.answer();

    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("server `git` is not available: its process "), "{answer}");
    let cause = format!("{END}; next attempt in ");
    assert!(message.contains(&cause), "{answer}");
    let (code, _, stderr) = command(&daemon, &["call", "git/x"]);
    assert_eq!(code, 1);
    assert!(stderr.contains(&cause), "{stderr}");
    assert!(stderr.contains("Run `metamcp doctor --server git`"), "{stderr}");
}

#[tokio::test]
async fn logs_shows_the_lines_of_the_running_service_by_server_and_level() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + BROKEN).ready();
    daemon.client("/").call("fake__echo", json!({ "value": 1 })).await;
    daemon.client("/").tool("git__x", json!({})).await;

    let (code, all, _) = command(&daemon, &["logs"]);
    assert!(code == 0 && all.contains("INFO  serving: 0/2 servers up"), "{all}");
    let (_, of_git, _) = command(&daemon, &["logs", "--server", "git", "--level", "warn"]);
    assert!(of_git.contains("GITHUB_TOKEN is not set"), "{of_git}");
    assert!(
        of_git.lines().all(|line| line.contains(" WARN  ") && line.contains("git")),
        "{of_git}"
    );
    let (_, last, _) = command(&daemon, &["logs", "-n", "1", "--server", "fake"]);
    assert_eq!(last.lines().count(), 1);
    assert!(last.contains("fake"), "{last}");
    let (_, recent, _) = command(&daemon, &["logs", "--since", "10m"]);
    assert!(recent.starts_with(&all), "{recent}");

    let (code, stdout, stderr) = command(&daemon, &["logs", "--server", "gti"]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("Did you mean `git`?"), "{stderr}");
    for since in ["90", "1w", "10 minutes ago"] {
        assert_eq!(command(&daemon, &["logs", "--since", since]).0, 0, "{since}");
    }
    let (code, _, stderr) = command(&daemon, &["logs", "--since", "yesterday"]);
    assert!(code == 64 && stderr.contains("`10m`, `2h`, `1w`"), "{stderr}");
}

#[tokio::test]
async fn logs_follows_the_running_service() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let socket = daemon.control().display().to_string();
    let mut following =
        daemon::command(&["logs", "--socket", &socket, "--follow", "--server", "fake"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
    let lines = BufReader::new(following.stdout.take().expect("piped")).lines();

    daemon.client("/").call("fake__echo", json!({ "value": 1 })).await;

    let read = tokio::task::spawn_blocking(move || {
        lines.map_while(Result::ok).find(|line| line.contains("server `fake` connected"))
    });
    assert!(read.await.expect("it is read").is_some());
    daemon::signal(following.id(), Signal::INT);
    following.wait().expect("it ends");
}

#[test]
fn logs_that_follow_end_with_a_sentence_when_the_service_stops() {
    let daemon = Daemon::with("").ready();
    let socket = daemon.control().display().to_string();
    let mut following = daemon::command(&["logs", "--socket", &socket, "--follow"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(following.stdout.take().expect("piped")).lines();
    assert!(lines.next().is_some(), "it follows");
    let rest = std::thread::spawn(move || lines.for_each(drop));

    assert_eq!(command(&daemon, &["stop"]).0, 0);

    let ended = following.wait_with_output().expect("it ends");
    rest.join().expect("the output ends");
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(69), "{stderr}");
    assert!(stderr.starts_with("error: the log ends here: the service has stopped\n"), "{stderr}");
}

#[test]
fn logs_without_any_service_exits_with_69() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = daemon::command(&["logs", "--socket", "/no/such/socket"])
        .env("XDG_STATE_HOME", directory.path())
        .output()
        .expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(69), "{stderr}");
    assert!(stderr.contains("no service answers at `/no/such/socket`"), "{stderr}");
}
