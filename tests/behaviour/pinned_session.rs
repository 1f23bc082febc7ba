//! One session at an upstream, which all clients share.

use std::{
    fs,
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    all,
    harness::{
        client::{Client, running},
        daemon::Daemon,
        fake::Upstream,
        stub_upstream::{self, StubUpstream},
    },
};

#[tokio::test]
async fn ten_concurrent_first_clients_cause_one_initialize() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();

    let answers = all((0..10).map(|number| {
        let client = daemon.client("/servers/up");
        async move {
            let client = client.initialized().await;
            client.call("meet", json!({ "n": 10, "value": number })).await
        }
    }))
    .await;

    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer["value"], number);
    }
    let log = upstream.log("").await;
    assert_eq!(log["initializes"], 1, "{log}");
    assert_eq!(log["sessions_minted"], 1, "{log}");
}

#[tokio::test]
async fn all_clients_share_one_upstream_session() {
    let upstream = Upstream::start(&["--drop-duplicate-ids"]);
    let config = format!("[listen]\nroot = \"passthrough:up\"\n{}", upstream.server("up", ""));
    let daemon = Daemon::with(config).ready();

    let sessions = all((0..12).map(|number| {
        let path = if number % 2 == 0 { "/" } else { "/servers/up" };
        let client = daemon.client(path);
        async move {
            let client = client.initialized().await;
            client.call("meet", json!({ "n": 12, "value": number })).await;
            client.call("whoami", json!({})).await["session"].clone()
        }
    }))
    .await;

    assert!(sessions[0].is_string());
    assert!(sessions.iter().all(|session| *session == sessions[0]), "{sessions:?}");
    assert_eq!(upstream.log("").await["initializes"], 1);
}

#[tokio::test]
async fn a_prewarmed_session_is_open_before_the_first_client() {
    let upstream = Upstream::start(&[]);
    let config = upstream.server("up", "start = \"prewarm\"");

    let daemon = Daemon::with(config).ready();

    assert_eq!(upstream.log("").await["initializes"], 1);
    assert_eq!(daemon.client("/readyz").get().await.status, 200);
}

#[tokio::test]
async fn a_call_is_repeated_in_a_new_session_if_the_upstream_forgets_the_old_one() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = daemon.client("/servers/up");
    client.call("echo", json!({ "value": 0 })).await;

    upstream.control("forget").await;
    let answers = all((0..10).map(|value| client.call("echo", json!({ "value": value })))).await;

    let values: Vec<&Value> = answers.iter().map(|answer| &answer["value"]).collect();
    assert_eq!(values, (0..10).map(Value::from).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    assert_eq!(upstream.log("").await["initializes"], 2);
}

#[tokio::test]
async fn other_upstream_errors_do_not_open_a_new_session() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", "auth = \"none\"")).ready();
    let client = daemon.client("/servers/up");
    client.call("echo", json!({ "value": 0 })).await;

    for code in [401, 403, 409, 429, 500, 503] {
        upstream.control(&format!("status?code={code}&n=1")).await;
        let answer = client.tool("echo", json!({ "value": 1 })).await.answer();
        assert_eq!(answer["error"]["data"]["code"], "UPSTREAM_STATUS", "{answer}");
        assert!(answer["error"]["message"].to_string().contains(&code.to_string()), "{answer}");
    }

    assert_eq!(client.call("echo", json!({ "value": 2 })).await["value"], 2);
    assert_eq!(upstream.log("").await["initializes"], 1);
}

#[tokio::test]
async fn a_shutdown_ends_the_upstream_session_and_a_leaving_client_does_not() {
    let upstream = Upstream::start(&[]);
    let mut daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = daemon.client("/servers/up").initialized().await;
    client.call("echo", json!({ "value": 0 })).await;

    let deleted = client.send(hyper::Method::DELETE, &[], "").await;
    assert_eq!(deleted.status, 204);
    assert_eq!(upstream.log("").await["deletes"], 0);
    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);

    assert!(daemon.stop().success());
    let log = upstream.log("deletes=1").await;
    assert_eq!(log["sessions"], json!([]));
}

