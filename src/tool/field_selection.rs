//! The selection of parts of a result.
//!
//! A path is the names of members, separated by dots. Arrays are searched whether the path marks
//! them (`rows[].name`) or not. Parts keep their place. Missing parts are left out, and so are
//! array items without any part. Several fields of one array stay together in one object for each
//! item.
//!
//! Values are copied as text.
//!
//! A result without any of the parts stays whole, with a text in front that lists its paths, so
//! that a model notices a misspelt path. A result in which nothing is found within
//! [`FIELD_BYTES_READ_MAX`] stays whole, too.

mod known_paths;

use std::{
    collections::BTreeMap,
    fmt,
    sync::atomic::{AtomicBool, Ordering},
};

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::tool_result::{OriginalValue, with_note};
use crate::{
    config::defaults::{
        FIELD_BYTES_READ_MAX, FIELD_DEPTH_MAX, FIELD_VALUE_BYTES, FIELDS_MAX, SUGGESTION_BYTES_MAX,
    },
    protocol::{
        ObjectMembers,
        json_array::{RESULT_BLOCKS_MAX, all_items},
    },
    redact,
};

/// The text for a result that is too large to be searched.
const TOO_LONG: &str = "This is the whole result: finding `fields` in it would take too long.";

/// The wanted parts of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelection {
    root: Node,
}

/// The wanted parts of one value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    /// `true` if all of it is wanted.
    is_whole: bool,
    members: BTreeMap<String, Node>,
}

/// The error of an invalid path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldPathError {
    /// A name before, between or after its dots is missing.
    #[error("`{0}` is not a path: a name is missing")]
    Empty(String),
    /// It has more names than the maximum depth.
    #[error("a path has more than {FIELD_DEPTH_MAX} names")]
    Deep,
    /// There are too many paths.
    #[error("there are more than {FIELDS_MAX} paths")]
    Many,
}

impl FieldSelection {
    /// Reads paths like `total` and `rows[].name`.
    ///
    /// # Errors
    ///
    /// [`FieldPathError`] describes the first path that is wrong.
    pub fn parse<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<Self, FieldPathError> {
        let mut root = Node::default();
        for (number, path) in paths.into_iter().enumerate() {
            if number >= FIELDS_MAX {
                return Err(FieldPathError::Many);
            }
            root.add(path.trim())?;
        }
        Ok(Self { root })
    }

    /// Returns whether no part is selected, which means all of the result.
    pub fn is_empty(&self) -> bool {
        self.root.members.is_empty()
    }

    /// Returns the wanted parts of the JSON text `value`, or `None` if it has none.
    fn of(&self, value: &str, search: &mut Search<'_>) -> Option<String> {
        let mut found = String::new();
        self.root.write(value, FIELD_DEPTH_MAX, search, &mut found).then_some(found)
    }

    /// Returns the result of a call, JSON text, with only the wanted parts of its structured value.
    /// If that has none of them, the parts are taken from each text that is JSON. If nothing has
    /// any, a text in front of the result says so, unless the result is a failure. An empty
    /// selection returns the result unchanged.
    ///
    /// A text that equals the structured value, as the MCP specification asks for, changes with it.
    ///
    /// Once `stop` is set, the returned text is meaningless.
    pub fn apply(&self, result: &str, stop: &AtomicBool) -> String {
        if self.is_empty() {
            return result.to_owned();
        }
        let mut search = Search { n_bytes_left: FIELD_BYTES_READ_MAX, stop };
        let applied = self.applied(result, &mut search);
        let changed = match search.is_over() {
            true => with_note(result, TOO_LONG),
            false => applied.or_else(|| known_paths::with_paths(result)),
        };
        changed.unwrap_or_else(|| result.to_owned())
    }

    fn applied(&self, result: &str, search: &mut Search<'_>) -> Option<String> {
        let mut members = ObjectMembers::read(result)?;
        let structured = members.get("structuredContent").map(str::to_owned);
        let found = structured.as_deref().and_then(|value| self.of(value, search));
        let content = members.get("content").and_then(|content| match (&structured, &found) {
            (Some(whole), Some(found)) => {
                let whole = OriginalValue::read(whole)?;
                edit_texts(content, |text| whole.equals_text(text).then(|| found.clone()))
            }
            _ => edit_texts(content, |text| {
                text.trim_start().starts_with(['{', '[']).then(|| self.of(text, search)).flatten()
            }),
        });
        if found.is_none() && content.is_none() {
            return None;
        }
        if let Some(content) = content {
            members.set("content", content);
        }
        if let Some(found) = found {
            members.set("structuredContent", found);
        }
        Some(members.to_string())
    }
}

