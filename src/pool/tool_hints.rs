//! What a server says about its tools: which of them may be called twice, which are called as tasks
//! or not at all, and which arguments of theirs travel in headers as well.
//!
//! It is read from lists that pass by, and outlives the connection that they came on: whether a call
//! may be sent again is asked when the connection has gone.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    connection,
    protocol::{
        parameter_headers::{self, HeaderParameter},
        task,
    },
};

/// The tools of a server with something to say of them, as far as its lists were read.
#[derive(Debug, Default)]
pub struct ToolHints(Mutex<Option<Known>>);

#[derive(Debug, Default)]
struct Known {
    repeatable: HashSet<String>,
    demanding: HashSet<String>,
    mirrored: HashMap<String, Vec<HeaderParameter>>,
}

impl ToolHints {
    /// Takes note of a page of `tools/list`, the text of its result. The first page begins anew.
    pub fn learn(&self, result: &str, is_first: bool) {
        let repeatable = connection::repeatable_tools(result);
        let demanding = task::demanding_tools(result);
        let mirrored = parameter_headers::marked_tools(result);
        let mut known = self.known();
        match &mut *known {
            Some(known) if !is_first => {
                known.repeatable.extend(repeatable);
                known.demanding.extend(demanding);
                known.mirrored.extend(mirrored);
            }
            known => {
                let demanding = demanding.into_iter().collect();
                *known = Some(Known { repeatable, demanding, mirrored });
            }
        }
    }

    /// Tells whether the server says that calling `tool` twice does no more than calling it once;
    /// nothing where no list was read.
    pub fn is_repeatable(&self, tool: &str) -> Option<bool> {
        self.known().as_ref().map(|known| known.repeatable.contains(tool))
    }

    /// Tells whether a list of the tools was read.
    pub fn is_read(&self) -> bool {
        self.known().is_some()
    }

    /// Tells whether `tool` is called as a task or not at all, as far as lists were read.
    pub fn demands_task(&self, tool: &str) -> bool {
        self.known().as_ref().is_some_and(|known| known.demanding.contains(tool))
    }

    /// Returns the arguments of the first tool that `is_meant`, of those with any, that travel in
    /// headers as well.
    pub fn mirrored(&self, is_meant: impl Fn(&str) -> bool) -> Vec<HeaderParameter> {
        let known = self.known();
        let marked = known.iter().flat_map(|known| &known.mirrored);
        let mut meant = marked.filter(|(tool, _)| is_meant(tool)).map(|(_, marks)| marks.clone());
        meant.next().unwrap_or_default()
    }

    fn known(&self) -> MutexGuard<'_, Option<Known>> {
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
        let hints = ToolHints::default();
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

    #[test]
    fn a_tool_that_demands_a_task_is_known() {
        let hints = ToolHints::default();
        assert!(!hints.is_read());
        let tool = |name: &str, support: &str| {
            serde_json::json!({
                "name": name, "inputSchema": { "type": "object" },
                "execution": { "taskSupport": support },
            })
        };
        for (tools, is_first) in [(["a", "b"], true), (["c", "d"], false)] {
            let [one, other] = tools;
            let page =
                serde_json::json!({ "tools": [tool(one, "required"), tool(other, "optional")] });
            hints.learn(&page.to_string(), is_first);
        }
        assert!(hints.is_read());
        let known = ["a", "b", "c", "d"].map(|tool| hints.demands_task(tool));
        assert_eq!(known, [true, false, true, false]);
    }

    #[test]
    fn arguments_that_travel_in_headers_are_known_by_their_tool() {
        let hints = ToolHints::default();
        let schema = serde_json::json!({
            "type": "object", "properties": { "a": { "type": "string", "x-mcp-header": "A" } },
        });
        let page = serde_json::json!({ "tools": [{ "name": "t", "inputSchema": schema }] });
        hints.learn(&page.to_string(), true);
        let found = |tool| hints.mirrored(|known| known == tool).len();
        assert_eq!([found("t"), found("u")], [1, 0]);
        hints.learn("{}", true);
        assert_eq!(found("t"), 0);
    }
}
