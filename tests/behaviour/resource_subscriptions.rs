//! Resource subscriptions: one subscription at the server for all subscribed clients.

use hyper::Method;
use serde_json::{Value, json};

use crate::harness::{
    client::Client,
    daemon::Daemon,
    fake::{Fakes, Upstream},
    scripted_upstream::ScriptedUpstream,
};

async fn subscribe(client: &Client, uri: &str) -> Value {
    client.request(json!("s"), "resources/subscribe", json!({ "uri": uri })).await.answer()
}

async fn unsubscribe(client: &Client, uri: &str) -> Value {
    client.request(json!("u"), "resources/unsubscribe", json!({ "uri": uri })).await.answer()
}

#[tokio::test]
async fn metamcp_subscribes_for_the_first_client_and_unsubscribes_after_the_last() {
    let upstream = Upstream::start(&["--subscribe"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let one = daemon.client("/servers/up").initialized().await;
    let two = daemon.client("/servers/up").initialized().await;
    let (mut to_one, mut to_two) = (one.listen().await, two.listen().await);
    upstream.log("streams_open=1").await;

    assert_eq!(subscribe(&one, "a:1").await, json!({ "jsonrpc": "2.0", "id": "s", "result": {} }));
    subscribe(&two, "a:1").await;
    subscribe(&two, "a:2").await;
    subscribe(&two, "a:2").await;
    assert_eq!(upstream.log("subscribes=2").await["subscribes"], json!(["a:1", "a:2"]));
    for uri in ["a:2", "a:1"] {
        one.call("touch", json!({ "uri": uri })).await;
    }
    assert_eq!(to_one.message().await["params"]["uri"], "a:1", "not the other client's resource");
    assert_eq!(to_two.message().await["params"]["uri"], "a:2");
    assert_eq!(to_two.message().await["params"]["uri"], "a:1");

    assert_eq!(unsubscribe(&one, "a:1").await["result"], json!({}));
    assert_eq!(
        unsubscribe(&one, "a:1").await["result"],
        json!({}),
        "a repeated unsubscription succeeds"
    );
    one.call("touch", json!({ "uri": "a:1" })).await;
    assert_eq!(
        to_two.message().await["params"]["uri"],
        "a:1",
        "the other client is still subscribed"
    );
    let log = upstream.log("").await;
    assert_eq!((&log["unsubscribes"], &log["subscribed"]), (&json!([]), &json!(["a:1", "a:2"])));

    unsubscribe(&two, "a:1").await;
    assert_eq!(upstream.log("unsubscribes=1").await["subscribed"], json!(["a:2"]));
    two.send(Method::DELETE, &[], "").await;
    assert_eq!(upstream.log("unsubscribes=2").await["subscribed"], json!([]));
    one.call("flip_tools", json!({})).await;
    let next = to_one.message().await;
    assert_eq!(next["method"], "notifications/tools/list_changed", "no update arrived meanwhile");
}

#[tokio::test]
async fn a_resource_subscription_is_renewed_in_the_next_session_of_the_server() {
    let fakes = Fakes::new();
    let upstream = Upstream::start(&["--subscribe"]);
    let config = upstream.server("up", "") + &fakes.server("child", &["--subscribe"]);
    let daemon = Daemon::with(config).ready();
    let to_upstream = daemon.client("/servers/up").initialized().await;
    let to_child = daemon.client("/servers/child").initialized().await;
    subscribe(&to_upstream, "a:1").await;
    subscribe(&to_upstream, "a:2").await;
    unsubscribe(&to_upstream, "a:1").await;
    subscribe(&to_child, "b:1").await;
    let mut updates = to_upstream.listen().await;

    upstream.control("forget").await;
    to_upstream.call("echo", json!({ "value": 1 })).await;
    let log = upstream.log("subscribes=3&streams_open=1").await;
    assert_eq!(
        log["subscribes"],
        json!(["a:1", "a:2", "a:2"]),
        "only the current subscriptions are renewed"
    );
    to_upstream.call("touch", json!({ "uri": "a:2" })).await;
    let update = updates.message().await;
    assert_eq!(update["params"]["uri"], "a:2", "{update}");

    to_child.tool("exit", json!({ "code": 1 })).await;
    let seen = to_child.call("seen", json!({ "counts": { "subscribes": 1 } })).await;
    assert_eq!(seen["subscribed"], json!(["b:1"]));
    assert_eq!(fakes.pids("child").len(), 2);
}

#[tokio::test]
async fn resource_subscriptions_are_renewed_after_a_reload_changes_the_server() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("fake", &["--subscribe"])).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    subscribe(&client, "a:1").await;

    daemon.rewrite(&fakes.server("fake", &["--subscribe", "--bad-tool"]));
    daemon.reload();

    let seen = client.call("seen", json!({ "counts": { "subscribes": 1 } })).await;
    assert_eq!(seen["subscribed"], json!(["a:1"]));
}

