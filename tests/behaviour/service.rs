//! The service under its service manager: sockets, readiness, reload, timeouts and shutdown.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use rustix::{
    net::{AddressFamily, SocketType},
    process::Signal,
};
use serde_json::{Value, json};

use crate::{
    harness::{client::running, daemon::Daemon, fake::Fakes},
    until,
};

#[tokio::test]
async fn inherited_sockets_are_identified_by_name_in_any_order() {
    for names in ["http:control", "control:http"] {
        let daemon = Daemon::with("").socket_names(names).ready();
        assert_eq!(daemon.client("/healthz").get().await.status, 200);
        let status = crate::command_line::status(&daemon, &["--json"]);
        assert_eq!(status.0, 0, "{status:?}");
    }
}

#[tokio::test]
async fn an_inherited_socket_with_an_unknown_name_is_refused() {
    let mut daemon = Daemon::with("").socket_names("web").spawn();
    assert_eq!(daemon.wait_exit().code(), Some(78));
    let log = daemon.log();
    assert!(log.contains("inherited socket 0 is named `web`"), "{log}");
    assert!(log.contains("FileDescriptorName=http"), "{log}");
}

#[tokio::test]
async fn readiness_is_reported_only_once_prewarmed_servers_are_connected() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate");
    let gate_text = gate.display().to_string();
    let config = fakes.server("slow", &["--start-gate", &gate_text]) + "start = \"prewarm\"\n";
    let mut daemon = Daemon::with(config).spawn();
    // A client that comes early waits in the backlog and is served.
    let early = running({
        let client = daemon.client("/servers/slow");
        async move { client.call("echo", json!({ "value": 1 })).await }
    });
    until(async || !fakes.pids("slow").is_empty()).await;
    until(async || !daemon.notices().is_empty()).await;
    let is_waiting = |notice: &String| notice == "STATUS=waiting for slow";
    assert!(daemon.notices().iter().all(is_waiting), "{:?}", daemon.notices());

    fs::write(&gate, "").expect("written");

    daemon.wait_ready();
    assert_eq!(early.end().await["value"], 1);
    // The early client may or may not be counted already.
    let ready = daemon.notices().into_iter().find(|notice| !is_waiting(notice));
    assert!(ready.is_some_and(|ready| ready.contains("STATUS=1/1 servers up, ")));
}

#[tokio::test]
async fn the_status_line_counts_servers_clients_and_generations() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("one", &[]) + &fakes.server("two", &[])).ready();
    assert!(daemon.notices()[0].contains("STATUS=0/2 servers up, 0 clients, generation 0"));

    let client = daemon.client("/");
    client.call("one__echo", json!({ "value": 1 })).await;

    daemon.wait_notice("1/2", |notice| notice == "STATUS=1/2 servers up, 1 client, generation 1");
}

