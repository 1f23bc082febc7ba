//! The protocol versions with a handshake: statuses and answers on the wire.

use hyper::Method;
use serde_json::{Value, json};

use crate::harness::{
    client::{Client, MCP_HEADERS},
    daemon::Daemon,
    fake::Fakes,
};

const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const NOTIFICATION: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const RESPONSE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// Returns a client that sends this version with every message, or no version.
fn speaking(client: &Client, version: Option<&str>) -> Client {
    let client = client.clone();
    match version {
        Some(version) => client.header("mcp-protocol-version", version),
        None => client,
    }
}

fn every_version() -> impl Iterator<Item = Option<&'static str>> {
    VERSIONS.into_iter().map(Some).chain([None])
}

#[tokio::test]
async fn a_supported_version_is_accepted_and_an_unknown_one_gets_the_newest() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let initialize = async |path: &str, version: Value| {
        let params = json!({
            "protocolVersion": version, "capabilities": {},
            "clientInfo": { "name": "x", "version": "1" },
        });
        let reply = daemon.client(path).request(json!(1), "initialize", params).await;
        assert_eq!(reply.status, 200, "{version}");
        assert!(reply.headers.contains_key("mcp-session-id"));
        reply.answer()["result"].clone()
    };
    for path in ["/", "/servers/fake"] {
        for version in VERSIONS {
            assert_eq!(initialize(path, json!(version)).await["protocolVersion"], version);
        }
        for unknown in [json!("1999-01-01"), json!("2027-01-01"), json!(""), json!(7), json!(null)]
        {
            let profile = initialize(path, unknown).await;
            assert_eq!(profile["protocolVersion"], "2025-11-25");
        }
    }
    for version in VERSIONS {
        let title = initialize("/", json!(version)).await["serverInfo"]["title"].is_string();
        assert_eq!(title, version >= "2025-06-18", "{version}: titles came with 2025-06-18");
    }
}

#[tokio::test]
async fn each_message_gets_the_http_status_of_its_version() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    for version in every_version() {
        let client = speaking(&daemon.client("/"), version);
        let has_batches = matches!(version, None | Some("2025-03-26"));
        let batched = |status: u16| if has_batches { status } else { 400 };
        for (body, status) in [
            (PING.to_owned(), 200),
            (NOTIFICATION.to_owned(), 202),
            (RESPONSE.to_owned(), 202),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#.to_owned(), 202),
            (String::new(), 400),
            ("{".to_owned(), 400),
            ("{}".to_owned(), 400),
            ("7".to_owned(), 400),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#.to_owned(), 400),
            ("[]".to_owned(), 400),
            (format!("[{PING}]"), batched(200)),
            (format!("[{NOTIFICATION}]"), batched(202)),
            (format!("[{RESPONSE},{NOTIFICATION}]"), batched(202)),
        ] {
            let reply = client.post(body.clone()).await;
            assert_eq!(reply.status, status, "{version:?} {body}: {reply:?}");
            if status == 202 {
                assert_eq!(reply.body, "", "{version:?} {body}");
                assert!(!reply.headers.contains_key("content-type"));
                continue;
            }
            assert_eq!(reply.headers["content-type"], "application/json", "{version:?} {body}");
            if status == 400 {
                let is_json = serde_json::from_str::<Value>(&body).is_ok();
                let code = if is_json { -32600 } else { -32700 };
                let answer = reply.answer();
                assert_eq!(answer["error"]["code"], code, "{version:?} {body}");
                assert_eq!(answer["id"], Value::Null);
            }
        }
    }
}

#[tokio::test]
async fn the_error_for_a_batch_names_the_version_without_batches() {
    let daemon = Daemon::with("").ready();
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let client = speaking(&daemon.client("/"), Some(version));
        let error = client.post(format!("[{PING}]")).await.answer()["error"].clone();
        assert_eq!(error["data"]["code"], "BATCH_UNSUPPORTED");
        assert_eq!(
            error["message"],
            format!("protocol version {version} does not support batches")
        );
    }
}

