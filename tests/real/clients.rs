//! The matrix of real clients, their eras, paths, and servers of both eras.
//!
//! Each row has two concurrent clients. They list the tools, call some, receive progress of one
//! call and answer a question in another, if the client can. The eras of a client run concurrently
//! on the same address.

use std::{process::Command, thread};

use serde_json::{Value, json};

use crate::{
    Installed,
    harness::{
        DEADLINE,
        daemon::Daemon,
        fake::{Fakes, Upstream},
    },
    report_of, statuses,
};

const LEGACY: &[&str] = &["legacy"];
const BOTH: &[&str] = &["legacy", "modern"];

/// A client, its eras, and its features.
struct Client {
    name: &'static str,
    start: fn(&Installed) -> Command,
    /// The version, if one program has several.
    sdk: u8,
    eras: &'static [&'static str],
    shows_progress: bool,
    can_be_asked: bool,
}

impl Client {
    const fn sdk(
        name: &'static str,
        start: fn(&Installed) -> Command,
        sdk: u8,
        eras: &'static [&'static str],
    ) -> Self {
        Self { name, start, sdk, eras, shows_progress: true, can_be_asked: true }
    }
}

const CLIENTS: [Client; 5] = [
    Client::sdk("the TypeScript SDK 1", |all| all.typescript("client.mjs"), 1, LEGACY),
    Client::sdk("the TypeScript SDK 2", |all| all.typescript("client.mjs"), 2, BOTH),
    Client::sdk("the Python SDK 1", |all| all.first_python("client.py"), 1, LEGACY),
    Client::sdk("the Python SDK 2", |all| all.python("client.py"), 2, BOTH),
    Client {
        shows_progress: false,
        can_be_asked: false,
        ..Client::sdk("the Inspector", |all| all.typescript("inspector.mjs"), 2, BOTH)
    },
];

const N_CASES: usize = 7;

/// A path with its servers and the plan for it. A new kind of view needs another case.
struct PathCase {
    path: &'static str,
    description: &'static str,
    tools: Value,
    calls: Value,
    /// A tool that reports progress, if there is one.
    progress: Option<Value>,
    /// The tools that ask the client for a name.
    asks: Value,
}

fn path_cases(servers: &Installed) -> [PathCase; N_CASES] {
    let repository = json!({ "repo_path": servers.path("repository") });
    let echo = |tool: &str| json!({ "tool": tool, "arguments": { "message": "{value}" }, "expect": "Echo: {value}" });
    let log =
        |tool: &str| json!({ "tool": tool, "arguments": repository, "expect": "commit three" });
    let fake = |tool: &str| json!({ "tool": tool, "arguments": { "value": "{value}" }, "expect": "{value}" });
    let time =
        |tool: &str| json!({ "tool": tool, "arguments": { "timezone": "UTC" }, "expect": "UTC" });
    let work = |tool: &str| json!({ "tool": tool, "arguments": { "duration": 0.5, "steps": "{steps}" }, "total": "{steps}" });
    let steps = |tool: &str| json!({ "tool": tool, "arguments": { "steps": "{steps}" }, "total": "{steps}" });
    let name = |tool: &str| json!({ "tool": tool, "expect": "Name: {value}" });
    let ask = |tool: &str| json!({ "tool": tool, "arguments": { "method": "elicitation/create" }, "expect": "{value}" });
    // The same call through a meta-tool, with the target in its arguments.
    let through = |server: &str, mut asked: Value| {
        let args = asked.get("arguments").cloned().unwrap_or_else(|| json!({}));
        asked["arguments"] = json!({ "server": server, "tool": asked["tool"], "args": args });
        asked["tool"] = "mcp_call".into();
        asked
    };
    let discover = |query: &str, expect: &str| json!({ "tool": "mcp_discover", "arguments": { "query": query }, "expect": expect });
    [
        PathCase {
            path: "/servers/everything",
            description: "a legacy server",
            tools: json!(["echo", "get-sum"]),
            calls: json!([echo("echo")]),
            progress: Some(work("trigger-long-running-operation")),
            asks: json!([name("trigger-elicitation-request")]),
        },
        PathCase {
            path: "/servers/git",
            description: "a modern server",
            tools: json!(["git_log", "git_status"]),
            calls: json!([log("git_log")]),
            progress: None,
            asks: json!([]),
        },
        PathCase {
            path: "/servers/time",
            description: "another modern server",
            tools: json!(["get_current_time", "convert_time"]),
            calls: json!([time("get_current_time")]),
            progress: None,
            asks: json!([]),
        },
        PathCase {
            path: "/servers/pipe",
            description: "a modern server that asks",
            tools: json!(["ask", "echo"]),
            calls: json!([fake("echo")]),
            progress: Some(steps("progress")),
            asks: json!([ask("ask")]),
        },
        PathCase {
            path: "/servers/http",
            description: "a modern server that asks, over HTTP",
            tools: json!(["ask", "echo"]),
            calls: json!([fake("echo")]),
            progress: Some(steps("progress")),
            asks: json!([ask("ask")]),
        },
        PathCase {
            path: "/",
            description: "all servers, merged",
            tools: json!([
                "everything__echo",
                "git__git_log",
                "time__convert_time",
                "pipe__echo",
                "http__echo"
            ]),
            calls: json!([
                echo("everything__echo"),
                log("git__git_log"),
                fake("pipe__echo"),
                fake("http__echo")
            ]),
            progress: Some(work("everything__trigger-long-running-operation")),
            asks: json!([
                name("everything__trigger-elicitation-request"),
                ask("pipe__ask"),
                ask("http__ask"),
            ]),
        },
        PathCase {
            path: "/meta",
            description: "all servers, behind a few tools",
            tools: json!(["mcp_discover", "mcp_provision", "mcp_call", "mcp_execute"]),
            calls: json!([
                discover("commits of a repository", "git_log"),
                discover("what time is it in another city", "convert_time"),
                through("everything", echo("echo")),
                through("git", log("git_log")),
                through("pipe", fake("echo")),
            ]),
            progress: Some(started(through("everything", work("trigger-long-running-operation")))),
            asks: json!([
                through("everything", name("trigger-elicitation-request")),
                through("pipe", ask("ask")),
                through("http", ask("ask")),
            ]),
        },
    ]
}

