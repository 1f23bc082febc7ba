//! The metrics at `/metrics`.

use std::collections::BTreeSet;

use hyper::Method;
use serde_json::json;

use crate::{
    harness::{
        client::{Client, Reply, running},
        daemon::{Daemon, Start},
        fake::{Fakes, Upstream},
        login_upstream::LoginUpstream,
    },
    logins, until,
};

const TOKEN: &str = "0123456789abcdef";

#[tokio::test]
async fn calls_and_servers_are_measured_in_the_form_that_the_reader_accepts() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/").initialized().await;
    client.tool("fake__echo", json!({ "value": 1 })).await;
    client.tool("fake__tool_error", json!({})).await;

    let plain = daemon.client("/metrics").get().await;
    assert_eq!(plain.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let open =
        daemon.client("/metrics").header("accept", "application/openmetrics-text").get().await;
    let kind = open.headers["content-type"].to_str().expect("text");
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    assert!(open.body.ends_with("# EOF\n") && !plain.body.contains("# EOF"));
    let echo =
        r#"{mcp_method_name="tools/call",mcp_server="fake",gen_ai_tool_name="echo",error_type=""}"#;
    let failed = r#"{mcp_method_name="tools/call",mcp_server="fake",gen_ai_tool_name="tool_error",error_type="tool_error"}"#;
    for text in [&plain.body, &open.body] {
        for line in [
            format!("mcp_server_operation_duration_seconds_count{echo} 1"),
            format!("mcp_client_operation_duration_seconds_count{echo} 1"),
            format!("mcp_server_operation_duration_seconds_count{failed} 1"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.contains("metamcp_server_up{mcp_server=\"fake\"} 1"), "{text}");
        assert!(text.contains("metamcp_client_sessions 1"), "{text}");
    }
}

/// Returns the value of a metric with these labels, if there is one.
fn value(metrics: &Reply, metric: &str) -> Option<f64> {
    let mut lines = metrics.body.lines();
    lines.find_map(|line| line.strip_prefix(metric)?.strip_prefix(' ')?.parse().ok())
}

/// Waits until a metric has a value.
async fn wait_for(metrics: &Client, metric: &str, expected: f64) {
    until(async || value(&metrics.get().await, metric) == Some(expected)).await;
}

/// Prepares a service that requires [`TOKEN`] from clients, with more keys of `listen`.
fn with_token(fakes: &Fakes, more: &str) -> Start {
    let token = fakes.path("token");
    std::fs::write(&token, TOKEN).expect("written");
    let listen = format!("[listen]\ntoken = \"credential:token\"\n{more}");
    let directory = token.parent().expect("a directory");
    Daemon::with(listen + &fakes.server("fake", &[])).env("CREDENTIALS_DIRECTORY", directory)
}

#[tokio::test]
async fn metrics_need_the_token_like_every_other_path() {
    let fakes = Fakes::new();
    let daemon = with_token(&fakes, "").ready();
    let metrics = daemon.client("/metrics");
    assert_eq!(metrics.get().await.status, 401);
    let reader = metrics.header("authorization", &format!("Bearer {TOKEN}"));
    assert_eq!(reader.get().await.status, 200);
}

#[tokio::test]
async fn a_listener_of_their_own_serves_metrics_to_every_reader_and_nothing_else() {
    let fakes = Fakes::new();
    let daemon = with_token(&fakes, "metrics = \"127.0.0.1:0\"\n").ready();
    daemon.wait_log("metrics are at ");
    let log = daemon.log();
    let url = log.split("metrics are at ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let metrics = Client::new(url.expect("the log says where").to_owned());
    let found = metrics.get().await;
    assert_eq!(found.status, 200);
    assert!(found.body.contains("metamcp_server_up"), "{}", found.body);
    assert_eq!(value(&found, "metamcp_client_connections"), Some(0.0), "a reader is no client");
    let foreign = metrics.clone().header("origin", "https://evil.example");
    assert_eq!(foreign.get().await.status, 403);
    assert_eq!(metrics.send(Method::POST, &[], "").await.status, 405);
    for path in ["/", "/status", "/mcp", "/rpc", "/metrics/"] {
        let refused = metrics.at(path).get().await;
        assert_eq!((refused.status.as_u16(), refused.body.contains("/metrics")), (404, true));
    }
    assert_eq!(daemon.client("/metrics").get().await.status, 401, "the other still needs it");
}

#[tokio::test]
async fn an_inherited_socket_with_the_name_metrics_serves_them() {
    let config = "[listen]\nhttp = \"127.0.0.1:0\"\nmetrics = \"127.0.0.1:1\"\n";
    let daemon = Daemon::with(config).socket_names("metrics:control").ready();
    assert_eq!(daemon.client("/metrics").get().await.status, 200);
    assert_eq!(daemon.client("/healthz").get().await.status, 404);
}

#[tokio::test]
async fn an_address_for_metrics_that_is_taken_is_named_at_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound");
    let mut daemon = Daemon::with(format!("[listen]\nmetrics = \"{address}\"\n")).spawn();
    assert_eq!(daemon.wait_exit().code(), Some(1));
    let log = daemon.log();
    assert!(log.contains(&format!("cannot listen on {address} for metrics")), "{log}");
    assert!(log.contains("Check `listen.metrics`"), "{log}");
}

#[tokio::test]
async fn the_waits_for_a_server_and_for_room_in_the_pool_are_measured() {
    let (upstream, fakes) = (Upstream::start(&[]), Fakes::new());
    let config = "[pool]\nsize = 1\nreserve_size = 0\n".to_owned();
    let one_at_a_time = "sharing = \"exclusive\"\nmax_connections = 1\n";
    let config = config + &upstream.server("up", one_at_a_time) + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config).ready();
    let queue = "metamcp_server_queue_wait_seconds_count{mcp_server=\"up\"}";
    let (client, metrics) = (daemon.client("/servers/up"), daemon.client("/metrics"));
    let held = running(client.clone().hold("a"));
    upstream.log("held=1").await;
    let found = metrics.get().await;
    assert_eq!(value(&found, queue), Some(0.0), "the first call does not wait");
    assert_eq!(value(&found, "metamcp_pool_wait_seconds_count"), Some(0.0));

    let next = running(client.call("whoami", json!({})));
    let other = running(daemon.client("/servers/fake").call("echo", json!({ "value": 1 })));
    wait_for(&metrics, "metamcp_pool_waiting", 1.0).await;
    // Those of the three calls and of the reader.
    wait_for(&metrics, "metamcp_client_connections", 4.0).await;
    upstream.control("release?key=a").await;
    held.end().await;
    next.end().await;
    other.end().await;

    wait_for(&metrics, queue, 1.0).await;
    // A call may lose its connection to the one that waits, and wait for the next itself.
    let pool = "metamcp_pool_wait_seconds_count";
    until(async || value(&metrics.get().await, pool) > Some(0.0)).await;
}

