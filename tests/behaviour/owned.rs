//! `sharing = "session"`: a connection for each client, and questions for the one that has it.

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

const OWNED: &str = "sharing = \"session\"\n";

fn everything() -> Value {
    json!({ "sampling": {}, "elicitation": {}, "roots": { "listChanged": true } })
}

/// Calls a tool that asks its client, and returns the stream and the question.
async fn asked(client: &Client, method: &str) -> (EventStream, Value) {
    let mut call = client.tool_stream("ask", json!({ "method": method })).await;
    let question = call.message().await;
    assert_eq!(question["method"], method);
    (call, question)
}

/// Returns what the server got for an answer.
async fn told(call: &mut EventStream) -> Value {
    let answer = call.message().await;
    assert_eq!(answer["id"], 1, "{answer}");
    answer["result"]["structuredContent"].clone()
}

async fn pid(client: &Client) -> u64 {
    client.call("whoami", json!({})).await["pid"].as_u64().expect("a process")
}

#[tokio::test]
async fn each_client_has_a_process_of_its_own_that_knows_what_the_client_can_do() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("own", &[]) + OWNED).ready();
    let capable = daemon.client("/servers/own").initialized_with(everything()).await;
    let plain = daemon.client("/servers/own").initialized().await;

    assert_ne!(pid(&capable).await, pid(&plain).await);
    assert_eq!(pid(&capable).await, pid(&capable).await, "the same one every time");
    assert_eq!(capable.call("seen", json!({})).await["capabilities"], json!([everything()]));
    assert_eq!(plain.call("seen", json!({})).await["capabilities"], json!([{}]));
    let status = server_status(&daemon, "own").await;
    assert_eq!((&status["connections"], &status["sharing"]), (&json!(2), &json!("session")));
}

#[tokio::test]
async fn each_client_has_a_session_of_its_own_at_an_upstream() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("own", OWNED)).ready();
    let one = daemon.client("/servers/own").initialized_with(everything()).await;
    let two = daemon.client("/servers/own").initialized().await;
    let session = async |client: &Client| client.call("whoami", json!({})).await["session"].clone();

    let (first, second) = (session(&one).await, session(&two).await);
    assert_ne!(first, second);
    let log = upstream.log("sessions=2").await;
    let mut capabilities = log["capabilities"].as_array().expect("a list").clone();
    capabilities.sort_by_key(Value::to_string);
    assert_eq!(capabilities, [everything(), json!({})]);

    one.send(Method::DELETE, &[], "").await;
    let log = upstream.log("deletes=1").await;
    assert_eq!(log["sessions"], json!([second]), "only that of the client that left");
}

#[tokio::test]
async fn a_question_reaches_the_client_that_caused_it_and_its_answer_the_server() {
    let fakes = Fakes::new();
    let upstream = Upstream::start(&[]);
    let config = fakes.server("own", &[]) + OWNED + &upstream.server("up", OWNED);
    let daemon = Daemon::with(config).ready();
    for path in ["/servers/own", "/servers/up"] {
        let client = daemon.client(path).initialized_with(everything()).await;
        for method in ["sampling/createMessage", "elicitation/create", "roots/list"] {
            let (mut call, question) = asked(&client, method).await;
            assert!(question["params"].is_object(), "{question}");
            let answer = json!({ "of": method, "big": 9_007_199_254_740_993_u64 });
            assert_eq!(client.respond(&question["id"], answer.clone()).await.status, 202);
            assert_eq!(told(&mut call).await, json!({ "result": answer }), "{path}");
            assert_eq!(call.rest().await.1, End::Whole);
        }
        let (mut call, question) = asked(&client, "elicitation/create").await;
        client.respond_error(&question["id"], -1, "the user says no").await;
        let refused = json!({ "error": { "code": -1, "message": "the user says no" } });
        assert_eq!(told(&mut call).await, refused, "{path}");
    }
}

#[tokio::test]
async fn a_question_that_a_reload_makes_unanswerable_is_withdrawn_at_once() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("own", &[]) + OWNED).ready();
    let client = daemon.client("/servers/own").initialized_with(everything()).await;
    let (mut call, question) = asked(&client, "elicitation/create").await;

    daemon.rewrite("");
    daemon.reload();

    let error = told(&mut call).await["error"].clone();
    assert_eq!(error["data"]["code"], "SERVER_REMOVED", "{error}");
    assert_eq!(client.respond(&question["id"], json!({})).await.status, 404);
}

#[tokio::test]
async fn two_clients_are_asked_under_the_same_id_and_each_answers_for_itself() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("own", &[]) + OWNED).ready();
    let one = daemon.client("/servers/own").initialized_with(everything()).await;
    let two = daemon.client("/servers/own").initialized_with(everything()).await;
    let (mut call_one, question_one) = asked(&one, "roots/list").await;
    let (mut call_two, question_two) = asked(&two, "roots/list").await;
    assert_eq!(question_one["id"], question_two["id"], "or the test shows nothing");

    two.respond(&question_two["id"], json!({ "roots": ["two"] })).await;
    // A second answer and an answer of a stranger do not reach the question of the first.
    two.respond(&question_two["id"], json!({ "roots": ["two again"] })).await;
    daemon.client("/servers/own").respond(&question_one["id"], json!({ "roots": ["x"] })).await;
    assert_eq!(told(&mut call_two).await["result"]["roots"], json!(["two"]));
    one.respond(&question_one["id"], json!({ "roots": ["one"] })).await;
    assert_eq!(told(&mut call_one).await["result"]["roots"], json!(["one"]));

    let seen = two.call("seen", json!({})).await;
    assert_eq!((&seen["asked"], &seen["unasked"]), (&json!(1), &json!(0)), "nothing twice");
}

