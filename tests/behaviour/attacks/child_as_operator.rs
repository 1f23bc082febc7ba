//! A server that metamcp has started calls methods of the control interface.

use std::{fs, os::unix::fs::PermissionsExt as _};

use hyper::Method;
use serde_json::{Value, json};

use super::Bystanders;
use crate::{
    harness::{
        client::{Client, request},
        daemon::{Daemon, PROGRAM},
        fake::Fakes,
        operator::Operator,
    },
    until,
};

/// A service with a server that connects back to it.
struct Rig {
    daemon: Daemon,
    client: Client,
    fakes: Fakes,
}

impl Rig {
    async fn new() -> Self {
        let fakes = Fakes::new();
        let config = "[listen]\nrpc = true\n".to_owned() + &fakes.server("agent", &[]);
        let daemon = Daemon::with(config).ready();
        let client = daemon.client("/servers/agent").initialized().await;
        Self { daemon, client, fakes }
    }

    /// Sends a request from the server to the control socket, and returns the answer.
    async fn over_socket(&self, method: &str, params: &Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let to = self.daemon.control().display().to_string();
        let replied = self.dial(&to, &format!("{request}\n")).await;
        serde_json::from_str(&replied).expect(&replied)
    }

    /// Sends a request from the server to `POST /rpc`, and returns the answer.
    async fn over_http(&self, method: &str, params: &Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (to, body) = (self.daemon.address().to_string(), body.to_string());
        let head = format!(
            "POST /rpc HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let replied = self.dial(&to, &(head + &body)).await;
        let (_, body) = replied.split_once("\r\n\r\n").expect(&replied);
        serde_json::from_str(body).expect(body)
    }

    async fn dial(&self, to: &str, text: &str) -> String {
        let answer = self.client.call("dial", json!({ "to": to, "text": text })).await;
        answer["replied"].as_str().expect("an answer").to_owned()
    }
}

#[tokio::test]
async fn a_server_cannot_call_operator_methods_over_the_socket_or_over_http() {
    let rig = Rig::new().await;
    let other = rig.fakes.path("other.toml");
    fs::write(&other, "[servers.other]\ncommand = \"/bin/true\"\n").expect("written");
    let bystanders = Bystanders::start(&rig.daemon, "/servers/agent").await;

    for (method, params) in [
        ("config/reload", json!({ "configPath": other })),
        ("config/reload", json!({})),
        ("daemon/stop", json!({})),
        ("auth/status", json!({})),
        ("tasks/list", json!({})),
        ("tasks/get", json!({ "taskId": "1", "server": "agent" })),
    ] {
        for answer in [rig.over_socket(method, &params).await, rig.over_http(method, &params).await]
        {
            assert_eq!(answer["error"]["data"]["code"], "FORBIDDEN", "{method}: {answer}");
            let text = answer["error"]["message"].as_str().expect("a message");
            let names = text.contains(method) && text.contains("server `agent`");
            assert!(names, "the method and the server are named: {text}");
        }
        bystanders.wait_progress().await;
    }

    rig.daemon.wait_log("request refused: `config/reload` is for operators, and process");
    bystanders.end().await;
    let mut operator = Operator::at(&rig.daemon).await;
    let servers = operator.result("servers/list", json!({})).await;
    assert_eq!(servers[0]["name"], "agent", "the configuration is unchanged: {servers}");
}

/// Starts a process that removes every trace of its origin, sends an operator's request, and writes
/// the result to a file. A temporary file comes first, since the server is started twice.
const ORPHAN: &str = r#"
ask='
  read -r _ _ _ parent _ < /proc/$$/stat
  while [ "$(cat /proc/$parent/comm)" = sh ]; do read -r _ _ _ parent _ < /proc/$$/stat; done
  "$1" tasks --socket "$2" > "$3.$$" 2>&1
  mv "$3.$$" "$3"
'
(setsid env -i PATH="$PATH" sh -c "$ask" sh "$@" < /dev/null > /dev/null 2>&1 &)
"#;

#[tokio::test]
async fn an_orphaned_process_of_a_server_has_no_operator_rights_and_is_reaped() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with("").ready();
    let (socket, output) = (daemon.control(), fakes.path("output"));
    let [socket, file] = [&socket, &output].map(|path| path.display().to_string());
    let args = ["-c", ORPHAN, "sh", PROGRAM, &socket, &file];
    daemon.rewrite(&format!("[servers.shell]\ncommand = \"/bin/sh\"\nargs = {args:?}\n"));
    daemon.reload();
    // The first request starts the program, which is not an MCP server.
    let _asks = daemon
        .client("/servers/shell")
        .slow_post(&request(&json!(1), "tools/list", &json!({})))
        .await;

