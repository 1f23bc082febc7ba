//! Real clients of both eras with tasks of servers of both eras.

use std::{process::Command, thread};

use serde_json::{Value, json};

use crate::{
    Installed,
    harness::{daemon::Daemon, fake::Fakes},
};

/// A client with support for tasks.
type Client = (&'static str, fn(&Installed) -> Command);

const CLIENTS: [Client; 2] = [
    ("the Python SDK 2, with the extension", |all| all.python("tasks.py")),
    ("the TypeScript SDK 1, with tasks of 2025-11-25", |all| all.typescript("tasks.mjs")),
];

#[test]
fn clients_with_task_support_have_tasks_at_servers_of_both_eras() {
    let servers = Installed::find();
    let fakes = Fakes::new();
    let mut everything = servers.servers()["everything"].clone();
    everything["start"] = "prewarm".into();
    let everything = json!({ "servers": { "everything": everything } });
    let everything = toml::to_string(&everything).expect("servers fit into TOML");
    let modern = fakes.server("modern", &["--tasks", "--era", "modern"]) + "start = \"prewarm\"\n";
    let metamcp = Daemon::with([everything, modern].join("\n")).ready();
    let research = json!({
        "tool": "simulate-research-query",
        "arguments": { "topic": "{value}" },
        "expect": "# Research Report: {value}",
    });
    let job = json!({
        "tool": "job",
        "arguments": {
            "value": "{value}", "steps": ["working", "input_required", "working", "completed"],
        },
        "expect": "{value}",
        "asks": true,
    });

    let outcomes = thread::scope(|scope| {
        let running: Vec<_> = [("everything", &research), ("modern", &job)]
            .into_iter()
            .flat_map(|place| CLIENTS.map(|client| (place, client)))
            .map(|((server, plan), (name, start))| {
                let (client, url) = (start(&servers), metamcp.url(&format!("/servers/{server}")));
                scope.spawn(move || (format!("{name} at {server}"), outcome(client, &url, plan)))
            })
            .collect();
        running.into_iter().map(|row| row.join().expect("no panic")).collect::<Vec<_>>()
    });

    let failed: Vec<_> = outcomes.iter().filter(|(_, (is_well, _))| !is_well).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(outcomes.len(), 4);
}

/// Runs a client; returns whether it succeeded, and its report.
fn outcome(mut client: Command, url: &str, plan: &Value) -> (bool, String) {
    let output = client.args([url, &plan.to_string()]).output().expect("the client starts");
    let report = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    (output.status.success(), report.concat())
}
