//! Servers that are systemd units: started by a connection, ended with it, and named when they
//! fail.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::net::{UnixSocket, UnixStream};

use crate::{
    harness::{
        client::running,
        daemon::{self, Daemon},
        fake::{Fakes, is_alive},
        unit::{SocketUnit, journal, journalctl},
    },
    server_status, until,
};

/// The output of `journalctl` for a user who may not read the journal.
const UNREADABLE: &str = "echo 'No journal files were opened' >&2; exit 1";

/// Starts a service that cannot read the journal and waits until it is ready.
fn service(fakes: &Fakes, config: String) -> Daemon {
    Daemon::with(config).env("PATH", journalctl(fakes, UNREADABLE)).ready()
}

#[track_caller]
fn only_pid(fakes: &Fakes, name: &str) -> u64 {
    let pids = fakes.pids(name);
    assert_eq!(pids.len(), 1, "one instance");
    pids.into_iter().next().expect("one")
}

#[tokio::test]
async fn a_unit_is_started_by_the_first_request_and_shared_by_all_clients() {
    let fakes = Fakes::new();
    let unit = SocketUnit::start(&fakes, "notes", &[], 8);
    let daemon = service(&fakes, unit.server("notes", ""));
    assert_eq!(server_status(&daemon, "notes").await["state"], "idle");
    assert!(fakes.pids("notes").is_empty(), "no request has started it");

    for client in ["/", "/servers/notes"].map(|path| daemon.client(path)) {
        let tool = if client.url().ends_with("notes") { "echo" } else { "notes__echo" };
        assert_eq!(client.call(tool, json!({ "value": 7 })).await["value"], 7);
    }

    only_pid(&fakes, "notes");
    let status = server_status(&daemon, "notes").await;
    assert_eq!((&status["transport"], &status["pid"]), (&json!("unit"), &Value::Null));
    assert_eq!((&status["generation"], &status["connections"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn the_error_for_a_unit_that_fails_to_start_quotes_the_end_of_its_journal() {
    let fakes = Fakes::new();
    let unit = SocketUnit::start(&fakes, "notes", &["--exit-at-start", "3"], 8);
    let instance = "metamcp-server-notes@0-1-0.service";
    let end = format!("{instance}: Main process exited.");
    let journal = journal(&[(instance, "disk full"), (instance, &end)]);
    let daemon = Daemon::with(unit.server("notes", "")).env("PATH", journalctl(&fakes, &journal));
    let daemon = daemon.ready();

    let answer = daemon.client("/servers/notes").tool("echo", json!({})).await.answer();

    let message = answer["error"]["message"].to_string();
    assert!(
        message.contains(
            "unit `metamcp-server-notes` ended (end of its journal: `disk full | Main process exited.`)"
        ),
        "{message}"
    );
    let arguments = fs::read_to_string(fakes.path("journalctl.asked")).expect("it ran");
    let own_units = format!("--unit=metamcp-server-notes@*-{}[-_]*.service", daemon.pid());
    assert!(arguments.contains(&own_units), "{arguments}");
}

#[tokio::test]
async fn a_unit_that_exits_during_a_call_is_reported_without_its_journal_and_restarted() {
    let fakes = Fakes::new();
    let unit = SocketUnit::start(&fakes, "notes", &[], 8);
    let script = journal(&[("metamcp-server-notes@0-1-0.service", "what a client asked")]);
    let path = journalctl(&fakes, &script);
    let daemon = Daemon::with(unit.server("notes", "")).env("PATH", path).ready();
    let client = daemon.client("/servers/notes");

    let answer = client.tool("exit", json!({ "code": 3 })).await.answer();

    assert_eq!(answer["error"]["data"]["code"], "SERVER_EXITED");
    // Its recent journal may be about another client.
    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(message.ends_with("unit `metamcp-server-notes` ended"), "{message}");
    let hint = answer["error"]["data"]["suggestion"].to_string();
    assert!(hint.contains("journalctl -u 'metamcp-server-notes@*'"), "{hint}");
    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);
    assert_eq!(fakes.pids("notes").len(), 2);
}

#[tokio::test]
async fn a_failure_names_the_unit_even_if_its_journal_cannot_be_read() {
    let fakes = Fakes::new();
    let unit = SocketUnit::start(&fakes, "notes", &[], 8);
    let daemon = service(&fakes, unit.server("n", "unit = \"my-notes\""));
    let client = daemon.client("/servers/n");
    client.call("echo", json!({})).await;
    let pid = u32::try_from(only_pid(&fakes, "notes")).expect("a process id");

    daemon::signal(pid, Signal::KILL);

    let error = "the server's unit `my-notes` ended";
    until(async || server_status(&daemon, "n").await["last_error"] == error).await;
    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);
}

#[tokio::test]
async fn a_unit_ends_with_its_connection() {
    let fakes = Fakes::new();
    let unit = SocketUnit::start(&fakes, "notes", &[], 8);
    let declared = unit.server("notes", "");
    let mut daemon = service(&fakes, declared.clone());
    daemon.client("/servers/notes").call("echo", json!({})).await;
    let first = only_pid(&fakes, "notes");

    daemon.rewrite("");
    daemon.reload();
    until(async || !is_alive(first)).await;

    daemon.rewrite(&declared);
    daemon.reload();
    daemon.client("/servers/notes").call("echo", json!({})).await;
    assert!(daemon.stop().success());
    for pid in fakes.pids("notes") {
        until(async || !is_alive(pid)).await;
    }
    let n_ends = fakes.n_events("notes", "eof");
    assert_eq!(n_ends, 2, "both ended at the end of their input");
}

#[tokio::test]
async fn a_unit_that_does_not_exit_does_not_delay_a_shutdown() {
    let fakes = Fakes::new();
    let unit = SocketUnit::start(&fakes, "notes", &["--no-eof-exit"], 8);
    let mut daemon = service(&fakes, unit.server("notes", ""));
    daemon.client("/servers/notes").call("echo", json!({})).await;

    assert!(daemon.stop().success());

    assert!(daemon.log().contains("has not ended yet"), "{}", daemon.log());
    assert!(is_alive(only_pid(&fakes, "notes")), "metamcp does not kill a unit");
}

#[tokio::test]
async fn the_error_for_a_missing_socket_names_the_command_that_starts_it() {
    let fakes = Fakes::new();
    let socket = fakes.path("notes.sock");
    let daemon = service(&fakes, format!("[servers.notes]\nsocket = {socket:?}\n"));
    let client = daemon.client("/servers/notes");

    let refused = client.tool("echo", json!({})).await.answer();

    assert_eq!(refused["error"]["data"]["code"], "SERVER_NOT_STARTED");
    let message = refused["error"]["message"].to_string();
    assert!(message.contains("notes.sock`: there is no such socket"), "{message}");
    let hint = refused["error"]["data"]["suggestion"].to_string();
    assert!(hint.contains("systemctl start metamcp-server-notes.socket"), "{hint}");

    let _unit = SocketUnit::start(&fakes, "notes", &[], 8);
    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);
}

#[tokio::test]
async fn a_call_waits_for_a_unit_socket_that_is_being_recreated() {
    let fakes = Fakes::new();
    let unit = SocketUnit::start(&fakes, "notes", &[], 8);
    let daemon =
        service(&fakes, format!("[service]\nlog_level = \"debug\"\n{}", unit.server("notes", "")));
    let client = daemon.client("/servers/notes");
    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);

    // A system switch stops the instance and its socket, and recreates the socket.
    drop(unit);
    std::fs::remove_file(fakes.path("notes.sock")).expect("removed");
    let call = running(async move { client.tool("echo", json!({ "value": 2 })).await });
    until(async || daemon.log().contains("is not available yet")).await;
    let _unit = SocketUnit::start(&fakes, "notes", &[], 8);

    let answer = call.end().await.answer();
    assert!(answer["result"].is_object(), "{answer}");
}

