//! What can be asked on the operator's interface: each method by its name, with its parameters.

use super::{Asker, Desk, Params, daemon, servers, tasks, tools};
use crate::protocol::RpcError;

/// What becomes of a request: the JSON text of its result, or why there is none.
pub(super) type Answer = Result<String, Box<RpcError>>;

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    ServersList,
    ToolsSearch,
    ToolsGrep,
    ToolsCallAsync,
    TasksList,
    TasksGet,
    TasksResult,
    TasksCancel,
    DaemonStatus,
}

impl Method {
    /// All of them.
    pub(super) const ALL: [Self; 9] = [
        Self::ServersList,
        Self::ToolsSearch,
        Self::ToolsGrep,
        Self::ToolsCallAsync,
        Self::TasksList,
        Self::TasksGet,
        Self::TasksResult,
        Self::TasksCancel,
        Self::DaemonStatus,
    ];

    /// Returns the method called `name`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Returns its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ServersList => "servers/list",
            Self::ToolsSearch => "tools/search",
            Self::ToolsGrep => "tools/grep",
            Self::ToolsCallAsync => "tools/call-async",
            Self::TasksList => "tasks/list",
            Self::TasksGet => "tasks/get",
            Self::TasksResult => "tasks/result",
            Self::TasksCancel => "tasks/cancel",
            Self::DaemonStatus => "daemon/status",
        }
    }

    /// Returns the names of its parameters, with a `?` behind those that may be left out.
    pub(super) fn params(self) -> &'static [&'static str] {
        match self {
            Self::ServersList | Self::DaemonStatus => &[],
            Self::ToolsSearch => &["query", "server?", "strategy?", "limit?", "explain?"],
            Self::ToolsGrep => &["pattern", "limit?"],
            Self::ToolsCallAsync => &["name", "arguments?", "timeout?"],
            Self::TasksList => &["server?"],
            Self::TasksGet | Self::TasksCancel => &["taskId", "server?"],
            Self::TasksResult => &["taskId", "server?", "wait?"],
        }
    }

    /// Returns what it takes, in words.
    pub(super) fn usage(self) -> String {
        let name = self.name();
        match self.params() {
            [] => format!("`{name}` takes no parameters."),
            params => format!("`{name}` takes `{}`.", params.join("`, `")),
        }
    }

    /// Answers a request.
    pub(super) async fn run(self, desk: &Desk, params: &Params<'_>, asker: &Asker) -> Answer {
        let _ = asker;
        match self {
            Self::ServersList => servers::list(desk, params).await,
            Self::ToolsSearch => tools::search(desk, params).await,
            Self::ToolsGrep => tools::grep(desk, params).await,
            Self::ToolsCallAsync => tasks::call(desk, params).await,
            Self::TasksList => tasks::list(desk, params).await,
            Self::TasksGet => tasks::get(desk, params).await,
            Self::TasksResult => tasks::result(desk, params).await,
            Self::TasksCancel => tasks::cancel(desk, params).await,
            Self::DaemonStatus => daemon::status(desk, params).await,
        }
    }
}
