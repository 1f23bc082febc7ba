//! `sharing = "session"`: a connection for each client, and requests of the server to that client.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    all,
    harness::{
        client::{Client, running},
        daemon::Daemon,
        fake::{Fakes, Upstream, is_alive},
        stream::{End, EventStream},
    },
    server_status, until,
};

const PER_SESSION: &str = "sharing = \"session\"\n";

fn all_capabilities() -> Value {
    json!({ "sampling": {}, "elicitation": {}, "roots": { "listChanged": true } })
}

/// Calls a tool that sends its client a request; returns the stream and that request.
async fn call_asking(client: &Client, method: &str) -> (EventStream, Value) {
    let mut call = client.tool_stream("ask", json!({ "method": method })).await;
    let question = call.message().await;
    assert_eq!(question["method"], method);
    (call, question)
}

/// Returns the answer that the server received, from the result of the call.
async fn received(call: &mut EventStream) -> Value {
    let answer = call.message().await;
    assert_eq!(answer["id"], 1, "{answer}");
    answer["result"]["structuredContent"].clone()
}

async fn pid(client: &Client) -> u64 {
    client.call("whoami", json!({})).await["pid"].as_u64().expect("a process")
}

#[tokio::test]
async fn each_client_has_its_own_process_which_receives_the_clients_capabilities() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("own", &[]) + PER_SESSION).ready();
    let capable = daemon.client("/servers/own").initialized_with(all_capabilities()).await;
    let plain = daemon.client("/servers/own").initialized().await;

    assert_ne!(pid(&capable).await, pid(&plain).await);
    assert_eq!(pid(&capable).await, pid(&capable).await, "the same process every time");
    assert_eq!(capable.call("seen", json!({})).await["capabilities"], json!([all_capabilities()]));
    assert_eq!(plain.call("seen", json!({})).await["capabilities"], json!([{}]));
    let status = server_status(&daemon, "own").await;
    assert_eq!((&status["connections"], &status["sharing"]), (&json!(2), &json!("session")));
}

#[tokio::test]
async fn each_client_has_its_own_session_at_an_upstream() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("own", PER_SESSION)).ready();
    let one = daemon.client("/servers/own").initialized_with(all_capabilities()).await;
    let two = daemon.client("/servers/own").initialized().await;
    let session = async |client: &Client| client.call("whoami", json!({})).await["session"].clone();

    let (first, second) = (session(&one).await, session(&two).await);
    assert_ne!(first, second);
    let log = upstream.log("sessions=2").await;
    let mut capabilities = log["capabilities"].as_array().expect("a list").clone();
    capabilities.sort_by_key(Value::to_string);
    assert_eq!(capabilities, [all_capabilities(), json!({})]);

    one.send(Method::DELETE, &[], "").await;
    let log = upstream.log("deletes=1").await;
    assert_eq!(log["sessions"], json!([second]), "only the session of the other client is left");
}

#[tokio::test]
async fn a_server_request_reaches_its_client_and_the_answer_reaches_the_server() {
    let fakes = Fakes::new();
    let upstream = Upstream::start(&[]);
    let config = fakes.server("own", &[]) + PER_SESSION + &upstream.server("up", PER_SESSION);
    let daemon = Daemon::with(config).ready();
    for path in ["/servers/own", "/servers/up"] {
        let client = daemon.client(path).initialized_with(all_capabilities()).await;
        for method in ["sampling/createMessage", "elicitation/create", "roots/list"] {
            let (mut call, question) = call_asking(&client, method).await;
            assert!(question["params"].is_object(), "{question}");
            let answer = json!({ "of": method, "big": 9_007_199_254_740_993_u64 });
            assert_eq!(client.respond(&question["id"], answer.clone()).await.status, 202);
            assert_eq!(received(&mut call).await, json!({ "result": answer }), "{path}");
            assert_eq!(call.rest().await.1, End::Whole);
        }
        let (mut call, question) = call_asking(&client, "elicitation/create").await;
        client.respond_error(&question["id"], -1, "the user says no").await;
        let refused = json!({ "error": { "code": -1, "message": "the user says no" } });
        assert_eq!(received(&mut call).await, refused, "{path}");
    }
}

#[tokio::test]
async fn a_reload_that_removes_a_server_withdraws_its_open_requests_to_clients() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("own", &[]) + PER_SESSION).ready();
    let client = daemon.client("/servers/own").initialized_with(all_capabilities()).await;
    let (mut call, question) = call_asking(&client, "elicitation/create").await;

    daemon.rewrite("");
    daemon.reload();

    let error = received(&mut call).await["error"].clone();
    assert_eq!(error["data"]["code"], "SERVER_REMOVED", "{error}");
    assert_eq!(client.respond(&question["id"], json!({})).await.status, 404);
}

