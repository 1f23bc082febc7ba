//! The meta view, which shows only the meta-tools.

mod calls;
mod chain;
mod command_line_search;
mod discover;
mod edge_cases;
mod elicitation;
mod execute;
mod failures;
mod large_results;
mod metatools;
mod notices;
mod provision;

use serde_json::{Value, json};

use crate::harness::{
    client::Client,
    daemon::Daemon,
    fake::Fakes,
    meta_client::{MetaClient, each},
    modern::Modern,
};

/// Both sets of tools.
const BOTH: &str = "[tools]\nsets = [\"core\", \"metatools\"]\n";

const CORE: [&str; 4] = ["mcp_discover", "mcp_provision", "mcp_call", "mcp_execute"];
const METATOOLS: [&str; 8] = [
    "search_tools",
    "list_namespaces",
    "list_tools",
    "describe_tool",
    "list_tool_examples",
    "run_tool",
    "run_chain",
    "execute_code",
];

async fn meta(daemon: &Daemon) -> MetaClient {
    MetaClient::at(daemon.client("/meta")).await
}

/// Returns the arguments of a call.
fn call_of(server: &str, tool: &str, args: Value) -> Value {
    json!({ "server": server, "tool": tool, "args": args })
}

/// Returns the number of earlier calls of a server.
async fn n_calls(daemon: &Daemon, server: &str) -> u64 {
    let identity = daemon.client(&format!("/servers/{server}")).call("whoami", json!({})).await;
    identity["calls"].as_u64().expect("a count") - 1
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
async fn the_meta_view_lists_a_few_tools_in_place_of_the_servers_tools() {
    let fakes = Fakes::new();
    let config = "[listen]\nroot = \"meta\"\n".to_owned()
        + &fakes.server("one", &[])
        + &fakes.server("two", &[]);
    let daemon = Daemon::with(config).ready();
    for path in ["/", "/mcp", "/meta"] {
        let client = daemon.client(path);
        let profile = initialize(&client).await;
        let instructions = profile["instructions"].as_str().expect("a text");
        for word in ["`mcp_discover`", "`mcp_call`", "one, two"] {
            assert!(instructions.contains(word), "{path}: {instructions}");
        }
        assert_eq!(profile["capabilities"], json!({ "tools": { "listChanged": true } }), "{path}");
        assert_eq!(profile["serverInfo"]["name"], "metamcp");
        let list = client.request(json!(1), "tools/list", json!({})).await;
        // About four bytes a token.
        assert!(list.body.len() < 5700, "{} bytes", list.body.len());
        assert_eq!(list.body.matches(r#""anthropic/alwaysLoad":true"#).count(), CORE.len());
        assert_eq!(listed(&client).await, CORE, "{path}");
    }
    assert!(fakes.pids("one").is_empty() && fakes.pids("two").is_empty(), "no server is started");
    let direct = listed(&daemon.client("/direct")).await;
    assert!(direct.len() > 40 && !direct.iter().any(|name| CORE.contains(&&**name)));
}

#[tokio::test]
async fn the_meta_view_lists_the_configured_tool_sets() {
    let fakes = Fakes::new();
    for (sets, tools, expected) in [
        ("\"core\"", CORE.to_vec(), "mcp_discover"),
        ("\"metatools\"", METATOOLS.to_vec(), "search_tools"),
        ("\"metatools\", \"core\"", [&METATOOLS[..], &CORE].concat(), "search_tools"),
        ("\"core\", \"metatools\"", [&CORE[..], &METATOOLS].concat(), "mcp_discover"),
    ] {
        let config = format!("[tools]\nsets = [{sets}]\n") + &fakes.server("fake", &[]);
        let daemon = Daemon::with(config).ready();
        let client = daemon.client("/meta");

        assert_eq!(listed(&client).await, tools);
        let profile = initialize(&client).await;
        let instructions = profile["instructions"].as_str().expect("a text");
        assert!(instructions.contains(expected), "{sets}: {instructions}");
        for name in [&CORE[..], &METATOOLS].concat() {
            let answer = client.tool(name, json!({})).await.answer();
            let is_absent = answer["error"]["data"]["code"] == "TOOL_NOT_FOUND";
            assert_eq!(is_absent, !tools.contains(&name), "{sets}: {name}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_modern_client_sees_the_same_meta_tools() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = Modern::new(daemon.client("/meta"));

    let profile = client.discover().await.answer()["result"].clone();
    assert_eq!(profile["capabilities"]["tools"], json!({ "listChanged": true }), "{profile}");
    assert_eq!(profile["capabilities"].as_object().map(serde_json::Map::len), Some(1), "{profile}");
    assert!(profile["instructions"].as_str().is_some_and(|text| text.contains("mcp_discover")));
    let tools = client.request(json!(1), "tools/list", json!({})).await.answer();
    assert_eq!(each(&tools["result"], "tools", "name"), CORE);
    assert_eq!(tools["result"]["resultType"], "complete", "{tools}");
    let meta = MetaClient::modern(client).await;
    let called = meta.value("mcp_call", call_of("fake", "echo", json!({ "value": 7 }))).await;
    assert_eq!(called, json!({ "value": 7 }));
    let error = meta.error("mcp_call", call_of("fake", "ecko", json!({}))).await;
    assert_eq!(error["code"], "tool_not_found");
}

#[tokio::test]
async fn the_meta_view_refuses_methods_other_than_tools_and_names_the_direct_view() {
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
        let suggestion = error["data"]["suggestion"].as_str().expect("a suggestion");
        assert!(suggestion.contains("`/direct`"), "{method}: {suggestion}");
        let modern = Modern::new(daemon.client("/meta"));
        let error = modern.request(json!(1), method, params).await.answer()["error"].clone();
        assert_eq!(error["code"], -32601, "{method}: {error}");
    }
    let pong = client.request(json!(1), "ping", json!({})).await.answer();
    assert_eq!(pong["result"], json!({}));
    assert!(fakes.pids("fake").is_empty());
}

#[tokio::test]
async fn a_direct_call_of_a_servers_tool_is_refused_and_the_error_names_the_right_call() {
    let fakes = Fakes::new();
    for (sets, expected) in
        [("core", ["`mcp_call`", "\"fake\""]), ("metatools", ["`run_tool`", "\"fake/echo\""])]
    {
        let config = format!("[tools]\nsets = [{sets:?}]\n") + &fakes.server("fake", &[]);
        let daemon = Daemon::with(config).ready();
        let client = daemon.client("/meta");
        for name in ["fake__echo", "fake/echo", "fake:echo"] {
            let error = client.tool(name, json!({ "value": 1 })).await.answer()["error"].clone();
            assert_eq!(error["code"], -32602, "{error}");
            assert_eq!(error["data"]["code"], "TOOL_NOT_FOUND");
            let suggestion = error["data"]["suggestion"].as_str().expect("a suggestion");
            assert!(expected.iter().all(|word| suggestion.contains(word)), "{name}: {suggestion}");
        }
        let error = client.tool("echo", json!({})).await.answer()["error"].clone();
        let known = error["data"]["context"]["known"].as_array().expect("the tools");
        assert!(!known.is_empty(), "{error}");
        assert!(fakes.pids("fake").is_empty(), "no server is started");
    }
}

#[tokio::test]
async fn a_servers_tool_named_like_a_meta_tool_can_be_called_and_shadows_nothing() {
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
