//! Session ids after a restart, at a replica, and on requests that require them.

use std::{fs, path::Path};

use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{
    client::{Client, MCP_HEADERS, Reply, request},
    daemon::{Daemon, Start},
    fake::Fakes,
};

const PER_SESSION: &str = "sharing = \"session\"\n";

fn all_capabilities() -> Value {
    json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} }, "roots": { "listChanged": true } })
}

fn handshake() -> Value {
    json!({
        "protocolVersion": "2025-06-18", "capabilities": all_capabilities(),
        "clientInfo": { "name": "x", "version": "1" },
    })
}

fn listen(text: &str) -> String {
    format!("[listen]\n{text}\n")
}

/// Returns the session id of a client.
fn id(client: &Client) -> &str {
    let mut headers = client.headers.iter();
    &headers.find(|(name, _)| name == "mcp-session-id").expect("it has one").1
}

/// Returns a client with the same session id at another service.
fn at_other_service(client: &Client, daemon: &Daemon, path: &str) -> Client {
    daemon.client(path).header("mcp-session-id", id(client))
}

/// Returns the client capabilities that the per-session server has received.
async fn received_capabilities(client: &Client) -> Value {
    client.call("seen", json!({})).await["capabilities"].clone()
}

fn with_state(config: impl Into<String>, state: &Path) -> Start {
    Daemon::with(config).env("STATE_DIRECTORY", state)
}

/// Returns the statuses of a POST with a request, with a notification and with an answer, of a GET,
/// and of a DELETE.
async fn statuses(client: &Client) -> [u16; 5] {
    let ping = client.request(json!(1), "ping", json!({})).await;
    let notified = client.notify("notifications/roots/list_changed", json!({})).await;
    let answered = client.respond(&json!(7), json!({})).await;
    let stream = client.listen().await.status;
    let deleted = client.send(Method::DELETE, &[], "").await;
    [ping.status, notified.status, answered.status, stream, deleted.status]
        .map(|status| status.as_u16())
}

fn refusal(reply: &Reply) -> (u16, Value, Value) {
    let error = reply.answer()["error"].clone();
    (reply.status.as_u16(), error["code"].clone(), error["data"]["code"].clone())
}

#[tokio::test]
async fn a_session_and_its_client_capabilities_survive_a_restart() {
    for mode in ["lenient", "strict"] {
        let (fakes, state) = (Fakes::new(), tempfile::tempdir().expect("a directory"));
        let config =
            listen(&format!("session = {mode:?}")) + &fakes.server("own", &[]) + PER_SESSION;
        let mut before = with_state(&*config, state.path()).ready();
        let capable = before.client("/servers/own").initialized_with(all_capabilities()).await;
        let plain = before.client("/servers/own").initialized().await;
        assert_eq!(received_capabilities(&capable).await, json!([all_capabilities()]));
        assert!(before.stop().success());

        let after = with_state(&*config, state.path()).ready();
        let capable = at_other_service(&capable, &after, "/servers/own");
        assert_eq!(received_capabilities(&capable).await, json!([all_capabilities()]), "{mode}");
        // The session is complete: a server request reaches the client, and the answer the server.
        let mut call = capable.tool_stream("ask", json!({ "method": "roots/list" })).await;
        let question = call.message().await;
        assert_eq!(question["method"], "roots/list", "{mode}");
        capable.respond(&question["id"], json!({ "roots": [] })).await;
        let answer = call.message().await;
        let received = &answer["result"]["structuredContent"];
        assert_eq!(*received, json!({ "result": { "roots": [] } }), "{mode}");
        let plain = at_other_service(&plain, &after, "/servers/own");
        assert_eq!(received_capabilities(&plain).await, json!([{}]), "{mode}");
        assert_eq!(statuses(&capable).await, [200, 202, 202, 200, 204], "{mode}");
    }
}

#[tokio::test]
async fn the_negotiated_version_survives_a_restart() {
    let state = tempfile::tempdir().expect("a directory");
    let mut before = with_state("", state.path()).ready();
    let mut clients = Vec::new();
    for version in ["2025-11-25", "2025-06-18"] {
        let mut params = handshake();
        params["protocolVersion"] = version.into();
        let initialized = before.client("/").request(json!(0), "initialize", params).await;
        let id = initialized.headers["mcp-session-id"].to_str().expect("visible ASCII");
        clients.push(before.client("/").header("mcp-session-id", id));
    }
    // Only clients of the newer version understand an event without data.
    let has_initial_event = async |client: &Client| {
        client.listen().await.next().await.expect("an event").data.is_some()
    };
    assert!(has_initial_event(&clients[0]).await && !has_initial_event(&clients[1]).await);
    assert!(before.stop().success());
    let after = with_state("", state.path()).ready();
    let [newer, older] = [0, 1].map(|n| at_other_service(&clients[n], &after, "/"));
    assert!(has_initial_event(&newer).await && !has_initial_event(&older).await);
}