#[tokio::test]
async fn answers_of_two_clients_to_requests_with_the_same_id_are_not_mixed_up() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("own", &[]) + PER_SESSION).ready();
    let one = daemon.client("/servers/own").initialized_with(all_capabilities()).await;
    let two = daemon.client("/servers/own").initialized_with(all_capabilities()).await;
    let (mut call_one, question_one) = call_asking(&one, "roots/list").await;
    let (mut call_two, question_two) = call_asking(&two, "roots/list").await;
    assert_eq!(question_one["id"], question_two["id"], "or the test shows nothing");

    two.respond(&question_two["id"], json!({ "roots": ["two"] })).await;
    // Neither a second answer nor that of another client reaches the request to the first client.
    two.respond(&question_two["id"], json!({ "roots": ["two again"] })).await;
    daemon.client("/servers/own").respond(&question_one["id"], json!({ "roots": ["x"] })).await;
    assert_eq!(received(&mut call_two).await["result"]["roots"], json!(["two"]));
    one.respond(&question_one["id"], json!({ "roots": ["one"] })).await;
    assert_eq!(received(&mut call_one).await["result"]["roots"], json!(["one"]));

    let seen = two.call("seen", json!({})).await;
    assert_eq!(
        (&seen["asked"], &seen["unasked"]),
        (&json!(1), &json!(0)),
        "no answer arrives twice"
    );
}

#[tokio::test]
async fn a_server_request_on_an_upstreams_get_stream_reaches_its_client() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("own", PER_SESSION)).ready();
    let client = daemon.client("/servers/own").initialized_with(all_capabilities()).await;
    let mut get = client.listen().await;
    pid(&client).await;
    upstream.log("streams_open=1").await;

    // While a call runs, the request arrives on its stream.
    let arguments = json!({ "method": "roots/list", "on": "get" });
    let mut call = client.tool_stream("ask", arguments).await;
    let question = call.message().await;
    client.respond(&question["id"], json!({ "roots": [] })).await;
    assert_eq!(received(&mut call).await, json!({ "result": { "roots": [] } }));

    // Without a running call, the request arrives on the client's GET stream.
    let request = json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" });
    upstream.push(&request).await;
    let question = get.message().await;
    assert_eq!(question["method"], "roots/list");
    client.respond(&question["id"], json!({ "roots": [] })).await;
    assert_eq!(upstream.log("unasked=1").await["unasked"], 1, "the server has received the answer");
    // The server cancels the next request: the client is notified under the id that it received.
    upstream.push(&request).await;
    let question = get.message().await;
    let params = json!({ "requestId": "q", "reason": "no more" });
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    upstream.push(&cancelled).await;
    let notice = get.message().await;
    assert_eq!(notice["method"], "notifications/cancelled");
    assert_eq!(notice["params"], json!({ "requestId": question["id"], "reason": "no more" }));
    client.respond(&question["id"], json!({ "roots": [] })).await;
    assert_eq!(
        upstream.log("").await["unasked"],
        1,
        "an answer to a cancelled request is not passed on"
    );
}

#[tokio::test]
async fn a_server_that_cancels_its_request_does_not_cancel_that_of_another_server() {
    let one = Upstream::start(&[]);
    let two = Upstream::start(&[]);
    let daemon =
        Daemon::with(one.server("one", PER_SESSION) + &two.server("two", PER_SESSION)).ready();
    let client = daemon.client("/").initialized_with(all_capabilities()).await;
    let mut get = client.listen().await;
    for (upstream, name) in [(&one, "one__whoami"), (&two, "two__whoami")] {
        client.call(name, json!({})).await;
        upstream.log("streams_open=1").await;
    }

    // Both send a request with the same id; the second server cancels its own.
    let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" });
    one.push(&question).await;
    let of_one = get.message().await;
    two.push(&question).await;
    let of_two = get.message().await;
    let params = json!({ "requestId": "q" });
    two.push(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
        .await;
    assert_eq!(get.message().await["params"]["requestId"], of_two["id"]);
    client.respond(&of_one["id"], json!({ "roots": [] })).await;
    one.log("unasked=1").await;
    assert_eq!(two.log("").await["unasked"], 0);
}

#[tokio::test]
async fn a_server_request_to_a_client_that_cannot_answer_is_refused() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("own", &[]) + PER_SESSION).ready();
    let plain = daemon.client("/servers/own").initialized_with(json!({ "roots": {} })).await;
    let refused = plain.call("ask", json!({ "method": "sampling/createMessage" })).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    assert_eq!(plain.call("ask", json!({ "method": "ping" })).await, json!({ "result": {} }));

    // A client that accepts no stream cannot be asked, even if it declares the capability.
    let capable = daemon.client("/servers/own").initialized_with(all_capabilities()).await;
    let params = json!({ "name": "ask", "arguments": { "method": "roots/list" } });
    let message = crate::harness::client::request(&json!(1), "tools/call", &params);
    let headers = [("content-type", "application/json"), ("accept", "application/json")];
    let reply = capable.send(Method::POST, &headers, message).await;
    let refused = &reply.answer()["result"]["structuredContent"];
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
}