#[tokio::test]
async fn a_question_of_an_upstreams_get_stream_is_put_to_its_client() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("own", OWNED)).ready();
    let client = daemon.client("/servers/own").initialized_with(everything()).await;
    let mut get = client.listen().await;
    pid(&client).await;
    upstream.log("streams_open=1").await;

    // While a request runs, its stream is as good as any.
    let arguments = json!({ "method": "roots/list", "on": "get" });
    let mut call = client.tool_stream("ask", arguments).await;
    let question = call.message().await;
    client.respond(&question["id"], json!({ "roots": [] })).await;
    assert_eq!(told(&mut call).await, json!({ "result": { "roots": [] } }));

    // Without one, it is the client's GET stream.
    let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" });
    upstream.push(&question).await;
    let asked = get.message().await;
    assert_eq!(asked["method"], "roots/list");
    client.respond(&asked["id"], json!({ "roots": [] })).await;
    assert_eq!(upstream.log("unasked=1").await["unasked"], 1, "it has the answer");
    // The server takes the next one back: the client is told, under the id that it knows.
    upstream.push(&question).await;
    let asked = get.message().await;
    let params = json!({ "requestId": "q", "reason": "no more" });
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    upstream.push(&cancelled).await;
    let recalled = get.message().await;
    assert_eq!(recalled["method"], "notifications/cancelled");
    assert_eq!(recalled["params"], json!({ "requestId": asked["id"], "reason": "no more" }));
    client.respond(&asked["id"], json!({ "roots": [] })).await;
    assert_eq!(upstream.log("").await["unasked"], 1, "an answer to nothing is not passed on");
}

#[tokio::test]
async fn a_server_that_cancels_its_question_does_not_cancel_the_question_of_another() {
    let one = Upstream::start(&[]);
    let two = Upstream::start(&[]);
    let daemon = Daemon::with(one.server("one", OWNED) + &two.server("two", OWNED)).ready();
    let client = daemon.client("/").initialized_with(everything()).await;
    let mut get = client.listen().await;
    for (upstream, name) in [(&one, "one__whoami"), (&two, "two__whoami")] {
        client.call(name, json!({})).await;
        upstream.log("streams_open=1").await;
    }

    // Both ask under the same id; the second takes its question back.
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
async fn a_server_that_asks_who_cannot_answer_is_told_so() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("own", &[]) + OWNED).ready();
    let plain = daemon.client("/servers/own").initialized_with(json!({ "roots": {} })).await;
    let refused = plain.call("ask", json!({ "method": "sampling/createMessage" })).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    assert_eq!(plain.call("ask", json!({ "method": "ping" })).await, json!({ "result": {} }));

    // One that takes no stream cannot be asked, whatever it has declared.
    let capable = daemon.client("/servers/own").initialized_with(everything()).await;
    let params = json!({ "name": "ask", "arguments": { "method": "roots/list" } });
    let message = crate::harness::client::request(&json!(1), "tools/call", &params);
    let headers = [("content-type", "application/json"), ("accept", "application/json")];
    let reply = capable.send(Method::POST, &headers, message).await;
    let refused = &reply.answer()["result"]["structuredContent"];
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
}

#[tokio::test]
async fn a_question_is_answered_with_an_error_when_its_client_goes_away() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("own", &[]) + OWNED).ready();
    let client = daemon.client("/servers/own").initialized_with(everything()).await;
    let (call, question) = asked(&client, "roots/list").await;

    drop(call);

    let seen =
        client.call("seen", json!({ "cancelled": 1, "counts": { "requests.(response)": 1 } }));
    let seen = seen.await;
    assert_eq!(seen["methods"]["(response)"], 1, "an error for the question: {seen}");
    client.respond(&question["id"], json!({ "roots": [] })).await;
    assert_eq!(client.call("seen", json!({})).await["methods"]["(response)"], 1);
}

#[tokio::test]
async fn without_a_session_there_is_no_connection() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("own", &[]) + OWNED).ready();
    let nobody = daemon.client("/servers/own").tool("whoami", json!({})).await.answer();
    assert_eq!(nobody["error"]["data"]["code"], "SESSION_REQUIRED");
    assert!(nobody["error"]["data"]["suggestion"].to_string().contains("initialize"), "{nobody}");
}

#[tokio::test]
async fn the_least_recently_used_owned_connection_makes_room_for_another_client() {
    let fakes = Fakes::new();
    let config = fakes.server("own", &[]) + OWNED + "max_connections = 2\n";
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
    assert_ne!(whoami(&second).await, pids[1], "a new one in the place of the third");
}

#[tokio::test]
async fn while_all_clients_are_at_work_one_more_waits() {
    let fakes = Fakes::new();
    let config = fakes.server("own", &[]) + OWNED + "max_connections = 1\n";
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

    // Who leaves makes room, and takes its process along.
    first.send(Method::DELETE, &[], "").await;
    held.end().await.answer();
    assert!(waiting.end().await["pid"].is_u64());
    until(async || fakes.pids("own").iter().filter(|pid| is_alive(**pid)).count() == 1).await;
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_process_and_what_runs_there() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("own", &[]) + OWNED).ready();
    let client = daemon.client("/servers/own").initialized().await;
    let pid = pid(&client).await;
    // One that may be repeated: there must be no other process for a client that has gone.
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
async fn a_stop_ends_the_processes_of_all_clients() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("own", &[]) + OWNED).ready();
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(daemon.client("/servers/own").initialized_with(everything()).await);
    }
    let asked = asked(&clients[0], "roots/list").await;
    drop(asked);
    all(clients[1..].iter().map(pid)).await;

    let since = Instant::now();
    assert!(daemon.stop().success());
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    let pids = fakes.pids("own");
    assert_eq!(pids.len(), 5);
    assert!(!pids.into_iter().any(is_alive));
}
