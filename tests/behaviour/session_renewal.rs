//! Consecutive sessions at one upstream: the reasons for a new one, the notices to clients, and the
//! end of each.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::time::Instant;

use crate::{
    all,
    harness::{
        client::running,
        daemon::Daemon,
        fake::{Fakes, Upstream},
        scripted_upstream::ScriptedUpstream,
    },
    server_status, until,
};

const CHANGED: &str = "notifications/tools/list_changed";

#[tokio::test]
async fn only_an_unknown_upstream_session_is_replaced_by_a_new_one() {
    let cases = [
        (400, "Bad Request: Server not initialized", true),
        (400, "Bad Request: No valid session ID provided", true),
        (404, "", true),
        (404, "<html>not found</html>", true),
        (400, "Bad Request: Unsupported protocol version", false),
        (400, "", false),
        (401, "no session for you", false),
        (403, "no session for you", false),
        (409, "the session is busy", false),
        (410, "", false),
        (429, "too many sessions", false),
        (500, "session store is down", false),
        (502, "", false),
        (503, "session limit", false),
    ];
    for (status, words, is_replaced) in cases {
        let n_calls = AtomicUsize::new(0);
        let upstream = ScriptedUpstream::start(move |request, response| {
            let is_spoiled =
                request.method() == "tools/call" && n_calls.fetch_add(1, Ordering::SeqCst) == 0;
            if is_spoiled {
                response.page(status, "text/plain", words);
            }
            is_spoiled
        });
        let daemon = Daemon::with(upstream.server("auth = \"none\"")).ready();

        let answer = daemon.client("/servers/up").tool("x", json!({})).await.answer();

        assert_eq!(answer["result"].is_object(), is_replaced, "{status} {words}: {answer}");
        if !is_replaced {
            assert_eq!(answer["error"]["data"]["code"], "UPSTREAM_STATUS", "{answer}");
        }
        let n_minted = upstream.count("initialize");
        assert_eq!(n_minted, 1 + usize::from(is_replaced), "{status} {words}");
    }
}

#[tokio::test]
async fn a_call_timeout_does_not_replace_the_upstream_session() {
    let upstream = Upstream::start(&[]);
    // Otherwise, eight timeouts in a row would open the breaker.
    let config = "[service]\nrequest_timeout = \"200ms\"\n[breaker]\nfailure_threshold = 0\n";
    let daemon = Daemon::with(config.to_owned() + &upstream.server("up", "")).ready();
    let client = daemon.client("/servers/up");
    client.call("echo", json!({ "value": 0 })).await;

    let replies = all((0..8).map(|_| client.clone().hold("never"))).await;

    for reply in replies {
        assert_eq!(reply.answer()["error"]["data"]["code"], "TIMEOUT", "{reply:?}");
    }
    assert!(client.tool("echo", json!({ "value": 1 })).await.answer()["result"].is_object());
    assert_eq!(upstream.log("").await["sessions_minted"], 1);
}

#[tokio::test]
async fn clients_are_notified_of_a_new_session_only_if_its_tools_changed() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let [one, two] = [daemon.client("/servers/up"), daemon.client("/servers/up")];
    let (one, two) = (one.initialized().await, two.initialized().await);
    let listed = one.request(json!(1), "tools/list", json!({})).await.answer();
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    let (mut to_one, mut to_two) = (one.listen().await, two.listen().await);

    // A notice of the server itself passes too, after all earlier notices.
    let (prompts, resources) =
        ("notifications/prompts/list_changed", "notifications/resources/list_changed");
    for (number, method) in [prompts, CHANGED, resources].into_iter().enumerate() {
        if method == CHANGED {
            upstream.control("flip").await;
        }
        upstream.control("forget?finish=1").await;
        one.call("echo", json!({ "value": 1 })).await;
        let log = upstream.log(&format!("sessions_minted={}&streams_open=1", number + 2)).await;
        assert_eq!(log["sessions_minted"], number + 2);
        if method != CHANGED {
            upstream.push(&json!({ "jsonrpc": "2.0", "method": method })).await;
        }
        for stream in [&mut to_one, &mut to_two] {
            assert_eq!(stream.message().await["method"], method, "mint {number}");
        }
    }
}

