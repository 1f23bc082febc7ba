//! Clients of 2026-07-28 that listen: they are told first what they are told of, and then that.

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
async fn a_listener_hears_what_it_has_asked_for_with_the_id_of_its_request() {
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
        // This server says nothing of its prompts; others of the merged view may.
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

        let told = updates.message().await;
        assert_eq!(told["method"], "notifications/resources/updated", "{path}");
        assert_eq!(told["params"]["uri"], "fake:///one");
        assert_eq!(subscription(&told), &json!(9_007_199_254_740_991_u64));
        let told = tools.message().await;
        assert_eq!(told["method"], "notifications/tools/list_changed", "nothing else before it");
        assert_eq!(subscription(&told), &json!("a"));

        // What the last one has watched is not watched any more once it has gone.
        let n_before = upstream.log("").await["unsubscribes"].as_array().map_or(0, Vec::len);
        drop(updates);
        upstream.log(&format!("unsubscribes={}", n_before + 1)).await;
        let one_more = json!({ "message": json!({
            "jsonrpc": "2.0", "method": "notifications/prompts/list_changed",
        }).to_string() });
        call.tool("emit", one_more).await;
        if is_merged {
            let told = prompts.message().await;
            assert_eq!(told["method"], "notifications/prompts/list_changed", "{path}");
            assert_eq!(subscription(&told), &json!(0));
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
async fn a_filter_that_is_none_is_refused() {
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
async fn listeners_are_kept_alive_and_told_when_the_service_stops() {
    let fakes = Fakes::new();
    let config = "[listen]\nkeep_alive = \"50ms\"\njson_response = true\n".to_owned();
    let mut daemon = Daemon::with(config + &fakes.server("fake", &[])).ready();
    let mut listens = Vec::new();
    for (path, id) in [("/", json!("l")), ("/servers/fake", json!(7))] {
        let mut stream = modern(&daemon, path).listen(id.clone(), lists(&ALL)).await;
        stream.message().await;
        assert!(stream.next().await.expect("a sign of life").comment.is_some());
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
async fn a_listener_of_a_server_that_a_reload_removes_receives_the_end_of_its_stream() {
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
    // In the merged view, it is a change.
    assert_eq!(all.message().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn neither_log_messages_nor_progress_come_to_a_listener() {
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
async fn a_client_like_claude_code_stays_in_the_era_and_hears_of_changes() {
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
        let told = client.notices().message().await;
        assert_eq!(told["method"], "notifications/tools/list_changed", "{path}");
    }
}
