//! Tasks: calls with results that clients fetch later, within an era and across eras.

mod legacy_clients;
mod modern_clients;
mod same_era;

use serde_json::{Value, json};

use crate::harness::{
    client::Client,
    daemon::Daemon,
    era_client::Era,
    fake::{Fakes, Upstream},
    modern::{Modern, key},
};

const PROTOCOL: &str = "2025-11-25";

/// The member that names the task of a message in the legacy era.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The names of the servers: one is reached over a pipe, the other over HTTP.
const SERVERS: [&str; 2] = ["pipe", "http"];

/// The service in front of two servers of an era, both with tasks.
struct Rig {
    daemon: Daemon,
    upstream: Upstream,
    _fakes: Fakes,
}

impl Rig {
    /// Starts everything, with more lines for each server.
    async fn start(era: Era, more: &str) -> Self {
        let era = match era {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        };
        let options = ["--tasks", "--era", era, "--protocol", PROTOCOL];
        let (fakes, upstream) = (Fakes::new(), Upstream::start(&options));
        let config = fakes.server("pipe", &options) + more + &upstream.server("http", more);
        let rig = Self { daemon: Daemon::with(config).ready(), upstream, _fakes: fakes };
        for server in SERVERS {
            // From then on, metamcp knows the era and the tools of the server.
            rig.modern(server).request(json!(1), "tools/list", json!({})).await;
        }
        rig
    }

    /// Initializes a legacy client; returns it and the declared capabilities.
    async fn legacy(&self, server: &str) -> (Client, Value) {
        initialize(self.daemon.client(&format!("/servers/{server}"))).await
    }

    /// Returns a modern client without task support.
    fn modern(&self, server: &str) -> Modern {
        Modern::new(self.daemon.client(&format!("/servers/{server}")))
    }

    /// Returns a modern client with task support.
    fn with_tasks(&self, server: &str) -> Modern {
        with_task_support(self.modern(server))
    }

    /// Returns the record of a shared server.
    async fn seen(&self, server: &str) -> Value {
        self.modern(server).call("seen", json!({})).await
    }
}

/// Initializes a client of the version with tasks; returns it and the declared capabilities.
async fn initialize(client: Client) -> (Client, Value) {
    let params = json!({
        "protocolVersion": PROTOCOL, "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "test", "version": "1" },
    });
    let reply = client.request(json!(0), "initialize", params).await;
    let session = reply.headers.get("mcp-session-id").expect("a session id").to_str();
    let client = client.header("mcp-session-id", session.expect("visible ASCII"));
    client.notify("notifications/initialized", json!({})).await;
    (client, reply.answer()["result"]["capabilities"].clone())
}

/// Declares task support of a client.
fn with_task_support(client: Modern) -> Modern {
    client.capabilities(json!({ "extensions": extension(), "elicitation": {} }))
}

/// Returns the tasks extension as both sides declare it.
fn extension() -> Value {
    json!({ key("tasks"): {} })
}

/// Sends a request and returns the answer.
async fn ask(client: &Client, method: &str, params: &Value) -> Value {
    client.request(json!(1), method, params.clone()).await.answer()
}

/// Sends a request of a modern client and returns the answer.
async fn ask_modern(client: &Modern, method: &str, params: &Value) -> Value {
    client.request(json!(1), method, params.clone()).await.answer()
}

/// Returns the parameters of a call.
fn call(tool: &str, arguments: &Value) -> Value {
    json!({ "name": tool, "arguments": arguments })
}

/// Returns the parameters of a call that becomes a task, in the legacy era.
fn as_task(tool: &str, arguments: &Value) -> Value {
    let mut call = call(tool, arguments);
    call["task"] = json!({ "ttl": 5000 });
    call
}

/// Starts a task and returns the parameters that name it.
async fn start_task(client: &Client, arguments: &Value) -> Value {
    let created = ask(client, "tools/call", &as_task("job", arguments)).await;
    let task = &created["result"]["task"];
    assert!(task["taskId"].is_string(), "a task has begun: {created}");
    json!({ "taskId": task["taskId"] })
}

/// Starts a task of a modern client and returns the parameters that name it.
async fn start_modern_task(client: &Modern, arguments: &Value) -> Value {
    let created = ask_modern(client, "tools/call", &call("job", arguments)).await;
    assert_eq!(created["result"]["resultType"], "task", "a task has begun: {created}");
    json!({ "taskId": created["result"]["taskId"] })
}

/// Returns the declared task support of each tool in a list.
fn task_support(listed: &Value) -> Vec<&Value> {
    let tools = listed["result"]["tools"].as_array().expect("a list of tools");
    assert!(tools.len() > 2, "{listed}");
    tools.iter().map(|tool| &tool["execution"]["taskSupport"]).collect()
}

/// Returns the code of an error and its name.
fn error_code(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    let name = error["data"]["code"].as_str().unwrap_or_default();
    (error["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}")), name)
}
