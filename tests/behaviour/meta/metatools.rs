//! The tool set `metatools`, with the same operations under other names.

use serde_json::{Value, json};

use super::meta;
use crate::harness::{daemon::Daemon, fake::Fakes, meta_client::each};

const SET: &str = "[tools]\nsets = [\"metatools\"]\n";

fn daemon(fakes: &Fakes) -> Daemon {
    let config = SET.to_owned() + &fakes.server("fake", &["--rich"]) + &fakes.server("two", &[]);
    Daemon::with(config).ready()
}

#[tokio::test]
async fn search_tools_and_list_tools_return_short_descriptions() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let meta = meta(&daemon).await;

    let found =
        meta.value("search_tools", json!({ "query": "rows of the inventory", "limit": 1 })).await;
    let expected = json!({
        "id": "fake/rows", "name": "rows", "namespace": "fake",
        "shortDescription": "Reads rows of a table of the inventory. Each has a name and a size.",
        "tags": ["read-only", "idempotent"],
    });
    assert_eq!(found["tools"], json!([expected]));
    assert_eq!(
        meta.value("list_namespaces", json!({})).await["namespaces"],
        json!(["fake", "two"])
    );
    let listed = meta.value("list_tools", json!({ "backend_name": "fake", "limit": 100 })).await;
    assert!(listed["tools"].as_array().expect("tools").contains(&expected));
    assert!(each(&listed, "tools", "namespace").iter().all(|server| server == "fake"));
    let of_all = meta.value("list_tools", json!({ "backend_kind": "mcp", "limit": 100 })).await;
    let n_tools = |listed: &Value| listed["tools"].as_array().map_or(0, Vec::len);
    assert_eq!(n_tools(&of_all), 2 * n_tools(&listed) - 1);
    // No tool runs on another kind of backend.
    for kind in ["local", "provider"] {
        let refused = meta.refused("list_tools", json!({ "backend_kind": kind })).await;
        assert_eq!(
            refused["message"],
            "argument `backend_kind` of `list_tools` is invalid: it must be one of mcp"
        );
    }
    // Any limit is accepted, and bounded.
    for limit in [0, -5, 1000] {
        meta.value("list_tools", json!({ "limit": limit })).await;
    }
}

#[tokio::test]
async fn describe_tool_returns_the_requested_detail() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let meta = meta(&daemon).await;
    let describe = async |detail: &str, max: Option<u64>| {
        let mut arguments = json!({ "tool_id": "fake/rows", "detail_level": detail });
        if let Some(max) = max {
            arguments["examples_max"] = json!(max);
        }
        meta.value("describe_tool", arguments).await
    };
    let summary = "Reads rows of a table of the inventory. Each has a name and a size.";

    assert_eq!(describe("summary", None).await, json!({ "summary": summary }));
    let schema = describe("schema", None).await;
    assert_eq!(schema["summary"], summary);
    assert_eq!(schema["tool"]["title"], "Rows of a table");
    assert_eq!(schema["tool"]["outputSchema"]["required"], json!(["total", "rows"]));
    let info = json!({
        "required": ["table"], "defaults": { "n": 3, "width": 0 },
        "types": { "table": "string", "n": "integer", "width": "integer", "filter": "object", "previous": "any" },
    });
    assert_eq!(schema["schemaInfo"], info);
    assert_eq!(schema.get("notes"), None);
    let full = describe("full", None).await;
    assert_eq!(full["tool"], schema["tool"]);
    let notes = "Reads rows of a table of the inventory.\n\nEach has a name and a size.";
    assert_eq!(full["notes"], notes);
    let examples = full["examples"].as_array().expect("examples");
    assert_eq!(examples.len(), 2, "{full}");
    assert_eq!(describe("full", Some(1)).await["examples"].as_array().map(Vec::len), Some(1));
    assert_eq!(describe("full", Some(0)).await["examples"], json!([]));

    let listed = meta.value("list_tool_examples", json!({ "tool_id": "fake:rows" })).await;
    assert_eq!(listed["examples"], full["examples"]);
    let one = meta.value("list_tool_examples", json!({ "tool_id": "fake/rows", "max": 1 })).await;
    assert_eq!(one["examples"], json!([examples[0]]));
    for example in examples {
        let ran = meta
            .value("run_tool", json!({ "tool_id": "fake/rows", "args": example["args"] }))
            .await;
        assert_eq!(ran["structured"]["total"], 3, "an example runs unchanged: {example}");
    }
}

#[tokio::test]
async fn run_tool_returns_the_result_with_the_requested_parts() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let meta = meta(&daemon).await;
    let run = async |tool: &str, args: Value, more: &[&str]| {
        let mut arguments = json!({ "tool_id": tool, "args": args });
        for name in more {
            arguments[name] = json!(true);
        }
        meta.value("run_tool", arguments).await
    };
    let args = json!({ "table": "people", "n": 1 });

    let plain = run("fake/rows", args.clone(), &[]).await;
    assert_eq!(plain["structured"]["rows"][0]["name"], "people 1");
    assert!(plain["durationMs"].is_u64());
    assert_eq!(plain.as_object().map(serde_json::Map::len), Some(2), "{plain}");
    let all = ["include_tool", "include_backend", "include_mcp_result"];
    let all = run("fake/rows", args, &all).await;
    assert_eq!(all["tool"]["name"], "rows");
    assert_eq!(all["backend"], json!({ "kind": "mcp", "serverName": "fake" }));
    assert_eq!(all["mcpResult"]["structuredContent"], plain["structured"]);

    // A result without a structured value: its text, parsed if it is an array or an object.
    for (text, value) in [
        ("[1, {\"a\": 2}]", json!([1, { "a": 2 }])),
        ("plain words", json!("plain words")),
        ("7", json!("7")),
        ("", json!("")),
    ] {
        let result = json!({ "content": [{ "type": "text", "text": text }] }).to_string();
        let ran = run("fake/raw", json!({ "result": result }), &[]).await;
        assert_eq!(ran["structured"], value, "{text}");
    }
    let image = json!({ "type": "image", "data": "aW1hZ2U=", "mimeType": "image/png" });
    let result = json!({ "content": [image] }).to_string();
    let shown = meta
        .result("run_tool", json!({ "tool_id": "fake/raw", "args": { "result": result } }))
        .await;
    assert_eq!(shown["content"][1], image, "an image passes unchanged");
}

#[tokio::test]
async fn an_unsupported_option_or_tool_is_refused_by_name_and_runs_nothing() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let meta = meta(&daemon).await;
    let id = "fake/whoami";
    for (more, code) in [
        (json!({ "stream": true }), "stream_not_supported"),
        (
            json!({ "backend_override": { "kind": "mcp", "serverName": "two" } }),
            "backend_override_invalid",
        ),
    ] {
        let mut arguments = more;
        arguments["tool_id"] = json!(id);
        let error = meta.error("run_tool", arguments).await;
        assert_eq!((&error["code"], &error["retryable"]), (&json!(code), &json!(false)), "{error}");
        assert_eq!(error["op"], "run_tool");
    }
    let arguments = json!({ "tool_id": id, "stream": false });
    assert_eq!(meta.value("run_tool", arguments).await["structured"]["calls"], 1);
}