#[tokio::test]
async fn a_session_id_that_is_forged_or_signed_with_another_key_carries_no_capabilities() {
    let fakes = Fakes::new();
    let config = fakes.server("own", &[]) + PER_SESSION;
    let daemon = Daemon::with(&*config).ready();
    let other = Daemon::with(config).ready();
    let client = daemon.client("/servers/own").initialized_with(all_capabilities()).await;
    let own = id(&client).to_owned();
    let mut forged = own.clone();
    let last = if forged.pop() == Some('A') { 'E' } else { 'A' };
    forged.push(last);
    for (daemon, id) in [(&daemon, &*forged), (&other, &own), (&daemon, "m1..")] {
        let client = daemon.client("/servers/own").header("mcp-session-id", id);
        assert_eq!(received_capabilities(&client).await, json!([{}]), "{id}");
        assert_eq!(statuses(&client).await, [200, 202, 202, 200, 204], "{id}");
    }
    assert_eq!(received_capabilities(&client).await, json!([all_capabilities()]));
}

#[tokio::test]
async fn a_strict_service_requires_a_session_id_that_it_issued() {
    let fakes = Fakes::new();
    let config = listen("session = \"strict\"") + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config).ready();
    for path in ["/", "/servers/fake"] {
        let client = daemon.client(path).initialized().await;
        let own = id(&client).to_owned();
        let forged = own.replace("m1.", "m1.A");
        let unknown = |id: &str| daemon.client(path).header("mcp-session-id", id);

        assert_eq!(statuses(&daemon.client(path)).await, [400; 5], "{path}");
        for id in ["from-before-a-restart", &*forged, "two words", &own[1..]] {
            assert_eq!(statuses(&unknown(id)).await, [404; 5], "{path} {id}");
        }
        let ping =
            |client: Client| async move { client.request(json!(1), "ping", json!({})).await };
        assert_eq!(
            refusal(&ping(daemon.client(path)).await),
            (400, json!(-32000), json!("SESSION_REQUIRED"))
        );
        assert_eq!(
            refusal(&ping(unknown("x")).await),
            (404, json!(-32001), json!("SESSION_NOT_FOUND"))
        );
        // A client that initializes needs no id, and receives a new one.
        let again = unknown(&own).request(json!(0), "initialize", handshake()).await;
        assert_eq!(again.status, 200, "{path}");
        let issued = again.headers["mcp-session-id"].to_str().expect("visible ASCII");
        assert!(issued.starts_with("m1.") && issued != own, "{issued}");

        assert_eq!(statuses(&client).await, [200, 202, 202, 200, 204], "{path}");
        assert_eq!(statuses(&client).await, [404; 5], "{path}: the session has ended");
    }
}

