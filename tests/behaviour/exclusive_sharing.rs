//! `sharing = "exclusive"`: one request at a time on each connection.

use std::sync::Mutex;

use serde_json::{Value, json};

use crate::{
    all,
    harness::{
        DEADLINE,
        client::{Client, running},
        daemon::Daemon,
        fake::{Fakes, Upstream},
        scripted_upstream::ScriptedUpstream,
    },
    server_status, until,
};

fn exclusive(max_connections: usize) -> String {
    format!("sharing = \"exclusive\"\nmax_connections = {max_connections}\n")
}

async fn pid(client: &Client) -> Value {
    client.call("whoami", json!({})).await["pid"].clone()
}

#[tokio::test]
async fn sequential_requests_are_served_by_the_same_process() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + &exclusive(3)).ready();
    let (one, two) = (daemon.client("/servers/fake"), daemon.client("/"));
    let first = pid(&one).await;
    for _ in 0..3 {
        assert_eq!(pid(&one).await, first);
        assert_eq!(two.call("fake__whoami", json!({})).await["pid"], first);
    }
    assert_eq!(server_status(&daemon, "fake").await["connections"], 1);
}

#[tokio::test]
async fn one_request_runs_on_each_connection_and_the_next_request_waits() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", &exclusive(2))).ready();
    let client = daemon.client("/servers/up");
    let held = [running(client.clone().hold("a")), running(client.clone().hold("b"))];
    upstream.log("held=2").await;
    let waiting = running(client.call("whoami", json!({})));
    // The service has the call, and the server has not received it.
    until(async || daemon.client("/status").get().await.answer()["clients"].as_u64() >= Some(4))
        .await;
    let log = upstream.log("sessions_minted=2").await;
    assert_eq!((&log["calls"], &log["sessions_minted"]), (&json!(2), &json!(2)));

    upstream.control("release?key=b").await;

    let [a, b] = held;
    assert!(b.end().await.answer()["result"].is_object());
    assert!(
        waiting.end().await["session"].is_string(),
        "it gets the connection of the finished call"
    );
    upstream.control("release?key=a").await;
    a.end().await;
    let log = upstream.log("calls=3").await;
    assert_eq!(log["sessions_minted"], 2, "no third connection");
    let status = server_status(&daemon, "up").await;
    assert_eq!((&status["connections"], &status["in_flight"]), (&json!(2), &json!(0)));
}

#[tokio::test]
async fn the_most_recently_used_connection_is_used_next() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + &exclusive(3)).ready();
    let client = daemon.client("/servers/fake").initialized_with(json!({ "roots": {} })).await;
    // Three concurrent calls: each waits for its client.
    let mut calls = Vec::new();
    for _ in 0..3 {
        let mut call = client.tool_stream("ask", json!({ "method": "roots/list" })).await;
        let id = call.message().await["id"].clone();
        calls.push((call, id));
    }
    for (mut call, id) in calls {
        client.respond(&id, json!({ "roots": [] })).await;
        call.message().await;
    }
    let mut pids = Vec::new();
    for _ in 0..6 {
        pids.push(pid(&client).await);
    }
    assert!(pids.iter().all(|found| *found == pids[0]), "{pids:?}");
    assert_eq!(fakes.pids("fake").len(), 3);
}

#[tokio::test]
async fn a_request_that_waits_too_long_for_an_exclusive_server_fails_with_server_busy() {
    let upstream = Upstream::start(&[]);
    let config = "[service]\nrequest_timeout = \"300ms\"\n".to_owned();
    let daemon = Daemon::with(config + &upstream.server("up", &exclusive(1))).ready();
    let capable = daemon.client("/servers/up").initialized_with(json!({ "roots": {} })).await;
    let mut call = capable.tool_stream("ask", json!({ "method": "roots/list" })).await;
    let server_request = call.message().await;

    let busy = daemon.client("/servers/up").tool("whoami", json!({})).await.answer();

    assert_eq!(busy["error"]["data"]["code"], "SERVER_BUSY", "{busy}");
    let remedy = busy["error"]["data"]["suggestion"].as_str().expect("a remedy");
    assert!(remedy.contains("max_connections"), "{remedy}");
    drop((call, server_request));
    until(async || {
        let answer = daemon.client("/servers/up").tool("whoami", json!({})).await.answer();
        answer["result"].is_object()
    })
    .await;
}

#[tokio::test]
async fn a_server_request_goes_to_the_client_that_holds_the_connection() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + &exclusive(2)).ready();
    let able = daemon.client("/servers/fake").initialized_with(json!({ "roots": {} })).await;
    let other = daemon.client("/servers/fake").initialized_with(json!({ "roots": {} })).await;
    let ask = json!({ "method": "roots/list" });
    let (mut of_able, mut of_other) =
        (able.tool_stream("ask", ask.clone()).await, other.tool_stream("ask", ask.clone()).await);

    for (client, call, root) in [(&other, &mut of_other, "other"), (&able, &mut of_able, "able")] {
        let server_request = call.message().await;
        client.respond(&server_request["id"], json!({ "roots": [root] })).await;
        let answer = call.message().await;
        assert_eq!(answer["result"]["structuredContent"]["result"]["roots"], json!([root]));
    }
    // The next client on the same connection has declared no capability.
    let unable = daemon.client("/servers/fake").initialized().await;
    for client in [&unable, &daemon.client("/servers/fake")] {
        let refused = client.call("ask", ask.clone()).await;
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
    assert_eq!(fakes.pids("fake").len(), 2);
}