/// Returns the blocks of a result with the texts that `change` replaces, or `None` if it replaces
/// none.
fn edit_texts(content: &str, mut change: impl FnMut(&str) -> Option<String>) -> Option<String> {
    let blocks = all_items(content, RESULT_BLOCKS_MAX)?;
    let mut is_changed = false;
    let mut edited = |block: &&RawValue| -> Option<String> {
        let mut members = ObjectMembers::read(block.get())?;
        if members.string("type")? != "text" {
            return None;
        }
        let text = change(&members.string("text")?)?;
        members.set("text", serde_json::Value::from(text).to_string());
        is_changed = true;
        Some(members.to_string())
    };
    let blocks: Vec<String> = blocks
        .iter()
        .map(|block| edited(block).unwrap_or_else(|| block.get().to_owned()))
        .collect();
    is_changed.then(|| format!("[{}]", blocks.join(",")))
}

impl Node {
    fn add(&mut self, path: &str) -> Result<(), FieldPathError> {
        let mut node = self;
        // `[].name` selects from each item of a result that is an array.
        let names = path.strip_prefix("[].").unwrap_or(path);
        for (depth, name) in names.split('.').enumerate() {
            if depth >= FIELD_DEPTH_MAX {
                return Err(FieldPathError::Deep);
            }
            let mut name = name;
            while let Some(shorter) = name.strip_suffix("[]") {
                name = shorter;
            }
            if name.is_empty() {
                let shown = redact::cut(path, SUGGESTION_BYTES_MAX);
                return Err(FieldPathError::Empty(shown.to_owned()));
            }
            node = node.members.entry(name.to_owned()).or_default();
        }
        node.is_whole = true;
        Ok(())
    }

    /// Writes the wanted parts of `value`, and returns whether there are any. Nested arrays are
    /// searched down to `n_arrays` levels, which bounds the recursion.
    fn write(
        &self,
        value: &str,
        n_arrays: usize,
        search: &mut Search<'_>,
        out: &mut String,
    ) -> bool {
        let value = value.trim_ascii();
        if self.is_whole {
            out.push_str(value);
            return true;
        }
        if !search.goes_on_with(value) || !value.starts_with(['{', '[']) {
            return false;
        }
        let start = out.len();
        let mut reader = serde_json::Deserializer::from_str(value);
        let has_any =
            reader.deserialize_any(Picker { node: self, n_arrays, search, out }).unwrap_or(false);
        if !has_any {
            out.truncate(start);
        }
        has_any
    }
}

/// The remaining budget of a search in a result.
struct Search<'s> {
    n_bytes_left: usize,
    stop: &'s AtomicBool,
}

impl Search<'_> {
    /// Spends the cost of a look at `value`, and returns whether any budget is left.
    fn goes_on_with(&mut self, value: &str) -> bool {
        self.n_bytes_left = self.n_bytes_left.saturating_sub(value.len() + FIELD_VALUE_BYTES);
        !self.is_over()
    }

    /// Returns whether the budget is spent, or the caller has gone.
    fn is_over(&self) -> bool {
        self.n_bytes_left == 0 || self.stop.load(Ordering::Relaxed)
    }
}

/// A writer of parts while they are read: a list of all items could take many times the size.
struct Picker<'a, 's> {
    node: &'a Node,
    n_arrays: usize,
    search: &'a mut Search<'s>,
    out: &'a mut String,
}

impl Picker<'_, '_> {
    /// Begins the next part, and returns its start in `out`.
    fn begin(&mut self, bracket: char, has_any: bool) -> usize {
        let start = self.out.len();
        self.out.push(if has_any { ',' } else { bracket });
        start
    }
}

impl<'de> Visitor<'de> for Picker<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<bool, A::Error> {
        let Some(n_arrays) = self.n_arrays.checked_sub(1) else { return Ok(false) };
        let mut has_any = false;
        while let Some(item) = items.next_element::<&RawValue>()? {
            if self.search.is_over() {
                return Ok(false);
            }
            let start = self.begin('[', has_any);
            match self.node.write(item.get(), n_arrays, self.search, self.out) {
                true => has_any = true,
                false => self.out.truncate(start),
            }
        }
        self.out.push(']');
        Ok(has_any)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<bool, A::Error> {
        let mut has_any = false;
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value::<&RawValue>()?;
            let Some(node) = self.node.members.get(&name) else { continue };
            let start = self.begin('{', has_any);
            self.out.push_str(&serde_json::Value::from(name).to_string());
            self.out.push(':');
            match node.write(value.get(), self.n_arrays, self.search, self.out) {
                true => has_any = true,
                false => self.out.truncate(start),
            }
        }
        self.out.push('}');
        Ok(has_any)
    }
}

#[cfg(test)]
mod tests;
