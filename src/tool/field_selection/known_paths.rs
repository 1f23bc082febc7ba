//! The paths that a result has, listed for a caller that asked for others.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
};

use crate::{
    config::defaults::{FIELD_PATHS_DEPTH_MAX, FIELD_PATHS_SHOWN_MAX, SUGGESTION_BYTES_MAX},
    protocol::{
        ObjectMembers,
        json_array::{RESULT_BLOCKS_MAX, first_items},
    },
    redact,
    tool::tool_result::{texts, with_note},
};

/// The suffix of an array's name.
const ITEMS: &str = "[]";

/// Returns a result, JSON text, with a text in front that says that it is whole and lists its
/// paths. `None` if it is a failure, or its content is not a list of blocks.
pub(super) fn with_paths(result: &str) -> Option<String> {
    let members = ObjectMembers::read(result)?;
    if members.get("isError") == Some("true") {
        return None;
    }
    let content = members.get("content").unwrap_or("[]");
    let texts = texts(content);
    let structured = members.get("structuredContent");
    let is_json = |text: &String| text.trim_start().starts_with(['{', '[']);
    let texts = texts.iter().filter(|text| is_json(text)).map(String::as_str);
    let paths = structured
        .into_iter()
        .chain(texts)
        .find_map(|value| Some(paths(value)).filter(|paths| !paths.is_empty()));
    let note = match paths {
        Some(paths) => format!(
            "This is the whole result: it has none of the requested `fields`. Its paths: {}",
            paths.join(", ")
        ),
        None => {
            "This is the whole result: `fields` selects parts of JSON, and it has no such parts."
                .to_owned()
        }
    };
    with_note(result, &note)
}

/// Returns the paths in JSON text, the shortest first, and `…` if there are more.
fn paths(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut ahead = VecDeque::from([(String::new(), value, 0)]);
    while let Some((path, value, depth)) = ahead.pop_front() {
        if found.len() >= FIELD_PATHS_SHOWN_MAX {
            found.push("…".to_owned());
            break;
        }
        let value = value.trim_ascii();
        let inner = if depth < FIELD_PATHS_DEPTH_MAX { value } else { "" };
        if inner.starts_with('[') {
            // The items of an array are mostly alike.
            let (items, _) = first_items(inner, RESULT_BLOCKS_MAX).unwrap_or_default();
            if let Some(item) = items.iter().find(|item| item.get().starts_with(['{', '['])) {
                let sign = if path.ends_with(ITEMS) { "" } else { ITEMS };
                ahead.push_back((format!("{path}{sign}"), item.get(), depth + 1));
                continue;
            }
        }
        let members = ObjectMembers::read(inner).unwrap_or_default();
        let members: BTreeMap<String, Cow<'_, str>> = members.into_iter().collect();
        if members.is_empty() && !path.is_empty() && path != ITEMS {
            found.push(path);
            continue;
        }
        for (name, value) in members.into_iter().filter(|(name, _)| is_selectable(name)) {
            // Values that were just read are borrowed from the text.
            let Cow::Borrowed(value) = value else { continue };
            let dot = if path.is_empty() { "" } else { "." };
            ahead.push_back((format!("{path}{dot}{name}"), value, depth + 1));
        }
    }
    found
}

/// Returns whether a name can be part of a path, and of a text for the caller.
fn is_selectable(name: &str) -> bool {
    let is_ambiguous = name.trim().is_empty() || name.contains('.') || name.ends_with(ITEMS);
    !is_ambiguous && name.len() <= SUGGESTION_BYTES_MAX && !name.contains(redact::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_paths_are_selectable_and_shortest_first() {
        for (value, expected) in [
            (
                r#"{"total":1,"rows":[7,{"name":"a","at":{"x":1}}],"odd.name":1,"":2,"tags":["a"]}"#,
                &["tags", "total", "rows[].at", "rows[].name"][..],
            ),
            (r#"[[{"a":1}]]"#, &["[].a"]),
            (r#"{"a":{},"b":[],"c":[[1]]}"#, &["a", "b", "c[]"]),
            ("[1,2]", &[]),
            ("7", &[]),
            ("{", &[]),
        ] {
            assert_eq!(paths(value), expected, "{value}");
            for path in paths(value) {
                let fields = super::super::FieldSelection::parse([path.as_str()]).expect("a path");
                let result = format!(r#"{{"content":[],"structuredContent":{value}}}"#);
                let applied = fields.apply(&result, &std::sync::atomic::AtomicBool::new(false));
                assert!(!applied.contains("whole result"), "{path} of {value}: {applied}");
            }
        }
        let wide: serde_json::Map<String, serde_json::Value> =
            (0..1000).map(|n| (format!("n{n}"), n.into())).collect();
        let paths = paths(&serde_json::Value::Object(wide).to_string());
        assert_eq!((paths.len(), paths.last().map(String::as_str)), (21, Some("…")));
    }
}
