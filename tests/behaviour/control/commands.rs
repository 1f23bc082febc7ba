//! The operator's commands to the service: reload and stop.

use std::fs;

use rustix::{
    fs::{FileType, Mode},
    process::Signal,
};
use serde_json::{Value, json};

use super::assert_complete;
use crate::{
    harness::{daemon::Daemon, fake::Fakes, operator::Operator},
    until,
};

#[tokio::test]
async fn a_reload_reports_the_changed_servers_and_leaves_the_others_alone() {
    let fakes = Fakes::new();
    let (one, two) = (fakes.server("one", &[]), fakes.server("two", &[]));
    let daemon = Daemon::with(one.clone() + &two).ready();
    let (mut operator, mut other) = (Operator::at(&daemon).await, Operator::at(&daemon).await);
    let held = json!({ "name": "one/hold", "arguments": { "key": "a" } });
    operator.request(json!("held"), "tools/call", held).await;
    let at_least = json!({ "name": "one/held", "arguments": { "at_least": 1 } });
    other.result("tools/call", at_least).await;

    daemon
        .rewrite(&(one.clone() + &two + "start_timeout = \"7s\"\n" + &fakes.server("three", &[])));
    let diff = other.result("config/reload", json!({})).await;
    assert_eq!(diff, json!({ "added": ["three"], "removed": [], "changed": ["two"] }));
    daemon.rewrite(&one);
    let diff = other.result("config/reload", json!({})).await;
    assert_eq!(diff, json!({ "added": [], "removed": ["three", "two"], "changed": [] }));
    let release = json!({ "name": "one/release", "arguments": { "key": "a" } });
    other.result("tools/call", release).await;
    let answer = operator.next().await.expect("an answer");
    assert!(answer["result"]["content"].is_array(), "a running call continues: {answer}");
    assert_eq!(fakes.pids("one").len(), 1);
    assert!(daemon.notices().iter().any(|notice| notice.contains("RELOADING=1")));
}

#[tokio::test]
async fn a_reload_of_an_invalid_file_changes_nothing_and_reports_the_position() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let mut operator = Operator::at(&daemon).await;
    daemon.rewrite("[servers.one]\ncomand = \"hunter2\"\n");
    let error = operator.error("config/reload", json!({})).await;
    assert_complete(&error);
    let context = &error["data"]["context"];
    assert_eq!(error["data"]["code"], "CONFIG_INVALID");
    assert_eq!((&context["line"], &context["column"]), (&json!(2), &json!(1)), "{error}");
    assert!(context["file"].as_str().is_some_and(|file| file.ends_with("metamcp.toml")));
    assert!(!error.to_string().contains("hunter2"), "no text of the file: {error}");
    let servers = operator.result("servers/list", json!({})).await;
    assert_eq!(servers.as_array().map(Vec::len), Some(1), "the old configuration is in force");
}

