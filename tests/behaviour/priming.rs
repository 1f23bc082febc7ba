//! Servers that connect for the first time: metamcp reads their lists ahead (`catalog.prime`), and
//! combines their notices.

use std::fs;

use serde_json::{Value, json};

use crate::{
    catalog_cache::Cache,
    harness::{
        daemon::{Daemon, Start},
        fake::Fakes,
    },
    server_status, until,
};

const CHANGED: &str = "notifications/tools/list_changed";

/// Enables priming, which is on by default and which the harness disables.
fn with_priming(start: Start) -> Start {
    start.env("METAMCP_CATALOG_PRIME", "true")
}

/// Returns the beginning of a known list in the cache file of a server.
fn list_in_file(list: &str) -> String {
    format!("\"{list}\":[\n{{")
}

/// Fakes that answer the handshake only after the test has opened their gates.
struct GatedFakes(Fakes);

impl GatedFakes {
    fn new() -> Self {
        Self(Fakes::new())
    }

    fn servers(&self, names: &[&str]) -> String {
        let server = |name: &&str| {
            let gate = self.0.path(&format!("{name}.gate")).display().to_string();
            self.0.server(name, &["--start-gate", &gate])
        };
        names.iter().map(server).collect()
    }

    fn open(&self, name: &str) {
        fs::write(self.0.path(&format!("{name}.gate")), "").expect("the gate is opened");
    }

    fn n_started(&self, names: &[&str]) -> usize {
        names.iter().map(|name| self.0.n_events(name, "start")).sum()
    }
}

#[tokio::test]
async fn all_lists_of_all_servers_are_read_ahead_two_servers_at_a_time() {
    let (cache, gated) = (Cache::new(), GatedFakes::new());
    let names = ["a", "b", "c", "d"];
    let mut daemon = with_priming(cache.start(gated.servers(&names))).ready();
    for (n_read, name) in names.into_iter().enumerate() {
        let n_started = names.len().min(n_read + 2);
        until(async || gated.n_started(&names) >= n_started).await;
        assert_eq!(gated.n_started(&names), n_started, "before `{name}` answers");
        gated.open(name);
    }
    for name in names {
        for list in ["tools", "prompts", "resources", "resourceTemplates"] {
            cache.wait(name, &list_in_file(list)).await;
        }
    }
    assert!(daemon.stop().success());

    let daemon = with_priming(cache.start(gated.servers(&names))).ready();
    let client = daemon.client("/");
    for (method, member) in [("tools/list", "tools"), ("prompts/list", "prompts")] {
        let listed = client.request(json!(1), method, json!({})).await.answer();
        let items = listed["result"][member].as_array().expect("a list");
        for name in names {
            let prefix = format!("{name}__");
            let is_its = |item: &Value| {
                item["name"].as_str().is_some_and(|found| found.starts_with(&prefix))
            };
            assert!(items.iter().any(is_its), "{method} of `{name}`");
        }
    }
    assert_eq!(gated.n_started(&names), names.len(), "known lists are not read again");
}

#[tokio::test]
async fn priming_a_server_evicts_no_other_server() {
    let (cache, fakes) = (Cache::new(), Fakes::new());
    let others = ["b", "c", "d"];
    let used = fakes.server("a", &[]) + "start = \"prewarm\"\nlifecycle = \"keep-alive\"\n";
    let servers: String = others.iter().map(|name| fakes.server(name, &[])).collect();
    let daemon = with_priming(cache.start(format!("[pool]\nsize = 2\n{used}{servers}"))).ready();
    for name in others {
        cache.wait(name, &list_in_file("prompts")).await;
        // The pool has no room for all, so each server is closed once its lists are read.
        until(async || fakes.n_events(name, "eof") == 1).await;
    }
    let status = daemon.client("/status").get().await.answer();
    assert_eq!(status["pool"]["evicted"], 0, "{status}");
    assert_eq!((fakes.n_events("a", "start"), fakes.n_events("a", "eof")), (1, 0));
}

#[tokio::test]
async fn a_server_that_fails_priming_delays_no_other_and_is_tried_again_on_request() {
    let (cache, fakes) = (Cache::new(), Fakes::new());
    let tries = fakes.path("tries").display().to_string();
    let script = format!("echo >> {tries}; exit 1");
    let bad = format!("[servers.bad]\ncommand = \"/bin/sh\"\nargs = [\"-c\", {script:?}]\n");
    let config =
        "[breaker]\nfailure_threshold = 1\n".to_owned() + &bad + &fakes.server("good", &[]);
    let daemon = with_priming(cache.start(config)).ready();
    cache.wait("good", &list_in_file("prompts")).await;
    until(async || server_status(&daemon, "bad").await["last_error"].is_string()).await;

    let status = server_status(&daemon, "bad").await;
    assert_eq!(status["breaker"]["state"], "normal", "{status}");
    let n_tries = || fs::read_to_string(&tries).unwrap_or_default().lines().count();
    let n_before = n_tries();
    daemon.client("/servers/bad").tool("x", json!({})).await;
    assert!(n_tries() > n_before, "a request tries the server again");
}

#[tokio::test]
async fn a_cold_start_notifies_a_client_of_the_first_servers_and_again_when_all_are_read() {
    let gated = GatedFakes::new();
    let names = ["a", "b", "c"];
    let daemon = Daemon::with(gated.servers(&names)).ready();
    let client = daemon.client("/").initialized().await;
    client.request(json!(1), "tools/list", json!({})).await;
    let (mut merged, mut own) = (client.listen().await, daemon.client("/servers/b").listen().await);

    gated.open("a");
    assert_eq!(merged.message().await["method"], CHANGED);
    gated.open("b");
    assert_eq!(own.message().await["method"], CHANGED, "a client of the server itself is notified");
    gated.open("c");
    until(async || server_status(&daemon, "c").await["generation"] == 1).await;
    assert_eq!(merged.message().await["method"], CHANGED);
    // Later, a server's own notices are passed on, also for a list that no client has read.
    daemon.client("/servers/c").call("change", json!({ "list": "prompts" })).await;
    assert_eq!(merged.message().await["method"], "notifications/prompts/list_changed");
}