#[tokio::test]
async fn the_error_for_a_unit_at_its_instance_limit_names_the_setting() {
    let fakes = Fakes::new();
    let unit = SocketUnit::start(&fakes, "notes", &[], 1);
    let socket = "metamcp-server-notes.socket";
    let refused = format!("{socket}: Too many incoming connections (1), dropping connection.");
    let journal = journal(&[(socket, &refused)]);
    let daemon = Daemon::with(unit.server("notes", "sharing = \"session\""))
        .env("PATH", journalctl(&fakes, &journal))
        .ready();
    let one = daemon.client("/servers/notes").initialized().await;
    let other = daemon.client("/servers/notes").initialized().await;
    assert_eq!(one.call("echo", json!({ "value": 1 })).await["value"], 1);

    let refused = other.tool("echo", json!({})).await.answer();

    let message = refused["error"]["message"].to_string();
    assert!(message.contains("Too many incoming connections"), "{message}");
    let hint = refused["error"]["data"]["suggestion"].to_string();
    assert!(hint.contains("`MaxConnections=`"), "{hint}");
    assert_eq!(one.call("echo", json!({ "value": 2 })).await["value"], 2);
}

#[tokio::test]
async fn a_call_waits_for_a_unit_socket_with_a_full_backlog() {
    let fakes = Fakes::new();
    let path = fakes.path("notes.sock");
    let socket = UnixSocket::new_stream().expect("a socket");
    socket.bind(&path).expect("bound");
    let listener = socket.listen(0).expect("listens").into_std().expect("a listener");
    let mut waiting = Vec::new();
    while let Ok(stream) = UnixStream::connect(&path).await {
        waiting.push(stream);
    }
    let config = format!("[service]\nlog_level = \"debug\"\n[servers.notes]\nsocket = {path:?}\n");
    let daemon = service(&fakes, config);

    let client = daemon.client("/servers/notes");
    let call = running(async move { client.tool("echo", json!({ "value": 1 })).await });
    until(async || daemon.log().contains("the queue of this socket is full")).await;
    drop(waiting);
    listener.set_nonblocking(false).expect("set");
    let _unit = SocketUnit::serve(&fakes, "notes", &[], 8, listener);

    let answer = call.end().await.answer();
    assert!(answer["result"].is_object(), "{answer}");
}