#[tokio::test]
async fn a_reload_can_switch_to_another_configuration_file() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let mut operator = Operator::at(&daemon).await;
    let other = fakes.path("other.toml");
    let path = json!({ "configPath": other });
    fs::write(&other, "[servers.x\n").expect("written");
    operator.error("config/reload", path.clone()).await;
    let names = |servers: &Value| {
        let servers = servers.as_array().expect("a list").iter();
        servers
            .map(|server| server["name"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    // A refused file does not become the file of the next reload.
    operator.result("config/reload", json!({})).await;
    fs::write(&other, fakes.server("two", &[])).expect("written");
    let diff = operator.result("config/reload", path).await;
    assert_eq!(diff, json!({ "added": ["two"], "removed": ["one"], "changed": [] }));
    fs::write(&other, fakes.server("three", &[])).expect("written");
    daemon.signal(Signal::HUP);
    while names(&operator.result("servers/list", json!({})).await) != ["three"] {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_reload_without_a_configuration_file_needs_the_path_of_one() {
    let fakes = Fakes::new();
    let daemon = Daemon::with("").without_file().ready();
    let mut operator = Operator::at(&daemon).await;
    let error = operator.error("config/reload", json!({})).await;
    assert_complete(&error);
    assert_eq!(error["data"]["code"], "NO_CONFIG_FILE");
    let path = fakes.path("c.toml");
    fs::write(&path, fakes.server("one", &[])).expect("written");
    let diff = operator.result("config/reload", json!({ "configPath": path })).await;
    assert_eq!(diff["added"], json!(["one"]));
}

#[tokio::test]
async fn a_pipe_in_place_of_the_configuration_file_does_not_block_a_reload() {
    let fakes = Fakes::new();
    let daemon = Daemon::with("").ready();
    let mut operator = Operator::at(&daemon).await;
    let path = fakes.path("c.toml");
    fs::write(&path, fakes.server("one", &[])).expect("written");
    operator.result("config/reload", json!({ "configPath": path })).await;
    fs::remove_file(&path).expect("removed");
    let (kind, mode) = (FileType::Fifo, Mode::RUSR | Mode::WUSR);
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).expect("a pipe");
    let error = operator.error("config/reload", json!({})).await;
    assert_complete(&error);
    assert_eq!(error["data"]["code"], "CONFIG_INVALID");
    let servers = operator.result("servers/list", json!({})).await;
    assert_eq!(servers[0]["name"], "one", "the old configuration stays in force");
}

#[tokio::test]
async fn the_stop_command_is_answered_and_running_calls_are_finished() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("one", &[])).ready();
    let (mut operator, mut other) = (Operator::at(&daemon).await, Operator::at(&daemon).await);
    let gate = fakes.path("gate");
    let held = json!({ "name": "one/hold", "arguments": { "key": "a", "gate": gate } });
    operator.request(json!(1), "tools/call", held).await;
    until(async || fakes.n_events("one", "held") == 1).await;
    assert_eq!(other.result("daemon/stop", json!({})).await, json!({ "ok": true }));
    assert_eq!(other.next().await, None, "a connection without running requests is closed");
    daemon.wait_refused();
    fs::write(&gate, "").expect("written");
    let answer = operator.next().await.expect("an answer");
    assert!(answer["result"]["content"].is_array(), "{answer}");
    assert!(daemon.wait_exit().success());
}

#[tokio::test]
async fn a_call_still_running_at_the_shutdown_timeout_gets_service_stopping() {
    let fakes = Fakes::new();
    let config = "[service]\nshutdown_timeout = \"100ms\"\n".to_owned() + &fakes.server("one", &[]);
    let mut daemon = Daemon::with(config).ready();
    let (mut operator, mut other) = (Operator::at(&daemon).await, Operator::at(&daemon).await);
    let held = json!({ "name": "one/hold", "arguments": { "key": "a" } });
    operator.request(json!(1), "tools/call", held).await;
    let at_least = json!({ "name": "one/held", "arguments": { "at_least": 1 } });
    other.result("tools/call", at_least).await;
    other.result("daemon/stop", json!({})).await;
    let answer = operator.next().await.expect("an answer");
    assert_complete(&answer["error"]);
    assert_eq!(answer["error"]["data"]["code"], "SERVICE_STOPPING");
    assert!(daemon.wait_exit().success());
}

#[tokio::test]
async fn a_reload_reconnects_the_servers_that_use_a_changed_proxy_of_the_service() {
    let config = |proxy: &str| {
        format!(
            "[service]\nproxy = {proxy:?}\n[catalog]\nprime = false\n\
             [servers.far]\nurl = \"http://192.0.2.1/mcp\"\n\
             [servers.near]\nurl = \"http://127.0.0.1:1/mcp\"\n\
             [servers.own]\nurl = \"http://192.0.2.2/mcp\"\nproxy = \"none\"\n"
        )
    };
    let daemon = Daemon::with(config("none")).ready();
    let mut operator = Operator::at(&daemon).await;

    daemon.rewrite(&config("http://127.0.0.1:3128"));
    let diff = operator.result("config/reload", json!({})).await;
    assert_eq!(diff, json!({ "added": [], "removed": [], "changed": ["far"] }));
}
