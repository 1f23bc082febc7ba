//! Session ids after a restart, at a replica, and on requests that require them.

use std::{fs, path::Path};

use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{
    client::{Client, MCP_HEADERS, Reply, request},
    daemon::{Daemon, Start},
    fake::Fakes,
};

const OWNED: &str = "sharing = \"session\"\n";

fn everything() -> Value {
    json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} }, "roots": { "listChanged": true } })
}

fn handshake() -> Value {
    json!({
        "protocolVersion": "2025-06-18", "capabilities": everything(),
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

/// Returns the same client of another process.
fn elsewhere(client: &Client, daemon: &Daemon, path: &str) -> Client {
    daemon.client(path).header("mcp-session-id", id(client))
}

/// Returns what the server of a client's own was offered.
async fn offered(client: &Client) -> Value {
    client.call("seen", json!({})).await["capabilities"].clone()
}

fn with_state(config: impl Into<String>, state: &Path) -> Start {
    Daemon::with(config).env("STATE_DIRECTORY", state)
}

/// Sends a request of every kind and returns the statuses, of POST with a request, a notification
/// and an answer, of GET and of DELETE.
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
async fn a_client_goes_on_after_a_restart_as_what_it_was() {
    for mode in ["lenient", "strict"] {
        let (fakes, state) = (Fakes::new(), tempfile::tempdir().expect("a directory"));
        let config = listen(&format!("session = {mode:?}")) + &fakes.server("own", &[]) + OWNED;
        let mut before = with_state(&*config, state.path()).ready();
        let capable = before.client("/servers/own").initialized_with(everything()).await;
        let plain = before.client("/servers/own").initialized().await;
        assert_eq!(offered(&capable).await, json!([everything()]));
        assert!(before.stop().success());

        let after = with_state(&*config, state.path()).ready();
        let capable = elsewhere(&capable, &after, "/servers/own");
        assert_eq!(offered(&capable).await, json!([everything()]), "{mode}");
        // It is its session: what its server asks is put to it, and what it says gets there.
        let mut call = capable.tool_stream("ask", json!({ "method": "roots/list" })).await;
        let question = call.message().await;
        assert_eq!(question["method"], "roots/list", "{mode}");
        capable.respond(&question["id"], json!({ "roots": [] })).await;
        let answer = call.message().await;
        let told = &answer["result"]["structuredContent"];
        assert_eq!(*told, json!({ "result": { "roots": [] } }), "{mode}");
        let plain = elsewhere(&plain, &after, "/servers/own");
        assert_eq!(offered(&plain).await, json!([{}]), "{mode}");
        assert_eq!(statuses(&capable).await, [200, 202, 202, 200, 204], "{mode}");
    }
}

#[tokio::test]
async fn the_version_that_was_negotiated_is_known_after_a_restart() {
    let state = tempfile::tempdir().expect("a directory");
    let mut before = with_state("", state.path()).ready();
    let mut clients = Vec::new();
    for version in ["2025-11-25", "2025-06-18"] {
        let mut params = handshake();
        params["protocolVersion"] = version.into();
        let shaken = before.client("/").request(json!(0), "initialize", params).await;
        let id = shaken.headers["mcp-session-id"].to_str().expect("visible ASCII");
        clients.push(before.client("/").header("mcp-session-id", id));
    }
    // Only clients of the newer version understand an event without data.
    let primed = async |client: &Client| {
        client.listen().await.next().await.expect("a sign of life").data.is_some()
    };
    assert!(primed(&clients[0]).await && !primed(&clients[1]).await);
    assert!(before.stop().success());
    let after = with_state("", state.path()).ready();
    let [newer, older] = [0, 1].map(|n| elsewhere(&clients[n], &after, "/"));
    assert!(primed(&newer).await && !primed(&older).await);
}

#[tokio::test]
async fn an_id_that_is_forged_or_of_another_key_is_worth_as_much_as_any() {
    let fakes = Fakes::new();
    let config = fakes.server("own", &[]) + OWNED;
    let daemon = Daemon::with(&*config).ready();
    let other = Daemon::with(config).ready();
    let client = daemon.client("/servers/own").initialized_with(everything()).await;
    let own = id(&client).to_owned();
    let mut forged = own.clone();
    let last = if forged.pop() == Some('A') { 'E' } else { 'A' };
    forged.push(last);
    for (daemon, id) in [(&daemon, &*forged), (&other, &own), (&daemon, "m1..")] {
        let client = daemon.client("/servers/own").header("mcp-session-id", id);
        assert_eq!(offered(&client).await, json!([{}]), "{id}");
        assert_eq!(statuses(&client).await, [200, 202, 202, 200, 204], "{id}");
    }
    assert_eq!(offered(&client).await, json!([everything()]));
}

#[tokio::test]
async fn a_strict_service_asks_for_an_id_and_knows_its_own() {
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
        // A client that shakes hands needs no id, and receives a new one.
        let again = unknown(&own).request(json!(0), "initialize", handshake()).await;
        assert_eq!(again.status, 200, "{path}");
        let issued = again.headers["mcp-session-id"].to_str().expect("visible ASCII");
        assert!(issued.starts_with("m1.") && issued != own, "{issued}");

        assert_eq!(statuses(&client).await, [200, 202, 202, 200, 204], "{path}");
        assert_eq!(statuses(&client).await, [404; 5], "{path}: it has ended");
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
    let client = elsewhere(&client, &after, "/");
    // One that this process has never served can be ended, too.
    assert_eq!(client.send(Method::DELETE, &[], "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(statuses(&client).await, [404; 5]);
}

#[tokio::test]
async fn without_sessions_no_id_is_issued_and_none_is_looked_at() {
    let fakes = Fakes::new();
    let config = listen("session = \"off\"") + &fakes.server("fake", &["--logging", "--subscribe"]);
    let daemon = Daemon::with(config).ready();
    for path in ["/", "/servers/fake"] {
        let shaken = daemon.client(path).request(json!(0), "initialize", handshake()).await;
        assert_eq!(shaken.headers.get("mcp-session-id"), None, "{path}");
        let profile = shaken.answer()["result"].clone();
        assert_eq!(profile["protocolVersion"], "2025-06-18", "{profile}");
        let offered = profile["capabilities"].to_string();
        assert!(offered.contains("\"tools\":{}"), "{path}: {offered}");
        for promise in ["listChanged", "subscribe", "logging"] {
            assert!(!offered.contains(promise), "{path}: nobody could be told: {offered}");
        }
        let nobody = daemon.client(path);
        let somebody = daemon.client(path).header("mcp-session-id", "x");
        for client in [nobody, somebody] {
            assert_eq!(statuses(&client).await, [200, 202, 202, 405, 405], "{path}");
            let refused = client.send(Method::DELETE, &[], "").await;
            assert_eq!(refused.headers["allow"], "POST");
        }
    }
    let client = daemon.client("/servers/fake").header("mcp-session-id", "x");
    let watched = client.request(json!(1), "resources/subscribe", json!({ "uri": "x:/1" })).await;
    assert_eq!(watched.answer()["error"]["data"]["code"], "SESSION_REQUIRED");
    // What belongs to a request still reaches who sent it.
    let params = json!({ "name": "progress", "arguments": { "steps": 2 }, "_meta": { "progressToken": "t" } });
    let reply = client.request(json!(1), "tools/call", params).await;
    assert!(reply.messages().len() > 1, "{reply:?}");
}

#[tokio::test]
async fn replicas_with_one_credential_serve_each_others_sessions() {
    let (fakes, credentials) = (Fakes::new(), tempfile::tempdir().expect("a directory"));
    fs::write(credentials.path().join("key"), [0xfe; 48]).expect("written");
    let config = listen("session = \"strict\"\nsession_key = \"credential:key\"")
        + &fakes.server("own", &[])
        + OWNED;
    let start = || Daemon::with(&*config).env("CREDENTIALS_DIRECTORY", credentials.path()).ready();
    let (one, other) = (start(), start());
    let client = one.client("/servers/own").initialized_with(everything()).await;
    for daemon in [&other, &one, &other] {
        let client = elsewhere(&client, daemon, "/servers/own");
        assert_eq!(offered(&client).await, json!([everything()]));
    }
}

#[tokio::test]
async fn two_that_start_at_once_make_one_key() {
    let state = tempfile::tempdir().expect("a directory");
    let config = listen("session = \"strict\"");
    let mut both = [(); 2].map(|()| with_state(&*config, state.path()).spawn());
    both.iter_mut().for_each(Daemon::wait_ready);
    let client = both[0].client("/").initialized().await;
    assert_eq!(statuses(&elsewhere(&client, &both[1], "/")).await[0], 200);
    let kept: Vec<_> = fs::read_dir(state.path()).expect("readable").collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

#[tokio::test]
async fn a_key_that_cannot_be_kept_is_said_to_be_one_for_this_process() {
    let nowhere = Path::new("/dev/null/metamcp");
    let mut daemon = with_state("", nowhere).ready();
    daemon.wait_log("sessions of clients do not outlive this process");
    let client = daemon.client("/").initialized().await;
    assert_eq!(statuses(&client).await[0], 200);
    assert!(daemon.stop().success());
    // Where nothing is signed, nothing is lost.
    let daemon = with_state(listen("session = \"off\""), nowhere).ready();
    assert!(!daemon.log().contains("outlive"), "{}", daemon.log());
}

#[tokio::test]
async fn a_key_that_is_too_short_or_not_there_is_named_with_the_remedy() {
    let credentials = tempfile::tempdir().expect("a directory");
    fs::write(credentials.path().join("short"), "0123456789").expect("written");
    for (name, told) in [("short", "has 10 bytes"), ("gone", "No such file")] {
        let config = listen(&format!("session_key = \"credential:{name}\""));
        let start = Daemon::with(config).env("CREDENTIALS_DIRECTORY", credentials.path());
        let mut daemon = start.spawn();
        assert_eq!(daemon.wait_exit().code(), Some(1));
        let log = daemon.log();
        assert!(log.contains(told) && log.contains(&format!("credential:{name}")), "{log}");
        assert!(!log.contains("0123456789"), "{log}");
    }
}

#[tokio::test]
async fn a_reload_changes_what_is_asked_for() {
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
    daemon.wait_log("another key for session ids takes effect with the next restart");
    assert_eq!(client.send(Method::DELETE, &[], "").await.status, 204);
}
