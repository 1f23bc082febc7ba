//! The definitions of the meta-tools, as clients list them.
//!
//! They are in two files beside this one, and clients receive them unchanged, except for white
//! space. The output schema of a tool is also true of its errors, because clients validate both.
//! `mcp_call` has no output schema, since it passes on the answer of any tool. With a schema,
//! clients would reject answers without a structured value.
//!
//! The core set, which every client of the view always has in its context, is 5,444 bytes. That is
//! 1,267 tokens of `o200k_base` and 1,251 of `cl100k_base`; `mcp_execute` is 355 of them. Pure.

use std::sync::LazyLock;

use crate::{
    config::ToolSet,
    protocol::list_page::{ListItem, ListKind, ListPage},
};

/// A meta-tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaTool {
    /// `mcp_discover`
    Discover,
    /// `mcp_provision`
    Provision,
    /// `mcp_call`
    Call,
    /// `mcp_execute`
    Execute,
    /// `search_tools`
    SearchTools,
    /// `list_namespaces`
    ListNamespaces,
    /// `list_tools`
    ListTools,
    /// `describe_tool`
    DescribeTool,
    /// `list_tool_examples`
    ListToolExamples,
    /// `run_tool`
    RunTool,
    /// `run_chain`
    RunChain,
    /// `execute_code`
    ExecuteCode,
}

impl MetaTool {
    /// Returns the tools of a set in the order of listing.
    pub fn of_set(set: ToolSet) -> &'static [Self] {
        match set {
            ToolSet::Core => {
                &[MetaTool::Discover, MetaTool::Provision, MetaTool::Call, MetaTool::Execute]
            }
            ToolSet::Metatools => &[
                MetaTool::SearchTools,
                MetaTool::ListNamespaces,
                MetaTool::ListTools,
                MetaTool::DescribeTool,
                MetaTool::ListToolExamples,
                MetaTool::RunTool,
                MetaTool::RunChain,
                MetaTool::ExecuteCode,
            ],
        }
    }

    fn definitions(set: ToolSet) -> &'static [ListItem] {
        static CORE: LazyLock<Vec<ListItem>> = LazyLock::new(|| read(include_str!("core.json")));
        static METATOOLS: LazyLock<Vec<ListItem>> =
            LazyLock::new(|| read(include_str!("metatools.json")));
        match set {
            ToolSet::Core => &CORE,
            ToolSet::Metatools => &METATOOLS,
        }
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Discover => "mcp_discover",
            Self::Provision => "mcp_provision",
            Self::Call => "mcp_call",
            Self::Execute => "mcp_execute",
            Self::SearchTools => "search_tools",
            Self::ListNamespaces => "list_namespaces",
            Self::ListTools => "list_tools",
            Self::DescribeTool => "describe_tool",
            Self::ListToolExamples => "list_tool_examples",
            Self::RunTool => "run_tool",
            Self::RunChain => "run_chain",
            Self::ExecuteCode => "execute_code",
        }
    }

    /// Returns the tool called `name` in `sets`.
    pub fn named(name: &str, sets: &[ToolSet]) -> Option<Self> {
        let mut all = sets.iter().flat_map(|set| MetaTool::of_set(*set));
        all.find(|tool| tool.name() == name).copied()
    }

    /// Returns the set that it belongs to.
    pub fn set(self) -> ToolSet {
        match MetaTool::of_set(ToolSet::Core).contains(&self) {
            true => ToolSet::Core,
            false => ToolSet::Metatools,
        }
    }

    /// Returns whether it runs code. Clients see it only where metamcp can isolate the code.
    pub fn runs_code(self) -> bool {
        matches!(self, Self::Execute | Self::ExecuteCode)
    }

    /// Returns whether its definition promises a structured value, also with a preview of a result.
    pub fn promises_value(self) -> bool {
        self == Self::RunTool || self.runs_code()
    }

    /// Returns its definition, as JSON text.
    pub fn definition(self) -> &'static str {
        let found = Self::definitions(self.set()).iter().find(|item| item.key == self.name());
        found.map_or("", ListItem::json)
    }
}

/// The end of a definition that models always see, even if their client searches tools itself.
///
/// Source: Claude Code, tool search of MCP servers; other clients ignore it.
const ALWAYS_LOADED: &str = r#","_meta":{"anthropic/alwaysLoad":true}}"#;

/// Returns `tools` as the result of `tools/list`, JSON text. With `always_load`, models always see
/// them.
pub fn list(tools: impl IntoIterator<Item = MetaTool>, always_load: bool) -> String {
    let definitions = tools.into_iter().map(MetaTool::definition);
    let definitions: Vec<String> = definitions
        .map(|definition| match definition.strip_suffix('}') {
            Some(members) if always_load => members.to_owned() + ALWAYS_LOADED,
            _ => definition.to_owned(),
        })
        .collect();
    format!(r#"{{"tools":[{}]}}"#, definitions.join(","))
}

fn read(file: &str) -> Vec<ListItem> {
    let page = format!(r#"{{"tools":{}}}"#, without_white_space(file));
    // A broken file would have no tools, which the tests detect.
    ListPage::read(ListKind::Tools, &page).unwrap_or_default().items
}

/// Returns JSON text without white space between its parts.
fn without_white_space(json: &str) -> String {
    let (mut is_string, mut is_escaped) = (false, false);
    json.chars()
        .filter(|found| {
            if is_string {
                is_string = *found != '"' || is_escaped;
                is_escaped = *found == '\\' && !is_escaped;
                return true;
            }
            is_string = *found == '"';
            !found.is_ascii_whitespace()
        })
        .collect()
}

#[cfg(test)]
mod tests;