#[tokio::test]
async fn a_strict_service_ends_a_session_that_its_predecessor_opened() {
    let state = tempfile::tempdir().expect("a directory");
    let config = listen("session = \"strict\"");
    let mut before = with_state(&*config, state.path()).ready();
    let client = before.client("/").initialized().await;
    assert!(before.stop().success());
    let after = with_state(config, state.path()).ready();
    let client = at_other_service(&client, &after, "/");
    // A session that this process has never served can be ended, too.
    assert_eq!(client.send(Method::DELETE, &[], "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(statuses(&client).await, [404; 5]);
}

#[tokio::test]
async fn a_service_without_sessions_issues_no_session_id_and_ignores_received_ones() {
    let fakes = Fakes::new();
    let config = listen("session = \"off\"") + &fakes.server("fake", &["--logging", "--subscribe"]);
    let daemon = Daemon::with(config).ready();
    for path in ["/", "/servers/fake"] {
        let initialized = daemon.client(path).request(json!(0), "initialize", handshake()).await;
        assert_eq!(initialized.headers.get("mcp-session-id"), None, "{path}");
        let profile = initialized.answer()["result"].clone();
        assert_eq!(profile["protocolVersion"], "2025-06-18", "{profile}");
        let offered = profile["capabilities"].to_string();
        assert!(offered.contains("\"tools\":{}"), "{path}: {offered}");
        for promise in ["listChanged", "subscribe", "logging"] {
            assert!(!offered.contains(promise), "{path}: no client can be notified: {offered}");
        }
        let without_id = daemon.client(path);
        let with_id = daemon.client(path).header("mcp-session-id", "x");
        for client in [without_id, with_id] {
            assert_eq!(statuses(&client).await, [200, 202, 202, 405, 405], "{path}");
            let refused = client.send(Method::DELETE, &[], "").await;
            assert_eq!(refused.headers["allow"], "POST");
        }
    }
    let client = daemon.client("/servers/fake").header("mcp-session-id", "x");
    let watched = client.request(json!(1), "resources/subscribe", json!({ "uri": "x:/1" })).await;
    assert_eq!(watched.answer()["error"]["data"]["code"], "SESSION_REQUIRED");
    // Messages of a request still reach the client that sent it.
    let params = json!({ "name": "progress", "arguments": { "steps": 2 }, "_meta": { "progressToken": "t" } });
    let reply = client.request(json!(1), "tools/call", params).await;
    assert!(reply.messages().len() > 1, "{reply:?}");
}

#[tokio::test]
async fn replicas_with_the_same_key_serve_each_others_sessions() {
    let (fakes, credentials) = (Fakes::new(), tempfile::tempdir().expect("a directory"));
    fs::write(credentials.path().join("key"), [0xfe; 48]).expect("written");
    let config = listen("session = \"strict\"\nsession_key = \"credential:key\"")
        + &fakes.server("own", &[])
        + PER_SESSION;
    let start = || Daemon::with(&*config).env("CREDENTIALS_DIRECTORY", credentials.path()).ready();
    let (one, other) = (start(), start());
    let client = one.client("/servers/own").initialized_with(all_capabilities()).await;
    for daemon in [&other, &one, &other] {
        let client = at_other_service(&client, daemon, "/servers/own");
        assert_eq!(received_capabilities(&client).await, json!([all_capabilities()]));
    }
}

#[tokio::test]
async fn two_services_started_at_once_create_one_signing_key() {
    let state = tempfile::tempdir().expect("a directory");
    let config = listen("session = \"strict\"");
    let mut both = [(); 2].map(|()| with_state(&*config, state.path()).spawn());
    both.iter_mut().for_each(Daemon::wait_ready);
    let client = both[0].client("/").initialized().await;
    assert_eq!(statuses(&at_other_service(&client, &both[1], "/")).await[0], 200);
    let kept: Vec<_> = fs::read_dir(state.path()).expect("readable").collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

#[tokio::test]
async fn a_signing_key_that_cannot_be_stored_is_logged_as_temporary() {
    let nowhere = Path::new("/dev/null/metamcp");
    let mut daemon = with_state("", nowhere).ready();
    daemon.wait_log("sessions of clients will end with this process");
    let client = daemon.client("/").initialized().await;
    assert_eq!(statuses(&client).await[0], 200);
    assert!(daemon.stop().success());
    // A service without sessions has nothing to sign, and does not warn.
    let daemon = with_state(listen("session = \"off\""), nowhere).ready();
    assert!(!daemon.log().contains("outlive"), "{}", daemon.log());
}

#[tokio::test]
async fn a_short_or_missing_signing_key_is_reported_with_its_source() {
    let credentials = tempfile::tempdir().expect("a directory");
    fs::write(credentials.path().join("short"), "0123456789").expect("written");
    for (name, reason) in [("short", "has 10 bytes"), ("gone", "there is no")] {
        let config = listen(&format!("session_key = \"credential:{name}\""));
        let start = Daemon::with(config).env("CREDENTIALS_DIRECTORY", credentials.path());
        let mut daemon = start.spawn();
        assert_eq!(daemon.wait_exit().code(), Some(1));
        let log = daemon.log();
        assert!(log.contains(reason) && log.contains(&format!("credential:{name}")), "{log}");
        assert!(!log.contains("0123456789"), "{log}");
    }
}

#[tokio::test]
async fn a_reload_changes_the_session_mode() {
    let mut daemon = Daemon::with("").ready();
    let client = daemon.client("/").initialized().await;
    let stray = daemon.client("/").header("mcp-session-id", "x");
    let ping = request(&json!(1), "ping", &json!({}));
    let seen = async |client: &Client| {
        client.send(Method::POST, &MCP_HEADERS, ping.clone()).await.status.as_u16()
    };
    assert_eq!((seen(&client).await, seen(&stray).await), (200, 200));
    daemon.rewrite(&listen("session = \"strict\""));
    daemon.reload();
    assert_eq!((seen(&client).await, seen(&stray).await), (200, 404));
    daemon.rewrite(&listen("session = \"off\""));
    daemon.reload();
    assert_eq!((seen(&client).await, seen(&stray).await), (200, 200));
    assert_eq!(client.send(Method::DELETE, &[], "").await.status, 405);
    daemon.rewrite(&listen("session_key = \"credential:k\""));
    daemon.reload();
    daemon.wait_log("the new key for session ids takes effect at the next restart");
    assert_eq!(client.send(Method::DELETE, &[], "").await.status, 204);
}
