//! The change notices of the meta view: debounced, or disabled.

use hyper::Method;
use serde_json::json;

use super::{initialize, meta};
use crate::{
    all,
    harness::{
        client::Client, daemon::Daemon, fake::Fakes, meta_client::each, modern::Modern,
        stream::EventStream,
    },
    until,
};

const TOOLS: &str = "notifications/tools/list_changed";

/// Lets metamcp read the lists of all servers, so that it can notice changes.
async fn read_lists(daemon: &Daemon) {
    meta(daemon).await.value("mcp_discover", json!({ "query": "anything" })).await;
}

/// Waits until a tool that was added is found.
async fn wait_known(daemon: &Daemon, server: &str, tool: &str) {
    let meta = meta(daemon).await;
    let all = json!({ "server": server, "limit": 100 });
    until(async || {
        let found = meta.value("mcp_discover", all.clone()).await;
        each(&found, "tools", "tool").iter().any(|found| found == tool)
    })
    .await;
}

/// Ends the session, and returns the remaining notices of its stream.
async fn end_session(client: &Client, mut stream: EventStream) -> Vec<String> {
    client.send(Method::DELETE, &[], "").await;
    let (events, _) = stream.rest().await;
    events.into_iter().filter_map(|event| event.data).filter(|data| !data.is_empty()).collect()
}

#[tokio::test]
async fn several_changes_within_the_debounce_window_cause_one_notice() {
    let fakes = Fakes::new();
    let config = "[tools]\nlist_changed_debounce = \"2s\"\n".to_owned()
        + &fakes.server("one", &[])
        + &fakes.server("two", &[]);
    let daemon = Daemon::with(config).ready();
    read_lists(&daemon).await;
    let client = daemon.client("/meta").initialized().await;
    let mut stream = client.listen().await;
    let wanted = json!({ "toolsListChanged": true, "promptsListChanged": true });
    let mut modern = Modern::new(daemon.client("/meta")).listen(json!("l"), wanted).await;
    let first = modern.message().await;
    let honoured = &first["params"]["notifications"];
    assert_eq!(honoured, &json!({ "toolsListChanged": true }), "there are no prompts: {first}");

    let servers = ["one", "two", "one"].map(|name| daemon.client(&format!("/servers/{name}")));
    all(servers.iter().map(|server| server.call("flip_tools", json!({})))).await;

    for stream in [&mut stream, &mut modern] {
        assert_eq!(stream.message().await["method"], TOOLS);
    }
    wait_known(&daemon, "one", "extra_2").await;
    wait_known(&daemon, "two", "extra_1").await;
    assert_eq!(end_session(&client, stream).await, [""; 0], "no second notice");
}

#[tokio::test]
async fn a_change_of_prompts_or_resources_causes_no_notice() {
    let fakes = Fakes::new();
    let config =
        "[tools]\nlist_changed_debounce = \"1ms\"\n".to_owned() + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config).ready();
    read_lists(&daemon).await;
    let client = daemon.client("/meta").initialized().await;
    let mut stream = client.listen().await;
    let merged = daemon.client("/direct").initialized().await;
    let mut of_merged = merged.listen().await;
    let server = daemon.client("/servers/fake");
    for list in ["prompts/list", "resources/list"] {
        merged.request(json!(1), list, json!({})).await;
    }

    for list in ["prompts", "resources"] {
        server.call("change", json!({ "list": list })).await;
        let method = format!("notifications/{list}/list_changed");
        assert_eq!(of_merged.message().await["method"], method.as_str());
    }
    server.call("change", json!({ "list": "tools" })).await;

    assert_eq!(stream.message().await["method"], TOOLS, "the first notice");
    assert_eq!(end_session(&client, stream).await, [""; 0]);
}

#[tokio::test]
async fn disabled_change_notices_are_neither_declared_nor_sent() {
    let fakes = Fakes::new();
    let config = "[tools]\nlist_changed = false\nlist_changed_debounce = \"1ms\"\n".to_owned()
        + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config).ready();
    read_lists(&daemon).await;
    let profile = initialize(&daemon.client("/meta")).await;
    assert_eq!(profile["capabilities"], json!({ "tools": { "listChanged": false } }), "{profile}");
    let modern = Modern::new(daemon.client("/meta"));
    let discovered = modern.discover().await.answer();
    assert_ne!(discovered["result"]["capabilities"]["tools"]["listChanged"], true, "{discovered}");
    let client = daemon.client("/meta").initialized().await;
    let stream = client.listen().await;
    let merged = daemon.client("/direct").initialized().await;
    let mut of_merged = merged.listen().await;
    merged.request(json!(1), "tools/list", json!({})).await;

    daemon.client("/servers/fake").call("flip_tools", json!({})).await;

    assert_eq!(of_merged.message().await["method"], TOOLS, "other views send notices");
    wait_known(&daemon, "fake", "extra_1").await;
    assert_eq!(end_session(&client, stream).await, [""; 0]);
}

#[tokio::test]
async fn a_reload_changes_the_debounce_window() {
    let fakes = Fakes::new();
    let config = |window: &str| {
        format!("[tools]\nlist_changed_debounce = {window:?}\n") + &fakes.server("fake", &[])
    };
    let mut daemon = Daemon::with(config("1ms")).ready();
    read_lists(&daemon).await;
    let server = daemon.client("/servers/fake");
    let client = daemon.client("/meta").initialized().await;
    let mut stream = client.listen().await;
    server.call("flip_tools", json!({})).await;
    assert_eq!(stream.message().await["method"], TOOLS);

    daemon.rewrite(&config("60s"));
    daemon.reload();

    server.call("flip_tools", json!({})).await;
    wait_known(&daemon, "fake", "extra_2").await;
    assert_eq!(end_session(&client, stream).await, [""; 0], "the debounce window has not ended");
}