#[tokio::test]
async fn a_reload_affects_only_changed_servers() {
    let fakes = Fakes::new();
    let (kept, gone, changed) =
        (fakes.server("kept", &[]), fakes.server("gone", &[]), fakes.server("changed", &[]));
    let mut daemon = Daemon::with(format!("{kept}{gone}{changed}")).ready();
    let client = daemon.client("/");
    for server in ["kept", "gone", "changed"] {
        client.call(&format!("{server}__whoami"), json!({})).await;
    }

    let added = fakes.server("added", &[]);
    daemon.rewrite(&format!("{kept}{changed}env = {{ A = \"1\" }}\n{added}"));
    let notices = daemon.reload();

    daemon.wait_log(r#"added=["added"] removed=["gone"] changed=["changed"]"#);
    let reloading = notices.iter().find(|notice| notice.contains("RELOADING=1")).expect("a notice");
    assert!(reloading.lines().any(|line| line.starts_with("MONOTONIC_USEC=")), "{reloading}");
    for server in ["kept", "changed", "added"] {
        client.call(&format!("{server}__whoami"), json!({})).await;
    }
    let gone = client.tool("gone__whoami", json!({})).await.answer();
    assert_eq!(gone["error"]["data"]["code"], "SERVER_NOT_FOUND");
    assert_eq!(fakes.pids("kept").len(), 1);
    assert_eq!(fakes.pids("changed").len(), 2);
    until(async || fakes.n_events("gone", "exit") > 0).await;
}

#[tokio::test]
async fn a_reload_of_an_invalid_file_keeps_the_old_configuration() {
    let fakes = Fakes::new();
    let config = fakes.server("fake", &[]);
    let mut daemon = Daemon::with(config.clone()).ready();
    let client = daemon.client("/");
    client.call("fake__echo", json!({ "value": 1 })).await;

    daemon.rewrite("[servers.fake]\ncomand = \"x\"\n");
    let notices = daemon.reload();

    let ready = notices.iter().rfind(|notice| notice.contains("READY=1")).expect("a notice");
    assert!(ready.contains("configuration refused, see "), "{ready}");
    assert!(ready.contains("metamcp.toml:2:1"), "{ready}");
    daemon.wait_log("unknown key `comand`");
    assert_eq!(client.call("fake__echo", json!({ "value": 2 })).await["value"], 2);
    assert_eq!(fakes.pids("fake").len(), 1);

    daemon.rewrite(&config);
    let notices = daemon.reload();
    assert!(!notices.last().expect("a notice").contains("refused"), "{notices:?}");
}

/// A change of every part that a reload reaches, apart from the log level and the certificate.
const CHANGE: &str = r#"
[service]
memory_max = 150_000_000
[listen]
token = "env:TOKEN"
session = "off"
[tools]
sets = ["metatools"]
[catalog]
cache = "off"
[search.embedding]
url = "http://127.0.0.1:9/v1/embeddings"
model = "m"
api_key = "env:MISSING"
"#;

/// Returns the state of each part that [`CHANGE`] changes, as a client with the token sees it.
async fn parts_seen(daemon: &Daemon) -> Value {
    let client = daemon.client("/meta").header("authorization", "Bearer 0123456789abcdef");
    let status = client.at("/status").get().await.answer();
    let tools = client.request(json!(1), "tools/list", json!({})).await.answer();
    let opened = client.request(json!(2), "initialize", json!({ "capabilities": {} })).await;
    json!({
        "memory": status["memory_budget"]["max_bytes"],
        "servers": status["servers"].as_array().expect("a list").len(),
        "tool": tools["result"]["tools"][0]["name"],
        "is open": daemon.client("/status").get().await.status.is_success(),
        "has session": opened.headers.contains_key("mcp-session-id"),
    })
}

#[tokio::test]
async fn a_reload_reaches_every_part_in_order() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with("[service]\nmemory_max = 120_000_000\n")
        .env("TOKEN", "0123456789abcdef")
        .ready();
    let before = parts_seen(&daemon).await;
    assert_eq!(
        before,
        json!({
            "memory": 120_000_000, "servers": 0, "tool": "mcp_discover", "is open": true,
            "has session": true,
        })
    );

    daemon.rewrite(&format!("{CHANGE}{}", fakes.server("fake", &[])));
    daemon.reload();

    assert_eq!(
        parts_seen(&daemon).await,
        json!({
            "memory": 150_000_000, "servers": 1, "tool": "search_tools", "is open": false,
            "has session": false,
        })
    );
    let log = daemon.log();
    let places = [
        "the new directory for cached lists takes effect at the next restart",
        "new requests are checked against the new `listen.token`",
        "configuration reloaded: added `fake`",
        "cannot use the embedding model",
    ]
    .map(|line| log.find(line).unwrap_or_else(|| panic!("no `{line}`: {log}")));
    assert!(places.is_sorted(), "{log}");
}

#[tokio::test]
async fn a_reload_that_one_part_refuses_reaches_no_part() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with("").env("TOKEN", "too short").ready();
    let before = parts_seen(&daemon).await;

    daemon.rewrite(&format!("{CHANGE}{}", fakes.server("fake", &[])));
    daemon.reload();

    assert_eq!(parts_seen(&daemon).await, before);
    daemon.wait_log("token refused, the old configuration stays in force");
    let log = daemon.log();
    for line in ["at the next restart", "configuration reloaded", "embedding model"] {
        assert!(!log.contains(line), "{log}");
    }
}

#[tokio::test]
async fn a_removed_server_finishes_its_running_requests() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    let progress = json!({ "name": "meet", "arguments": { "n": 2, "value": 1 } });
    let first = running({
        let (client, progress) = (client.clone(), progress.clone());
        async move { client.request(json!(1), "tools/call", progress).await }
    });
    client.call("seen", json!({ "meeting": 1 })).await;

    daemon.rewrite("");
    daemon.reload();

    assert_eq!(client.tool("echo", json!({ "value": 1 })).await.status, 404);
    let pid = fakes.pids("fake").pop_first().expect("a pid");
    assert!(crate::harness::fake::is_alive(pid), "its request is still running");
    drop(first);
    until(async || !crate::harness::fake::is_alive(pid)).await;
}

