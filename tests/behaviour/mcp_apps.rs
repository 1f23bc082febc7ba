//! MCP Apps: tools with pages, for clients with and without support for pages.

use serde_json::{Value, json};

use crate::harness::{
    client::Client, daemon::Daemon, fake::Upstream, meta_client::MetaClient, modern::Modern,
    scripted_upstream::ScriptedUpstream,
};

const UI: &str = "io.modelcontextprotocol/ui";
const PAGE: &str = "ui://board/page.html";

/// Returns an upstream called `name` with a page, a tool that shows it, and tools that only pages
/// call. It lists the latter, as real servers do, to clients that declare MCP Apps.
fn upstream(name: &'static str, app_only: &'static [&'static str]) -> (ScriptedUpstream, String) {
    let shows_pages = std::sync::atomic::AtomicBool::new(false);
    let tool = |name: &str, meta: Value| json!({ "name": name, "inputSchema": { "type": "object" }, "_meta": meta });
    let upstream = ScriptedUpstream::start(move |request, response| {
        let params = &request.message["params"];
        let result = match request.method() {
            "initialize" => {
                let declared = &params["capabilities"]["extensions"][UI];
                let is_declared = declared["mimeTypes"] == json!(["text/html;profile=mcp-app"]);
                shows_pages.store(is_declared, std::sync::atomic::Ordering::Relaxed);
                json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {
                        "tools": {}, "resources": {}, "completions": {},
                        "extensions": { UI: {}, "com.example/of": { "server": name } },
                    },
                    "serverInfo": { "name": name, "version": "1" },
                })
            }
            "tools/list" => {
                let meta = json!({ "ui": { "resourceUri": PAGE }, "ui/resourceUri": PAGE });
                let mut tools = vec![tool("show", meta), tool("plain", json!({}))];
                if shows_pages.load(std::sync::atomic::Ordering::Relaxed) {
                    let meta = json!({ "ui": { "visibility": ["app"] } });
                    tools.extend(app_only.iter().map(|name| tool(name, meta.clone())));
                }
                json!({ "tools": tools })
            }
            "resources/list" => json!({ "resources": [{ "uri": PAGE, "name": "page" }] }),
            "resources/templates/list" => {
                json!({ "resourceTemplates": [{ "uriTemplate": "ui://part/{id}", "name": "part" }] })
            }
            "resources/read" => {
                json!({ "contents": [{ "uri": params["uri"], "text": format!("{name} {}", params["uri"]) }] })
            }
            "completion/complete" => {
                json!({ "completion": { "values": [format!("{name} {}", params["ref"]["uri"])] } })
            }
            "tools/call" => {
                json!({ "content": [{ "type": "text", "text": format!("{name} {}", params["name"]) }] })
            }
            _ => return false,
        };
        response.json(&request.result(&result));
        true
    });
    let table = upstream.server("").replace(".up]", &format!(".{name}]"));
    (upstream, table)
}

fn with_pages() -> Value {
    json!({ "extensions": { UI: { "mimeTypes": ["text/html;profile=mcp-app"] } } })
}

async fn request(client: &Client, method: &str, params: Value) -> Value {
    client.request(json!(1), method, params).await.answer()
}

async fn items(client: &Client, list: &str, member: &str, key: &str) -> Vec<String> {
    let answer = request(client, list, json!({})).await;
    let items = answer["result"][member].as_array().unwrap_or_else(|| panic!("{answer}"));
    items.iter().map(|item| item[key].as_str().expect("a text").to_owned()).collect()
}

async fn tools(client: &Client) -> Vec<String> {
    items(client, "tools/list", "tools", "name").await
}

/// Returns the text of the result of a call, or the data of its error.
async fn call_text(client: &Client, tool: &str) -> Value {
    let answer = client.tool(tool, json!({})).await.answer();
    match &answer["result"] {
        Value::Null => answer["error"]["data"].clone(),
        result => result["content"][0]["text"].clone(),
    }
}

#[tokio::test]
async fn app_only_tools_are_listed_only_to_clients_that_declare_mcp_apps() {
    let (_one, table) = upstream("one", &["refresh"]);
    for sharing in ["", "sharing = \"exclusive\"\n", "sharing = \"session\"\n"] {
        let daemon = Daemon::with(table.clone() + sharing).ready();
        for (path, prefix) in [("/servers/one", ""), ("/direct", "one__")] {
            let plain = daemon.client(path).initialized().await;
            let ours = ["show", "plain"].map(|tool| format!("{prefix}{tool}"));
            assert_eq!(tools(&plain).await, ours, "{sharing} {path}");
            // A client that knows the name may call the tool.
            let refresh = format!("{prefix}refresh");
            assert_eq!(call_text(&plain, &refresh).await, "one \"refresh\"", "{sharing} {path}");

            let host = daemon.client(path).initialized_with(with_pages()).await;
            let [show, other] = ours;
            assert_eq!(tools(&host).await, [show, other, refresh], "{sharing} {path}");
        }
    }
}

#[tokio::test]
async fn app_only_tools_are_not_discoverable_but_callable() {
    let (_one, table) = upstream("one", &["refresh"]);
    let daemon = Daemon::with(table).ready();
    let meta = MetaClient::at(daemon.client("/meta")).await;

    let found = meta.value("mcp_discover", json!({ "query": "refresh" })).await;
    assert!(!found.to_string().contains("one:refresh"), "{found}");
    let called = meta.result("mcp_call", json!({ "tool": "one:refresh" })).await;
    assert_eq!(called["content"][0]["text"], "one \"refresh\"", "{called}");
}

