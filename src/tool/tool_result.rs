//! The result of a tool: its texts, and a note in front of it.
//!
//! Pure.

use std::hash::RandomState;

use serde_json::{json, value::RawValue};

use super::json_digest::JsonFingerprint;
use crate::protocol::{
    ObjectMembers,
    json_array::{RESULT_BLOCKS_MAX, all_items, with_first},
};

/// Returns a block of text, as JSON text.
pub fn text_block(text: &str) -> String {
    json!({ "type": "text", "text": text }).to_string()
}

/// Returns a result, JSON text, with a text in front of its blocks, or `None` if its content is no
/// list of blocks.
pub fn with_note(result: &str, note: &str) -> Option<String> {
    let mut members = ObjectMembers::read(result)?;
    let content = with_first(members.get("content").unwrap_or("[]"), &text_block(note))?;
    members.set("content", content);
    Some(members.to_string())
}

/// Returns the texts in the `content` of a result.
pub(super) fn texts(content: &str) -> Vec<String> {
    texts_of(&all_items(content, RESULT_BLOCKS_MAX).unwrap_or_default())
}

/// Returns the texts among the blocks of a result.
pub fn texts_of(blocks: &[&RawValue]) -> Vec<String> {
    let text = |block: &&RawValue| {
        let block = ObjectMembers::read(block.get())?;
        if block.string("type")? == "text" { block.string("text") } else { None }
    };
    blocks.iter().filter_map(text).collect()
}

/// A JSON value, for comparison with texts.
pub struct OriginalValue {
    hasher: RandomState,
    fingerprint: JsonFingerprint,
}

impl OriginalValue {
    /// Reads a value, or returns `None` if it is not JSON text.
    pub fn read(value: &str) -> Option<Self> {
        let hasher = RandomState::new();
        Some(Self { fingerprint: JsonFingerprint::of(value, &hasher)?, hasher })
    }

    /// Returns whether a text has the same value.
    pub fn equals_text(&self, text: &str) -> bool {
        text.trim_start().starts_with(['{', '['])
            && JsonFingerprint::of(text, &self.hasher) == Some(self.fingerprint)
    }
}
