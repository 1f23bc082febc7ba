//! MCP Apps: tools whose server provides a page in which a client shows their results.
//!
//! A server lists its pages as resources `ui://…`, and a tool names its page in `_meta.ui`. Source:
//! SEP-1865, "MCP Apps", version of 2026-01-26.
//!
//! Two servers may have pages with the same URI. Where lists of servers are merged, a page's URI is
//! prefixed with the server's name: `ui://time/page.html` of the server `clock` becomes
//! `ui://clock/time/page.html`.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Message, ObjectMembers, byte_chunks, capability,
    json_array::{RESULT_BLOCKS_MAX, all_items},
    jsonrpc::{MessagePart, span_in},
};

/// The name of the extension in a client's capabilities.
pub const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The capabilities, as JSON text, of a client that shows pages and answers no requests.
pub const CAPABILITIES: &str =
    r#"{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#;

const SCHEME: &str = "ui://";

/// Returns whether a client with these capabilities, given as JSON text, shows pages.
pub fn supports_apps(capabilities: &str) -> bool {
    capability::has_extension(capabilities, EXTENSION)
}

/// Returns whether a tool, given as JSON text, is meant for pages and not for models. Clients that
/// show no pages cannot use it.
pub fn is_app_only(tool: &str) -> bool {
    #[derive(Deserialize)]
    struct Tool {
        _meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        ui: Ui,
    }
    #[derive(Deserialize)]
    struct Ui {
        visibility: Vec<String>,
    }
    let is_for =
        |tool: &Tool, audience| tool._meta.ui.visibility.iter().any(|found| found == audience);
    // Nearly all tools have no such member.
    tool.contains("\"visibility\"")
        && serde_json::from_str::<Tool>(tool)
            .is_ok_and(|tool| is_for(&tool, "app") && !is_for(&tool, "model"))
}

/// Returns whether a tool, given as JSON text, has a page.
pub fn has_page(tool: &str) -> bool {
    !pages_of(tool).is_empty()
}

/// Returns the URI of a page, or its URI template, with the prefix `server`, as merged lists show
/// it. Returns `None` for all other URIs.
pub fn exposed(server: &str, uri: &str) -> Option<String> {
    uri.strip_prefix(SCHEME).map(|page| format!("{SCHEME}{server}/{page}"))
}

/// Splits a URI that [`exposed`] may have returned into the server and the server's own URI.
pub fn split(uri: &str) -> Option<(&str, String)> {
    let (server, page) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    Some((server, format!("{SCHEME}{page}")))
}

/// Returns the JSON text of a tool of `server` with the prefixed URI of its page. Nothing else
/// changes. Returns `None` if the tool has no page.
pub fn with_exposed_page(server: &str, tool: &str) -> Option<String> {
    let edits = exposed_at(server, tool, pages_of(tool));
    (!edits.is_empty()).then(|| edited(tool, &edits))
}

/// Returns the answer of `server` to `resources/read` with the URIs of pages prefixed, as merged
/// lists show them. Nothing else changes. Returns `None` if it contains no page.
pub fn with_exposed_contents(server: &str, answer: &Message) -> Option<Message> {
    let result = answer.part(MessagePart::Result)?;
    let contents = all_items(ObjectMembers::one(result, "contents")?, RESULT_BLOCKS_MAX)?;
    let uris = contents.into_iter().filter_map(|content| ObjectMembers::one(content.get(), "uri"));
    let edits = exposed_at(server, result, uris);
    (!edits.is_empty()).then(|| answer.with(MessagePart::Result, &edited(result, &edits)))
}

/// Returns the parts of a tool's JSON text that name its page.
fn pages_of(tool: &str) -> Vec<&str> {
    #[derive(Deserialize)]
    struct Tool<'a> {
        #[serde(borrow)]
        _meta: Meta<'a>,
    }
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow)]
        ui: Option<&'a RawValue>,
        /// The former name of the member.
        #[serde(borrow, rename = "ui/resourceUri")]
        before: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Ui<'a> {
        #[serde(borrow)]
        resource_uri: &'a RawValue,
    }
    if !tool.contains(SCHEME) {
        return Vec::new();
    }
    let Ok(Tool { _meta: Meta { ui, before } }) = serde_json::from_str(tool) else {
        return Vec::new();
    };
    let ui = ui.and_then(|ui| serde_json::from_str::<Ui<'_>>(ui.get()).ok());
    ui.map(|ui| ui.resource_uri).into_iter().chain(before).map(RawValue::get).collect()
}