#[tokio::test]
async fn the_upstream_receives_the_configured_headers_and_none_of_the_clients() {
    let upstream = Upstream::start(&["--require-header", "x-api-key=s3cret"]);
    let credentials = tempfile::tempdir().expect("a directory");
    fs::write(credentials.path().join("key"), "s3cret\n").expect("written");
    let config = upstream.server("up", "headers = { X-API-Key = \"credential:key\" }");
    let daemon = Daemon::with(config).env("CREDENTIALS_DIRECTORY", credentials.path()).ready();
    let client = daemon
        .client("/servers/up")
        .header("authorization", "Bearer of-the-client")
        .header("cookie", "a=b")
        .header("mcp-session-id", "of-the-client");

    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);

    let headers = upstream.log("").await["last_headers"].clone();
    assert_eq!(headers["x-api-key"], "s3cret");
    assert_eq!(headers["mcp-protocol-version"], "2025-06-18", "the negotiated version");
    assert!(headers.get("authorization").is_none() && headers.get("cookie").is_none(), "{headers}");
    let session = client.call("whoami", json!({})).await["session"].clone();
    assert!(session.is_string());
    assert_eq!(headers["mcp-session-id"], session, "the pinned session");
    let status = daemon.client("/status").get().await.answer();
    assert_eq!(status["servers"][0]["protocol_version"], "2025-06-18");
    daemon.wait_log("server `up` connected");
    assert!(!daemon.log().contains("s3cret"));
}

#[tokio::test]
async fn progress_of_an_upstream_reaches_the_calling_client() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();

    let replies = all((0..8).map(|number| {
        let client = daemon.client("/servers/up");
        let arguments = json!({ "steps": 20, "n": number });
        let params =
            json!({ "name": "progress", "arguments": arguments, "_meta": { "progressToken": 5 } });
        async move { client.request(json!(1), "tools/call", params).await }
    }))
    .await;

    for (number, reply) in replies.iter().enumerate() {
        let messages = reply.messages();
        assert_eq!(messages.len(), 21);
        assert!(messages[..20].iter().all(|message| message["params"]["progressToken"] == 5));
        assert_eq!(messages[20]["result"]["structuredContent"]["n"], number);
    }
}

#[tokio::test]
async fn an_upstream_may_answer_with_plain_json() {
    let upstream = Upstream::start(&["--json"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = daemon.client("/servers/up");
    assert_eq!(client.call("echo", json!({ "value": [1, 2] })).await["value"], json!([1, 2]));
}

#[tokio::test]
async fn an_upstream_that_is_down_is_reported_and_used_again_once_it_is_back() {
    let upstream = Upstream::start(&[]);
    let port = upstream.url.rsplit([':', '/']).nth(1).expect("a port").to_owned();
    let config = upstream.server("up", "");
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/up");
    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);

    drop(upstream);
    let answer = client.tool("echo", json!({ "value": 2 })).await.answer();
    assert_eq!(answer["error"]["data"]["code"], "SERVER_UNREACHABLE", "{answer}");
    let upstream = Upstream::start(&["--port", &port]);
    assert_eq!(client.call("echo", json!({ "value": 3 })).await["value"], 3);
    assert_eq!(upstream.log("").await["initializes"], 1);
}

#[tokio::test]
async fn session_ids_in_upstream_errors_never_leak() {
    let upstream = StubUpstream::start(|_| {
        let page = r#"{"error":"Session not found","available_sessions":["s3cret-session"]}"#;
        (404, stub_upstream::JSON, page.to_owned())
    });
    let daemon = Daemon::with(format!("[servers.up]\nurl = {:?}\n", upstream.url)).ready();

    let reply = daemon.client("/servers/up").tool("echo", json!({ "value": 1 })).await;

    assert_eq!(reply.answer()["error"]["data"]["code"], "SESSION_LOST", "{reply:?}");
    daemon.wait_log("request sent to server `up` again");
    assert!(!reply.body.contains("s3cret-session") && !daemon.log().contains("s3cret-session"));
}

#[tokio::test]
async fn an_upstream_error_without_an_id_answers_the_request() {
    let upstream = StubUpstream::start(|_| {
        let error =
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Not Acceptable"}}"#;
        (406, stub_upstream::JSON, error.to_owned())
    });
    let daemon = Daemon::with(format!("[servers.up]\nurl = {:?}\n", upstream.url)).ready();

    let answer = daemon.client("/servers/up").tool("echo", json!({})).await.answer();

    assert_eq!(answer["error"]["data"]["code"], "UPSTREAM_STATUS", "{answer}");
    assert!(answer["error"]["message"].to_string().contains("Not Acceptable"), "{answer}");
}

#[tokio::test]
async fn an_answer_with_the_requests_id_counts_at_any_http_status() {
    let upstream = StubUpstream::start(|message| {
        let error = json!({ "code": -32601, "message": "no such session method" });
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
        (404, stub_upstream::JSON, answer.to_string())
    });
    let daemon = Daemon::with(format!("[servers.up]\nurl = {:?}\n", upstream.url)).ready();
    let client = daemon.client("/servers/up");

    for _ in 0..3 {
        let answer = client.request(json!("x"), "some/method", json!({})).await.answer();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("x"), &json!(-32601)));
    }

    let status = daemon.client("/status").get().await.answer();
    assert_eq!(status["servers"][0]["generation"], 1, "the session was not lost");
}

