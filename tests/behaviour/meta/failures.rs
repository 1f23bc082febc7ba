//! Failing calls: the errors for the model, and the cancellation at the server.

use serde_json::{Value, json};

use super::{BOTH, call_of, meta};
use crate::harness::{client::running, daemon::Daemon, fake::Fakes, meta_client::MetaClient};

/// Returns a client with a session, which a client needs to cancel its requests.
async fn with_session(daemon: &Daemon) -> MetaClient {
    MetaClient::at(daemon.client("/meta").initialized().await).await
}

#[tokio::test]
async fn a_failure_reported_by_the_tool_is_passed_on() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(BOTH.to_owned() + &fakes.server("fake", &[])).ready();
    let meta = meta(&daemon).await;

    let failed = meta.result("mcp_call", call_of("fake", "tool_error", json!({}))).await;
    let own =
        json!({ "content": [{ "type": "text", "text": "the tool failed" }], "isError": true });
    assert_eq!(failed, own);
    let error = meta.error("run_tool", json!({ "tool_id": "fake/tool_error" })).await;
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!("execution_failed"), &json!("the tool failed"))
    );
    assert_eq!(
        (&error["tool_id"], &error["backend_kind"]),
        (&json!("fake/tool_error"), &json!("mcp"))
    );

    for (code, may_pass) in [(-32603, true), (-32602, false), (-32601, false), (7, true)] {
        let rpc = json!({ "code": code, "message": "no such row", "data": { "row": 7 } });
        for (tool, arguments) in [
            ("mcp_call", call_of("fake", "rpc_error", rpc.clone())),
            ("run_tool", json!({ "tool_id": "fake/rpc_error", "args": rpc })),
        ] {
            let error = meta.error(tool, arguments).await;
            assert_eq!(error["code"], "execution_failed");
            assert_eq!(error["details"]["rpc"], rpc);
            assert_eq!(error["retryable"], may_pass, "{error}");
            assert!(
                error["message"]
                    .as_str()
                    .is_some_and(|text| text.contains("`fake`") && text.contains("no such row"))
            );
        }
    }
}

#[tokio::test]
async fn a_server_that_dies_repeatedly_is_reported_with_an_open_circuit() {
    let fakes = Fakes::new();
    let config = "[breaker]\ncooldown = \"1h\"\n".to_owned() + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config).ready();
    let meta = meta(&daemon).await;
    for _ in 0..5 {
        let error = meta.error("mcp_call", call_of("fake", "exit", json!({ "code": 1 }))).await;
        assert_eq!(
            (&error["code"], &error["retryable"]),
            (&json!("execution_failed"), &json!(true)),
            "{error}"
        );
        assert_eq!(error["details"]["reason"], "server_exited");
    }

    let error = meta.error("mcp_call", call_of("fake", "echo", json!({ "value": 1 }))).await;

    assert_eq!(
        (&error["code"], &error["details"]["reason"]),
        (&json!("execution_failed"), &json!("circuit_open"))
    );
    assert!(error["details"]["retryAfterMs"].as_u64().is_some_and(|wait| wait > 0), "{error}");
    assert_eq!(error["tool_id"], "fake/echo");
    assert_eq!(fakes.pids("fake").len(), 5, "the server is not started");
    // Its tools are still known.
    let found = meta.value("mcp_discover", json!({ "server": "fake", "tool": "echo" })).await;
    assert_eq!(found["tools"][0]["tool"], "echo");
}

#[tokio::test]
async fn a_server_that_cannot_start_is_reported_with_the_reason() {
    let daemon = Daemon::with("[servers.broken]\ncommand = \"/no/such/program\"\n").ready();
    let error = meta(&daemon).await.error("mcp_call", call_of("broken", "x", json!({}))).await;
    assert_eq!(
        (&error["code"], &error["details"]["reason"]),
        (&json!("execution_failed"), &json!("server_not_connected"))
    );
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("`broken`") && text.contains("/no")),
        "{error}"
    );
}

#[tokio::test]
async fn a_call_that_times_out_is_cancelled_at_the_server() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let meta = meta(&daemon).await;
    let mut arguments = call_of("fake", "hold", json!({ "key": "k" }));
    arguments["timeoutMs"] = json!(50);

    let error = meta.error("mcp_call", arguments).await;

    assert_eq!(
        (&error["code"], &error["retryable"]),
        (&json!("timeout"), &json!(false)),
        "{error}"
    );
    let message = error["message"].as_str().expect("a text");
    assert_eq!(
        message,
        "server `fake` gave no answer within the 50 ms of `timeoutMs`. The call may still be \
         running: check its effects before you call again, with a larger `timeoutMs`."
    );
    let warning = error["details"]["warnings"][0].as_str().expect("a warning");
    assert!(
        warning.contains("does not declare it idempotent"),
        "the tool does not declare that it may be repeated: {error}"
    );
    let seen = daemon.client("/servers/fake").call("seen", json!({ "cancelled": 1 })).await;
    assert_eq!(seen["cancelled"].as_array().map(Vec::len), Some(1), "{seen}");
}

#[tokio::test]
async fn a_cancellation_reaches_the_server() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(BOTH.to_owned() + &fakes.server("fake", &[])).ready();
    let server = daemon.client("/servers/fake");
    for (n_cancelled, (tool, arguments)) in [
        ("mcp_call", call_of("fake", "hold", json!({ "key": "k" }))),
        ("run_tool", json!({ "tool_id": "fake/hold", "args": { "key": "k" } })),
    ]
    .into_iter()
    .enumerate()
    {
        let client = with_session(&daemon).await;
        let held = running({
            let client = client.http.clone();
            async move { client.tool(tool, arguments).await }
        });
        server.call("held", json!({ "at_least": 1 })).await;

        client.http.notify("notifications/cancelled", json!({ "requestId": 1 })).await;

        server.call("seen", json!({ "cancelled": n_cancelled + 1 })).await;
        assert_eq!(held.end().await.body, "", "a cancelled request has no answer");
    }
    // A disconnected client cancels as well.
    let disconnecting = running({
        let client = daemon.client("/meta");
        async move { client.tool("mcp_call", call_of("fake", "hold", json!({ "key": "k" }))).await }
    });
    server.call("held", json!({ "at_least": 1 })).await;
    drop(disconnecting);
    let seen: Value = server.call("seen", json!({ "cancelled": 3 })).await;
    assert_eq!(seen["cancelled"].as_array().map(Vec::len), Some(3), "{seen}");
}

#[tokio::test]
async fn a_call_of_a_tool_that_a_reload_removed_gets_tool_not_found() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("fake", &["--named", "old"])).ready();
    let meta = meta(&daemon).await;
    assert_eq!(meta.value("mcp_call", call_of("fake", "old", json!({}))).await["tool"], "old");

    daemon.rewrite(&fakes.server("fake", &["--named", "new"]));
    daemon.reload();

    let error = meta.error("mcp_call", call_of("fake", "old", json!({}))).await;
    assert_eq!(error["code"], "tool_not_found", "{error}");
    assert_eq!(meta.value("mcp_call", call_of("fake", "new", json!({}))).await["tool"], "new");
}
