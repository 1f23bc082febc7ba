//! The control interface over HTTP.

use hyper::{Method, StatusCode};
use serde_json::json;

use super::assert_complete;
use crate::harness::{client::Reply, daemon::Daemon, fake::Fakes};

const JSON: (&str, &str) = ("content-type", "application/json");

async fn post(daemon: &Daemon, headers: &[(&str, &str)], body: &str) -> Reply {
    daemon.client("/rpc").send(Method::POST, headers, body.to_owned()).await
}

#[tokio::test]
async fn the_control_interface_is_served_over_http_if_enabled() {
    let fakes = Fakes::new();
    let config = "[listen]\nrpc = true\n".to_owned() + &fakes.server("one", &[]);
    let daemon = Daemon::with(config).ready();
    let call = json!({
        "jsonrpc": "2.0", "id": "a", "method": "tools/call",
        "params": { "name": "one/echo", "arguments": { "value": 7 } },
    });
    let reply = post(&daemon, &[JSON], &call.to_string()).await;
    assert_eq!(reply.status, StatusCode::OK);
    let answer = reply.answer();
    assert_eq!(answer["id"], "a");
    assert!(answer["result"]["content"].is_array(), "{answer}");

    let notice = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let reply = post(&daemon, &[JSON], notice).await;
    assert_eq!((reply.status, reply.body.as_str()), (StatusCode::ACCEPTED, ""));

    let status = r#"{"jsonrpc":"2.0","id":1,"method":"daemon/status"}"#;
    let foreign = ("origin", "https://evil.example");
    let host = ("host", "evil.example");
    let wrong = r#"{"jsonrpc":"2.0","id":1,"method":"config/reload","params":{"configPath":"/x"}}"#;
    for (headers, body, expected, name) in [
        (&[JSON][..], "nonsense", StatusCode::BAD_REQUEST, "PARSE_ERROR"),
        (&[JSON], "[]", StatusCode::BAD_REQUEST, "INVALID_REQUEST"),
        (&[JSON, foreign], status, StatusCode::FORBIDDEN, "ORIGIN_FORBIDDEN"),
        (&[JSON, host], status, StatusCode::FORBIDDEN, "HOST_FORBIDDEN"),
        (
            &[("content-type", "text/plain")],
            status,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "CONTENT_TYPE",
        ),
        (&[JSON], r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#, StatusCode::OK, "METHOD_NOT_FOUND"),
        (&[JSON], wrong, StatusCode::OK, "FORBIDDEN"),
    ] {
        let reply = post(&daemon, headers, body).await;
        assert_eq!(reply.status, expected, "{}", reply.body);
        let error = reply.answer()["error"].take();
        assert_complete(&error);
        assert_eq!(error["data"]["code"], name);
    }
    let reply = daemon.client("/rpc").get().await;
    assert_eq!(reply.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(reply.headers["allow"], "POST");
    assert_complete(&reply.answer()["error"]);
}

#[tokio::test]
async fn the_control_interface_is_not_served_over_http_by_default() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let stop = r#"{"jsonrpc":"2.0","id":1,"method":"daemon/stop"}"#;
    let reply = post(&daemon, &[JSON], stop).await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
    assert_complete(&reply.answer()["error"]);
    daemon.client("/").call("one__echo", json!({ "value": 1 })).await;
}

#[tokio::test]
async fn the_stop_command_works_over_http() {
    let fakes = Fakes::new();
    let config = "[listen]\nrpc = true\n".to_owned() + &fakes.server("one", &[]);
    let mut daemon = Daemon::with(config).ready();
    let stop = r#"{"jsonrpc":"2.0","id":1,"method":"daemon/stop"}"#;
    let reply = post(&daemon, &[JSON], stop).await;
    assert_eq!(reply.answer()["result"], json!({ "ok": true }));
    assert!(daemon.wait_exit().success());
}
