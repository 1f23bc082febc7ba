//! The view of the meta tools: it shows these tools and nothing else.

mod calls;
mod chain;
mod discover;
mod metatools;
mod news;
mod provision;
mod questions;
mod results;
mod strange;
mod trouble;
mod words;

use serde_json::{Value, json};

use crate::harness::{
    client::Client,
    daemon::Daemon,
    fake::Fakes,
    meta::{Meta, each},
    modern::Modern,
};

/// Both sets of tools.
const BOTH: &str = "[tools]\nsets = [\"core\", \"metatools\"]\n";

const CORE: [&str; 3] = ["mcp_discover", "mcp_provision", "mcp_call"];
const METATOOLS: [&str; 7] = [
    "search_tools",
    "list_namespaces",
    "list_tools",
    "describe_tool",
    "list_tool_examples",
    "run_tool",
    "run_chain",
];

async fn meta(daemon: &Daemon) -> Meta {
    Meta::at(daemon.client("/meta")).await
}

/// Returns the arguments of a call.
fn call_of(server: &str, tool: &str, args: Value) -> Value {
    json!({ "server": server, "tool": tool, "args": args })
}

/// Returns how many calls a server has had before.
async fn n_calls(daemon: &Daemon, server: &str) -> u64 {
    let told = daemon.client(&format!("/servers/{server}")).call("whoami", json!({})).await;
    told["calls"].as_u64().expect("a count") - 1
}

async fn initialize(client: &Client) -> Value {
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    client.request(json!(0), "initialize", params).await.answer()["result"].clone()
}

async fn listed(client: &Client) -> Vec<String> {
    let answer = client.request(json!(1), "tools/list", json!({})).await.answer();
    each(&answer["result"], "tools", "name")
}

#[tokio::test]
async fn three_tools_stand_for_those_of_all_servers() {
    let fakes = Fakes::new();
    let config = "[listen]\nroot = \"meta\"\n".to_owned()
        + &fakes.server("one", &[])
        + &fakes.server("two", &[]);
    let daemon = Daemon::with(config).ready();
    for path in ["/", "/mcp", "/meta"] {
        let client = daemon.client(path);
        let told = initialize(&client).await;
        let instructions = told["instructions"].as_str().expect("words");
        for word in ["`mcp_discover`", "`mcp_call`", "one, two"] {
            assert!(instructions.contains(word), "{path}: {instructions}");
        }
        assert_eq!(told["capabilities"], json!({ "tools": { "listChanged": true } }), "{path}");
        assert_eq!(told["serverInfo"]["name"], "metamcp");
        let list = client.request(json!(1), "tools/list", json!({})).await;
        // About four bytes a token.
        assert!(list.body.len() < 4200, "{} bytes", list.body.len());
        assert_eq!(list.body.matches(r#""anthropic/alwaysLoad":true"#).count(), CORE.len());
        assert_eq!(listed(&client).await, CORE, "{path}");
    }
    assert!(fakes.pids("one").is_empty() && fakes.pids("two").is_empty(), "nothing is started");
    let direct = listed(&daemon.client("/direct")).await;
    assert!(direct.len() > 40 && !direct.iter().any(|name| CORE.contains(&&**name)));
}

#[tokio::test]
async fn the_tools_are_those_of_the_sets_that_are_configured() {
    let fakes = Fakes::new();
    for (sets, tools, way) in [
        ("\"core\"", CORE.to_vec(), "mcp_discover"),
        ("\"metatools\"", METATOOLS.to_vec(), "search_tools"),
        ("\"metatools\", \"core\"", [&METATOOLS[..], &CORE].concat(), "search_tools"),
        ("\"core\", \"metatools\"", [&CORE[..], &METATOOLS].concat(), "mcp_discover"),
    ] {
        let config = format!("[tools]\nsets = [{sets}]\n") + &fakes.server("fake", &[]);
        let daemon = Daemon::with(config).ready();
        let client = daemon.client("/meta");

        assert_eq!(listed(&client).await, tools);
        let told = initialize(&client).await;
        let instructions = told["instructions"].as_str().expect("words");
        assert!(instructions.contains(way), "{sets}: {instructions}");
        for name in [&CORE[..], &METATOOLS].concat() {
            let answer = client.tool(name, json!({})).await.answer();
            let is_absent = answer["error"]["data"]["code"] == "TOOL_NOT_FOUND";
            assert_eq!(is_absent, !tools.contains(&name), "{sets}: {name}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_client_of_the_modern_era_sees_the_same() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = Modern::new(daemon.client("/meta"));

    let told = client.discover().await.answer()["result"].clone();
    assert_eq!(told["capabilities"]["tools"], json!({ "listChanged": true }), "{told}");
    assert_eq!(told["capabilities"].as_object().map(serde_json::Map::len), Some(1), "{told}");
    assert!(told["instructions"].as_str().is_some_and(|text| text.contains("mcp_discover")));
    let tools = client.request(json!(1), "tools/list", json!({})).await.answer();
    assert_eq!(each(&tools["result"], "tools", "name"), CORE);
    assert_eq!(tools["result"]["resultType"], "complete", "{tools}");
    let meta = Meta::modern(client).await;
    let called = meta.value("mcp_call", call_of("fake", "echo", json!({ "value": 7 }))).await;
    assert_eq!(called, json!({ "value": 7 }));
    let error = meta.error("mcp_call", call_of("fake", "ecko", json!({}))).await;
    assert_eq!(error["code"], "tool_not_found");
}

#[tokio::test]
async fn the_meta_view_refuses_a_method_other_than_tools_with_the_way_to_the_direct_view() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/meta").initialized().await;
    for (method, params) in [
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "x" })),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "fake:///one" })),
        ("resources/subscribe", json!({ "uri": "fake:///one" })),
        ("completion/complete", json!({ "ref": { "type": "ref/prompt", "name": "x" } })),
        ("vendor/unheard-of", json!({})),
    ] {
        let error =
            client.request(json!(1), method, params.clone()).await.answer()["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]["code"]),
            (&json!(-32601), &json!("METHOD_NOT_FOUND")),
            "{method}: {error}"
        );
        let remedy = error["data"]["suggestion"].as_str().expect("a remedy");
        assert!(remedy.contains("`/direct`"), "{method}: {remedy}");
        let modern = Modern::new(daemon.client("/meta"));
        let error = modern.request(json!(1), method, params).await.answer()["error"].clone();
        assert_eq!(error["code"], -32601, "{method}: {error}");
    }
    let pong = client.request(json!(1), "ping", json!({})).await.answer();
    assert_eq!(pong["result"], json!({}));
    assert!(fakes.pids("fake").is_empty());
}