#[tokio::test]
async fn a_silent_request_times_out_after_the_configured_time() {
    let fakes = Fakes::new();
    let gate = fakes.path("never").display().to_string();
    let timeouts = "[service]\nrequest_timeout = \"100ms\"\n";
    let config = fakes.server("fake", &[])
        + &fakes.server("stuck", &["--start-gate", &gate])
        + "start_timeout = \"100ms\"\n";
    let daemon = Daemon::with(format!("{timeouts}{config}")).ready();

    let answer = daemon.client("/servers/fake").hold("k").await.answer();
    assert_eq!(answer["error"]["code"], -32001, "{answer}");
    assert!(answer["error"]["message"].to_string().contains("no answer within 100 ms"), "{answer}");
    daemon.client("/servers/fake").call("seen", json!({ "cancelled": 1 })).await;
    let answer = daemon.client("/servers/stuck").tool("echo", json!({})).await.answer();
    assert_eq!(answer["error"]["code"], -32001, "{answer}");
    let message = answer["error"]["message"].to_string();
    assert!(message.contains("did not answer `initialize`: no answer within 100 ms"), "{message}");
}

#[tokio::test]
async fn a_request_times_out_after_the_configured_total_time() {
    let fakes = Fakes::new();
    let timeouts = "[service]\nmax_total_timeout = \"100ms\"\n";
    let daemon = Daemon::with(format!("{timeouts}{}", fakes.server("fake", &[]))).ready();
    let answer = daemon.client("/servers/fake").hold("k").await.answer();
    assert_eq!(answer["error"]["data"]["code"], "TIMEOUT", "{answer}");
}

#[tokio::test]
async fn running_requests_get_the_configured_time_to_finish_at_shutdown() {
    let fakes = Fakes::new();
    let timeouts = "[service]\nshutdown_timeout = \"100ms\"\n";
    let mut daemon = Daemon::with(format!("{timeouts}{}", fakes.server("fake", &[]))).ready();
    let client = daemon.client("/servers/fake");
    let held = running(client.clone().hold("k"));
    client.call("held", json!({ "at_least": 1 })).await;

    assert!(daemon.stop().success());

    assert_eq!(held.end().await.answer()["error"]["data"]["code"], "SERVICE_STOPPING");
    let records = std::fs::read_to_string(daemon.control().with_file_name("calls.jsonl"));
    let records = records.expect("a file of records");
    let last = records.lines().last().expect("a record");
    assert!(last.contains(r#""tool":"hold""#) && last.contains("SERVICE_STOPPING"), "{last}");
}

#[tokio::test]
async fn the_configured_log_level_applies_and_a_reload_changes_it() {
    let config = |level: &str| format!("[service]\nlog_level = {level:?}\n");
    let mut daemon = Daemon::with(config("error")).ready();
    daemon.client("/nowhere").get().await;
    assert_eq!(daemon.log(), "");

    daemon.rewrite(&config("debug"));
    daemon.reload();
    daemon.client("/nowhere").get().await;
    daemon.wait_log("request refused");
}

#[tokio::test]
async fn a_server_that_a_reload_changes_lists_its_new_tools() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("fake", &["--page", "50"])).ready();
    let client = daemon.client("/");
    let list = client.request(json!(1), "tools/list", json!({})).await;
    assert!(list.body.contains("fake__echo"));

    daemon.rewrite(&format!(
        "[servers.fake]\ncommand = {:?}\nargs = [\"demo-server\", \"clock\"]\n",
        crate::harness::daemon::PROGRAM
    ));
    daemon.reload();

    let list = client.request(json!(1), "tools/list", json!({})).await;
    assert!(list.body.contains("fake__now") && !list.body.contains("fake__echo"));
    let status = daemon.client("/status").get().await.answer();
    assert_eq!(status["servers"][0]["generation"], 2, "the generation continues");
}

#[tokio::test]
async fn a_hurried_shutdown_does_not_wait_for_a_removed_server_that_is_still_busy() {
    let fakes = Fakes::new();
    let mut daemon =
        Daemon::with(fakes.server("fake", &["--ignore-term", "--no-eof-exit"])).ready();
    let client = daemon.client("/servers/fake");
    let held = running(client.clone().hold("k"));
    client.call("held", json!({ "at_least": 1 })).await;
    daemon.rewrite("");
    daemon.reload();
    let pid = fakes.pids("fake").pop_first().expect("a pid");
    assert!(crate::harness::fake::is_alive(pid), "its request is still running");

    daemon.signal(Signal::TERM);
    daemon.wait_notice("STOPPING=1", |notice| notice.contains("STOPPING=1"));
    daemon.signal(Signal::TERM);

    assert!(daemon.wait_exit().success());
    assert!(!crate::harness::fake::is_alive(pid));
    assert_eq!(held.end().await.answer()["error"]["data"]["code"], "SERVICE_STOPPING");
}

#[tokio::test]
async fn the_watchdog_is_notified_while_the_event_loops_run() {
    let mut daemon = Daemon::with("").env("WATCHDOG_USEC", "4000000").ready();
    daemon.wait_notice("WATCHDOG=1", |notice| notice == "WATCHDOG=1");
}

