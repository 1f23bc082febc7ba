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
async fn an_answer_is_one_body_whatever_comes_before_it() {
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
    // One that takes nothing else gets a stream all the same.
    let headers = [MCP_HEADERS[0], ("accept", "text/event-stream")];
    let reply = client.send(Method::POST, &headers, PROGRESSING).await;
    assert_eq!(reply.headers["content-type"], "text/event-stream");
}

#[tokio::test]
async fn a_question_during_a_call_is_refused_for_there_is_no_stream_to_put_it_on() {
    let fakes = Fakes::new();
    let config = PLAIN.to_owned() + &fakes.server("own", &[]) + "sharing = \"session\"\n";
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/own").initialized_with(json!({ "roots": {} })).await;

    let told: Value = client.call("ask", json!({ "method": "roots/list" })).await;

    assert!(told["error"]["code"].is_i64(), "{told}");
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
async fn the_stream_of_notices_is_there_and_a_reload_brings_the_others_back() {
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