#[tokio::test]
async fn a_tool_of_a_server_that_is_called_directly_is_answered_with_the_way() {
    let fakes = Fakes::new();
    for (sets, way) in
        [("core", ["`mcp_call`", "\"fake\""]), ("metatools", ["`run_tool`", "\"fake/echo\""])]
    {
        let config = format!("[tools]\nsets = [{sets:?}]\n") + &fakes.server("fake", &[]);
        let daemon = Daemon::with(config).ready();
        let client = daemon.client("/meta");
        for name in ["fake__echo", "fake/echo", "fake:echo"] {
            let error = client.tool(name, json!({ "value": 1 })).await.answer()["error"].clone();
            assert_eq!(error["code"], -32602, "{error}");
            assert_eq!(error["data"]["code"], "TOOL_NOT_FOUND");
            let remedy = error["data"]["suggestion"].as_str().expect("a remedy");
            assert!(way.iter().all(|word| remedy.contains(word)), "{name}: {remedy}");
        }
        let error = client.tool("echo", json!({})).await.answer()["error"].clone();
        let known = error["data"]["context"]["known"].as_array().expect("the tools");
        assert!(!known.is_empty(), "{error}");
        assert!(fakes.pids("fake").is_empty(), "the server is not asked");
    }
}

#[tokio::test]
async fn a_tool_of_a_server_that_is_called_like_ours_is_reached_and_shadows_nothing() {
    let fakes = Fakes::new();
    let options = ["--named", "mcp_call", "--named", "mcp_discover", "--named", "run_tool"];
    let daemon = Daemon::with(BOTH.to_owned() + &fakes.server("fake", &options)).ready();
    let meta = meta(&daemon).await;

    for tool in ["mcp_call", "mcp_discover", "run_tool"] {
        let called = meta.value("mcp_call", call_of("fake", tool, json!({}))).await;
        assert_eq!(called, json!({ "tool": tool }));
        let id = format!("fake/{tool}");
        let ran = meta.value("run_tool", json!({ "tool_id": id })).await;
        assert_eq!(ran["structured"], json!({ "tool": tool }));
        let found = meta.value("mcp_discover", json!({ "server": "fake", "tool": tool })).await;
        assert_eq!(each(&found, "tools", "tool"), [tool]);
    }
    assert_eq!(listed(&meta.http).await.iter().filter(|name| *name == "mcp_call").count(), 1);
}