#[tokio::test]
async fn a_server_request_is_answered_with_an_error_when_its_client_disconnects() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("own", &[]) + PER_SESSION).ready();
    let client = daemon.client("/servers/own").initialized_with(all_capabilities()).await;
    let (call, question) = call_asking(&client, "roots/list").await;

    drop(call);

    let seen =
        client.call("seen", json!({ "cancelled": 1, "counts": { "requests.(response)": 1 } }));
    let seen = seen.await;
    assert_eq!(seen["methods"]["(response)"], 1, "an error for the request: {seen}");
    client.respond(&question["id"], json!({ "roots": [] })).await;
    assert_eq!(client.call("seen", json!({})).await["methods"]["(response)"], 1);
}

#[tokio::test]
async fn a_client_without_a_session_gets_no_per_session_connection() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("own", &[]) + PER_SESSION).ready();
    let refused = daemon.client("/servers/own").tool("whoami", json!({})).await.answer();
    assert_eq!(refused["error"]["data"]["code"], "SESSION_REQUIRED");
    assert!(refused["error"]["data"]["suggestion"].to_string().contains("initialize"), "{refused}");
}

#[tokio::test]
async fn the_least_recently_used_connection_is_evicted_for_another_client() {
    let fakes = Fakes::new();
    let config = fakes.server("own", &[]) + PER_SESSION + "max_connections = 2\n";
    let daemon = Daemon::with(config).ready();
    let (first, second) =
        (daemon.client("/").initialized().await, daemon.client("/").initialized().await);
    let whoami = async |client: &Client| client.call("own__whoami", json!({})).await["pid"].clone();
    let pids = [whoami(&first).await, whoami(&second).await];
    assert_eq!(whoami(&first).await, pids[0]);

    let third = daemon.client("/").initialized().await;
    whoami(&third).await;
    assert_eq!(whoami(&first).await, pids[0], "it was used last");
    until(async || !is_alive(pids[1].as_u64().expect("a process"))).await;
    assert_ne!(whoami(&second).await, pids[1], "a new process");
}

#[tokio::test]
async fn a_client_waits_while_all_connections_are_busy() {
    let fakes = Fakes::new();
    let config = fakes.server("own", &[]) + PER_SESSION + "max_connections = 1\n";
    let daemon = Daemon::with(config).ready();
    let first = daemon.client("/").initialized().await;
    let held = running({
        let first = first.clone();
        async move { first.tool("own__hold", json!({ "key": "k" })).await }
    });
    first.call("own__held", json!({ "at_least": 1 })).await;
    let third = daemon.client("/").initialized().await;
    let waiting = running(async move { third.call("own__whoami", json!({})).await });
    until(async || server_status(&daemon, "own").await["waiting"] == 1).await;

    // A client that leaves frees its connection and ends its process.
    first.send(Method::DELETE, &[], "").await;
    held.end().await.answer();
    assert!(waiting.end().await["pid"].is_u64());
    until(async || fakes.pids("own").iter().filter(|pid| is_alive(**pid)).count() == 1).await;
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_process_and_its_running_calls() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("own", &[]) + PER_SESSION).ready();
    let client = daemon.client("/servers/own").initialized().await;
    let pid = pid(&client).await;
    // A repeatable call: metamcp must not start another process for a client that has left.
    let held = running({
        let client = client.clone();
        async move { client.tool("read_only", json!({ "key": "k", "then": "hold" })).await }
    });
    client.call("held", json!({ "at_least": 1 })).await;

    client.send(Method::DELETE, &[], "").await;

    let answer = held.end().await.answer();
    assert!(answer["error"]["data"]["code"].is_string(), "{answer}");
    until(async || !is_alive(pid)).await;
    assert_eq!(server_status(&daemon, "own").await["connections"], 0);
    assert_eq!(fakes.pids("own").len(), 1);
}

#[tokio::test]
async fn a_shutdown_ends_the_processes_of_all_clients() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("own", &[]) + PER_SESSION).ready();
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(daemon.client("/servers/own").initialized_with(all_capabilities()).await);
    }
    let call = call_asking(&clients[0], "roots/list").await;
    drop(call);
    all(clients[1..].iter().map(pid)).await;

    let since = Instant::now();
    assert!(daemon.stop().success());
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    let pids = fakes.pids("own");
    assert_eq!(pids.len(), 5);
    assert!(!pids.into_iter().any(is_alive));
}