#[tokio::test]
async fn a_stream_that_never_ends_does_not_delay_its_answer() {
    let upstream = StubUpstream::start(|message| {
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "n": 1 } });
        (200, stub_upstream::STREAM, format!("event: message\ndata: {answer}\n\n"))
    });
    let daemon = Daemon::with(format!("[servers.up]\nurl = {:?}\n", upstream.url)).ready();
    let client = daemon.client("/servers/up");
    for _ in 0..3 {
        assert_eq!(client.tool("x", json!({})).await.answer()["result"]["n"], 1);
    }
}

#[tokio::test]
async fn a_failed_list_is_read_again_on_the_next_request() {
    let n_requests = AtomicU32::new(0);
    let upstream = StubUpstream::start(move |message| {
        // The list fails for the era probe, for the new session, and for the client.
        let answer = if n_requests.fetch_add(1, Ordering::Relaxed) < 3 {
            json!({ "error": { "code": -32603, "message": "not ready yet" } })
        } else {
            let tool = json!({ "name": "late", "inputSchema": { "type": "object" } });
            json!({ "result": { "tools": [tool] } })
        };
        let mut answer = answer;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = message["id"].clone();
        (200, stub_upstream::JSON, answer.to_string())
    });
    let daemon = Daemon::with(format!("[servers.up]\nurl = {:?}\n", upstream.url)).ready();
    let client = daemon.client("/");
    let list = async || client.request(json!(1), "tools/list", json!({})).await.body;

    assert!(!list().await.contains("up__late"));
    daemon.wait_log("not ready yet");
    assert!(list().await.contains("up__late"));
}

#[tokio::test]
async fn a_shutdown_finishes_a_running_call() {
    let upstream = Upstream::start(&[]);
    let mut daemon = Daemon::with(upstream.server("up", "")).ready();
    let held = running(daemon.client("/servers/up").hold("k"));
    // A direct client of the upstream, independent of the service.
    let other = Client::new(upstream.url.clone()).initialized().await;
    other.call("held", json!({ "at_least": 1 })).await;

    daemon.signal(Signal::TERM);
    daemon.wait_notice("STOPPING=1", |notice| notice.contains("STOPPING=1"));
    other.call("release", json!({ "key": "k" })).await;

    let answer = held.end().await.answer();
    assert_eq!(answer["result"]["structuredContent"]["key"], "k", "{answer}");
    assert!(daemon.wait_exit().success());
}

#[tokio::test]
async fn an_eager_upstream_that_is_down_at_startup_is_used_once_it_is_up() {
    let upstream = Upstream::start(&[]);
    let port = upstream.url.rsplit([':', '/']).nth(1).expect("a port").to_owned();
    let config = upstream.server("up", "start = \"eager\"");
    drop(upstream);
    let daemon = Daemon::with(config).ready();
    let ready = daemon.client("/readyz");
    crate::until(async || ready.get().await.body.contains("cannot be reached")).await;

    let upstream = Upstream::start(&["--port", &port]);

    crate::until(async || ready.get().await.status == 200).await;
    assert_eq!(upstream.log("").await["initializes"], 1);
}

#[tokio::test]
async fn an_upstream_error_page_is_shown_without_the_configured_secret() {
    let upstream = StubUpstream::start(|_| {
        (502, stub_upstream::JSON, "<html>bad gateway, your key was s3cret-key</html>".to_owned())
    });
    let config = format!(
        "[servers.up]\nurl = {:?}\nheaders = {{ X-API-Key = \"env:UPSTREAM_KEY\" }}\n",
        upstream.url
    );
    let daemon = Daemon::with(config).env("UPSTREAM_KEY", "s3cret-key").ready();

    let reply = daemon.client("/servers/up").tool("x", json!({})).await;

    assert!(reply.body.contains("your key was [secret]"), "{}", reply.body);
    assert!(!reply.body.contains("s3cret-key"));
}

#[tokio::test]
async fn unrequested_progress_is_not_passed_on() {
    let upstream = StubUpstream::start(|message| {
        let id = &message["id"];
        let progress = json!({
            "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": id, "progress": 1 },
        });
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": {} });
        // Some servers begin the stream with a byte order mark.
        (
            200,
            "Content-Type: Text/Event-Stream",
            format!("\u{feff}data: {progress}\n\ndata: {answer}\n\n"),
        )
    });
    let daemon = Daemon::with(format!("[servers.up]\nurl = {:?}\n", upstream.url)).ready();

    let reply = daemon.client("/servers/up").tool("x", json!({})).await;

    assert_eq!(reply.messages().len(), 1, "{reply:?}");
}