#[tokio::test]
async fn a_shutdown_is_reported_to_the_manager_and_exits_with_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let fakes = Fakes::new();
        let mut daemon = Daemon::with(fakes.server("fake", &[])).ready();
        daemon.client("/").call("fake__echo", json!({ "value": 1 })).await;

        daemon.signal(signal);

        assert_eq!(daemon.wait_exit().code(), Some(0));
        assert!(daemon.notices().iter().any(|notice| notice.contains("STOPPING=1")));
    }
}

#[tokio::test]
async fn a_shutdown_during_prewarming_leaves_no_process() {
    let fakes = Fakes::new();
    let gate = fakes.path("never").display().to_string();
    let config = fakes.server("slow", &["--start-gate", &gate]) + "start = \"prewarm\"\n";
    let mut daemon = Daemon::with(config).spawn();
    until(async || !fakes.pids("slow").is_empty()).await;

    assert_eq!(daemon.stop().code(), Some(0));

    assert!(fakes.pids("slow").into_iter().all(|pid| !crate::harness::fake::is_alive(pid)));
}

#[tokio::test]
async fn an_unreachable_upstream_delays_neither_the_start_nor_a_list() {
    let fakes = Fakes::new();
    // The socket is bound and does not listen: a client is refused at once.
    let silent = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
    let silent = silent.expect("a socket");
    let any_port: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    rustix::net::bind(&silent, &any_port).expect("a free port");
    let address = rustix::net::getsockname(&silent).expect("it is bound");
    let address = SocketAddr::try_from(address).expect("an address");
    let up = |name: &str, more: &str| {
        format!("[servers.{name}]\nurl = \"http://{address}/mcp\"\n{more}")
    };
    let servers = up("up", "start = \"prewarm\"\n") + &up("lazy", "") + &fakes.server("fake", &[]);
    let daemon = Daemon::with(servers).ready();

    let list = daemon.client("/").request(json!(1), "tools/list", json!({})).await;

    assert!(list.body.contains("fake__echo"), "{}", list.body);
    // Connection attempts last 10 s, and have not ended yet.
    assert!(!daemon.log().contains("connection to server"), "{}", daemon.log());
    drop(silent);
}

#[tokio::test]
async fn an_upstream_that_drops_connections_delays_the_start_by_at_most_a_second() {
    // The backlog is full: the system drops the packets of new clients.
    let full = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
    let full = full.expect("a socket");
    let any_port: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    rustix::net::bind(&full, &any_port).expect("a free port");
    rustix::net::listen(&full, 0).expect("it listens");
    let address = rustix::net::getsockname(&full).expect("it is bound");
    let address = SocketAddr::try_from(address).expect("an address");
    let mut filling = Vec::new();
    while let Ok(taken) = TcpStream::connect_timeout(&address, Duration::from_millis(50)) {
        filling.push(taken);
    }
    let url = format!("url = \"http://{address}/mcp\"\n");
    let mut daemon = Daemon::with(format!("[servers.up]\n{url}start = \"prewarm\"\n")).spawn();

    daemon.wait_notice("waits", |notice| notice == "STATUS=waiting for up");
    daemon.wait_ready();

    // A connection attempt lasts 10 s, and has not ended yet.
    assert!(!daemon.log().contains("connection to server"), "{}", daemon.log());
    assert_eq!(daemon.client("/healthz").get().await.status, 200);
    let status = daemon.client("/status").get().await.body;
    assert!(status.contains("no connection within 750 ms"), "{status}");
    drop((full, filling));
}

#[tokio::test]
async fn a_service_without_a_configuration_file_serves_the_demonstration_servers() {
    let daemon = Daemon::with("").without_file().ready();
    let client = daemon.client("/");
    let list = client.request(json!(1), "tools/list", json!({})).await;
    for tool in ["clock__now", "scratch__put", "patience__count"] {
        assert!(list.body.contains(&format!("\"{tool}\"")), "{tool}");
    }
    let now = client.call("clock__now", json!({})).await;
    assert!(now["time"].is_string(), "{now}");
}

#[tokio::test]
async fn a_reload_during_prewarming_is_not_lost() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate");
    let gate_text = gate.display().to_string();
    let slow = fakes.server("slow", &["--start-gate", &gate_text]) + "start = \"prewarm\"\n";
    let mut daemon = Daemon::with(slow.clone()).spawn();
    until(async || !fakes.pids("slow").is_empty()).await;

    daemon.rewrite(&(slow + &fakes.server("added", &[])));
    daemon.signal(Signal::HUP);
    daemon.wait_log(r#"added=["added"]"#);
    fs::write(&gate, "").expect("written");

    daemon.wait_ready();
    assert!(daemon.client("/").call("added__whoami", json!({})).await["pid"].is_number());
}
