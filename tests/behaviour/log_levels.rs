//! The log level: one session at the server, a level for each client.

use hyper::Method;
use serde_json::{Value, json};

use crate::{
    harness::{
        client::Client,
        daemon::Daemon,
        fake::{Fakes, Upstream},
    },
    server_status, until,
};

async fn set(client: &Client, level: &str) -> Value {
    client.request(json!(7), "logging/setLevel", json!({ "level": level })).await.answer()
}

/// Lets the server log a message, to all clients or on the stream of this call. Returns the
/// messages of the call.
async fn log(client: &Client, level: &str, data: u64, is_related: bool) -> Vec<Value> {
    let arguments = json!({ "level": level, "data": data, "related": is_related });
    let reply = client.tool("log", arguments).await;
    let mut messages = reply.messages();
    messages.pop();
    messages.iter().map(|message| message["params"]["data"].clone()).collect()
}

#[tokio::test]
async fn each_client_receives_its_own_log_level_and_the_server_is_set_to_the_lowest() {
    let upstream = Upstream::start(&["--logging"]);
    let daemon = Daemon::with(upstream.server("fake", "")).ready();
    let [chatty, quiet, silent] = [(); 3].map(|()| daemon.client("/servers/fake"));
    let (chatty, quiet) = (chatty.initialized().await, quiet.initialized().await);
    let silent = silent.initialized().await;
    let mut to_chatty = chatty.listen().await;
    let mut to_quiet = quiet.listen().await;
    let mut to_silent = silent.listen().await;
    upstream.log("streams_open=1").await;

    assert_eq!(set(&quiet, "error").await, json!({ "jsonrpc": "2.0", "id": 7, "result": {} }));
    set(&chatty, "debug").await;
    assert_eq!(upstream.log("levels=2").await["levels"], json!(["error", "debug"]));
    log(&chatty, "debug", 1, false).await;
    log(&chatty, "critical", 2, false).await;

    assert_eq!(to_chatty.message().await["params"]["data"], 1);
    assert_eq!(to_chatty.message().await["params"]["data"], 2);
    assert_eq!(to_quiet.message().await["params"]["data"], 2, "its own level");
    // A client without a level does not receive what others requested: the next message is not a log.
    silent.call("flip_tools", json!({})).await;
    assert_eq!(to_silent.message().await["method"], "notifications/tools/list_changed");

    // On the stream of a request too.
    assert_eq!(log(&chatty, "debug", 3, true).await, [3]);
    assert_eq!(log(&quiet, "warning", 4, true).await, [] as [u64; 0]);
    assert_eq!(log(&quiet, "error", 5, true).await, [5]);
    assert_eq!(
        log(&silent, "debug", 6, true).await,
        [] as [u64; 0],
        "only others lowered the level"
    );
    assert_eq!(log(&silent, "info", 7, true).await, [7], "the default level of a server");

    // The client with the lowest level leaves: the server gets the lowest level of the others.
    chatty.send(Method::DELETE, &[], "").await;
    assert_eq!(upstream.log("levels=3").await["levels"], json!(["error", "debug", "error"]));
    quiet.send(Method::DELETE, &[], "").await;
    assert_eq!(upstream.log("levels=4").await["levels"][3], "info", "no client has set a level");
}

#[tokio::test]
async fn the_log_level_of_a_client_without_a_session_does_not_reach_the_server() {
    let upstream = Upstream::start(&["--logging"]);
    let daemon = Daemon::with(upstream.server("fake", "")).ready();
    let client = daemon.client("/servers/fake").initialized().await;

    for path in ["/servers/fake", "/direct"] {
        let answer = set(&daemon.client(path), "debug").await;
        assert_eq!(answer["result"], json!({}), "a client without a session is served");
    }

    assert_eq!(log(&client, "debug", 1, true).await, [1], "the default level of a server");
    assert_eq!(upstream.log("").await["levels"], json!([]));
}