#[tokio::test]
async fn an_unsupported_version_is_refused_for_every_method() {
    let daemon = Daemon::with("").ready();
    let client = daemon.client("/");
    for version in ["1999-01-01", "2027-01-01", "", "latest", "2025-03-26, 2025-03-26"] {
        let header = ("mcp-protocol-version", version);
        for (method, body) in [
            (Method::POST, PING),
            (Method::POST, NOTIFICATION),
            (Method::GET, ""),
            (Method::DELETE, ""),
        ] {
            let headers = [
                header,
                ("content-type", "application/json"),
                ("accept", "application/json, text/event-stream"),
            ];
            let reply = client.send(method.clone(), &headers, body).await;
            assert_eq!(reply.status, 400, "{method} {version}");
            let error = &reply.answer()["error"];
            assert_eq!(error["data"]["code"], "UNSUPPORTED_VERSION");
            assert_eq!(error["data"]["context"]["requested"], version);
            let served = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
            assert_eq!(error["data"]["context"]["supported"], json!(served));
        }
    }
}

#[tokio::test]
async fn requests_with_lenient_accept_and_content_type_headers_are_served() {
    let daemon = Daemon::with("").ready();
    let client = daemon.client("/");
    let json_only = ("content-type", "application/json");
    let kinds = [
        ("application/json, text/event-stream", 200),
        ("application/json", 200),
        ("text/event-stream", 200),
        ("*/*", 200),
        ("", 200),
        ("APPLICATION/*", 200),
        ("text/html", 406),
        ("application/xml, image/png", 406),
    ];
    for (accept, status) in kinds {
        let headers = [json_only, ("accept", accept)];
        assert_eq!(client.send(Method::POST, &headers, PING).await.status, status, "{accept}");
        // An answer without a body needs no acceptable type.
        for message in [NOTIFICATION, RESPONSE] {
            let reply = client.send(Method::POST, &headers, message).await;
            assert_eq!((reply.status.as_u16(), reply.body.as_str()), (202, ""), "{accept}");
        }
    }
    assert_eq!(client.send(Method::POST, &[json_only], PING).await.status, 200, "no `Accept`");
    for kind in ["application/json; charset=utf-8", "Application/JSON"] {
        let reply = client.send(Method::POST, &[("content-type", kind)], PING).await;
        assert_eq!(reply.status, 200, "{kind}");
    }
    for kind in ["text/plain", "application/jsonp", "application/json-seq", ""] {
        let reply = client.send(Method::POST, &[("content-type", kind)], PING).await;
        assert_eq!(reply.status, 415, "{kind}");
    }
    assert_eq!(client.send(Method::POST, &[], PING).await.status, 415, "no `Content-Type`");
}

#[tokio::test]
async fn the_answer_to_an_unsupported_http_method_lists_the_supported_ones() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    for path in ["/", "/mcp", "/direct", "/servers/fake"] {
        for method in [Method::PUT, Method::PATCH, Method::HEAD, Method::OPTIONS] {
            let reply = daemon.client(path).send(method.clone(), &MCP_HEADERS, "").await;
            assert_eq!(reply.status, 405, "{method} {path}");
            assert_eq!(reply.headers["allow"], "GET, POST, DELETE", "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_client_that_looks_for_an_authorization_server_receives_404() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    for (method, path) in [
        (Method::GET, "/.well-known/oauth-protected-resource"),
        (Method::GET, "/.well-known/oauth-protected-resource/servers/fake"),
        (Method::GET, "/.well-known/oauth-authorization-server"),
        (Method::GET, "/.well-known/openid-configuration"),
        (Method::GET, "/servers/fake/.well-known/openid-configuration"),
        (Method::GET, "/authorize?response_type=code"),
        (Method::POST, "/register"),
        (Method::POST, "/token"),
        (Method::GET, "/nothing/here"),
        (Method::DELETE, "/mcp/"),
    ] {
        let reply = daemon.client(path).send(method.clone(), &MCP_HEADERS, "{}").await;
        assert_eq!(reply.status, 404, "{method} {path}");
        assert_eq!(reply.headers["content-type"], "application/json", "{method} {path}");
        assert!(reply.answer()["error"]["message"].is_string(), "{method} {path}");
    }
}
