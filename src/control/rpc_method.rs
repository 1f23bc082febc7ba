//! The methods of the control interface: names, callers and parameters.

use super::{ControlParams, ControlService, Requester};
use crate::{capacity_holder::Holder, protocol::RpcError};

/// The outcome of a request: the JSON text of its result, or the error.
pub(super) type MethodResult = Result<String, Box<RpcError>>;

/// Declares the methods, each with its name, callers and parameters. A `?` marks optional ones.
macro_rules! methods {
    ($($method:ident = $name:literal, $access:ident, $params:expr;)+) => {
        /// A method of the control interface.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum ControlMethod {
            $($method,)+
        }

        impl ControlMethod {
            pub(super) const ALL: [Self; [$($name),+].len()] = [$(Self::$method),+];

            fn definition(self) -> (&'static str, MethodAccess, &'static [&'static str]) {
                match self {
                    $(Self::$method => ($name, MethodAccess::$access, $params),)+
                }
            }
        }
    };
}

methods! {
    ServersList = "servers/list", All, &["server?", "memory?"];
    ToolsList = "tools/list", All,
        &["server?", "includeSchema?", "schemaDepth?", "schemaBudget?", "report?"];
    ToolsInfo = "tools/info", All, &["name", "path?", "schemaDepth?"];
    ToolsCall = "tools/call", All, &["name", "arguments?", "timeout?", "fields?"];
    ToolsCallAsync = "tools/call-async", All, &["name", "arguments?", "timeout?"];
    ToolsValidate = "tools/validate", All, &["name", "arguments?"];
    ToolsGrep = "tools/grep", All,
        &["pattern", "includeSchema?", "schemaDepth?", "schemaBudget?", "report?", "limit?"];
    ToolsSearch = "tools/search", All, &["query", "server?", "strategy?", "limit?", "explain?"];
    ScriptsRun = "scripts/run", All, &["code", "args?", "timeout?", "maxToolCalls?"];
    ScriptsRunAsync = "scripts/run-async", All,
        &["code", "args?", "timeout?", "maxToolCalls?", "name?"];
    ResourcesList = "resources/list", All, &["server?", "report?"];
    ResourcesRead = "resources/read", All, &["server", "uri"];
    PromptsList = "prompts/list", All, &["server?", "report?"];
    PromptsGet = "prompts/get", All, &["server", "name", "arguments?"];
    CompletionsComplete = "completions/complete", All, &["server", "ref", "argument", "context?"];
    TasksList = "tasks/list", Operators, &["server?"];
    TasksGet = "tasks/get", All, &["taskId", "server?"];
    TasksResult = "tasks/result", All, &["taskId", "server?", "wait?"];
    TasksCancel = "tasks/cancel", All, &["taskId", "server?"];
    AuthStatus = "auth/status", Operators, &["server?"];
    AuthLogin = "auth/login", Operators, &["server"];
    AuthWait = "auth/wait", Operators, &["loginId"];
    AuthFinish = "auth/finish", Operators, &["answer"];
    AuthLogout = "auth/logout", Operators, &["server"];
    AuthDocument = "auth/document", Operators, &["server"];
    DaemonStatus = "daemon/status", All, &["memory?"];
    DaemonEnvironment = "daemon/environment", Operators, &[];
    DaemonLogs = "daemon/logs", Operators,
        &["server?", "level?", "lines?", "since?", "after?", "wait?"];
    DaemonCalls = "daemon/calls", All,
        &["server?", "tool?", "client?", "failed?", "lines?", "since?", "after?", "wait?"];
    DaemonTop = "daemon/top", All, &[];
    ConfigReload = "config/reload", Operators, &["configPath?"];
    DaemonStop = "daemon/stop", Operators, &[];
    Ping = "ping", All, &[];
    McpAttach = "mcp/attach", All, &["view?", "server?"];
}

impl ControlMethod {
    /// Returns the method called `name`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        self.definition().0
    }

    /// Returns whether only operators may call it, so that a server of this service is refused.
    pub(super) fn is_for_operators(self) -> bool {
        self.definition().1 == MethodAccess::Operators
    }

    /// Returns whether its answer waits for calls of tools.
    pub(super) fn calls_tools(self) -> bool {
        matches!(self, Self::ToolsCall | Self::ScriptsRun)
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
        let manual = include_str!("../../docs/reference/control.md");
        for method in ControlMethod::ALL {
            let name = format!("`{}`", method.name());
            let mut firsts =
                manual.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
            assert!(firsts.any(|first| first.contains(&name)), "{name}");
            assert_eq!(ControlMethod::named(method.name()), Some(method));
        }
    }
}
