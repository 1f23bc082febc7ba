//! The metrics at `/metrics`.

use std::collections::BTreeSet;

use serde_json::json;

use crate::harness::{daemon::Daemon, fake::Fakes};

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

#[tokio::test]
async fn metrics_need_the_token_like_every_other_path() {
    let fakes = Fakes::new();
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("token"), "0123456789abcdef\n").expect("written");
    let config = format!("[listen]\ntoken = \"credential:token\"\n{}", fakes.server("fake", &[]));
    let daemon = Daemon::with(config).env("CREDENTIALS_DIRECTORY", directory.path()).ready();
    let metrics = daemon.client("/metrics");
    assert_eq!(metrics.get().await.status, 401);
    let reader = metrics.header("authorization", "Bearer 0123456789abcdef");
    assert_eq!(reader.get().await.status, 200);
}

#[tokio::test]
async fn the_documentation_has_every_metric_and_no_other() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    daemon.client("/").initialized().await.tool("fake__echo", json!({ "value": 1 })).await;
    let body = daemon.client("/metrics").get().await.body;
    let exposed: BTreeSet<&str> =
        body.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let page = std::fs::read_to_string("docs/operate/observing.md").expect("readable");
    let is_metric = |word: &&str| {
        (word.starts_with("metamcp_") || word.starts_with("mcp_"))
            && !["mcp_method_name", "mcp_server"].contains(word)
    };
    let documented: BTreeSet<&str> = page.split('`').filter(is_metric).collect();
    assert_eq!(documented, exposed);
}