/// Returns the edits of `text` that prefix those of `uris` that name pages, in text order.
fn exposed_at<'a>(
    server: &str,
    text: &str,
    uris: impl IntoIterator<Item = &'a str>,
) -> Vec<(Range<usize>, String)> {
    let edit = |uri: &str| {
        let exposed = exposed(server, &serde_json::from_str::<String>(uri).ok()?)?;
        let span = span_in(text, uri);
        Some((span.start as usize..span.end as usize, serde_json::Value::from(exposed).to_string()))
    };
    let mut edits: Vec<_> = uris.into_iter().filter_map(edit).collect();
    edits.sort_by_key(|(span, _)| span.start);
    edits
}

fn edited(text: &str, edits: &[(Range<usize>, String)]) -> String {
    let edits = edits.iter().map(|(span, new)| (span.clone(), new.as_str()));
    let bytes = byte_chunks::splice(text.as_bytes(), edits);
    String::from_utf8(bytes.into()).expect("whole strings of UTF-8 are replaced by UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_shows_pages_if_it_names_the_extension() {
        assert!(supports_apps(CAPABILITIES));
        assert!(supports_apps(r#"{"extensions":{"io.modelcontextprotocol/ui":{}}}"#));
        for other in ["{}", r#"{"extensions":{}}"#, r#"{"io.modelcontextprotocol/ui":{}}"#, "7"] {
            assert!(!supports_apps(other), "{other}");
        }
    }

    #[test]
    fn a_tool_whose_visibility_is_app_only_is_for_pages() {
        let tool = |ui: &str| format!(r#"{{"name":"a","_meta":{{"ui":{ui}}}}}"#);
        for (ui, expected) in [
            (r#"{"visibility":["app"]}"#, true),
            (r#"{"resourceUri":"ui://a","visibility":["app","later"]}"#, true),
            (r#"{"visibility":["model","app"]}"#, false),
            (r#"{"visibility":["model"]}"#, false),
            (r#"{"visibility":[]}"#, false),
            (r#"{"visibility":"app"}"#, false),
            (r#"{"resourceUri":"ui://a"}"#, false),
            (r#"["visibility"]"#, false),
        ] {
            assert_eq!(is_app_only(&tool(ui)), expected, "{ui}");
        }
        assert!(!is_app_only(r#"{"name":"a","description":"\"visibility\""}"#));
    }

    #[test]
    fn the_page_uri_of_a_tool_is_prefixed_with_its_server_and_nothing_else_changes() {
        for (tool, expected) in [
            (
                r#"{ "name":"a","x":1e400,"_meta":{"ui":{"visibility":["app"], "resourceUri" : "ui://t/p"},"ui/resourceUri":"ui://t/p"}}"#,
                Some(
                    r#"{ "name":"a","x":1e400,"_meta":{"ui":{"visibility":["app"], "resourceUri" : "ui://clock/t/p"},"ui/resourceUri":"ui://clock/t/p"}}"#,
                ),
            ),
            (
                r#"{"_meta":{"ui/resourceUri":"ui://t\"","ui":7}}"#,
                Some(r#"{"_meta":{"ui/resourceUri":"ui://clock/t\"","ui":7}}"#),
            ),
            (r#"{"_meta":{"ui":{"resourceUri":"https://ui://"}}}"#, None),
            (r#"{"_meta":{"ui":{"resourceUri":7}},"x":"ui://"}"#, None),
            (r#"{"description":"ui://t/p"}"#, None),
        ] {
            assert_eq!(with_exposed_page("clock", tool).as_deref(), expected, "{tool}");
            assert_eq!(has_page(tool), !pages_of(tool).is_empty(), "{tool}");
        }
    }

    #[test]
    fn a_prefixed_page_uri_splits_into_its_server_and_uri() {
        for uri in ["ui://t/p", "ui://t", "ui://", "ui://{a}/b"] {
            let there = exposed("clock", uri).expect("a page");
            assert_eq!(split(&there), Some(("clock", uri.to_owned())));
        }
        assert_eq!(exposed("clock", "file:///a"), None);
        assert_eq!(split("ui://t"), None);
        assert_eq!(split("file://clock/t"), None);
    }

    #[test]
    fn page_contents_have_the_uris_of_the_merged_list() {
        let answer = |contents: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"contents":{contents}}}}}"#);
            Message::parse(text.into()).expect("an answer")
        };
        let read = answer(r#"[{"text":"ui://t/p","uri":"ui://t/p"},{"uri":"file:///a"},7]"#);
        let expected =
            answer(r#"[{"text":"ui://t/p","uri":"ui://clock/t/p"},{"uri":"file:///a"},7]"#);
        let exposed = with_exposed_contents("clock", &read).expect("one of them is a page");
        assert_eq!(exposed.bytes(), expected.bytes());
        assert!(with_exposed_contents("clock", &answer(r#"[{"uri":"a:b"}]"#)).is_none());
        assert!(with_exposed_contents("clock", &answer("7")).is_none());
    }
}
