//! The calls that a meta-tool answers with an error of metamcp itself.

use bytes::Bytes;

use crate::{
    call::CallError, call_record::RecordedFailure, server_name::ServerName, tool::RequestedTool,
};

/// The reason why the view of the meta-tools neither forwards a request nor answers it with a result.
#[derive(Debug)]
pub enum MetaFailure {
    /// The error, without an answer so far.
    Error(CallError),
    /// A call of a meta-tool, with its answer.
    Refused(Box<RefusedCall>),
}

/// A call that was answered with an error of metamcp, and what its record tells.
#[derive(Debug)]
pub struct RefusedCall {
    /// The answer to the client.
    pub answer: Bytes,
    /// The failure.
    pub failure: RecordedFailure,
    /// The tool that the meta-tool was to call, if the call names one.
    pub tool: Option<NamedTool>,
}

/// A tool of a server as a call names it.
#[derive(Debug, PartialEq, Eq)]
pub enum NamedTool {
    /// The server is declared.
    OfServer(ServerName, String),
    /// There is no such server, or none is named.
    Unknown(String),
}

impl NamedTool {
    /// Returns the most likely reading of `tool`; `declared` returns the server of a name.
    pub(super) fn of(tool: &RequestedTool, declared: impl Fn(&str) -> Option<ServerName>) -> Self {
        let readings = tool.readings().unwrap_or_default();
        // The server that a model writes twice is once a part of the tool.
        let known = readings.iter().rev().find_map(|id| Some((declared(&id.server)?, id)));
        match (known, readings.first()) {
            (Some((server, id)), _) => Self::OfServer(server, id.tool.clone()),
            (None, Some(id)) => Self::Unknown(id.to_string()),
            (None, None) => Self::Unknown(tool.tool.clone()),
        }
    }
}

impl From<CallError> for MetaFailure {
    fn from(error: CallError) -> Self {
        Self::Error(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_of_a_refused_call_names_the_tool_of_a_declared_server() {
        let git = || ServerName::new("git").expect("a name");
        let of = |server: Option<&str>, tool: &str| {
            let requested =
                RequestedTool { server: server.map(str::to_owned), tool: tool.to_owned() };
            NamedTool::of(&requested, |name| (name == "git").then(git))
        };
        for (server, tool) in [(Some("git"), "log"), (None, "git/log"), (Some("git"), "git__log")] {
            assert_eq!(of(server, tool), NamedTool::OfServer(git(), "log".to_owned()));
        }
        assert_eq!(of(Some("gti"), "log"), NamedTool::Unknown("gti/log".to_owned()));
        assert_eq!(of(None, "log"), NamedTool::Unknown("log".to_owned()));
    }
}
