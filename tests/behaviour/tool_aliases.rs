//! Aliases for tool names that clients reject, in the merged view.

use serde_json::json;

use crate::harness::{client::Client, daemon::Daemon, fake::Fakes};

const LONG: &str = "a_tool_whose_name_says_everything_that_there_is_to_say_about_it";

async fn names(client: &Client) -> Vec<String> {
    let list = client.request(json!(1), "tools/list", json!({})).await.answer();
    let tools = list["result"]["tools"].as_array().expect("tools").clone();
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn a_tool_name_that_clients_reject_is_replaced_by_a_stable_alias_of_the_same_tool() {
    let fakes = Fakes::new();
    let odd = ["page.click", LONG, "as_it_is_deadbeef"];
    let options: Vec<&str> = odd.iter().flat_map(|name| ["--named", name]).collect();
    let config = fakes.server("fake", &options);
    let daemon = Daemon::with(config.clone()).ready();
    let client = daemon.client("/");

    let names = names(&client).await;
    let is_accepted = |name: &String| {
        let is_plain = |found: char| found.is_ascii_alphanumeric() || matches!(found, '_' | '-');
        name.len() <= 50 && name.chars().all(is_plain)
    };
    assert!(names.iter().all(is_accepted), "{names:?}");
    let mut beginnings = ["fake__page_click_", "fake__a_tool_whose_name", "fake__as_it_is"].iter();
    for original in odd {
        let beginning = beginnings.next().expect("one for each");
        let name = names.iter().find(|name| name.starts_with(beginning)).expect("it is listed");
        assert_eq!(client.call(name, json!({})).await, json!({ "tool": original }));
        // A client that read the list before a restart continues to use the alias.
        let after = Daemon::with(config.clone()).ready();
        assert_eq!(after.client("/").call(name, json!({})).await, json!({ "tool": original }));
    }
    let own = daemon.client("/servers/fake");
    assert_eq!(
        own.call(LONG, json!({})).await,
        json!({ "tool": LONG }),
        "the path of the server keeps the original name"
    );
    let unknown = client.tool("fake__page_click_00000000", json!({})).await.answer();
    assert_eq!(unknown["error"]["message"], "Unknown tool: page_click_00000000");
}

#[tokio::test]
async fn a_tool_that_its_server_lists_twice_is_listed_once() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &["--named", "echo"])).ready();

    let names = names(&daemon.client("/")).await;

    assert_eq!(names.iter().filter(|name| *name == "fake__echo").count(), 1);
    daemon.wait_log("listed twice");
}