/// Returns the call of a meta-tool, which reports its start before the server reports progress.
fn started(mut call: Value) -> Value {
    call["first"] = json!([[0, 1]]);
    call
}

#[test]
fn every_client_in_every_era_is_served_at_every_path() {
    let servers = Installed::find();
    let (fakes, upstream) = (Fakes::new(), Upstream::start(&MODERN));
    let metamcp = Daemon::with(config(&servers, &fakes, &upstream)).ready();

    let visits =
        path_cases(&servers).into_iter().flat_map(|case| case.visit_all(&servers, &metamcp));
    let rows: Vec<String> = visits.collect();

    let table = rows.join("\n");
    assert!(rows.iter().all(|row| row.ends_with(SERVED)), "{table}");
    assert_eq!(rows.len(), N_CASES * CLIENTS.iter().map(|client| client.eras.len()).sum::<usize>());
    for status in statuses(&metamcp) {
        let era = if status["name"] == "everything" { "legacy" } else { "modern" };
        assert_eq!(status["era"], era, "{status:#}");
        assert_eq!(status["in_flight"], 0, "{status:#}");
    }
}

/// The ending of a successful row.
const SERVED: &str = "are served";

const MODERN: [&str; 2] = ["--era", "modern"];

/// Returns servers of both eras. The legacy one can ask a client only with exclusive sharing. All
/// others are connected before the first client, because a list of all servers omits late ones.
fn config(servers: &Installed, fakes: &Fakes, upstream: &Upstream) -> String {
    let real = |name: &str, key: &str, value: &str| {
        let mut server = servers.servers()[name].clone();
        server[key] = value.into();
        server
    };
    let real = json!({ "servers": {
        "everything": real("everything", "sharing", "exclusive"),
        "git": real("git", "start", "prewarm"),
        "time": real("time", "start", "prewarm"),
    } });
    let real = toml::to_string(&real).expect("servers fit into TOML");
    let prewarm = "start = \"prewarm\"\n";
    [real, fakes.server("pipe", &MODERN) + prewarm, upstream.server("http", prewarm)].join("\n")
}

impl PathCase {
    /// Lets each client connect in all its eras concurrently, one client after the other; returns a
    /// sentence per visit.
    fn visit_all(&self, servers: &Installed, metamcp: &Daemon) -> Vec<String> {
        let visit = |client: &Client, era: &str| {
            let url = metamcp.url(self.path);
            let outcome = report_of((client.start)(servers), &url, &self.plan(client), era);
            let outcome = match outcome {
                Ok(_) => SERVED.to_owned(),
                Err(report) => format!("are not: {report}"),
            };
            format!("{}: two of {}, {era}, {outcome}", self.description, client.name)
        };
        let visits = CLIENTS.iter().flat_map(|client| {
            thread::scope(|scope| {
                let eras = client.eras.iter().map(|era| scope.spawn(move || visit(client, era)));
                let eras: Vec<_> = eras.collect();
                eras.into_iter().map(|row| row.join().expect("no panic")).collect::<Vec<_>>()
            })
        });
        visits.collect()
    }

    fn plan(&self, client: &Client) -> Value {
        let mut plan = json!({
            "clients": 2, "sdk": client.sdk, "tools": self.tools, "calls": self.calls,
            "timeout": DEADLINE.as_secs() * 3,
        });
        if let Some(progress) = self.progress.as_ref().filter(|_| client.shows_progress) {
            plan["progress"] = progress.clone();
        }
        if client.can_be_asked {
            plan["asks"] = self.asks.clone();
        }
        plan
    }
}
