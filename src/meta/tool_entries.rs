//! The entries of the tools in one answer, as many as fit, and the types of these tools if requested.
//!
//! Pure.

use serde_json::Value;

use super::{arguments::DiscoverDetail, describe::DescribedTool};
use crate::{protocol::ObjectMembers, typegen::ScriptTypes};

/// The times that declaring the types of schemas takes longer than reading them as JSON. Measured: 7
/// to 20, the most for types that are too large for an answer.
const TYPES_WEIGHT: usize = 16;

/// The entries of the tools in one answer, and their types.
pub(super) struct ToolEntries {
    texts: Vec<String>,
    types: Option<ScriptTypes>,
    n_bytes: usize,
    /// The most bytes that the entries and the declarations of tools may have together.
    bytes_max: usize,
}

impl ToolEntries {
    /// Returns an answer without entries yet.
    pub(super) fn new(bytes_max: usize, detail: DiscoverDetail) -> Self {
        let types = (detail == DiscoverDetail::Types).then(ScriptTypes::default);
        Self { texts: Vec::new(), types, n_bytes: 0, bytes_max }
    }

    /// Returns the number of bytes that take as long to read as definitions of `n_bytes`.
    pub(super) fn cost(n_bytes: usize, detail: DiscoverDetail) -> usize {
        match detail {
            DiscoverDetail::Types => n_bytes.saturating_mul(TYPES_WEIGHT),
            DiscoverDetail::Entry(_) => n_bytes,
        }
    }

    /// Adds the entry of a tool, and its types. Returns `false` if it does not fit; the first entry
    /// always does.
    pub(super) fn add(&mut self, tool: &DescribedTool<'_>, entry: String) -> bool {
        // Types that are too large for the rest of this page come whole with the next one.
        let bytes_max = self.bytes_max.saturating_sub(entry.len());
        let declaration = self.types.as_mut().map(|types| types.declare(&tool.typed(), bytes_max));
        let n_more = entry.len() + declaration.as_ref().map_or(0, |found| found.n_bytes());
        if !self.texts.is_empty() && self.n_bytes + n_more > self.bytes_max {
            return false;
        }
        self.n_bytes += n_more;
        self.texts.push(entry);
        if let (Some(types), Some(declaration)) = (&mut self.types, declaration) {
            types.add(declaration);
        }
        true
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns the answer.
    pub(super) fn into_answer(self) -> ObjectMembers<'static> {
        let mut answer = ObjectMembers::default();
        answer.set("tools", format!("[{}]", self.texts.join(",")));
        if let Some(types) = self.types.filter(|_| !self.texts.is_empty()) {
            answer.set("types", Value::from(types.text()).to_string());
        }
        answer
    }
}
