//! Clients that do not read, disconnect, or send too much: only they are affected.

use serde_json::{Value, json};

use crate::{
    all,
    harness::{
        client::{Client, request, running},
        daemon::Daemon,
        fake::{Fakes, Upstream},
        scripted_upstream::ScriptedUpstream,
        stream::End,
    },
    server_status, until,
};

/// A number of progress notices that exceeds all buffers of a client that does not read.
const STEPS: u64 = 200_000;

fn progress(steps: u64) -> String {
    let params = json!({
        "name": "progress", "arguments": { "steps": steps, "n": 7 },
        "_meta": { "progressToken": "t" },
    });
    request(&json!("slow"), "tools/call", &params)
}

fn call(name: &str, arguments: &Value) -> String {
    request(&json!(1), "tools/call", &json!({ "name": name, "arguments": arguments }))
}

async fn n_clients(status: &Client) -> u64 {
    status.get().await.answer()["clients"].as_u64().expect("a number")
}

#[tokio::test]
async fn a_client_that_does_not_read_its_progress_is_the_only_one_to_lose_its_request() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let clients: Vec<Client> = (0..31).map(|_| daemon.client("/servers/fake")).collect();
    let slow = daemon.client("/servers/fake").slow_post(&progress(STEPS)).await;

    let answers = all(clients
        .iter()
        .enumerate()
        .map(|(number, client)| client.call("echo", json!({ "value": number }))))
    .await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer["value"], number);
    }
    until(async || server_status(&daemon, "fake").await["cut_off"] == 1).await;
    clients[0].call("seen", json!({ "cancelled": 1 })).await;

    // A client that reads later receives a part of the stream and the reason for its end.
    let read = String::from_utf8(slow.read_to_end_of_answer().await).expect("UTF-8");
    let last = read.lines().rev().find_map(|line| line.strip_prefix("data: ")).expect("an event");
    let last: Value = serde_json::from_str(last).expect(last);
    assert_eq!(last["id"], "slow");
    assert_eq!(last["error"]["data"]["code"], "CLIENT_TOO_SLOW", "{last}");
    assert_eq!(server_status(&daemon, "fake").await["in_flight"], 0);
}

#[tokio::test]
async fn a_burst_of_progress_does_not_cut_off_a_client_that_reads() {
    const N: usize = 5000;
    let fakes = Fakes::new();
    let upstream = ScriptedUpstream::start(|request, response| {
        let progress = |n: usize| {
            let token = &request.message["params"]["_meta"]["progressToken"];
            let params = json!({ "progressToken": token, "progress": n });
            let notice =
                json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
            format!("data: {notice}\n\n")
        };
        match request.method() {
            "tools/call" => {
                response.events();
                response.chunk(&(1..=N).map(progress).collect::<String>());
                response.chunk(&format!("data: {}\n\n", request.result(&json!({}))));
                response.end();
            }
            _ => return false,
        }
        true
    });
    let config = upstream.server("") + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config).ready();
    let log = |n: usize| {
        let params = json!({ "level": "error", "data": n });
        json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params }).to_string()
    };
    let lines = (1..=N).map(log).collect::<Vec<_>>().join("\n");

    let from_stream = daemon.client("/servers/up").post(progress(0)).await.messages();
    let client = daemon.client("/servers/fake");
    let from_pipe = client.post(call("emit", &json!({ "message": lines }))).await.messages();

    let (answer, notices) = from_stream.split_last().expect("an answer");
    assert!(answer["result"].is_object(), "{answer}");
    assert!(notices.iter().map(|notice| &notice["params"]["progress"]).eq(1..=N));
    // All clients share the pipe, so metamcp waits for none: it drops a notice without room.
    let (answer, notices) = from_pipe.split_last().expect("an answer");
    assert!(answer["result"].is_object(), "{answer}");
    let numbers = notices.iter().map(|notice| notice["params"]["data"].as_u64());
    assert!(numbers.is_sorted() && notices.len() > N / 100, "{}", notices.len());
}

#[tokio::test]
async fn a_client_that_does_not_read_a_large_answer_is_cut_off() {
    let fakes = Fakes::new();
    let config = "[listen]\nwrite_timeout = \"200ms\"\n".to_owned() + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/fake");
    let n_bytes = 12 << 20;
    let status = daemon.client("/status");
    client.call("echo", json!({ "value": 1 })).await;
    let n_before = n_clients(&status).await;

    let slow = client.slow_post(&call("bytes", &json!({ "n": n_bytes }))).await;
    until(async || n_clients(&status).await > n_before).await;
    for value in 0..10 {
        assert_eq!(client.call("echo", json!({ "value": value })).await["value"], value);
    }

    // The service closes the connection.
    until(async || n_clients(&status).await == n_before).await;
    let read = slow.read_to_end().await;
    assert!(read.len() < n_bytes, "{} bytes", read.len());
}

