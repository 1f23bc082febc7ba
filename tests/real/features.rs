//! server-everything over every transport: each client gets its own messages only.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Command, Stdio},
    thread,
};

use serde_json::json;

use crate::{
    Installed, assert_succeeds, everything::Everything, harness::daemon::Daemon, statuses,
};

/// A client: its program for a script, its era, and the version of its SDK.
type Client = (fn(&Installed, &str) -> Command, &'static str, u8);

/// Both SDKs, both versions of the TypeScript SDK, and both eras where supported.
const CLIENTS: [Client; 5] = [
    (PYTHON, "legacy", 2),
    (PYTHON, "modern", 2),
    (TYPESCRIPT, "legacy", 1),
    (TYPESCRIPT, "legacy", 2),
    (TYPESCRIPT, "modern", 2),
];

const PYTHON: fn(&Installed, &str) -> Command = |all, script| all.python(&format!("{script}.py"));
const TYPESCRIPT: fn(&Installed, &str) -> Command =
    |all, script| all.typescript(&format!("{script}.mjs"));

/// Returns the clients with sessions, to which a server can send requests and notices.
fn with_sessions() -> impl Iterator<Item = Client> {
    CLIENTS.into_iter().filter(|(_, era, _)| *era == "legacy")
}

const TRANSPORTS: [&str; 3] = ["stdio", "http", "sse"];

#[test]
fn twelve_concurrent_clients_share_one_connection_of_each_transport() {
    let servers = Installed::find();
    let transports = Transports::start(&servers, "shared");
    let mut plan = json!({
        "clients": 12,
        "calls": [
            {"tool": "echo", "arguments": {"message": "{value}"}, "expect": "Echo: {value}", "times": 5},
            {"tool": "get-sum", "arguments": {"a": "{number}", "b": 0}, "expect": "is {number}."},
        ],
        "progress": {
            "tool": "trigger-long-running-operation",
            "arguments": {"duration": 1, "steps": "{steps}"},
            "total": "{steps}",
        },
        "resources": true,
        "prompts": true,
    });

    for (client, era, sdk) in CLIENTS {
        plan["sdk"] = sdk.into();
        transports.each(|url| assert_succeeds(client(&servers, "client"), url, &plan, era));
    }

    for status in statuses(&transports.metamcp) {
        assert_eq!(status["transport"], status["name"], "{status:#}");
        assert_eq!(status["generation"], 1, "connected once: {status:#}");
    }
}

#[test]
fn notices_reach_only_the_clients_that_requested_them() {
    let servers = Installed::find();
    let transports = Transports::start(&servers, "shared");

    for (client, _, sdk) in with_sessions() {
        transports.each(|url| assert_scenario(client(&servers, "features"), url, "notices", sdk));
    }

    for status in statuses(&transports.metamcp) {
        // The server still works on the cancelled calls.
        assert_eq!(status["in_flight"], 0, "{status:#}");
        assert_eq!(status["generation"], 1, "connected once: {status:#}");
    }
}

#[test]
fn server_requests_are_answered_by_the_client_that_caused_them() {
    let servers = Installed::find();
    let transports = Transports::start(&servers, "session");

    for (client, _, sdk) in with_sessions() {
        transports.each(|url| assert_scenario(client(&servers, "features"), url, "questions", sdk));
    }
}

#[test]
fn clients_do_not_notice_that_an_upstream_was_killed_and_restarted() {
    let servers = Installed::find();
    let mut upstream = Everything::start(&servers, "streamableHttp");
    let config = json!({ "servers": { "http": { "url": upstream.url() } } });
    let metamcp = Daemon::with(toml::to_string(&config).expect("TOML")).ready();

    for (client, _, sdk) in with_sessions() {
        let mut client = client(&servers, "features");
        client.args([&metamcp.url("/servers/http"), "restart", &sdk.to_string()]);
        let mut running = client
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the client starts");
        let mut output = BufReader::new(running.stdout.take().expect("piped"));
        let mut first = String::new();
        output.read_line(&mut first).expect("readable");
        if first == "ready\n" {
            upstream = upstream.restart(&servers);
            let written = running.stdin.take().expect("piped").write_all(b"restarted\n");
            written.expect("the client is running");
        }
        let mut report = String::new();
        output.read_to_string(&mut report).expect("readable");
        let status = running.wait().expect("it can be waited for");
        assert!(status.success(), "{client:?} {sdk}: {first}{report}");
    }
    let [status] = &statuses(&metamcp)[..] else { panic!("one server") };
    assert_eq!(
        status["generation"],
        1 + with_sessions().count(),
        "once after each start: {status:#}"
    );
}

/// metamcp with server-everything once per transport, named after the transport.
struct Transports {
    metamcp: Daemon,
    // Dropped after metamcp, which ends its sessions with them.
    _upstreams: [Everything; 2],
}

impl Transports {
    fn start(servers: &Installed, sharing: &str) -> Self {
        let upstreams = ["streamableHttp", "sse"].map(|mode| Everything::start(servers, mode));
        let mut stdio = servers.servers()["everything"].clone();
        stdio["sharing"] = sharing.into();
        let [http, sse] = upstreams
            .each_ref()
            .map(|upstream| json!({ "url": upstream.url(), "sharing": sharing }));
        let config = json!({ "servers": { "stdio": stdio, "http": http, "sse": sse } });
        let metamcp = Daemon::with(toml::to_string(&config).expect("TOML")).ready();
        Self { metamcp, _upstreams: upstreams }
    }

    /// Runs a client at all transports concurrently.
    fn each(&self, run: impl Fn(&str) + Sync) {
        let run = &run;
        thread::scope(|scope| {
            for transport in TRANSPORTS {
                let url = self.metamcp.url(&format!("/servers/{transport}"));
                scope.spawn(move || run(&url));
            }
        });
    }
}

#[track_caller]
fn assert_scenario(mut client: Command, url: &str, scenario: &str, sdk: u8) {
    client.args([url, scenario, &sdk.to_string()]).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = client.output().expect("the client starts");
    let report = String::from_utf8_lossy(&output.stdout).replace("\\n", "\n");
    assert!(output.status.success(), "{url} {scenario} {sdk}, {}: {report}", output.status);
}
