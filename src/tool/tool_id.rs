//! The ids of tools, in the forms that models write.
//!
//! The id of a tool begins with its server: `git/log`. Models know other forms, which are accepted:
//! `git__log`, `git:log`, and two separate fields. The first separator counts, since server names
//! contain none. Pure.

use std::fmt;

use crate::{config::defaults, redact, server_name::QUALIFIER};

/// The separator of the ids that metamcp returns.
pub const SEPARATOR: &str = "/";

/// The separators that are accepted between a server and its tool.
const SEPARATORS: [&str; 3] = [SEPARATOR, ":", QUALIFIER];

/// A tool of a server; neither needs to exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolId {
    /// The server.
    pub server: String,
    /// The tool's name there.
    pub tool: String,
}

/// A tool as a model requests it: the server is a separate field, or part of the tool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestedTool {
    /// The server, if it has a field.
    pub server: Option<String>,
    /// The tool.
    pub tool: String,
}

/// The error of a text that is not a tool id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a tool id: {}", if *has_server { "no tool follows the server" } else { "it has no server in front" })]
pub struct ToolIdError {
    text: String,
    has_server: bool,
}

impl ToolIdError {
    /// Returns what to write instead.
    pub fn hint(&self) -> &'static str {
        "Write `server/tool`, as in search results."
    }
}

impl ToolId {
    /// Returns the id of `tool` of `server`.
    pub fn new(server: impl Into<String>, tool: impl Into<String>) -> Self {
        Self { server: server.into(), tool: tool.into() }
    }

    /// Splits `text` at its first separator of any kind.
    ///
    /// # Errors
    ///
    /// [`ToolIdError`] if there is none, or one of its sides is empty.
    pub fn parse(text: &str) -> Result<Self, ToolIdError> {
        let found = SEPARATORS.iter().filter_map(|separator| {
            let at = text.find(separator)?;
            Some((at, separator.len()))
        });
        match found.min() {
            Some((at, length)) if at > 0 && at + length < text.len() => {
                Ok(Self::new(&text[..at], &text[at + length..]))
            }
            found => {
                let has_server = found.is_some_and(|(at, _)| at > 0);
                let text = redact::cut(text, defaults::SUGGESTION_BYTES_MAX).to_owned();
                Err(ToolIdError { text, has_server })
            }
        }
    }
}

/// Writes the id in the form that metamcp returns.
impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{SEPARATOR}{}", self.server, self.tool)
    }
}

impl RequestedTool {
    /// Returns the possible tools, the most likely first; at least one.
    ///
    /// With a server in a field of its own, the tool's name is taken literally, since some names
    /// contain a separator. But some models write the server twice.
    ///
    /// # Errors
    ///
    /// [`ToolIdError`] if no server is named.
    pub fn readings(&self) -> Result<Vec<ToolId>, ToolIdError> {
        let Some(server) = &self.server else { return Ok(vec![ToolId::parse(&self.tool)?]) };
        let literal = ToolId::new(server, &self.tool);
        let twice = ToolId::parse(&self.tool).ok().filter(|found| found.server == *server);
        Ok([Some(literal), twice].into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn requested(server: Option<&str>, tool: &str) -> RequestedTool {
        RequestedTool { server: server.map(str::to_owned), tool: tool.to_owned() }
    }

    #[test]
    fn a_tool_id_is_read_with_any_separator() {
        for (text, server, tool) in [
            ("git/log", "git", "log"),
            ("git:log", "git", "log"),
            ("git__log", "git", "log"),
            ("git/log:x__y", "git", "log:x__y"),
            ("git:log/x", "git", "log/x"),
            ("my_git__log_all", "my_git", "log_all"),
        ] {
            assert_eq!(ToolId::parse(text), Ok(ToolId::new(server, tool)), "{text}");
            assert_eq!(requested(None, text).readings(), Ok(vec![ToolId::new(server, tool)]));
        }
    }

    #[test]
    fn a_text_without_a_server_or_a_tool_is_refused() {
        for (text, missing) in [
            ("", "no server in front"),
            ("log", "no server in front"),
            ("/log", "no server in front"),
            ("__", "no server in front"),
            (":", "no server in front"),
            ("a_b", "no server in front"),
            ("git/", "no tool follows the server"),
            ("git__", "no tool follows the server"),
        ] {
            let error = ToolId::parse(text).expect_err(text).to_string();
            assert!(error.contains(missing), "{error}");
        }
        let long = "x".repeat(10_000);
        assert!(ToolId::parse(&long).expect_err("no separator").to_string().len() < 300);
    }

    #[test]
    fn a_server_that_a_model_writes_twice_counts_once_unless_the_tool_has_that_name() {
        let git = |tool: &str| ToolId::new("git", tool);
        let of = |server, tool| requested(Some(server), tool).readings().expect("a server");
        assert_eq!(of("git", "log"), [git("log")]);
        assert_eq!(of("git", "git/log"), [git("git/log"), git("log")]);
        assert_eq!(of("git", "git__log"), [git("git__log"), git("log")]);
        assert_eq!(of("git", "hub/log"), [git("hub/log")]);
    }

    proptest! {
        #[test]
        fn a_returned_tool_id_reads_back_as_the_same_tool(server in "[a-z0-9]{1,9}", tool in ".{1,20}") {
            let id = ToolId::new(server, tool);
            prop_assert_eq!(ToolId::parse(&id.to_string()), Ok(id));
        }

        #[test]
        fn any_text_is_a_tool_id_or_an_error(text in ".{0,50}") {
            drop(ToolId::parse(&text));
        }
    }
}
