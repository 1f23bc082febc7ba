use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const MAX: usize = 8 * 1024;

fn id() -> ToolId {
    ToolId::new("git", "log")
}

fn shown(result: &str, op: MetaTool) -> Value {
    let preview = ResultPreview::of(result, MAX).expect("it is large");
    serde_json::from_str(&preview.to_result(&id(), op, Some("CURSOR"))).expect("JSON")
}

fn text(n_lines: usize) -> String {
    (0..n_lines).map(|n| format!("line {n} of it\n")).collect()
}

#[test]
fn a_result_that_fits_has_no_preview() {
    assert!(ResultPreview::of(r#"{"content":[]}"#, MAX).is_none());
    let image = json!({ "type": "image", "data": "A".repeat(100_000), "mimeType": "image/png" });
    let result = json!({ "content": [image, { "type": "text", "text": "a picture" }] });
    assert!(ResultPreview::of(&result.to_string(), MAX).is_none());
}

#[test]
fn a_preview_of_a_long_text_shows_the_beginning_and_a_little_of_the_end() {
    let text = text(10_000);
    let result = json!({ "content": [{ "type": "text", "text": text }], "isError": true });
    let result = result.to_string();
    let preview = ResultPreview::of(&result, MAX).expect("it is large");
    let rendered = preview.to_result(&id(), MetaTool::Call, Some("CURSOR"));
    assert!(rendered.len() <= MAX, "{}", rendered.len());
    let shown: Value = serde_json::from_str(&rendered).expect("JSON");

    let words = shown["content"][0]["text"].as_str().expect("words");
    let size = &shown["_meta"][META_KEY];
    insta::assert_snapshot!(words, @r#"This is a preview: 6692 of 158890 bytes of the result. To read on without another call of the tool, call mcp_call with {"server": "git", "tool": "log", "cursor": "CURSOR"}. To get only parts of a JSON result, call again with `fields`."#);
    assert_eq!(size["bytes"], text.len());
    assert_eq!(size["nextCursor"], "CURSOR");
    assert_eq!(shown["isError"], true);

    let part = shown["content"][1]["text"].as_str().expect("text");
    let (head, tail) = part.split_once("\n[… ").expect("a gap");
    assert!(text.starts_with(head) && head.ends_with(" of it\n"));
    assert!(tail.ends_with("line 9999 of it\n") && tail.contains("bytes left out …]\nline "));
    assert_eq!(preview.next(), Some(head.len()));
    assert_eq!(preview.document().text(), text);
}

#[test]
fn a_preview_of_a_failed_script_has_its_error_first_and_as_a_value() {
    let block = |text: &str| json!({ "type": "text", "text": text });
    let error = json!({ "code": "timeout", "message": "too slow" });
    let of_error = |error: &Value| {
        let content = [block("too slow"), block(&text(10_000))];
        let structured = json!({ "error": error, "output": text(10_000) });
        let result =
            json!({ "content": content, "structuredContent": structured, "isError": true });
        let result = result.to_string();
        let preview = ResultPreview::of(&result, MAX).expect("it is large");
        let rendered = preview.to_result(&id(), MetaTool::Execute, None);
        assert!(rendered.len() <= MAX, "{}", rendered.len());
        serde_json::from_str::<Value>(&rendered).expect("JSON")
    };
    let shown = of_error(&error);
    assert_eq!(shown["structuredContent"]["error"], error);
    assert_eq!(shown["content"][0]["text"], "too slow");
    assert!(
        shown["content"][1]["text"].as_str().is_some_and(|it| it.starts_with("This is a preview"))
    );
    assert!(shown["structuredContent"]["preview"]["bytes"].is_u64());
    let large = of_error(&json!({ "code": "timeout", "message": "x".repeat(MAX) }));
    assert!(large["structuredContent"].get("error").is_none(), "a large error is in the text only");
}

#[test]
fn a_short_text_beside_a_long_one_is_shown_whole() {
    let (long, short) = (text(10_000), text(20));
    let block = |text: &str| json!({ "type": "text", "text": text });
    let result = json!({ "content": [block(&long), block(&short), block(&long)] }).to_string();
    let shown = shown(&result, MetaTool::Call);
    let length = |n: usize| shown["content"][n]["text"].as_str().expect("text").len();
    assert_eq!(shown["content"][2]["text"], short);
    assert!(length(1).abs_diff(length(3)) < 100 && length(1) > 2500);
}

#[test]
fn a_structured_value_is_replaced_by_text_that_clients_can_page_through() {
    let value = json!({ "rows": vec![json!({ "name": "x" }); 2000] });
    let copy = json!({
        "content": [{ "type": "text", "text": value.to_string() }],
        "structuredContent": value,
    });
    let alone = json!({ "content": [], "structuredContent": value });
    let beside = json!({
        "content": [{ "type": "text", "text": "2000 rows" }],
        "structuredContent": value,
    });
    for (result, text) in [
        (copy, value.to_string()),
        (alone, value.to_string()),
        (beside, format!("2000 rows\n{value}")),
    ] {
        let result = result.to_string();
        let preview = ResultPreview::of(&result, MAX).expect("it is large");
        assert_eq!(preview.document().text(), text);
        assert!(shown(&result, MetaTool::Call)["structuredContent"].is_null());
    }
}

#[test]
fn a_preview_describes_a_binary_block_and_a_page_returns_it_whole() {
    let blob = json!({
        "type": "resource",
        "resource": { "uri": "a:b", "mimeType": "application/pdf", "blob": "A".repeat(40_000) },
    });
    let link = json!({ "type": "resource_link", "uri": "a:c", "name": "c" });
    let result = json!({ "content": [blob, link] }).to_string();
    let preview = ResultPreview::of(&result, MAX).expect("it is large");
    let shown = shown(&result, MetaTool::Call);
    assert_eq!(
        shown["content"][1]["text"],
        "[resource application/pdf a:b: 30000 bytes, left out]"
    );
    assert_eq!(shown["content"][2], link);
    let page = preview.document().page(preview.next().expect("more"), MAX).expect("a page");
    assert_eq!(page.blocks, [blob.to_string()]);

    let image = json!({ "type": "image", "data": "A".repeat(PREVIEW_MEDIA_BYTES_MAX), "mimeType": "image/png" });
    let result = json!({ "content": [image] }).to_string();
    let preview = ResultPreview::of(&result, MAX).expect("it is large");
    assert_eq!(preview.next(), Some(0));
}

#[test]
fn a_text_of_a_resource_is_text() {
    let text = text(2000);
    let resource = json!({ "type": "resource", "resource": { "uri": "a:b", "text": text } });
    let result = json!({ "content": [resource] }).to_string();
    let preview = ResultPreview::of(&result, MAX).expect("it is large");
    assert_eq!(preview.document().text(), format!("a:b:\n{text}"));
}

#[test]
fn a_preview_without_a_cursor_says_that_the_rest_is_too_large() {
    let result = json!({ "content": [{ "type": "text", "text": text(2000) }] }).to_string();
    let preview = ResultPreview::of(&result, MAX).expect("it is large");
    let shown: Value =
        serde_json::from_str(&preview.to_result(&id(), MetaTool::RunTool, None)).expect("JSON");
    insta::assert_snapshot!(shown["content"][0]["text"].as_str().expect("words"), @"This is a preview: 6692 of 30890 bytes of the result. The rest is too large to keep: request less from the tool.");
    assert_eq!(shown["structuredContent"]["preview"], shown["_meta"][META_KEY]);
}

#[test]
fn a_preview_keeps_the_members_beside_the_content_unless_they_are_large() {
    let result =
        format!(r#"{{"content":[],"x":1e400,"y":"{}","_meta":{{"z":1}}}}"#, "y".repeat(100_000));
    let preview = ResultPreview::of(&result, MAX).expect("it is large");
    let rendered = preview.to_result(&id(), MetaTool::Call, None);
    assert!(rendered.contains(r#""x":1e400"#) && rendered.contains(r#""z":1"#));
    assert!(!rendered.contains("yyy"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_preview_is_not_too_large_and_all_of_the_rest_can_be_read(
        texts in prop::collection::vec(("[a-c\n\"\\\\\u{1}ä]{0,30}", 1..100usize), 0..70),
        n_blobs in 0..4usize, with_value: bool,
    ) {
        let mut content: Vec<Value> = texts.iter()
            .map(|(text, times)| json!({ "type": "text", "text": text.repeat(*times) }))
            .collect();
        for n in 0..n_blobs {
            content.insert(n.min(content.len()), json!({ "type": "x", "data": "A".repeat(4000) }));
        }
        let mut result = json!({ "content": content });
        if with_value {
            result["structuredContent"] = json!({ "a": texts.iter().map(|(text, _)| text).collect::<Vec<_>>() });
        }
        let result = result.to_string();
        let Some(preview) = ResultPreview::of(&result, MAX) else {
            prop_assert!(result.len() <= MAX);
            return Ok(());
        };
        let rendered = preview.to_result(&id(), MetaTool::Call, Some(&"C".repeat(27)));
        prop_assert!(serde_json::from_str::<Value>(&rendered).is_ok());
        // Each block adds its own JSON frame.
        prop_assert!(rendered.len() <= MAX + PREVIEW_BLOCKS_MAX * 100, "{}", rendered.len());
        prop_assert!(preview.next().is_some() || preview.shown_bytes >= preview.document().bytes() - texts.len());
    }

    #[test]
    fn no_text_is_too_odd(text in ".{0,60}") {
        for max in [0, 10] {
            if let Some(preview) = ResultPreview::of(&text, max) {
                let rendered = preview.to_result(&id(), MetaTool::Call, None);
                prop_assert!(serde_json::from_str::<Value>(&rendered).is_ok());
            }
        }
    }
}
