//! What a server says about its tools: which of them may be called twice.
//!
//! It is read from lists that pass by, and outlives the connection that they came on: whether a call
//! may be sent again is asked when the connection has gone.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::connection;

/// The tools of a server that may be called twice, as far as its lists were read.
#[derive(Debug, Default)]
pub struct Hints(Mutex<Option<HashSet<String>>>);

impl Hints {
    /// Takes note of a page of `tools/list`, the text of its result. The first page begins anew.
    pub fn learn(&self, result: &str, is_first: bool) {
        let found = connection::repeatable_tools(result);
        let mut known = self.known();
        match &mut *known {
            Some(known) if !is_first => known.extend(found),
            known => *known = Some(found),
        }
    }

    /// Tells whether the server says that calling `tool` twice does no more than calling it once;
    /// nothing where no list was read.
    pub fn is_repeatable(&self, tool: &str) -> Option<bool> {
        self.known().as_ref().map(|known| known.contains(tool))
    }

    fn known(&self) -> MutexGuard<'_, Option<HashSet<String>>> {
        // Held for single statements on plain data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(tools: &[&str]) -> String {
        let tool = |name: &&str| serde_json::json!({ "name": name, "annotations": { "readOnlyHint": true } });
        serde_json::json!({ "tools": tools.iter().map(tool).collect::<Vec<_>>() }).to_string()
    }

    #[test]
    fn pages_add_up_and_the_first_one_begins_anew() {
        let hints = Hints::default();
        assert_eq!(hints.is_repeatable("a"), None);
        hints.learn(&page(&["a"]), true);
        hints.learn(&page(&["b"]), false);
        assert_eq!(
            ["a", "b", "c"].map(|tool| hints.is_repeatable(tool)),
            [Some(true), Some(true), Some(false)]
        );
        hints.learn(&page(&["c"]), true);
        assert_eq!(
            ["a", "b", "c"].map(|tool| hints.is_repeatable(tool)),
            [Some(false), Some(false), Some(true)]
        );
    }
}
