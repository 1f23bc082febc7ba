//! A server's hints about its tools: the repeatable ones, those that require a task, and the
//! arguments that a request repeats in headers.
//!
//! The hints come from the lists that metamcp relays, and outlive the connection: a retry needs
//! them after the connection has gone.

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

/// The hints about a server's tools, from the lists that were read.
#[derive(Debug, Default)]
pub struct ToolHints(Mutex<Option<KnownHints>>);

#[derive(Debug, Default)]
struct KnownHints {
    repeatable: HashSet<String>,
    task_required: HashSet<String>,
    header_parameters: HashMap<String, Vec<HeaderParameter>>,
}

impl ToolHints {
    /// Learns from a page of `tools/list`, the text of its result. The first page starts over.
    pub fn learn(&self, result: &str, is_first: bool) {
        let repeatable = connection::repeatable_tools(result);
        let task_required = task::tools_requiring_tasks(result);
        let header_parameters = parameter_headers::marked_tools(result);
        let mut known = self.known();
        if is_first {
            *known = None;
        }
        let known = known.get_or_insert_default();
        known.repeatable.extend(repeatable);
        known.task_required.extend(task_required);
        known.header_parameters.extend(header_parameters);
    }

    /// Returns whether the server declares that calling `tool` twice has no further effect, or
    /// `None` before a list was read.
    pub fn is_repeatable(&self, tool: &str) -> Option<bool> {
        self.known().as_ref().map(|known| known.repeatable.contains(tool))
    }

    /// Returns whether a tool list was read.
    pub fn is_read(&self) -> bool {
        self.known().is_some()
    }

    /// Returns whether `tool` must be called as a task, according to the lists that were read.
    pub fn requires_task(&self, tool: &str) -> bool {
        self.known().as_ref().is_some_and(|known| known.task_required.contains(tool))
    }

    /// Returns the arguments to repeat in headers, of the first tool with any that `is_meant`
    /// accepts.
    pub fn header_parameters(&self, is_meant: impl Fn(&str) -> bool) -> Vec<HeaderParameter> {
        let known = self.known();
        let marked = known.iter().flat_map(|known| &known.header_parameters);
        let mut meant = marked.filter(|(tool, _)| is_meant(tool)).map(|(_, marks)| marks.clone());
        meant.next().unwrap_or_default()
    }

    fn known(&self) -> MutexGuard<'_, Option<KnownHints>> {
        // Held only for single statements on plain data.
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
    fn pages_add_up_and_the_first_page_starts_over() {
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
    fn the_hints_know_which_tools_require_a_task() {
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
        let known = ["a", "b", "c", "d"].map(|tool| hints.requires_task(tool));
        assert_eq!(known, [true, false, true, false]);
    }

    #[test]
    fn the_hints_know_the_header_parameters_of_a_tool() {
        let hints = ToolHints::default();
        let schema = serde_json::json!({
            "type": "object", "properties": { "a": { "type": "string", "x-mcp-header": "A" } },
        });
        let page = serde_json::json!({ "tools": [{ "name": "t", "inputSchema": schema }] });
        hints.learn(&page.to_string(), true);
        let found = |tool| hints.header_parameters(|known| known == tool).len();
        assert_eq!([found("t"), found("u")], [1, 0]);
        hints.learn("{}", true);
        assert_eq!(found("t"), 0);
    }
}
