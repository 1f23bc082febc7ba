//! The methods of the control interface: names, parameters and handlers.

use super::{
    Asker, ControlParams, ControlService, auth_status, completions, daemon, mcp_attach, prompts,
    resources, servers, tasks, tools,
};
use crate::protocol::RpcError;

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

    /// Returns its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ServersList => "servers/list",
            Self::ToolsList => "tools/list",
            Self::ToolsInfo => "tools/info",
            Self::ToolsCall => "tools/call",
            Self::ToolsValidate => "tools/validate",
            Self::ToolsGrep => "tools/grep",
            Self::ToolsCallAsync => "tools/call-async",
            Self::TasksList => "tasks/list",
            Self::TasksGet => "tasks/get",
            Self::TasksResult => "tasks/result",
            Self::TasksCancel => "tasks/cancel",
            Self::ToolsSearch => "tools/search",
            Self::ResourcesList => "resources/list",
            Self::ResourcesRead => "resources/read",
            Self::PromptsList => "prompts/list",
            Self::PromptsGet => "prompts/get",
            Self::CompletionsComplete => "completions/complete",
            Self::AuthStatus => "auth/status",
            Self::DaemonStatus => "daemon/status",
            Self::McpAttach => "mcp/attach",
            Self::ConfigReload => "config/reload",
            Self::DaemonStop => "daemon/stop",
        }
    }

    /// Returns the names of its parameters, with a `?` after optional ones.
    pub(super) fn params(self) -> &'static [&'static str] {
        match self {
            Self::ServersList | Self::DaemonStatus => &["memory?"],
            Self::ToolsList => {
                &["server?", "includeSchema?", "schemaDepth?", "schemaBudget?", "report?"]
            }
            Self::ToolsInfo => &["name", "path?", "schemaDepth?"],
            Self::ToolsCall => &["name", "arguments?", "timeout?", "fields?"],
            Self::ToolsValidate => &["name", "arguments?"],
            Self::ToolsGrep => {
                &["pattern", "includeSchema?", "schemaDepth?", "schemaBudget?", "report?", "limit?"]
            }
            Self::ToolsSearch => &["query", "server?", "strategy?", "limit?", "explain?"],
            Self::ToolsCallAsync => &["name", "arguments?", "timeout?"],
            Self::TasksList => &["server?"],
            Self::TasksGet | Self::TasksCancel => &["taskId", "server?"],
            Self::TasksResult => &["taskId", "server?", "wait?"],
            Self::ResourcesList | Self::PromptsList => &["server?", "report?"],
            Self::ResourcesRead => &["server", "uri"],
            Self::PromptsGet => &["server", "name", "arguments?"],
            Self::CompletionsComplete => &["server", "ref", "argument", "context?"],
            Self::AuthStatus => &["server?"],
            Self::ConfigReload => &["configPath?"],
            Self::DaemonStop => &[],
            Self::McpAttach => &["view?", "server?"],
        }
    }

    /// Returns a sentence that lists its parameters.
    pub(super) fn usage(self) -> String {
        let name = self.name();
        match self.params() {
            [] => format!("`{name}` takes no parameters."),
            params => format!("`{name}` takes `{}`.", params.join("`, `")),
        }
    }

    /// Returns whether only operators may call it, so that a server of this service is refused.
    ///
    /// A server may be an agent: it reads lists and calls tools like any client. A task is open to
    /// each client that knows its random id; the list of all ids is for operators.
    pub(super) fn is_for_operators(self) -> bool {
        match self {
            Self::ConfigReload | Self::DaemonStop | Self::AuthStatus | Self::TasksList => true,
            Self::ServersList
            | Self::ToolsList
            | Self::ToolsInfo
            | Self::ToolsCall
            | Self::ToolsValidate
            | Self::ToolsGrep
            | Self::ToolsCallAsync
            | Self::TasksGet
            | Self::TasksResult
            | Self::TasksCancel
            | Self::ToolsSearch
            | Self::ResourcesList
            | Self::ResourcesRead
            | Self::PromptsList
            | Self::PromptsGet
            | Self::CompletionsComplete
            | Self::DaemonStatus
            | Self::McpAttach => false,
        }
    }

    /// Answers a request.
    pub(super) async fn run(
        self,
        desk: &ControlService,
        params: &ControlParams<'_>,
        asker: &Asker,
    ) -> MethodResult {
        match self {
            Self::ServersList => servers::list(desk, params).await,
            Self::ToolsList => tools::list(desk, params).await,
            Self::ToolsInfo => tools::info(desk, params).await,
            Self::ToolsCall => tools::call(desk, params, asker).await,
            Self::ToolsValidate => tools::validate(desk, params).await,
            Self::ToolsGrep => tools::grep(desk, params).await,
            Self::ToolsCallAsync => tasks::call(desk, params, asker).await,
            Self::TasksList => tasks::list(desk, params, asker).await,
            Self::TasksGet => tasks::get(desk, params, asker).await,
            Self::TasksResult => tasks::result(desk, params, asker).await,
            Self::TasksCancel => tasks::cancel(desk, params, asker).await,
            Self::ToolsSearch => tools::search(desk, params).await,
            Self::ResourcesList => resources::list(desk, params).await,
            Self::ResourcesRead => resources::read(desk, params, asker).await,
            Self::PromptsList => prompts::list(desk, params).await,
            Self::PromptsGet => prompts::get(desk, params, asker).await,
            Self::CompletionsComplete => completions::complete(desk, params, asker).await,
            Self::AuthStatus => auth_status::status(desk, params).await,
            Self::DaemonStatus => daemon::status(desk, params).await,
            // The connection of this request cannot be attached.
            Self::McpAttach => Err(mcp_attach::refusal().into()),
            Self::ConfigReload => daemon::reload(desk, params, asker).await,
            Self::DaemonStop => daemon::stop(desk, asker).await,
        }
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
