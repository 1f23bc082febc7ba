//! Tasks, calls whose results are fetched later: within an era and across them.

mod from_legacy;
mod from_modern;
mod within;

use serde_json::{Value, json};

use crate::harness::{
    client::Client,
    daemon::Daemon,
    fake::{Fakes, Upstream},
    modern::{Modern, key},
    peer::Era,
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
            // From then on it is known what each server is, and what it says of its tools.
            rig.modern(server).request(json!(1), "tools/list", json!({})).await;
        }
        rig
    }

    /// Shakes hands with a server; returns the client and what it is told.
    async fn legacy(&self, server: &str) -> (Client, Value) {
        shake(self.daemon.client(&format!("/servers/{server}"))).await
    }

    /// Returns a client that has no tasks.
    fn modern(&self, server: &str) -> Modern {
        Modern::new(self.daemon.client(&format!("/servers/{server}")))
    }

    /// Returns a client that can have tasks.
    fn with_tasks(&self, server: &str) -> Modern {
        taking(self.modern(server))
    }

    /// Returns what a server that all share has seen.
    async fn seen(&self, server: &str) -> Value {
        self.modern(server).call("seen", json!({})).await
    }
}

/// Shakes hands in the version that has tasks; returns the client and what it is told.
async fn shake(client: Client) -> (Client, Value) {
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

/// Has a client take tasks.
fn taking(client: Modern) -> Modern {
    client.capabilities(json!({ "extensions": extension(), "elicitation": {} }))
}

/// Returns the extension, as both sides declare it.
fn extension() -> Value {
    json!({ key("tasks"): {} })
}

/// Sends a request and returns the answer.
async fn ask(client: &Client, method: &str, params: &Value) -> Value {
    client.request(json!(1), method, params.clone()).await.answer()
}

/// Sends a request and returns the answer.
async fn ask_modern(client: &Modern, method: &str, params: &Value) -> Value {
    client.request(json!(1), method, params.clone()).await.answer()
}

/// Returns a call.
fn call(tool: &str, arguments: &Value) -> Value {
    json!({ "name": tool, "arguments": arguments })
}

/// Returns a call that is to be a task, in the words of the legacy era.
fn as_task(tool: &str, arguments: &Value) -> Value {
    let mut call = call(tool, arguments);
    call["task"] = json!({ "ttl": 5000 });
    call
}

/// Starts a task and returns how it is asked for.
async fn started(client: &Client, arguments: &Value) -> Value {
    let created = ask(client, "tools/call", &as_task("job", arguments)).await;
    let task = &created["result"]["task"];
    assert!(task["taskId"].is_string(), "a task has begun: {created}");
    json!({ "taskId": task["taskId"] })
}

/// Starts a task and returns how it is asked for.
async fn started_modern(client: &Modern, arguments: &Value) -> Value {
    let created = ask_modern(client, "tools/call", &call("job", arguments)).await;
    assert_eq!(created["result"]["resultType"], "task", "a task has begun: {created}");
    json!({ "taskId": created["result"]["taskId"] })
}

/// Returns the word for tasks of each tool in a list.
fn words(listed: &Value) -> Vec<&Value> {
    let tools = listed["result"]["tools"].as_array().expect("a list of tools");
    assert!(tools.len() > 2, "{listed}");
    tools.iter().map(|tool| &tool["execution"]["taskSupport"]).collect()
}

/// Returns the code of an error and its name.
fn refused(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    let name = error["data"]["code"].as_str().unwrap_or_default();
    (error["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}")), name)
}