    until(async || output.exists()).await;
    let output = fs::read_to_string(output).expect("readable");
    assert!(output.contains("is for operators"), "{output}");
    let children = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", daemon.pid())).expect("it runs");
        let lists = tasks
            .flatten()
            .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        lists.collect::<String>().split_whitespace().count()
    };
    until(async || children() == 0).await;
}

#[tokio::test]
async fn a_server_can_read_lists_and_call_tools_over_the_control_interface() {
    let rig = Rig::new().await;
    let call = json!({ "name": "agent/echo", "arguments": { "value": 7 } });

    for (method, params) in [
        ("servers/list", json!({})),
        ("tools/list", json!({})),
        ("tools/call", call.clone()),
        ("daemon/status", json!({})),
        ("mcp/attach", json!({ "server": "agent" })),
    ] {
        let answer = rig.over_socket(method, &params).await;
        assert!(answer["error"].is_null(), "{method}: {answer}");
    }
    assert!(rig.over_http("tools/call", &call).await["error"].is_null());
    let started = rig.over_socket("tools/call-async", &call).await;
    let task = json!({ "taskId": started["result"]["taskId"] });
    let got = rig.over_http("tasks/get", &task).await;
    assert!(got["error"].is_null(), "a caller reads its own task by its id: {got}");
}

#[tokio::test]
async fn an_operator_under_the_user_of_the_service_keeps_operator_rights() {
    let rig = Rig::new().await;
    rig.client.call("whoami", json!({})).await;

    let mut operator = Operator::at(&rig.daemon).await;
    operator.result("auth/status", json!({})).await;
    operator.result("tasks/list", json!({})).await;
    // A root process without capabilities cannot read the files of one with capabilities.
    if !rustix::process::geteuid().is_root() {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"config/reload"}"#;
        let json = ("content-type", "application/json");
        let reply = rig.daemon.client("/rpc").send(Method::POST, &[json], body.to_owned()).await;
        assert!(reply.answer()["error"].is_null(), "{}", reply.body);
    }
    operator.result("daemon/stop", json!({})).await;
}

#[tokio::test]
async fn a_server_cannot_read_the_memory_and_environment_of_the_service() {
    let rig = Rig::new().await;
    for (process, expected) in [("self".to_owned(), true), (rig.daemon.pid().to_string(), false)] {
        for file in ["environ", "maps", "auxv"] {
            let path = format!("/proc/{process}/{file}");
            let read = rig.client.call("read", json!({ "path": path })).await;
            let is_read = read["n_bytes"].as_u64().is_some_and(|n_bytes| n_bytes > 0);
            assert_eq!(is_read, expected, "{path}: {read}");
        }
    }
}

#[tokio::test]
async fn a_reload_refuses_and_names_a_configuration_file_that_another_user_can_write() {
    let rig = Rig::new().await;
    let other = rig.fakes.path("other.toml");
    fs::write(&other, "[servers.other]\ncommand = \"/bin/true\"\n").expect("written");
    let mut operator = Operator::at(&rig.daemon).await;
    let params = json!({ "configPath": other });

    fs::set_permissions(&other, fs::Permissions::from_mode(0o646)).expect("ours");
    let error = operator.error("config/reload", params.clone()).await;
    assert_eq!(error["data"]["code"], "CONFIG_UNTRUSTED", "{error}");
    let text = error["message"].as_str().expect("a message");
    assert!(text.contains("other.toml") && text.contains("0646"), "{text}");

    fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).expect("ours");
    let diff = operator.result("config/reload", params).await;
    assert_eq!(diff["added"], json!(["other"]), "{diff}");
}
