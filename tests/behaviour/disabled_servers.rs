//! Servers with `enabled = false`: declared and checked, and neither started nor listed.

use serde_json::{Value, json};

use crate::harness::{
    client::Client,
    daemon::{self, Daemon},
    fake::Fakes,
};

/// Runs an operator's command against a daemon.
fn run(daemon: &Daemon, arguments: &[&str]) -> (i32, String, String) {
    let socket = daemon.control().display().to_string();
    let (command, rest) = arguments.split_first().expect("a command");
    daemon::run(&[&[*command, "--socket", &socket], rest].concat())
}

/// Returns the names of the tools that a client sees.
async fn tools(client: &Client) -> Vec<String> {
    let listed = client.request(json!(1), "tools/list", json!({})).await.answer();
    let tools = listed["result"]["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_disabled_server_is_neither_started_nor_listed_and_a_call_names_the_remedy() {
    let fakes = Fakes::new();
    let off = fakes.server("off", &[]) + "enabled = false\nstart = \"eager\"\n";
    let daemon = Daemon::with(fakes.server("on", &[]) + &off).ready();
    let client = daemon.client("/");
    assert!(client.call("on__whoami", json!({})).await["pid"].is_number());
    let tools = tools(&client).await;
    assert!(tools.iter().any(|tool| tool.starts_with("on__")), "{tools:?}");
    assert!(!tools.iter().any(|tool| tool.starts_with("off__")), "{tools:?}");

    let (code, _, stderr) = run(&daemon, &["call", "off/whoami"]);
    assert_eq!(code, 1);
    assert_eq!(stderr, "error: server `off` is disabled\nhint: Run `metamcp enable off`.\n");
    let (_, json, _) = run(&daemon, &["servers", "--json"]);
    let servers: Value = serde_json::from_str(&json).expect("JSON");
    let states: Vec<&Value> =
        servers.as_array().expect("a list").iter().map(|server| &server["state"]).collect();
    assert_eq!(states, [&json!("disabled"), &json!("idle")]);
    let (_, table, _) = run(&daemon, &["status"]);
    assert!(table.lines().any(|line| line.starts_with("off  ") && line.contains("disabled")));
    let refused = daemon.client("/servers/off").request(json!(1), "tools/list", json!({})).await;
    let refused = refused.answer();
    assert!(refused.to_string().contains("server `off` is disabled"), "{refused}");
    assert_eq!(fakes.events("off"), Vec::<Value>::new(), "never started");
}

#[tokio::test]
async fn a_reload_disables_and_enables_a_server_and_leaves_the_others_connected() {
    let fakes = Fakes::new();
    let (stays, moved) = (fakes.server("stays", &[]), fakes.server("moved", &[]));
    let mut daemon = Daemon::with(stays.clone() + &moved).ready();
    let pid = |server: &'static str| {
        let client = daemon.client("/");
        async move { client.call(&format!("{server}__whoami"), json!({})).await["pid"].clone() }
    };
    let (first, before) = (pid("stays").await, pid("moved").await);
    daemon.rewrite(&(stays.clone() + &moved + "enabled = false\n"));
    daemon.reload();
    let refused = run(&daemon, &["call", "moved/whoami"]).2;
    assert!(refused.contains("server `moved` is disabled"), "{refused}");
    daemon.rewrite(&(stays + &moved + "enabled = true\n"));
    daemon.reload();
    let client = daemon.client("/");
    let after = client.call("moved__whoami", json!({})).await["pid"].clone();
    assert_ne!(before, after);
    assert_eq!(first, client.call("stays__whoami", json!({})).await["pid"]);
}

#[test]
fn the_declaration_of_a_disabled_server_is_checked() {
    let directory = tempfile::tempdir().expect("a directory");
    let check = |text: &str| {
        let path = directory.path().join("c.toml");
        std::fs::write(&path, text).expect("written");
        daemon::run(&["check", "--offline", &path.display().to_string()])
    };
    let (code, stdout, _) = check("[servers.a]\nurl = \"http://h/\"\nenabled = false\n");
    assert_eq!(code, 0);
    assert!(stdout.ends_with(": ok, 1 server, 1 of them disabled\n"), "{stdout}");
    let (code, _, stderr) = check("[servers.a]\nenabled = false\n");
    assert_eq!(code, 78);
    assert!(stderr.contains("a server without `command`, `url` or `socket`"), "{stderr}");
    let text = "[provision.servers.a]\ncommand = \"a\"\ndescription = \"x\"\nenabled = false\n";
    let (code, _, stderr) = check(text);
    assert_eq!(code, 78);
    assert!(stderr.contains("`enabled` has no effect under `[provision.servers]`"), "{stderr}");
}