#[tokio::test]
async fn a_subscription_that_metamcp_could_never_serve_is_refused() {
    let fakes = Fakes::new();
    let upstream = Upstream::start(&["--subscribe"]);
    let config = upstream.server("up", "")
        + &fakes.server("one", &["--subscribe"])
        + "sharing = \"exclusive\"\n";
    let daemon = Daemon::with(config).ready();

    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let without_session = daemon.client("/servers/up");
        let refused =
            without_session.request(json!(1), method, json!({ "uri": "a:1" })).await.answer();
        assert_eq!(refused["error"]["data"]["code"], "SESSION_REQUIRED", "{refused}");
        for path in ["/servers/one", "/direct"] {
            let client = daemon.client(path).initialized().await;
            let list = client.request(json!(0), "resources/list", json!({})).await.answer();
            let of_one = list["result"]["resources"][0]["uri"].clone();
            let params =
                if path == "/direct" { json!({ "uri": of_one }) } else { json!({ "uri": "a:1" }) };
            let refused = client.request(json!(1), method, params).await.answer();
            assert_eq!(
                refused["error"]["data"]["code"], "METHOD_NOT_FOUND",
                "{path}: {refused} {list}"
            );
        }
    }
    assert_eq!(upstream.log("").await["subscribes"], json!([]));
}

#[tokio::test]
async fn a_subscription_that_failed_at_the_server_can_be_requested_again() {
    let upstream = ScriptedUpstream::start(|request, response| {
        match request.method() {
            "initialize" => response.json(&request.result(&json!({
                "protocolVersion": "2025-06-18", "capabilities": { "resources": { "subscribe": true } },
                "serverInfo": { "name": "scripted", "version": "1" },
            }))),
            "resources/subscribe" => response.page(500, "text/plain", "out of order"),
            _ => return false,
        }
        true
    });
    let daemon = Daemon::with(upstream.server("")).ready();
    let client = daemon.client("/servers/up").initialized().await;

    for n_requests in 1..=2 {
        let answer = subscribe(&client, "a:1").await;
        assert_eq!(answer["error"]["data"]["code"], "UPSTREAM_STATUS", "{answer}");
        assert_eq!(
            upstream.count("resources/subscribe"),
            n_requests,
            "the subscription is requested again"
        );
    }
}

#[tokio::test]
async fn a_refused_subscription_gets_the_servers_error_and_is_not_renewed() {
    let upstream = Upstream::start(&["--subscribe"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = daemon.client("/servers/up").initialized().await;

    for n_requests in 1..=2 {
        let refused = subscribe(&client, "refuse:1").await;
        assert_eq!(refused["id"], "s");
        let error = json!({ "code": -32002, "message": "Resource not found: refuse:1" });
        assert_eq!(refused["error"], error);
        let log = upstream.log(&format!("subscribes={n_requests}")).await;
        assert_eq!(log["subscribes"].as_array().map(Vec::len), Some(n_requests), "requested again");
    }
    upstream.control("forget").await;
    subscribe(&client, "a:1").await;
    let log = upstream.log("subscribes=3").await;
    assert_eq!(log["subscribes"], json!(["refuse:1", "refuse:1", "a:1"]));

    let missing = client.request(json!(1), "resources/subscribe", json!({})).await.answer();
    assert_eq!(missing["error"]["data"]["code"], "MISSING_PARAMETER");
    let plain = Upstream::start(&["--protocol", "2025-03-26"]);
    let daemon = Daemon::with(plain.server("up", "")).ready();
    let client = daemon.client("/servers/up").initialized().await;
    assert_eq!(subscribe(&client, "a:1").await["error"]["code"], -32601, "the server's own error");
}

#[tokio::test]
async fn the_merged_view_routes_a_subscription_by_its_uri() {
    let upstream = Upstream::start(&["--subscribe"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = daemon.client("/").initialized().await;
    let mut updates = client.listen().await;
    assert_eq!(subscribe(&client, "fake:///one").await["result"], json!({}));
    upstream.log("streams_open=1").await;
    client.call("up__touch", json!({ "uri": "fake:///one" })).await;
    assert_eq!(updates.message().await["params"]["uri"], "fake:///one");
    let unknown = subscribe(&client, "no:where").await;
    assert_eq!(unknown["error"]["data"]["code"], "RESOURCE_NOT_FOUND");
    assert_eq!(unsubscribe(&client, "fake:///one").await["result"], json!({}));
    assert_eq!(upstream.log("unsubscribes=1").await["subscribed"], json!([]));
}
