//! Results that are too large for a model: a preview, and the rest page by page.

use serde_json::{Value, json};

use super::{BOTH, call_of, meta, n_calls};
use crate::harness::{
    daemon::Daemon,
    fake::Fakes,
    meta_client::{MetaClient, each},
};

/// A configuration with a size limit that results of a few kilobytes exceed.
const SMALL: &str = "[tools]\nsets = [\"core\", \"metatools\"]\nresult_bytes_max = 4096\n";

/// The number of results that the cache keeps.
const KEPT: usize = 64;

/// The member of the metadata that states the size of a result.
const SIZE: &str = "metamcp/result";

/// Returns a long text, and the arguments for a result that contains it.
fn long() -> (String, Value) {
    let lines = (0..2000).map(|n| format!("line {n}: \"quoted\" and ä\n"));
    let text: String = lines.collect();
    let result = json!({ "content": [{ "type": "text", "text": text }] }).to_string();
    (text, json!({ "result": result }))
}

fn texts(result: &Value) -> Vec<String> {
    each(result, "content", "text")
}

/// Reads the remaining pages, and returns their text.
async fn rest(meta: &MetaClient, tool: &str, asked: &Value, mut cursor: Value) -> String {
    let mut text = String::new();
    loop {
        let mut arguments = asked.clone();
        arguments["cursor"] = cursor;
        let page = meta.result(tool, arguments).await;
        assert!(page.to_string().len() < 6000, "{}", page.to_string().len());
        text.push_str(&texts(&page)[0]);
        match page["_meta"][SIZE].get("nextCursor") {
            Some(next) => cursor = next.clone(),
            None => return text,
        }
    }
}

#[tokio::test]
async fn a_large_result_is_previewed_and_can_be_read_to_its_end() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(SMALL.to_owned() + &fakes.server("fake", &[])).ready();
    let meta = meta(&daemon).await;
    let (text, args) = long();
    for (n_before, (tool, asked, arguments)) in [
        (
            "mcp_call",
            json!({ "server": "fake", "tool": "raw" }),
            call_of("fake", "raw", args.clone()),
        ),
        (
            "run_tool",
            json!({ "tool_id": "fake/raw" }),
            json!({ "tool_id": "fake/raw", "args": args }),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let preview = meta.result(tool, arguments).await;

        assert!(preview.to_string().len() < 6000, "{} bytes", preview.to_string().len());
        let [words, shown] = &texts(&preview)[..] else { panic!("{preview}") };
        let size = &preview["_meta"][SIZE];
        let cursor = size["nextCursor"].as_str().expect("a cursor");
        assert!(words.contains(cursor) && words.contains(tool), "{words}");
        // `run_tool` pages the text of its whole object.
        let whole = match tool {
            "mcp_call" => text.clone(),
            _ => {
                assert_eq!(&preview["structuredContent"]["preview"], size);
                let kept = rest(&meta, tool, &asked, json!(cursor)).await;
                let (head, _) = shown.split_once("\n[… ").expect("a beginning");
                let whole: Value = serde_json::from_str(&format!("{head}{kept}")).expect("JSON");
                assert_eq!(whole["structured"], text);
                continue;
            }
        };
        assert_eq!(size["bytes"], whole.len());
        let (head, end) = shown.split_once("\n[… ").expect("a beginning");
        let (_, tail) = end.split_once("…]\n").expect("an end");
        assert!(whole.starts_with(head) && whole.ends_with(tail) && !tail.is_empty());
        let kept = rest(&meta, tool, &asked, json!(cursor)).await;
        assert_eq!(format!("{head}{kept}"), whole);
        assert_eq!(
            n_calls(&daemon, "fake").await,
            n_before as u64 * 2 + 1,
            "the tool was called once"
        );
    }
}

#[tokio::test]
async fn a_large_structured_result_can_be_paged_or_reduced_to_fields() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(SMALL.to_owned() + &fakes.server("fake", &["--rich"])).ready();
    let meta = meta(&daemon).await;
    let args = json!({ "table": "parts", "n": 50, "width": 500 });
    let preview = meta.result("mcp_call", call_of("fake", "rows", args.clone())).await;
    assert!(preview.get("structuredContent").is_none(), "the large structured value is left out");
    let cursor = preview["_meta"][SIZE]["nextCursor"].clone();
    let asked = json!({ "server": "fake", "tool": "rows" });
    let kept = rest(&meta, "mcp_call", &asked, cursor).await;
    let shown = &texts(&preview)[1];
    let (head, _) = shown.split_once("\n[… ").expect("a beginning");
    let whole: Value = serde_json::from_str(&format!("{head}{kept}")).expect("JSON");
    assert_eq!(whole["rows"].as_array().map(Vec::len), Some(50));

    let mut few = call_of("fake", "rows", args);
    few["fields"] = json!(["rows[].name"]);
    let names = meta.value("mcp_call", few).await;
    assert_eq!(
        names["rows"][49],
        json!({ "name": "parts 50" }),
        "the selected fields are below the limit"
    );
}