#[tokio::test]
async fn an_exclusive_connection_is_reused_only_when_no_request_runs_on_it() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + &exclusive(1)).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    let first = pid(&client).await;

    // The server answers this call after its cancellation, so metamcp keeps the connection.
    let late = running({
        let client = client.clone();
        async move { client.tool("late", json!({ "key": "k" })).await }
    });
    until(async || fakes.n_events("fake", "held") == 1).await;
    client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    assert_eq!(late.end().await.body, "");
    assert_eq!(pid(&client).await, first);
    assert_eq!(server_status(&daemon, "fake").await["late_answers"], 1);

    // The server never answers this call, so no other client gets the connection.
    let held = running(client.clone().hold("k"));
    until(async || fakes.n_events("fake", "held") == 2).await;
    drop(held);
    until(async || server_status(&daemon, "fake").await["draining"] == 1).await;
    let (again, twice) = (pid(&client).await, pid(&client).await);
    assert_ne!(again, first);
    assert_eq!(again, twice);
    assert_eq!(server_status(&daemon, "fake").await["draining"], 0);
}

#[tokio::test]
async fn an_exclusive_server_offers_no_feature_that_needs_state_between_requests() {
    let fakes = Fakes::new();
    let options = ["--logging", "--subscribe"];
    let daemon = Daemon::with(fakes.server("fake", &options) + &exclusive(2)).ready();
    let client = daemon.client("/servers/fake");
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {} });
    let hello = client.request(json!(0), "initialize", params).await.answer();
    let offered = &hello["result"]["capabilities"];
    assert!(offered["tools"].is_object() && offered["logging"].is_null(), "{offered}");
    assert!(offered["resources"]["subscribe"].is_null(), "{offered}");

    for (method, params) in [
        ("logging/setLevel", json!({ "level": "debug" })),
        ("resources/subscribe", json!({ "uri": "fake:///one" })),
    ] {
        let refused = client.request(json!(1), method, params).await.answer();
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
    let answers = all((0..6).map(|_| client.call("echo", json!({ "value": 1 })))).await;
    assert!(answers.iter().all(|answer| answer["value"] == 1));
}

#[tokio::test]
async fn a_server_request_sent_after_the_answer_does_not_reach_the_next_client() {
    let (second_arrived, wait) = std::sync::mpsc::channel::<()>();
    let (second_arrived, wait) = (Mutex::new(second_arrived), Mutex::new(wait));
    let (refused, was_refused) = std::sync::mpsc::channel::<()>();
    let was_refused = Mutex::new(was_refused);
    let upstream = ScriptedUpstream::start(move |request, response| {
        if request.message["id"] == 7 && request.message["error"].is_object() {
            refused.send(()).expect("the receiver waits");
            return false;
        }
        match request.message["params"]["name"].as_str() {
            Some("first") => {
                response.events();
                response.chunk(&format!("data: {}\n\n", request.result(&json!({}))));
                wait.lock().expect("not poisoned").recv().expect("another call comes");
                let server_request = json!({ "jsonrpc": "2.0", "id": 7, "method": "roots/list" });
                response.chunk(&format!("data: {server_request}\n\n"));
                response.end();
                true
            }
            Some("second") => {
                response.events();
                second_arrived.lock().expect("not poisoned").send(()).expect("the receiver waits");
                // The refusal shows that metamcp has processed the server request.
                let refusal = was_refused.lock().expect("not poisoned").recv_timeout(DEADLINE);
                refusal.expect("the server request is refused");
                response.chunk(&format!("data: {}\n\n", request.result(&json!({}))));
                response.end();
                true
            }
            _ => false,
        }
    });
    let daemon = Daemon::with(upstream.server(&exclusive(1))).ready();
    let one = daemon.client("/servers/up").initialized_with(json!({ "roots": {} })).await;
    let other = daemon.client("/servers/up").initialized_with(json!({ "roots": {} })).await;

    one.tool("first", json!({})).await;
    let second = other.tool("second", json!({})).await.body;

    assert!(!second.contains("roots/list"), "a server request of the first call: {second}");
}

#[tokio::test]
async fn a_server_request_is_cancelled_only_by_its_own_connection() {
    let upstream = ScriptedUpstream::start(|request, response| {
        let Some(name) = request.message["params"]["name"].as_str() else { return false };
        response.events();
        // Every connection numbers its server requests from 0.
        let server_request = json!({ "jsonrpc": "2.0", "id": 0, "method": "roots/list" });
        response.chunk(&format!("data: {server_request}\n\n"));
        if name == "recant" {
            let params = json!({ "requestId": 0 });
            let back =
                json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
            response.chunk(&format!("data: {back}\n\n"));
        }
        response.wait_gone();
        true
    });
    let daemon = Daemon::with(upstream.server(&exclusive(6))).ready();
    let client = daemon.client("/servers/up").initialized_with(json!({ "roots": {} })).await;
    let mut asking = Vec::new();
    for _ in 0..5 {
        let mut call = client.tool_stream("ask", json!({})).await;
        call.message().await;
        asking.push(call);
    }

    let mut call = client.tool_stream("recant", json!({})).await;
    let server_request = call.message().await;
    let back = call.message().await;

    assert_eq!(back["params"]["requestId"], server_request["id"], "its own server request");
    drop((call, asking));
    until(async || server_status(&daemon, "up").await["in_flight"] == 0).await;
}
