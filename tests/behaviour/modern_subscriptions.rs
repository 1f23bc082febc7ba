//! Subscriptions of clients of 2026-07-28: first the acknowledgement, then the notices.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{
    claude_code::ClaudeCode,
    daemon::Daemon,
    fake::{Fakes, Upstream},
    modern::{Modern, key, refusal, subscription},
    stream::End,
};

const ALL: [&str; 3] = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"];

fn modern(daemon: &Daemon, path: &str) -> Modern {
    Modern::new(daemon.client(path))
}

fn lists(names: &[&str]) -> Value {
    names.iter().map(|name| ((*name).to_owned(), json!(true))).collect()
}

#[tokio::test]
async fn a_subscriber_receives_the_requested_notices_under_its_subscription_id() {
    let upstream = Upstream::start(&["--subscribe"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    for path in ["/", "/servers/up"] {
        let client = modern(&daemon, path);
        let call = modern(&daemon, "/servers/up");
        call.tool("whoami", json!({})).await;
        let mut tools = client.listen(json!("a"), lists(&["toolsListChanged"])).await;
        let mut prompts = client.listen(json!(0), lists(&["promptsListChanged"])).await;
        let uri = json!({ "resourceSubscriptions": ["fake:///one"] });
        let mut updates = client.listen(json!(9_007_199_254_740_991_u64), uri.clone()).await;

        assert_eq!(tools.status, 200);
        assert_eq!(tools.headers["content-type"], "text/event-stream");
        assert_eq!(tools.headers["x-accel-buffering"], "no");
        // This server declares no changes of its prompts; other servers of the merged view may.
        let is_merged = path == "/";
        let of_prompts = if is_merged { lists(&["promptsListChanged"]) } else { json!({}) };
        for (stream, id, honoured) in [
            (&mut tools, json!("a"), lists(&["toolsListChanged"])),
            (&mut prompts, json!(0), of_prompts),
            (&mut updates, json!(9_007_199_254_740_991_u64), uri),
        ] {
            let first = stream.message().await;
            assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{path}");
            assert_eq!(subscription(&first), &id);
            assert_eq!(first["params"]["notifications"], honoured, "{path}");
        }
        // Until metamcp has subscribed at the server, it may miss changes.
        upstream.log("streams_open=1").await;
        call.tool("touch", json!({ "uri": "fake:///two" })).await;
        call.tool("touch", json!({ "uri": "fake:///one" })).await;
        call.tool("flip_tools", json!({})).await;

        let notice = updates.message().await;
        assert_eq!(notice["method"], "notifications/resources/updated", "{path}");
        assert_eq!(notice["params"]["uri"], "fake:///one");
        assert_eq!(subscription(&notice), &json!(9_007_199_254_740_991_u64));
        let notice = tools.message().await;
        assert_eq!(notice["method"], "notifications/tools/list_changed", "nothing else before it");
        assert_eq!(subscription(&notice), &json!("a"));

        // metamcp unsubscribes at the server when the last subscriber leaves.
        let n_before = upstream.log("").await["unsubscribes"].as_array().map_or(0, Vec::len);
        drop(updates);
        upstream.log(&format!("unsubscribes={}", n_before + 1)).await;
        let one_more = json!({ "message": json!({
            "jsonrpc": "2.0", "method": "notifications/prompts/list_changed",
        }).to_string() });
        call.tool("emit", one_more).await;
        if is_merged {
            let notice = prompts.message().await;
            assert_eq!(notice["method"], "notifications/prompts/list_changed", "{path}");
            assert_eq!(subscription(&notice), &json!(0));
        }
    }
}

#[tokio::test]
async fn the_acknowledgement_omits_notifications_that_metamcp_cannot_deliver() {
    let fakes = Fakes::new();
    let upstream = Upstream::start(&["--subscribe"]);
    let config = upstream.server("up", "")
        + &fakes.server("plain", &[])
        + &fakes.server("one", &["--subscribe"])
        + "sharing = \"exclusive\"\n"
        + &fakes.server("own", &["--subscribe"])
        + "sharing = \"session\"\n";
    let daemon = Daemon::with(config).ready();
    let mut all = lists(&ALL);
    all["resourceSubscriptions"] = json!(["fake:///one", "refuse:1", "fake:///one"]);
    let honoured = async |path: &str| {
        let mut stream = modern(&daemon, path).listen(json!(1), all.clone()).await;
        stream.message().await["params"]["notifications"].clone()
    };
    for server in ["up", "plain"] {
        modern(&daemon, &format!("/servers/{server}")).tool("whoami", json!({})).await;
    }
    assert_eq!(honoured("/servers/one").await, json!({}));
    assert_eq!(honoured("/servers/own").await, json!({}));
    assert!(honoured("/servers/plain").await.get("resourceSubscriptions").is_none());
    assert_eq!(honoured("/servers/up").await["resourceSubscriptions"], json!(["fake:///one"]));
    let direct = honoured("/").await;
    assert!(ALL.iter().all(|list| direct[list] == true), "{direct}");
}

#[tokio::test]
async fn an_invalid_subscription_filter_is_refused() {
    let daemon = Daemon::with("").ready();
    let client = modern(&daemon, "/");
    for filter in [
        json!(null),
        json!([]),
        json!({ "toolsListChanged": "yes" }),
        json!({ "resourceSubscriptions": "a:1" }),
        json!({ "resourceSubscriptions": [1] }),
    ] {
        let params = json!({ "notifications": filter });
        let reply = client.request(json!("l"), "subscriptions/listen", params).await;
        assert_eq!(refusal(&reply).1, Some(-32602), "{filter}");
        assert_eq!(reply.answer()["id"], "l");
    }
    let reply = client.request(json!("l"), "subscriptions/listen", json!({})).await;
    assert_eq!(refusal(&reply).1, Some(-32602));
}

#[tokio::test]
async fn subscribers_receive_keep_alives_and_a_final_result_at_shutdown() {
    let fakes = Fakes::new();
    let config = "[listen]\nkeep_alive = \"50ms\"\njson_response = true\n".to_owned();
    let mut daemon = Daemon::with(config + &fakes.server("fake", &[])).ready();
    let mut listens = Vec::new();
    for (path, id) in [("/", json!("l")), ("/servers/fake", json!(7))] {
        let mut stream = modern(&daemon, path).listen(id.clone(), lists(&ALL)).await;
        stream.message().await;
        assert!(stream.next().await.expect("a keep-alive").comment.is_some());
        listens.push((id, stream));
    }
    daemon.signal(Signal::TERM);
    for (id, mut stream) in listens {
        let last = stream.message().await;
        assert_eq!(last["id"], id);
        assert_eq!(last["result"]["resultType"], "complete");
        assert_eq!(last["result"]["_meta"][key("subscriptionId")], id);
        assert_eq!(stream.rest().await, (Vec::new(), End::Whole));
    }
    assert!(daemon.wait_exit().success());
}

#[tokio::test]
async fn a_reload_that_removes_a_server_ends_the_subscriptions_to_it() {
    let fakes = Fakes::new();
    let stays = fakes.server("stays", &[]);
    let mut daemon = Daemon::with(fakes.server("goes", &[]) + &stays).ready();
    let mut all = modern(&daemon, "/").listen(json!(1), lists(&ALL)).await;
    let mut one = modern(&daemon, "/servers/goes").listen(json!("o"), lists(&ALL)).await;
    all.message().await;
    one.message().await;

    daemon.rewrite(&stays);
    daemon.reload();

    let last = one.message().await;
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!("o"), &json!("complete")));
    assert_eq!(one.rest().await, (Vec::new(), End::Whole));
    // In the merged view, the removal is a change of the list.
    assert_eq!(all.message().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_subscription_carries_neither_log_messages_nor_progress() {
    let upstream = Upstream::start(&["--logging"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let client = modern(&daemon, "/servers/up").level("debug");
    client.tool("whoami", json!({})).await;
    let mut listen = client.listen(json!(1), lists(&["toolsListChanged"])).await;
    listen.message().await;
    upstream.log("streams_open=1").await;
    client.tool("log", json!({ "level": "emergency", "data": 1 })).await;
    let params =
        json!({ "name": "progress", "arguments": { "steps": 1 }, "_meta": { "progressToken": 1 } });
    client.request(json!(2), "tools/call", params).await;
    client.tool("flip_tools", json!({})).await;
    assert_eq!(listen.message().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_client_like_claude_code_stays_modern_and_is_notified_of_changes() {
    let upstream = Upstream::start(&[]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    for path in ["/", "/servers/up"] {
        let mut client = ClaudeCode::connect(daemon.client(path)).await;
        assert!(client.is_modern(), "{path}");
        let tools = client.request("tools/list", json!({})).await.answer();
        assert_eq!(tools["id"], 0);
        assert!(tools["result"]["tools"].is_array());
        upstream.log("streams_open=1").await;
        modern(&daemon, "/servers/up").tool("flip_tools", json!({})).await;
        let notice = client.notices().message().await;
        assert_eq!(notice["method"], "notifications/tools/list_changed", "{path}");
    }
}