#[tokio::test]
async fn sessions_and_subscriptions_are_counted_while_they_last_and_timed_at_their_end() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &["--subscribe"])).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    let subscribed = client.request(json!("s"), "resources/subscribe", json!({ "uri": "a:1" }));
    assert_eq!(subscribed.await.answer()["result"], json!({}));
    let metrics = daemon.client("/metrics");
    let found = metrics.get().await;
    assert_eq!(value(&found, "metamcp_subscriptions"), Some(1.0));
    assert_eq!(value(&found, "mcp_server_session_duration_seconds_count"), Some(0.0));
    let of_server = "mcp_client_session_duration_seconds_count{mcp_server=\"fake\"}";
    assert_eq!(value(&found, of_server), Some(0.0));

    client.send(Method::DELETE, &[], "").await;
    daemon.client("/servers/fake").tool("exit", json!({ "code": 1 })).await;

    wait_for(&metrics, "metamcp_subscriptions", 0.0).await;
    wait_for(&metrics, "mcp_server_session_duration_seconds_count", 1.0).await;
    wait_for(&metrics, of_server, 1.0).await;
}

#[tokio::test]
async fn requests_for_tokens_are_counted_by_grant_and_outcome() {
    let upstream = LoginUpstream::start();
    let daemon = Daemon::with(upstream.server("")).ready();
    let echo = async || daemon.client("/servers/up").tool("echo", json!({})).await;
    logins::log_in(&daemon).await;
    upstream.revoke_refresh_tokens();
    upstream.expire();
    echo().await;
    logins::log_in(&daemon).await;
    upstream.expire();
    echo().await;

    let found = daemon.client("/metrics").get().await;

    for (grant, outcome, expected) in [
        ("authorization_code", "ok", 2.0),
        ("authorization_code", "error", 0.0),
        ("refresh_token", "ok", 1.0),
        ("refresh_token", "error", 1.0),
    ] {
        let labels = format!("{{mcp_server=\"up\",grant=\"{grant}\",outcome=\"{outcome}\"}}");
        let metric = format!("metamcp_server_token_requests_total{labels}");
        assert_eq!(value(&found, &metric), Some(expected), "{metric}\n{}", found.body);
    }
    upstream.assert_secret(&found.body);
}

#[tokio::test]
async fn metrics_say_what_tool_lists_cost_each_client_and_what_the_other_view_would() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let direct = daemon.client("/").initialized().await;
    direct.request(json!(1), "tools/list", json!({})).await;
    direct.tool("fake__echo", json!({ "value": 1 })).await;
    let found = daemon.client("/metrics").get().await;
    let labels = r#"{mcp_client="test",mcp_client_version="1",view="direct"}"#;
    let tokens = |metric: &str| -> f64 {
        value(&found, &format!("metamcp_client_{metric}_tokens{labels}")).expect(metric)
    };
    assert!(tokens("list") > 100.0);
    // The list is read in two turns: rounded once and not twice.
    assert!((tokens("direct") - 2.0 * tokens("list")).abs() <= 1.0);
    assert!(tokens("meta") > 0.0);
}

#[tokio::test]
async fn the_documentation_has_every_metric_and_no_other() {
    let (fakes, remote) = (Fakes::new(), LoginUpstream::start());
    let daemon = Daemon::with(fakes.server("fake", &[]) + &remote.server("")).ready();
    let client = daemon.client("/").initialized().await;
    client.request(json!(1), "tools/list", json!({})).await;
    client.tool("fake__echo", json!({ "value": 1 })).await;
    let body = daemon.client("/metrics").get().await.body;
    let exposed: BTreeSet<&str> =
        body.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let page = std::fs::read_to_string("docs/operate/observing.md").expect("readable");
    let is_metric = |word: &&str| word.starts_with("metamcp_") || word.starts_with("mcp_");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let documented: BTreeSet<&str> =
        rows.flat_map(|cell| cell.split('`')).filter(is_metric).collect();
    assert_eq!(documented, exposed);
}
