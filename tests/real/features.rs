//! server-everything over every transport: what each client gets, and others do not.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Command, Stdio},
    thread,
};

use serde_json::{Value, json};

use crate::{Installed, assert_all_well, everything::Everything, harness::daemon::Daemon};

/// Both SDKs, and both versions of the TypeScript one.
const CLIENTS: [(fn(&Installed, &str) -> Command, &str); 3] = [
    (|servers, script| servers.python(&format!("{script}.py")), "legacy"),
    (|servers, script| servers.typescript(&format!("{script}.mjs")), "legacy"),
    (|servers, script| servers.typescript(&format!("{script}.mjs")), "auto"),
];

const TRANSPORTS: [&str; 3] = ["stdio", "http", "sse"];

#[test]
fn twelve_clients_at_a_time_share_one_connection_of_each_transport() {
    let servers = Installed::find();
    let behind = Behind::start(&servers, "shared");
    let plan = json!({
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

    behind.with_every_client("client", |client, url, era| assert_all_well(client, url, &plan, era));

    for status in statuses(&behind.metamcp) {
        assert_eq!(status["transport"], status["name"], "{status:#}");
        assert_eq!(status["generation"], 1, "connected once: {status:#}");
    }
}

#[test]
fn notices_reach_the_clients_that_asked_for_them_and_no_others() {
    let servers = Installed::find();
    let behind = Behind::start(&servers, "shared");

    behind.with_every_client("features", |client, url, era| {
        assert_scenario(client, url, "notices", era);
    });

    for status in statuses(&behind.metamcp) {
        // The server still works on what was cancelled.
        assert_eq!(status["in_flight"], 0, "{status:#}");
        assert_eq!(status["generation"], 1, "connected once: {status:#}");
    }
}

#[test]
fn questions_of_a_server_are_answered_by_the_client_that_caused_them() {
    let servers = Installed::find();
    let behind = Behind::start(&servers, "session");

    behind.with_every_client("features", |client, url, era| {
        assert_scenario(client, url, "questions", era);
    });
}

#[test]
fn clients_go_on_without_noticing_that_an_upstream_was_killed_and_started_again() {
    let servers = Installed::find();
    let mut upstream = Everything::start(&servers, "streamableHttp");
    let config = json!({ "servers": { "http": { "url": upstream.url() } } });
    let metamcp = Daemon::with(toml::to_string(&config).expect("TOML")).ready();

    for (client, era) in CLIENTS {
        let mut client = client(&servers, "features");
        client.args([&metamcp.url("/servers/http"), "restart", era]);
        let mut client = client
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the client starts");
        let mut output = BufReader::new(client.stdout.take().expect("piped"));
        let mut first = String::new();
        output.read_line(&mut first).expect("readable");
        if first == "ready\n" {
            upstream = upstream.restart(&servers);
            let told = client.stdin.take().expect("piped").write_all(b"restarted\n");
            told.expect("the client is there");
        }
        let mut report = String::new();
        output.read_to_string(&mut report).expect("readable");
        let status = client.wait().expect("it can be waited for");
        assert!(status.success(), "{era}: {first}{report}");
    }
    let [status] = &statuses(&metamcp)[..] else { panic!("one server") };
    assert_eq!(status["generation"], 1 + CLIENTS.len(), "once after each start: {status:#}");
}

/// metamcp with server-everything behind it, once for each transport and called like it.
struct Behind<'a> {
    servers: &'a Installed,
    metamcp: Daemon,
    // After metamcp, which takes leave of them.
    _upstreams: [Everything; 2],
}

impl<'a> Behind<'a> {
    fn start(servers: &'a Installed, sharing: &str) -> Self {
        let upstreams = ["streamableHttp", "sse"].map(|mode| Everything::start(servers, mode));
        let mut stdio = servers.servers()["everything"].clone();
        stdio["sharing"] = sharing.into();
        let [http, sse] = upstreams
            .each_ref()
            .map(|upstream| json!({ "url": upstream.url(), "sharing": sharing }));
        let config = json!({ "servers": { "stdio": stdio, "http": http, "sse": sse } });
        let metamcp = Daemon::with(toml::to_string(&config).expect("TOML")).ready();
        Self { servers, metamcp, _upstreams: upstreams }
    }

    /// Runs every client, one after the other, at all transports at the same time.
    fn with_every_client(&self, script: &str, run: impl Fn(Command, &str, &str) + Sync) {
        let run = &run;
        for (client, era) in CLIENTS {
            thread::scope(|scope| {
                for transport in TRANSPORTS {
                    let client = client(self.servers, script);
                    let url = self.metamcp.url(&format!("/servers/{transport}"));
                    scope.spawn(move || run(client, &url, era));
                }
            });
        }
    }
}

/// Returns what the service tells about each server.
fn statuses(metamcp: &Daemon) -> Vec<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let status = runtime.expect("a runtime").block_on(metamcp.client("/status").get());
    let mut status: Value = serde_json::from_str(&status.body).expect("JSON");
    serde_json::from_value(status["servers"].take()).expect("a list of servers")
}

#[track_caller]
fn assert_scenario(mut client: Command, url: &str, scenario: &str, era: &str) {
    client.args([url, scenario, era]).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = client.output().expect("the client starts");
    let report = String::from_utf8_lossy(&output.stdout).replace("\\n", "\n");
    assert!(output.status.success(), "{url} {scenario} {era}, {}: {report}", output.status);
}