#[tokio::test]
async fn a_client_that_has_not_read_the_lists_is_not_notified_of_a_restarted_child() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    client.call("echo", json!({ "value": 1 })).await;
    let mut stream = client.listen().await;

    client.tool("exit", json!({ "code": 1 })).await;
    // The call has ended before the next one.
    until(async || server_status(&daemon, "fake").await["requests"] == 0).await;
    client.call("echo", json!({ "value": 2 })).await;
    // The server's own notice passes, and would arrive after one of metamcp.
    client.tool("change", json!({ "list": "prompts" })).await;

    assert_eq!(stream.message().await["method"], "notifications/prompts/list_changed");
}

#[tokio::test]
async fn a_client_that_connected_before_its_server_is_notified_when_the_server_connects() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    // The era probe and the handshake fail.
    upstream.control("status?code=500&n=2").await;

    let early = daemon.client("/servers/up").initialized().await;
    let mut stream = early.listen().await;
    let status = daemon.client("/status").get().await.answer();
    assert_eq!(status["servers"][0]["state"], "failed", "{status}");
    daemon.client("/servers/up").call("echo", json!({ "value": 1 })).await;

    // metamcp compares the lists concurrently, so the order of the notices is undefined.
    while stream.message().await["method"] != CHANGED {}
    let list = early.request(json!(1), "tools/list", json!({})).await.answer();
    assert!(list["result"]["tools"].is_array());
    assert_eq!(upstream.log("").await["sessions_minted"], 1);
}

#[tokio::test]
async fn a_stop_ends_every_upstream_session() {
    let (one, two) = (Upstream::start(&[]), Upstream::start(&["--json"]));
    let owned = Upstream::start(&[]);
    let config = one.server("one", "")
        + &two.server("two", "")
        + &owned.server("own", "sharing = \"session\"");
    let mut daemon = Daemon::with(config).ready();
    for server in ["one", "two"] {
        daemon.client(&format!("/servers/{server}")).call("echo", json!({ "value": 1 })).await;
    }
    for _ in 0..3 {
        let client = daemon.client("/servers/own").initialized().await;
        client.call("echo", json!({ "value": 1 })).await;
    }
    assert_eq!(owned.log("sessions=3").await["deletes"], 0);

    assert!(daemon.stop().success());

    for (upstream, n_sessions) in [(&one, 1), (&two, 1), (&owned, 3)] {
        let log = upstream.log("").await;
        assert_eq!((&log["deletes"], &log["sessions"]), (&json!(n_sessions), &json!([])), "{log}");
        assert_eq!(log["sessions_minted"], n_sessions);
    }
}

#[tokio::test]
async fn an_upstream_that_hangs_on_session_end_does_not_delay_the_stop() {
    let n_ended = Arc::new(AtomicUsize::new(0));
    let hanging = [(); 3].map(|()| {
        let n_ended = Arc::clone(&n_ended);
        ScriptedUpstream::start(move |request, response| {
            let is_end = request.method() == "DELETE";
            if is_end {
                n_ended.fetch_add(1, Ordering::SeqCst);
                response.wait_gone();
            }
            is_end
        })
    });
    let servers = hanging.iter().zip(["up", "a", "b"]);
    let config =
        servers.map(|(upstream, name)| upstream.server("").replace(".up]", &format!(".{name}]")));
    let mut daemon = Daemon::with(config.collect::<String>()).ready();
    for name in ["up", "a", "b"] {
        let answer = daemon.client(&format!("/servers/{name}")).tool("x", json!({})).await.answer();
        assert!(answer["result"].is_object(), "{answer}");
    }

    let since = Instant::now();
    let stopped = running(async move { tokio::task::spawn_blocking(move || daemon.stop()).await });
    assert!(stopped.end().await.expect("it does not panic").success());

    // metamcp waits for all three at the same time, for two seconds.
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    assert_eq!(n_ended.load(Ordering::SeqCst), 3);
}
