//! Tool schemas that would take practically for ever to check arguments against.

use std::{fs, path::Path};

use futures_util::future::join_all;
use serde_json::{Map, Value, json};

use super::Bystanders;
use crate::harness::{
    DEADLINE,
    client::running,
    daemon::{Daemon, run},
    fake::Fakes,
};

/// The number of tools with such a schema: more than the service checks at the same time.
const N_TOOLS: usize = 6;

/// The word that precedes a result whose arguments were not checked.
const UNCHECKED: &str = "unchecked";

/// Returns a schema of 3 KB that takes 2^40 steps to reject an invalid argument.
fn doubling() -> Value {
    let mut definitions = Map::new();
    for number in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", number + 1) });
        definitions.insert(format!("d{number}"), json!({ "anyOf": [next.clone(), next] }));
    }
    definitions.insert("d40".to_owned(), json!({ "type": "string" }));
    let a = json!({ "$ref": "#/$defs/d0" });
    json!({ "type": "object", "$defs": definitions, "properties": { "a": a } })
}

fn name(number: usize) -> String {
    format!("hostile_{number}")
}

/// Starts a service with a server whose tools have such schemas.
fn daemon(fakes: &Fakes) -> Daemon {
    let path = fakes.path("schema.json");
    fs::write(&path, doubling().to_string()).expect("written");
    let path = path.display().to_string();
    let names: Vec<String> = (0..N_TOOLS).map(name).collect();
    let named = names.iter().flat_map(|name| ["--named", name]);
    let options: Vec<&str> = ["--schema", &path].into_iter().chain(named).collect();
    Daemon::with(fakes.server("fake", &options)).ready()
}

/// Returns a call with arguments that violate the schema of its tool.
fn call_of(number: usize) -> Value {
    json!({ "server": "fake", "tool": name(number), "args": { "a": 1 } })
}

/// Waits until the service runs a schema check.
async fn wait_for_check(daemon: &Daemon) {
    let tasks = format!("/proc/{}/task", daemon.pid());
    let is_checking = || {
        let threads = fs::read_dir(Path::new(&tasks)).expect("it runs").flatten();
        let names = threads.map(|thread| fs::read_to_string(thread.path().join("comm")));
        names.flatten().any(|name| name.trim() == "compute")
    };
    let waiting = async {
        while !is_checking() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("a check runs in time");
}

#[tokio::test]
async fn an_expensive_schema_delays_only_the_calls_of_its_own_tool() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let bystanders = Bystanders::start(&daemon, "/meta").await;

    let client = daemon.client("/meta").initialized().await;
    for _ in 0..2 {
        let calls = (0..N_TOOLS).map(|number| client.tool("mcp_call", call_of(number)));
        for (number, reply) in join_all(calls).await.into_iter().enumerate() {
            let result = &reply.answer()["result"];
            let words = result["content"][0]["text"].as_str().unwrap_or_default();
            assert!(words.contains(UNCHECKED) && words.contains("steps"), "{result}");
            assert!(result.to_string().contains(&name(number)), "the server answers: {result}");
            assert_ne!(result["isError"], true, "{result}");
        }
        bystanders.wait_progress().await;
    }
    bystanders.end().await;

    let log = daemon.log();
    for number in 0..N_TOOLS {
        let name = name(number);
        let n_lines = log.lines().filter(|line| line.contains("unchecked arguments"));
        let n_lines = n_lines.filter(|line| line.contains(&format!("{name:?} of server `fake`")));
        assert_eq!(n_lines.count(), 1, "{name}: {log}");
    }
}

#[tokio::test]
async fn a_chain_warns_at_each_step_with_unchecked_arguments() {
    let fakes = Fakes::new();
    let path = fakes.path("schema.json");
    fs::write(&path, doubling().to_string()).expect("written");
    let options = ["--schema", &path.display().to_string(), "--named", "hostile_0"];
    let config = "[tools]\nsets = [\"metatools\"]\n".to_owned();
    let daemon = Daemon::with(config + &fakes.server("fake", &options)).ready();

    let client = daemon.client("/meta").initialized().await;
    let hostile = json!({ "tool_id": "fake/hostile_0", "args": { "a": 1 } });
    let echo = json!({ "tool_id": "fake/echo", "args": { "value": 1 } });
    let steps = json!({ "steps": [hostile, echo, hostile] });
    let answer = client.tool("run_chain", steps).await.answer();

    let results = &answer["result"]["structuredContent"]["results"];
    for (step, is_warned) in [(0, true), (1, false), (2, true)] {
        let warning = results[step]["warning"].as_str();
        assert_eq!(warning.is_some_and(|words| words.contains(UNCHECKED)), is_warned, "{answer}");
    }
}

#[tokio::test]
async fn a_stop_does_not_wait_for_running_schema_checks() {
    let fakes = Fakes::new();
    let mut daemon = daemon(&fakes);
    let calls: Vec<_> = (0..N_TOOLS)
        .map(|number| {
            let client = daemon.client("/meta");
            running(
                async move { client.initialized().await.tool("mcp_call", call_of(number)).await },
            )
        })
        .collect();
    wait_for_check(&daemon).await;

    assert!(daemon.stop().success());

    drop(calls);
}

#[tokio::test]
async fn the_call_command_reports_that_the_arguments_were_not_checked() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let socket = daemon.control().display().to_string();

    let called = tokio::task::spawn_blocking(move || {
        run(&["call", "--socket", &socket, "fake/hostile_0", "{\"a\":1}"])
    });

    let (code, out, errors) = called.await.expect("it is waited for");
    assert_eq!(code, 0, "{out} {errors}");
    assert!(out.contains(UNCHECKED) && out.contains("hostile_0"), "{out} {errors}");
}
