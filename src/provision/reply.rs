//! What is answered to somebody who asks for a server. Pure.
//!
//! ```text
//!  tools that are there ──┐ the surest of the two, tools first        "local" / "catalog"
//!  declared servers ──────┘ good: nothing else is looked at
//!  a registry ────────────── after them, where none is good           "registry" if it is alone
//!                                                                      "none"
//! ```

use serde::Serialize;

use crate::{
    config::defaults,
    name::ServerName,
    protocol::{ObjectMembers, list_page::ListItem},
    redact::{cut, sanitize},
};

/// What is answered to somebody who asks for a server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProvisionReply {
    /// Where the best match is from.
    pub source: MatchSource,
    /// Tools that can be called now, the best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<CallableTool>,
    /// Servers that are not there, the best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<ServerMatch>,
    /// The server that was started, or would have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// What to do next.
    pub message: String,
}

/// Where the best match is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchSource {
    /// It is there.
    Local,
    /// It is declared to be there when somebody asks for it.
    Catalog,
    /// It is known to a registry, and not declared.
    Registry,
    /// There is none.
    None,
}

/// A tool that can be called now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallableTool {
    /// Its name, as its server has it.
    pub tool: String,
    /// Its server.
    pub server: ServerName,
    /// What it does.
    pub description: String,
    /// How much of what is wanted it covers.
    pub confidence: f64,
}

/// A server that is not there.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ServerMatch {
    /// One that is declared.
    Declared(ExistingServer),
    /// One that a registry lists.
    Listed(ListedServer),
}

/// A declared server that was not there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExistingServer {
    /// Its name.
    pub name: ServerName,
    /// What it is for.
    pub description: String,
    /// How much of what is wanted it covers.
    pub confidence: f64,
    /// Whether its namespace is trusted.
    pub trusted: bool,
    /// Whether it was started.
    pub started: bool,
    /// Which words made the confidence, and why it was started or not.
    pub reason: String,
}

/// A server that a registry lists. It is never started.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedServer {
    /// Its name there.
    pub name: String,
    /// What it is for, in the words of whoever published it.
    pub description: String,
    /// How much of what is wanted it covers.
    pub confidence: f64,
    /// What an operator could declare.
    pub install: String,
}

impl CallableTool {
    /// Returns a tool of `server`.
    pub(super) fn new(server: &ServerName, tool: &ListItem, confidence: f64) -> Self {
        let description =
            ObjectMembers::read(tool.json()).and_then(|tool| tool.string("description"));
        let description = display_text(&description.unwrap_or_default());
        Self { tool: tool.key.clone(), server: server.clone(), description, confidence }
    }
}

/// Returns a text fit to be shown in a suggestion: tame, on one line, and not longer than is read.
pub(super) fn display_text(text: &str) -> String {
    let line = sanitize(text);
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let beginning = cut(&line, defaults::SUGGESTION_TEXT_BYTES_MAX);
    if beginning.len() < line.len() { format!("{beginning}…") } else { line }
}

impl ProvisionReply {
    /// Returns that nothing was found, and what could be done.
    pub(super) fn nothing(message: impl Into<String>) -> Self {
        Self::from(MatchSource::None, message)
    }

    pub(super) fn from(source: MatchSource, message: impl Into<String>) -> Self {
        let (tools, matches) = (Vec::new(), Vec::new());
        Self { source, tools, matches, server: None, message: message.into() }
    }

    /// Tells whether it has something that is worth no look elsewhere.
    pub(super) fn is_sufficient(&self) -> bool {
        let sureness = |found: &ServerMatch| match found {
            ServerMatch::Declared(server) => server.confidence,
            ServerMatch::Listed(server) => server.confidence,
        };
        let tools = self.tools.iter().map(|tool| tool.confidence);
        let mut all = tools.chain(self.matches.iter().map(sureness));
        // What was started is what was wanted.
        self.server.is_some() || all.any(|found| found >= defaults::MATCH_CONFIDENCE_GOOD)
    }

    /// Adds what a registry lists, after what is declared, and why that is nothing, or old.
    pub(super) fn with_listed(
        mut self,
        listed: Vec<ListedServer>,
        failure: Option<String>,
    ) -> Self {
        if self.source == MatchSource::None && !listed.is_empty() {
            self.source = MatchSource::Registry;
            "Listed by a registry and not declared here, so it cannot be started: suggest it to the operator."
                .clone_into(&mut self.message);
        }
        if let Some(failure) = failure {
            let failure = sanitize(&failure);
            let old = if listed.is_empty() { "" } else { ", so that this may be old" };
            self.message = format!("{} The registry has no answer{old}: {failure}.", self.message);
        }
        self.matches.extend(listed.into_iter().map(ServerMatch::Listed));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_from_elsewhere_is_one_line_that_ends() {
        assert_eq!(display_text("  two\n\nlines\u{1b}[31m "), "two lines [31m");
        assert_eq!(display_text("b\u{202e}a\u{e0041}ck"), "b a ck");
        let long = display_text(&"ä".repeat(400));
        assert!(long.ends_with('…') && long.len() <= defaults::SUGGESTION_TEXT_BYTES_MAX + 3);
    }

    #[test]
    fn what_a_registry_lists_comes_after_what_is_declared() {
        let text = || "x".to_owned();
        let listed =
            || ListedServer { name: text(), description: text(), confidence: 1.0, install: text() };
        let nothing = || ProvisionReply::nothing("Nothing.");
        let alone = nothing().with_listed(vec![listed()], None);
        assert_eq!((alone.source, alone.matches.len()), (MatchSource::Registry, 1));
        let after =
            ProvisionReply::from(MatchSource::Catalog, "Weak.").with_listed(vec![listed()], None);
        assert_eq!((after.source, after.message.as_str()), (MatchSource::Catalog, "Weak."));
        let failed = nothing().with_listed(Vec::new(), Some("gone\u{202e}".into()));
        assert_eq!(failed.source, MatchSource::None);
        assert_eq!(failed.message, "Nothing. The registry has no answer: gone .");
        let old = nothing().with_listed(vec![listed()], Some("gone".into()));
        assert_eq!(old.source, MatchSource::Registry);
        assert!(old.message.ends_with("so that this may be old: gone."), "{}", old.message);
    }

    #[test]
    fn what_is_likely_or_was_started_is_worth_no_look_elsewhere() {
        let server = ServerName::new("a").expect("a name");
        let tool = |confidence| CallableTool {
            tool: "t".to_owned(),
            server: server.clone(),
            description: String::new(),
            confidence,
        };
        let found = |confidence| ProvisionReply {
            tools: vec![tool(confidence)],
            ..ProvisionReply::from(MatchSource::Local, "Call it.")
        };
        assert!(found(0.5).is_sufficient() && !found(0.49).is_sufficient());
        let started = ProvisionReply { server: Some(server.clone()), ..found(0.0) };
        assert!(started.is_sufficient());
    }
}
