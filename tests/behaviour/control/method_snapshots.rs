//! The recorded request and answer of each method.
//!
//! Values that differ from run to run are replaced.

use regex::Regex;
use serde_json::{Value, json};

use crate::harness::{daemon::Daemon, fake::Fakes, operator::Operator};

/// The members whose value varies, each with its replacement.
const VARYING: [(&str, &str); 20] = [
    // Concurrent list requests cause one or several attempts to connect a missing server.
    ("failures", "[number]"),
    ("pid", "[process]"),
    ("uid", "[user]"),
    ("gid", "[group]"),
    ("configFile", "[path]"),
    ("addresses", "[addresses]"),
    ("uptime", "[milliseconds]"),
    ("lastHealthCheck", "[time]"),
    ("errorTime", "[time]"),
    ("lastHealthCheckAgoMs", "[milliseconds]"),
    ("command", "[program]"),
    ("args", "[arguments]"),
    ("version", "[version]"),
    ("tasks", "[number]"),
    ("requests", "[number]"),
    // A host may be unable to isolate scripts.
    ("scripts", "[scripts]"),
    ("memoryBytes", "[bytes]"),
    ("ownBytes", "[bytes]"),
    ("maxBytes", "[bytes]"),
    ("peakBytes", "[bytes]"),
];

/// Returns a value with its varying members replaced.
fn normalized(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let normalized = |(name, value): (&String, &Value)| {
                let varying = VARYING.iter().find(|(varying, _)| varying == name);
                let value = match varying {
                    Some((_, word)) => json!(word),
                    None => normalized(value),
                };
                (name.clone(), value)
            };
            members.iter().map(normalized).collect()
        }
        Value::Array(items) => items.iter().map(normalized).collect(),
        other => other.clone(),
    }
}

/// Compares the answer of a method with the recorded one.
async fn assert_recorded(operator: &mut Operator, name: &str, method: &str, params: Value) {
    let mut answer = operator.ask(method, params.clone()).await;
    let outcome = match answer.get("error") {
        Some(error) => json!({ "error": error }),
        None => json!({ "result": normalized(&answer["result"].take()) }),
    };
    let outcome = match method {
        // The generation of the catalog snapshot, which metamcp builds in the background.
        "tools/search" => {
            let mut outcome = outcome;
            outcome["result"]["generation"] = json!("[number]");
            outcome
        }
        _ => outcome,
    };
    // The directory of the configuration.
    let directory = Regex::new(r"/[^ `]*/\.tmp\w+").expect("a pattern");
    let outcome = format!("{outcome:#}");
    let outcome = directory.replace_all(&outcome, "DIR");
    insta::assert_snapshot!(name, format!("{method} {params}\n\n{outcome}"));
}