#[tokio::test]
async fn equal_page_uris_of_two_servers_become_distinct_resources() {
    let ((_one, one), (_two, two)) = (upstream("one", &[]), upstream("two", &[]));
    let daemon = Daemon::with(one + &two).ready();
    let host = daemon.client("/direct").initialized_with(with_pages()).await;

    let listed = items(&host, "resources/list", "resources", "uri").await;
    assert_eq!(listed, ["ui://one/board/page.html", "ui://two/board/page.html"]);
    let tools = request(&host, "tools/list", json!({})).await["result"]["tools"].clone();
    for (server, page) in [("one", &listed[0]), ("two", &listed[1])] {
        let show = tools.as_array().into_iter().flatten();
        let show = show.into_iter().find(|tool| tool["name"] == format!("{server}__show"));
        let meta = &show.expect("it is listed")["_meta"];
        assert_eq!(meta, &json!({ "ui": { "resourceUri": page }, "ui/resourceUri": page }));

        let read = request(&host, "resources/read", json!({ "uri": page })).await;
        let text = format!("{server} \"{PAGE}\"");
        assert_eq!(read["result"]["contents"], json!([{ "uri": page, "text": text }]));

        let part = format!("ui://{server}/part/{{id}}");
        let reference = json!({ "type": "ref/resource", "uri": part });
        let argument = json!({ "name": "id", "value": "" });
        let params = json!({ "ref": reference, "argument": argument });
        let complete = request(&host, "completion/complete", params).await;
        let expected = format!("{server} \"ui://part/{{id}}\"");
        assert_eq!(complete["result"]["completion"]["values"], json!([expected]));
    }
    let templates = items(&host, "resources/templates/list", "resourceTemplates", "uriTemplate");
    assert_eq!(templates.await, ["ui://one/part/{id}", "ui://two/part/{id}"]);
    // A URI that no list contains, a URI without the server's prefix, and one of no server.
    for (uri, text) in [
        ("ui://two/hidden.html", json!("two \"ui://hidden.html\"")),
        (PAGE, json!(format!("one \"{PAGE}\""))),
        ("ui://three/hidden.html", Value::Null),
    ] {
        let read = request(&host, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["result"]["contents"][0]["text"], text, "{read}");
    }
    let passed = daemon.client("/servers/two").initialized_with(with_pages()).await;
    assert_eq!(items(&passed, "resources/list", "resources", "uri").await, [PAGE]);
}

#[tokio::test]
async fn a_page_calls_the_tools_of_its_server_by_their_unprefixed_names() {
    let (_one, one) = upstream("one", &["refresh", "save"]);
    let (_two, two) = upstream("two", &["redraw", "save"]);
    let daemon = Daemon::with(one + &two).ready();
    let host = daemon.client("/direct").initialized_with(with_pages()).await;
    tools(&host).await;

    assert_eq!(call_text(&host, "refresh").await, "one \"refresh\"");
    assert_eq!(call_text(&host, "redraw").await, "two \"redraw\"");
    let unclear = call_text(&host, "save").await.to_string();
    assert!(unclear.contains("one__save") && unclear.contains("two__save"), "{unclear}");
    let plain = daemon.client("/direct").initialized().await;
    let refused = call_text(&plain, "refresh").await.to_string();
    assert!(refused.contains("one__refresh"), "{refused}");
}

#[tokio::test]
async fn a_client_that_watches_a_page_of_the_merged_view_is_notified_under_its_listed_uri() {
    let upstream = Upstream::start(&["--subscribe"]);
    let daemon = Daemon::with(upstream.server("up", "")).ready();
    let host = daemon.client("/direct").initialized_with(with_pages()).await;
    let mut stream = host.listen().await;
    let uri = json!({ "uri": "ui://up/board/page.html" });
    assert_eq!(request(&host, "resources/subscribe", uri.clone()).await["result"], json!({}));
    let modern = Modern::new(daemon.client("/direct"));
    let watch = json!({ "resourceSubscriptions": ["ui://up/board/page.html"] });
    let mut listening = modern.listen(json!("a"), watch.clone()).await;
    assert_eq!(listening.message().await["params"]["notifications"], watch);
    upstream.log("streams_open=1").await;
    assert_eq!(upstream.log("subscribes=1").await["subscribed"], json!([PAGE]));

    host.tool("up__touch", json!({ "uri": PAGE })).await;

    assert_eq!(stream.message().await["params"], uri);
    assert_eq!(listening.message().await["params"]["uri"], uri["uri"]);
    assert_eq!(request(&host, "resources/unsubscribe", uri).await["result"], json!({}));
}

#[tokio::test]
async fn the_merged_view_declares_the_extensions_of_its_servers() {
    let ((_one, one), (_two, two)) = (upstream("one", &[]), upstream("two", &[]));
    let daemon = Daemon::with(one + &two).ready();
    tools(&daemon.client("/direct").initialized().await).await;
    let expected = json!({ UI: {}, "com.example/of": { "server": "one" } });

    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" },
    });
    let answer = request(&daemon.client("/direct"), "initialize", params).await;
    assert_eq!(answer["result"]["capabilities"]["extensions"], expected);
    let answer = Modern::new(daemon.client("/direct")).discover().await.answer();
    assert_eq!(answer["result"]["capabilities"]["extensions"], expected);
}
