//! `listen.json_response`: a POST is answered with one JSON body and never with a stream.

use hyper::Method;
use serde_json::{Value, json};

use crate::harness::{
    client::{MCP_HEADERS, running},
    daemon::Daemon,
    fake::Fakes,
};

const PLAIN: &str = "[listen]\njson_response = true\n";
const PROGRESSING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","arguments":{"steps":2},"_meta":{"progressToken":1}}}"#;

#[tokio::test]
async fn an_answer_is_one_json_body_also_if_progress_precedes_it() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(PLAIN.to_owned() + &fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    for accept in ["application/json, text/event-stream", "*/*", "application/json"] {
        let headers = [MCP_HEADERS[0], ("accept", accept)];
        let reply = client.send(Method::POST, &headers, PROGRESSING).await;
        assert_eq!(reply.headers["content-type"], "application/json", "{accept}");
        assert_eq!(reply.answer()["id"], 1, "{accept}");
    }
    let batch = format!("[{PROGRESSING},{}]", PROGRESSING.replace(r#""id":1"#, r#""id":2"#));
    let reply = client.post(batch).await;
    assert_eq!(reply.headers["content-type"], "application/json");
    assert_eq!(reply.answer().as_array().map(Vec::len), Some(2));
    // A client that accepts only event streams still gets one.
    let headers = [MCP_HEADERS[0], ("accept", "text/event-stream")];
    let reply = client.send(Method::POST, &headers, PROGRESSING).await;
    assert_eq!(reply.headers["content-type"], "text/event-stream");
}

#[tokio::test]
async fn a_server_request_during_a_call_is_refused_for_lack_of_a_stream() {
    let fakes = Fakes::new();
    let config = PLAIN.to_owned() + &fakes.server("own", &[]) + "sharing = \"session\"\n";
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/own").initialized_with(json!({ "roots": {} })).await;

    let refused: Value = client.call("ask", json!({ "method": "roots/list" })).await;

    assert!(refused["error"]["code"].is_i64(), "{refused}");
}

#[tokio::test]
async fn a_cancelled_request_ends_without_a_body() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(PLAIN.to_owned() + &fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    let held = running(client.clone().hold("k"));
    daemon.client("/servers/fake").call("held", json!({ "at_least": 1 })).await;

    client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;

    let reply = held.end().await;
    assert_eq!((reply.status.as_u16(), reply.body.as_str()), (202, ""));
}

#[tokio::test]
async fn the_notification_stream_works_and_a_reload_restores_answer_streams() {
    let fakes = Fakes::new();
    let servers = fakes.server("fake", &[]);
    let mut daemon = Daemon::with(PLAIN.to_owned() + &servers).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    let mut stream = client.listen().await;
    client.call("flip_tools", json!({})).await;
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");

    daemon.rewrite(&servers);
    daemon.reload();

    let reply = client.post(PROGRESSING).await;
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    assert_eq!(reply.messages().len(), 3);
}
