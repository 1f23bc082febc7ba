//! Items and results with every type of content pass unchanged, in each view.

use serde_json::{Value, json};

use crate::harness::{
    daemon::Daemon,
    fake::Fakes,
    scripted_upstream::{ReceivedRequest, ResponseWriter, ScriptedUpstream},
};

/// The paths of the views, each with its prefix for names.
const VIEWS: [(&str, &str); 2] = [("/servers/up", ""), ("/", "up__")];

/// Every type of content, with unknown members and numbers that a parser would spell differently.
const CONTENTS: [&str; 7] = [
    r#"{ "type" : "text", "text":"\u00e9 \/", "annotations":{"audience":["user"],"priority":1.0,"lastModified":"2025-01-12T15:00:58Z"} }"#,
    r#"{"type":"image","data":"aW1hZ2U=","mimeType":"image/png","_meta":{"a.b/c":1e400}}"#,
    r#"{"type":"audio","data":"YXVkaW8=","mimeType":"audio/wav"}"#,
    r#"{"type":"resource_link","uri":"r:1","name":"r","title":"R","size":9007199254740993,"icons":[{"src":"https://x.invalid/i.svg","sizes":["any"],"theme":"dark"}]}"#,
    r#"{"type":"resource","resource":{"uri":"r:1","mimeType":"text/plain","text":"t"}}"#,
    r#"{"type":"resource","resource":{"uri":"r:2","blob":"YmxvYg=="},"annotations":{"priority":0}}"#,
    r#"{"type":"of the future","x":[ ]}"#,
];

/// An item of each list. The name is the first member where the merged view replaces it.
const ITEMS: [(&str, &str, &str); 4] = [
    (
        "tools/list",
        "tools",
        r#"{"name":"NAME","title":"T","description":"d","icons":[{"src":"data:,"}],"inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"n":{"maximum":1e400}},"$defs":{"a":{}}},"outputSchema":{"type":"object","properties":{"x":true}},"annotations":{"title":"t","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},"execution":{"taskSupport":"optional"},"_meta":{"k":1.50}}"#,
    ),
    (
        "prompts/list",
        "prompts",
        r#"{"name":"NAME","title":"T","arguments":[{"name":"a","title":"A","description":"d","required":true}],"icons":[],"_meta":{}}"#,
    ),
    (
        "resources/list",
        "resources",
        r#"{"uri":"r:1","name":"r","title":"R","mimeType":"text/plain","size":-0,"annotations":{"audience":["assistant"]},"icons":[{"src":"data:,"}],"_meta":{}}"#,
    ),
    (
        "resources/templates/list",
        "resourceTemplates",
        r#"{"uriTemplate":"t:{+a}","name":"t","title":"T","mimeType":"x/y","annotations":{"priority":0.5},"_meta":{}}"#,
    ),
];

/// Returns the result of a tool with every type of content.
fn tool_result() -> String {
    let contents = CONTENTS.join(",");
    format!(
        r#"{{"content":[{contents}],"structuredContent":{{"n":1e400, "z":[ ]}},"isError":false,"_meta":{{"x/y":[1.50]}},"future":{{}}}}"#
    )
}

/// Returns the result of a prompt with every type of content.
fn prompt_result() -> String {
    let messages = CONTENTS.map(|content| format!(r#"{{"role":"assistant","content":{content}}}"#));
    format!(r#"{{"description":"d","messages":[{}],"_meta":{{}}}}"#, messages.join(","))
}

const READ: &str = r#"{"contents":[{"uri":"r:1","mimeType":"text/plain","text":"\u00e9","_meta":{"n":1e400}},{"uri":"r:1/b", "blob":"YmxvYg=="}]}"#;
const COMPLETION: &str =
    r#"{"completion":{"values":["a","\u00e9"],"total":1e2,"hasMore":true},"_meta":{}}"#;

fn answer(request: &ReceivedRequest, response: &mut ResponseWriter) -> bool {
    let result = match request.method() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {}, "prompts": {}, "resources": {}, "completions": {} },
            "serverInfo": { "name": "scripted", "version": "1" },
        })
        .to_string(),
        "tools/call" => tool_result(),
        "prompts/get" => prompt_result(),
        "resources/read" => READ.to_owned(),
        "completion/complete" => COMPLETION.to_owned(),
        method => match ITEMS.iter().find(|(listed, ..)| *listed == method) {
            Some((_, member, item)) => {
                format!(r#"{{"{member}":[ {} ],"_meta":{{}}}}"#, item.replace("NAME", "x"))
            }
            None => return false,
        },
    };
    let id = &request.message["id"];
    response.json(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    true
}

#[tokio::test]
async fn every_content_type_passes_unchanged_in_each_view() {
    let upstream = ScriptedUpstream::start(answer);
    let daemon = Daemon::with(upstream.server("")).ready();
    for (path, prefix) in VIEWS {
        let client = daemon.client(path);
        let name = format!("{prefix}x");
        let prompt = json!({ "type": "ref/prompt", "name": name });
        let argument = json!({ "name": "a", "value": "" });
        for (method, params, result) in [
            ("tools/call", json!({ "name": name, "arguments": {} }), tool_result()),
            ("prompts/get", json!({ "name": name }), prompt_result()),
            ("resources/read", json!({ "uri": "r:1" }), READ.to_owned()),
            (
                "completion/complete",
                json!({ "ref": prompt, "argument": argument }),
                COMPLETION.to_owned(),
            ),
        ] {
            let reply = client.request(json!("i"), method, params).await;
            let expected = format!(r#""result":{result}"#);
            assert!(reply.body.contains(&expected), "{path} {method}: {}", reply.body);
        }
    }
}

#[tokio::test]
async fn every_member_of_a_listed_item_passes_unchanged_in_each_view() {
    let upstream = ScriptedUpstream::start(answer);
    let daemon = Daemon::with(upstream.server("")).ready();
    for (path, prefix) in VIEWS {
        for (method, member, item) in ITEMS {
            let reply = daemon.client(path).request(json!(1), method, json!({})).await;
            let item = item.replace("NAME", &format!("{prefix}x"));
            assert!(reply.body.contains(&item), "{path} {method}: {}", reply.body);
            assert!(reply.body.contains(&format!(r#""{member}":["#)), "{}", reply.body);
        }
    }
}

#[tokio::test]
async fn results_and_log_messages_of_a_stdio_server_pass_unchanged_in_each_view() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("up", &["--logging"])).ready();
    for (path, prefix) in VIEWS {
        let client = daemon.client(path).initialized().await;
        let raw = client.tool(&format!("{prefix}raw"), json!({ "result": tool_result() })).await;
        assert!(raw.body.contains(&tool_result()), "{path}: {}", raw.body);

        client.request(json!(1), "logging/setLevel", json!({ "level": "debug" })).await;
        let data = json!({ "n": 1, "z": [null] });
        let arguments = json!({ "level": "notice", "data": data });
        let mut stream = client.tool_stream(&format!("{prefix}log"), arguments).await;
        let notice: Value = stream.message().await;
        assert_eq!(
            notice["params"],
            json!({ "level": "notice", "logger": "fake", "data": data }),
            "{path}"
        );
    }
}