#[tokio::test]
async fn metamcp_sets_the_level_of_a_server_only_if_the_lowest_level_changes() {
    let upstream = Upstream::start(&["--logging"]);
    let daemon = Daemon::with(upstream.server("fake", "")).ready();
    let one = daemon.client("/servers/fake").initialized().await;
    let two = daemon.client("/").initialized().await;
    for (client, level) in [(&one, "info"), (&two, "error"), (&two, "info"), (&one, "info")] {
        assert_eq!(set(client, level).await["result"], json!({}));
    }
    set(&two, "notice").await;
    set(&one, "warning").await;
    assert_eq!(upstream.log("levels=2").await["levels"], json!(["info", "notice"]));
}

#[tokio::test]
async fn the_log_level_is_set_again_in_a_new_session_and_in_a_new_process() {
    let fakes = Fakes::new();
    let upstream = Upstream::start(&["--logging"]);
    let config = upstream.server("up", "") + &fakes.server("child", &["--logging"]);
    let daemon = Daemon::with(config).ready();
    let to_upstream = daemon.client("/servers/up").initialized().await;
    let to_child = daemon.client("/servers/child").initialized().await;
    set(&to_upstream, "notice").await;
    set(&to_child, "alert").await;

    upstream.control("forget").await;
    to_upstream.call("echo", json!({ "value": 1 })).await;
    to_child.tool("exit", json!({ "code": 1 })).await;
    until(async || server_status(&daemon, "child").await["state"] == "failed").await;

    let seen = to_child.call("seen", json!({ "counts": { "levels": 1 } })).await;
    assert_eq!(seen["levels"], json!(["alert"]));
    assert_eq!(fakes.pids("child").len(), 2);
    assert_eq!(upstream.log("levels=2").await["levels"], json!(["notice", "notice"]));
}

#[tokio::test]
async fn the_log_level_is_set_again_after_a_reload_changes_the_server() {
    let fakes = Fakes::new();
    let before = fakes.server("fake", &["--logging"]);
    let mut daemon = Daemon::with(before).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    set(&client, "critical").await;

    daemon.rewrite(&fakes.server("fake", &["--logging", "--bad-tool"]));
    daemon.reload();

    let seen = client.call("seen", json!({ "counts": { "levels": 1 } })).await;
    assert_eq!(seen["levels"], json!(["critical"]));
}

#[tokio::test]
async fn a_per_session_connection_gets_the_log_level_that_its_client_set_before() {
    let fakes = Fakes::new();
    let config = fakes.server("own", &["--logging"]) + "sharing = \"session\"\n";
    let mut daemon = Daemon::with(config).ready();
    let [one, two] =
        [daemon.client("/").initialized().await, daemon.client("/").initialized().await];
    set(&one, "critical").await;
    set(&two, "notice").await;

    for round in 1..=2 {
        for (client, level) in [(&one, "critical"), (&two, "notice")] {
            let seen = client.call("own__seen", json!({ "counts": { "levels": 1 } })).await;
            assert_eq!(seen["levels"], json!([level]), "round {round}");
        }
        // The same for the next processes, after a reload changes the server.
        let config = fakes.server("own", &["--logging", "--bad-tool"]) + "sharing = \"session\"\n";
        daemon.rewrite(&config);
        daemon.reload();
    }
}

#[tokio::test]
async fn the_error_for_an_invalid_log_level_lists_the_valid_ones() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &["--logging"]) + &fakes.server("plain", &[]));
    let daemon = daemon.ready();
    for path in ["/", "/servers/fake"] {
        let client = daemon.client(path).initialized().await;
        let error = set(&client, "loud").await["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]["code"]),
            (&json!(-32602), &json!("INVALID_LEVEL"))
        );
        let suggestion = error["data"]["suggestion"].as_str().expect("a suggestion");
        let names = "debug, info, notice, warning, error, critical, alert, emergency";
        assert!(suggestion.contains(names), "{suggestion}");
        let missing = client.request(json!(1), "logging/setLevel", json!({})).await.answer();
        assert_eq!(missing["error"]["code"], -32602);
    }
    // A server without log levels refuses the request itself.
    let plain = daemon.client("/servers/plain").initialized().await;
    assert_eq!(set(&plain, "info").await["error"]["code"], -32601);
}