#[tokio::test]
async fn every_method_answers_as_recorded() {
    let fakes = Fakes::new();
    let config = "[breaker]\nfailure_threshold = 0\n".to_owned()
        + &fakes.server("one", &["--rich"])
        + "env = { TOKEN = \"hunter2\" }\n"
        + &fakes.server("two", &[])
        + "[servers.web]\nurl = \"http://127.0.0.1:9/mcp?key=hunter2\"\n\
           headers = { Authorization = \"credential:token\", X = \"hunter2\" }\n";
    let daemon = Daemon::with(config).ready();
    let mut operator = Operator::at(&daemon).await;
    let rows = json!({ "table": "parts", "n": 1 });
    for (name, method, params) in [
        ("servers_list_before", "servers/list", json!({})),
        ("tools_list", "tools/list", json!({ "server": "one" })),
        (
            "tools_grep",
            "tools/grep",
            json!({ "pattern": "^one/rows$", "includeSchema": true, "schemaDepth": 1 }),
        ),
        (
            "tools_grep_report",
            "tools/grep",
            json!({ "pattern": "/(echo|rows)$", "report": true, "limit": 2 }),
        ),
        ("tools_info", "tools/info", json!({ "name": "one/rows" })),
        ("tools_info_path", "tools/info", json!({ "name": "one__rows", "path": "filter.name" })),
        ("tools_info_no_path", "tools/info", json!({ "name": "one:rows", "path": "filter.x" })),
        ("tools_call", "tools/call", json!({ "name": "one/rows", "arguments": rows })),
        (
            "tools_call_fields",
            "tools/call",
            json!({ "name": "one/rows", "arguments": rows, "fields": ["total", "rows[].name"] }),
        ),
        (
            "tools_call_invalid",
            "tools/call",
            json!({ "name": "one/rows", "arguments": { "tabel": 7 } }),
        ),
        ("tools_call_unknown", "tools/call", json!({ "name": "one/rosw" })),
        ("tools_validate", "tools/validate", json!({ "name": "one/rows", "arguments": rows })),
        (
            "tools_validate_invalid",
            "tools/validate",
            json!({ "name": "two/count", "arguments": { "key": 7 } }),
        ),
        (
            "tools_search",
            "tools/search",
            json!({ "query": "rows of a table", "limit": 1, "server": "one", "strategy": "keyword" }),
        ),
        ("resources_list", "resources/list", json!({ "server": "one" })),
        ("resources_list_report", "resources/list", json!({ "report": true })),
        ("resources_read", "resources/read", json!({ "server": "one", "uri": "fake:///one" })),
        (
            "resources_read_unknown",
            "resources/read",
            json!({ "server": "one", "uri": "fake:///none" }),
        ),
        ("prompts_list", "prompts/list", json!({})),
        (
            "prompts_get",
            "prompts/get",
            json!({ "server": "one", "name": "greet", "arguments": { "subject": "Ada" } }),
        ),
        ("prompts_get_unknown", "prompts/get", json!({ "server": "one", "name": "great" })),
        (
            "completions_complete",
            "completions/complete",
            json!({
                "server": "one", "ref": { "type": "ref/prompt", "name": "greet" },
                "argument": { "name": "subject", "value": "A" },
            }),
        ),
        ("auth_status", "auth/status", json!({})),
        ("servers_list", "servers/list", json!({})),
        ("daemon_status", "daemon/status", json!({})),
        ("config_reload", "config/reload", json!({})),
        ("daemon_stop", "daemon/stop", json!({})),
    ] {
        assert_recorded(&mut operator, name, method, params).await;
    }
}

#[tokio::test]
async fn the_memory_of_each_process_tree_is_reported_on_request() {
    let fakes = Fakes::new();
    let config = fakes.server("one", &[]) + &fakes.server("own", &[]) + "sharing = \"exclusive\"\n";
    let daemon = Daemon::with(config).ready();
    let mut operator = Operator::at(&daemon).await;
    let clients = [daemon.client("/").initialized().await, daemon.client("/").initialized().await];
    for client in &clients {
        for tool in ["one__whoami", "own__whoami"] {
            client.call(tool, json!({})).await;
        }
    }
    let memory = json!({ "memory": true });
    let status = operator.result("daemon/status", memory.clone()).await;
    let bytes = |value: &Value| value.as_u64().filter(|bytes| *bytes > 100_000).expect("bytes");
    let [one, own] = [0, 1].map(|place| bytes(&status["servers"][place]["memoryBytes"]));
    bytes(&status["memory"]["ownBytes"]);
    assert_eq!(status["memory"]["serversBytes"], one + own);
    assert_eq!(status["sessions"], 2);
    assert_eq!(status["memory"]["savedBytes"], one, "only shared memory is saved");

    let servers = operator.result("servers/list", memory).await;
    bytes(&servers[0]["memoryBytes"]);
    let before = bytes(&servers[0]["memoryBytes"]);
    clients[0].call("one__grandchild", json!({})).await;
    let servers = operator.result("servers/list", json!({ "memory": true })).await;
    assert!(bytes(&servers[0]["memoryBytes"]) > before / 2, "including the child process");
    assert!(operator.result("servers/list", json!({})).await[0]["memoryBytes"].is_null());
}
