//! The outcome of a tool call: a value or a failure. Pure.

use serde_json::{Value, json, value::RawValue};

use crate::{
    protocol::{
        ObjectMembers,
        json_array::{RESULT_BLOCKS_MAX, all_items, first_items},
        list_page::is_text_block,
        nesting_depth::is_too_deep,
    },
    tool::{ErrorObject, error::BACKEND_KIND, tool_result::texts_of},
};

/// The outcome of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolOutcome {
    /// The structured value, as JSON text; without one, the text, read as JSON or as a string.
    Value(String),
    /// The error.
    Failed(Box<ErrorObject>),
}

impl ToolOutcome {
    /// Reads the result of a call to a tool of `server`, as JSON text.
    pub fn read(server: &str, result: &str) -> Self {
        let Some(result) = ObjectMembers::read(result) else {
            return Self::Failed(Box::new(ErrorObject::no_result(server)));
        };
        let content = result.get("content").unwrap_or("[]");
        let (blocks, n_blocks) = first_items(content, RESULT_BLOCKS_MAX).unwrap_or_default();
        if n_blocks > RESULT_BLOCKS_MAX {
            return Self::Failed(Box::new(ErrorObject::too_many_blocks(server)));
        }
        let text = texts_of(&blocks).join("\n");
        if result.get("isError") == Some("true") {
            return Self::Failed(Box::new(ErrorObject::of_tool(&text)));
        }
        Self::Value(match result.get("structuredContent").filter(|value| *value != "null") {
            Some(value) => value.to_owned(),
            None => match is_json(&text) {
                true => text.trim().to_owned(),
                false => Value::from(text).to_string(),
            },
        })
    }
}

/// Returns whether a text is a JSON object or array. Text that is nested too deep does not count.
fn is_json(text: &str) -> bool {
    let text = text.trim();
    text.starts_with(['{', '['])
        && !is_too_deep(text.as_bytes())
        && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Returns the blocks of a result other than texts, as JSON texts: images, sounds, links.
pub fn other_blocks(result: &str) -> Vec<String> {
    let content = ObjectMembers::one(result, "content").unwrap_or("[]");
    let blocks = all_items(content, RESULT_BLOCKS_MAX).unwrap_or_default();
    let others = blocks.iter().map(|block| block.get()).filter(|block| !is_text_block(block));
    others.map(str::to_owned).collect()
}

/// Returns the backend of the tools of a server, as JSON text.
pub fn backend_of(server: &str) -> String {
    json!({ "kind": BACKEND_KIND, "serverName": server }).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tool::ErrorCode;

    fn value(result: &str) -> String {
        match ToolOutcome::read("git", result) {
            ToolOutcome::Value(value) => value,
            ToolOutcome::Failed(error) => panic!("{error:?}"),
        }
    }

    #[test]
    fn the_value_of_a_result_is_its_structured_content_or_its_text() {
        let text = r#""content":[{"type":"text","text":"{\"a\":1e400}"},{"type":"image"}]"#;
        for (result, expected) in [
            (format!(r#"{{{text},"structuredContent":{{"b": 2}}}}"#), r#"{"b": 2}"#),
            (format!("{{{text}}}"), r#"{"a":1e400}"#),
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#.into(),
                r#""a\nb""#,
            ),
            (r#"{"content":[],"structuredContent":null}"#.into(), r#""""#),
            (
                r#"{"content":[{"type":"text","text":"half \ud83d of it"}]}"#.into(),
                "\"half \u{fffd} of it\"",
            ),
            ("{}".into(), r#""""#),
        ] {
            assert_eq!(value(&result), expected);
        }
    }

    #[test]
    fn a_failure_has_the_text_of_the_tool() {
        let failed = r#"{"content":[{"type":"text","text":"no such branch"}],"isError":true}"#;
        for (result, code, said) in [
            (failed, ErrorCode::ExecutionFailed, "no such branch"),
            (r#"{"isError":true}"#, ErrorCode::ExecutionFailed, "without a message"),
            ("[]", ErrorCode::ValidationOutput, "not a tool result"),
            ("", ErrorCode::ValidationOutput, "not a tool result"),
        ] {
            match ToolOutcome::read("git", result) {
                ToolOutcome::Failed(error) if error.code == code => {
                    assert!(error.message.contains(said), "{}", error.message);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn the_value_of_a_result_is_always_json(text in ".{0,60}") {
            drop(ToolOutcome::read("git", &text));
            let result = serde_json::json!({ "content": [{ "type": "text", "text": text }] });
            let found = value(&result.to_string());
            prop_assert!(serde_json::from_str::<&RawValue>(&found).is_ok(), "{}", found);
        }
    }
}