#[tokio::test]
async fn an_unread_stream_is_cut_off_and_can_be_resumed() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = daemon.client("/servers/up").initialized().await;
    let other = daemon.client("/servers/up").initialized().await;
    let mut to_other = other.listen().await;
    client.call("echo", json!({ "value": 1 })).await;
    upstream.log("streams_open=1").await;
    let slow = client.slow_get().await;
    let padding = "x".repeat(200_000);
    let notice = |n: u64| json!({ "jsonrpc": "2.0", "method": "notifications/n", "params": { "n": n, "padding": padding } });

    for n in 1..=60 {
        upstream.push(&notice(n)).await;
        assert_eq!(to_other.message().await["params"]["n"], n, "the other client misses no notice");
    }
    let read = String::from_utf8_lossy(&slow.read_to_end_of_answer().await).into_owned();
    daemon.wait_log("stream closed: the client does not read its messages");
    let last_id = read.lines().rev().find_map(|line| line.strip_prefix("id: ")).expect("an id");
    let (_, n_read) = last_id.split_once('-').expect("two parts");
    let n_read: u64 = n_read.parse().expect("a number");
    assert!((1..60).contains(&n_read), "{n_read}");

    // The kept notices arrive in order, up to the last.
    let mut stream = client.resume(last_id).await;
    let mut n = stream.message().await["params"]["n"].as_u64().expect("a number");
    assert!(n > n_read);
    while n < 60 {
        let next = stream.message().await["params"]["n"].as_u64().expect("a number");
        assert_eq!(next, n + 1);
        n = next;
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_and_the_error_states_the_limit() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    let limit = 4 << 20;
    let of = |length: usize| {
        let frame = call("echo", &json!({ "value": "" })).len();
        call("echo", &json!({ "value": "y".repeat(length - frame) }))
    };

    assert!(client.post(of(limit)).await.answer()["result"].is_object(), "exactly at the limit");
    for length in [limit + 1, 3 * limit] {
        let refused = client.post(of(length)).await;
        assert_eq!(refused.status, 413);
        let error = &refused.answer()["error"];
        assert_eq!(error["data"]["code"], "BODY_TOO_LARGE");
        assert!(error["message"].to_string().contains(&limit.to_string()), "{error}");
    }
    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);
}

#[tokio::test]
async fn an_abandoned_request_drains_and_its_late_answer_is_counted() {
    let fakes = Fakes::new();
    let upstream = Upstream::start(&[]);
    let config = "[service]\nmax_total_timeout = \"700ms\"\n".to_owned()
        + &fakes.server("child", &[])
        + &upstream.server("up", "");
    let daemon = Daemon::with(config).ready();
    for name in ["child", "up"] {
        let client = daemon.client(&format!("/servers/{name}"));
        client.call("echo", json!({ "value": 1 })).await;
        let held = running(client.clone().hold("k"));
        client.call("held", json!({ "at_least": 1 })).await;
        assert_eq!(server_status(&daemon, name).await["in_flight"], 1);

        drop(held);

        client.call("seen", json!({ "cancelled": 1 })).await;
        let status = server_status(&daemon, name).await;
        assert_eq!(status["in_flight"], 0, "{status}");
        // The server never answers: metamcp forgets the request after its total timeout, at the
        // next request at the latest.
        until(async || {
            client.call("echo", json!({ "value": 1 })).await;
            server_status(&daemon, name).await["draining"] == 0
        })
        .await;

        // This server answers a cancelled request; no client receives the answer.
        let n_late = server_status(&daemon, name).await["late_answers"].as_u64().expect("a number");
        let late = running({
            let client = client.clone();
            async move { client.tool("late", json!({ "key": "k" })).await }
        });
        client.call("seen", json!({ "counts": { "in_flight": 2 } })).await;
        drop(late);
        until(async || {
            let status = server_status(&daemon, name).await;
            status["draining"] == 0 && status["late_answers"] == n_late + 1
        })
        .await;
    }
}

#[tokio::test]
async fn a_cancelled_request_closes_its_stream_on_both_sides() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = daemon.client("/servers/up").initialized().await;
    let held = running(client.clone().hold("k"));
    upstream.log("held=1&posts_open=1").await;

    client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;

    assert_eq!(held.end().await.body, "");
    let log = upstream.log("cancelled=1").await;
    assert_eq!(log["held"], 0);
    until(async || upstream.log("").await["posts_open"] == 0).await;
    let status = server_status(&daemon, "up").await;
    assert_eq!((&status["in_flight"], &status["connections"]), (&json!(0), &json!(1)));
}

#[tokio::test]
async fn a_silent_call_with_a_progress_token_gets_heartbeats_until_its_server_dies() {
    let fakes = Fakes::new();
    let config = "[service]\nprogress_beat = \"20ms\"\n".to_owned() + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/servers/fake");
    let params = |token: Option<&str>| {
        let mut params = json!({ "name": "hold", "arguments": { "key": "k" } });
        if let Some(token) = token {
            params["_meta"] = json!({ "progressToken": token });
        }
        params
    };
    let asking = client.stream(json!(1), "tools/call", params(Some("t")));
    let silent = client.stream(json!(1), "tools/call", params(None));
    let (mut asking, mut silent) = tokio::join!(asking, silent);

    let mut last = 0.0;
    for _ in 0..5 {
        let heartbeat = asking.message().await;
        assert_eq!(heartbeat["method"], "notifications/progress");
        assert_eq!(heartbeat["params"]["progressToken"], "t");
        let progress = heartbeat["params"]["progress"].as_f64().expect("a number");
        assert!(last < progress && progress < 1.0, "{last} {progress}");
        last = progress;
        let keep_alive = silent.next().await.expect("a keep-alive");
        assert!(keep_alive.data.is_none() && keep_alive.comment.is_some(), "{keep_alive:?}");
    }

    client.tool("exit", json!({ "code": 1 })).await;

    for stream in [&mut asking, &mut silent] {
        let (rest, end) = stream.rest().await;
        assert_eq!(end, End::Whole);
        let answer = rest.last().and_then(|event| event.data.as_deref()).expect("an answer");
        let answer: Value = serde_json::from_str(answer).expect(answer);
        assert!(answer["error"]["data"]["code"].is_string(), "{answer}");
    }
}