#[tokio::test]
async fn a_result_below_the_size_limit_is_returned_whole() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(BOTH.to_owned() + &fakes.server("fake", &[])).ready();
    let meta = meta(&daemon).await;
    for (n_bytes, is_whole) in [(60_000, true), (70_000, false)] {
        let result =
            meta.result("mcp_call", call_of("fake", "bytes", json!({ "n": n_bytes }))).await;
        assert_eq!(texts(&result)[0].len() == n_bytes, is_whole);
        assert_eq!(result.get("_meta").is_none(), is_whole);
    }
    // An image does not count as text.
    let image = format!(
        r#"{{"content":[{{"type":"image","mimeType":"image/png","data":"{}"}}]}}"#,
        "A".repeat(100_000)
    );
    let params = json!({ "name": "mcp_call", "arguments": call_of("fake", "raw", json!({ "result": image })) });
    assert!(meta.reply("mcp_call", params).await.body.contains(&image));
}

#[tokio::test]
async fn a_result_cursor_is_valid_only_for_its_tool() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(SMALL.to_owned() + &fakes.server("fake", &[])).ready();
    let meta = meta(&daemon).await;
    let preview = meta.result("mcp_call", call_of("fake", "raw", long().1)).await;
    let cursor = preview["_meta"][SIZE]["nextCursor"].clone();
    let page = json!({ "server": "fake", "tool": "raw", "cursor": cursor });
    let first = meta.result("mcp_call", page.clone()).await;
    assert_eq!(meta.result("mcp_call", page).await, first, "a page can be read repeatedly");
    // Every spelling of the tool is accepted.
    let twice = json!({ "server": "fake", "tool": "fake/raw", "cursor": cursor });
    assert_eq!(meta.result("mcp_call", twice).await["content"], first["content"]);

    for (tool, cursor) in [("echo", cursor.clone()), ("raw", json!("AAAA")), ("raw", json!("🦀"))]
    {
        let error = meta
            .refused("mcp_call", json!({ "server": "fake", "tool": tool, "cursor": cursor }))
            .await;
        assert_eq!(
            (&error["code"], &error["data"]["code"]),
            (&json!(-32602), &json!("INVALID_CURSOR")),
            "{error}"
        );
        assert!(error["message"].as_str().is_some_and(|text| text.starts_with("invalid cursor")));
    }
    // A cursor of a search is refused, too.
    let found = meta.value("mcp_discover", json!({ "server": "fake", "limit": 1 })).await;
    let error = meta
        .refused(
            "mcp_call",
            json!({ "server": "fake", "tool": "raw", "cursor": found["nextCursor"] }),
        )
        .await;
    assert_eq!(error["data"]["code"], "INVALID_CURSOR");
    assert_eq!(n_calls(&daemon, "fake").await, 1);
}

#[tokio::test]
async fn the_result_cache_keeps_a_fixed_number_and_evicts_the_oldest() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(SMALL.to_owned() + &fakes.server("fake", &[])).ready();
    let meta = meta(&daemon).await;
    let mut cursors = Vec::new();
    for _ in 0..=KEPT {
        let preview = meta.result("mcp_call", call_of("fake", "bytes", json!({ "n": 9000 }))).await;
        cursors.push(preview["_meta"][SIZE]["nextCursor"].clone());
    }
    let page = |cursor: &Value| json!({ "server": "fake", "tool": "bytes", "cursor": cursor });

    let error = meta.refused("mcp_call", page(&cursors[0])).await;
    assert!(error["message"].as_str().is_some_and(|text| text.contains("has expired")), "{error}");
    let suggestion = error["data"]["suggestion"].as_str().expect("a suggestion");
    assert!(suggestion.contains("call the tool again"), "{suggestion}");
    for cursor in &cursors[1..] {
        meta.result("mcp_call", page(cursor)).await;
    }
}
