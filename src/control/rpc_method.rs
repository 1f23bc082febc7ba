//! The methods of the control interface: names, callers and parameters.

use super::{ControlParams, ControlService, Requester};
use crate::{capacity_holder::Holder, protocol::RpcError};

/// The outcome of a request: the JSON text of its result, or the error.
pub(super) type MethodResult = Result<String, Box<RpcError>>;

/// A method of the control interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlMethod {
    ServersList,
    ToolsList,
    ToolsInfo,
    ToolsCall,
    ToolsValidate,
    ToolsGrep,
    ToolsCallAsync,
    TasksList,
    TasksGet,
    TasksResult,
    TasksCancel,
    ToolsSearch,
    ResourcesList,
    ResourcesRead,
    PromptsList,
    PromptsGet,
    CompletionsComplete,
    AuthStatus,
    DaemonStatus,
    McpAttach,
    ConfigReload,
    DaemonStop,
}

impl ControlMethod {
    /// All methods.
    pub(super) const ALL: [Self; 22] = [
        Self::ServersList,
        Self::ToolsList,
        Self::ToolsInfo,
        Self::ToolsCall,
        Self::ToolsCallAsync,
        Self::ToolsValidate,
        Self::ToolsGrep,
        Self::ToolsSearch,
        Self::ResourcesList,
        Self::ResourcesRead,
        Self::PromptsList,
        Self::PromptsGet,
        Self::CompletionsComplete,
        Self::TasksList,
        Self::TasksGet,
        Self::TasksResult,
        Self::TasksCancel,
        Self::AuthStatus,
        Self::DaemonStatus,
        Self::ConfigReload,
        Self::DaemonStop,
        Self::McpAttach,
    ];

    /// Returns the method called `name`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Returns its name, its callers, and the names of its parameters, with a `?` after optional
    /// ones.
    fn definition(self) -> (&'static str, MethodAccess, &'static [&'static str]) {
        use MethodAccess::{All, Operators};
        match self {
            Self::ServersList => ("servers/list", All, &["memory?"]),
            Self::ToolsList => ("tools/list", All, &TOOLS_LIST_PARAMS),
            Self::ToolsInfo => ("tools/info", All, &["name", "path?", "schemaDepth?"]),
            Self::ToolsCall => ("tools/call", All, &["name", "arguments?", "timeout?", "fields?"]),
            Self::ToolsValidate => ("tools/validate", All, &["name", "arguments?"]),
            Self::ToolsGrep => ("tools/grep", All, &TOOLS_GREP_PARAMS),
            Self::ToolsCallAsync => ("tools/call-async", All, &["name", "arguments?", "timeout?"]),
            Self::TasksList => ("tasks/list", Operators, &["server?"]),
            Self::TasksGet => ("tasks/get", All, &["taskId", "server?"]),
            Self::TasksResult => ("tasks/result", All, &["taskId", "server?", "wait?"]),
            Self::TasksCancel => ("tasks/cancel", All, &["taskId", "server?"]),
            Self::ToolsSearch => ("tools/search", All, &TOOLS_SEARCH_PARAMS),
            Self::ResourcesList => ("resources/list", All, &["server?", "report?"]),
            Self::ResourcesRead => ("resources/read", All, &["server", "uri"]),
            Self::PromptsList => ("prompts/list", All, &["server?", "report?"]),
            Self::PromptsGet => ("prompts/get", All, &["server", "name", "arguments?"]),
            Self::CompletionsComplete => ("completions/complete", All, &COMPLETE_PARAMS),
            Self::AuthStatus => ("auth/status", Operators, &["server?"]),
            Self::DaemonStatus => ("daemon/status", All, &["memory?"]),
            Self::McpAttach => ("mcp/attach", All, &["view?", "server?"]),
            Self::ConfigReload => ("config/reload", Operators, &["configPath?"]),
            Self::DaemonStop => ("daemon/stop", Operators, &[]),
        }
    }

    /// Returns its name.
    pub(super) fn name(self) -> &'static str {
        self.definition().0
    }

    /// Returns whether only operators may call it, so that a server of this service is refused.
    pub(super) fn is_for_operators(self) -> bool {
        self.definition().1 == MethodAccess::Operators
    }

    /// Returns the names of its parameters, with a `?` after optional ones.
    pub(super) fn params(self) -> &'static [&'static str] {
        self.definition().2
    }

    /// Returns a sentence that lists its parameters.
    pub(super) fn usage(self) -> String {
        let name = self.name();
        match self.params() {
            [] => format!("`{name}` takes no parameters."),
            params => format!("`{name}` takes `{}`.", params.join("`, `")),
        }
    }
}

/// The parameters of `tools/list`.
const TOOLS_LIST_PARAMS: [&str; 5] =
    ["server?", "includeSchema?", "schemaDepth?", "schemaBudget?", "report?"];

/// The parameters of `tools/grep`.
const TOOLS_GREP_PARAMS: [&str; 6] =
    ["pattern", "includeSchema?", "schemaDepth?", "schemaBudget?", "report?", "limit?"];

/// The parameters of `tools/search`.
const TOOLS_SEARCH_PARAMS: [&str; 5] = ["query", "server?", "strategy?", "limit?", "explain?"];

/// The parameters of `completions/complete`.
const COMPLETE_PARAMS: [&str; 4] = ["server", "ref", "argument", "context?"];

/// The callers of a method.
///
/// A server may be an agent: it reads lists and calls tools like any client. A task is open to each
/// client that knows its random id; the list of all ids is for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MethodAccess {
    /// Only operators.
    Operators,
    /// Also servers of this service.
    All,
}

/// A request to a method.
pub(super) struct ControlRequest<'a> {
    pub(super) service: &'a ControlService,
    pub(super) params: ControlParams<'a>,
    pub(super) requester: &'a Requester,
}

impl ControlRequest<'_> {
    /// Returns the party that the request counts for.
    pub(super) fn holder(&self) -> Holder {
        self.requester.caller.holder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_has_a_row_for_every_method() {
        let manual = include_str!("../../docs/control.md");
        for method in ControlMethod::ALL {
            let name = format!("`{}`", method.name());
            let mut firsts =
                manual.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
            assert!(firsts.any(|first| first.contains(&name)), "{name}");
            assert_eq!(ControlMethod::named(method.name()), Some(method));
        }
    }
}
