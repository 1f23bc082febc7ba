//! The reply to a provisioning request. Pure.
//!
//! ```text
//!  known tools ───────────┐ the best of the two, tools first          "local" / "catalog"
//!  declared servers ──────┘ good: the registry is not asked
//!  a registry ────────────── after them, if none is good              "registry" if alone
//!                                                                      "none"
//! ```

use serde::Serialize;

use crate::{
    config::defaults,
    protocol::{ObjectMembers, list_page::ListItem},
    redact::{cut, sanitize},
    server_name::ServerName,
};

/// The reply to a provisioning request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProvisionReply {
    /// The source of the best match.
    pub source: MatchSource,
    /// Tools that can be called now, the best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<CallableTool>,
    /// Servers that are not in use, best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<ServerMatch>,
    /// The server that was started, or that failed to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// The next step for the caller.
    pub message: String,
}

/// The source of the best match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchSource {
    /// A server in use.
    Local,
    /// A server declared under `[provision.servers]`.
    Catalog,
    /// A registry; the server is not declared.
    Registry,
    /// No match.
    None,
}

/// A tool that can be called now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallableTool {
    /// The name of the tool on its server.
    pub tool: String,
    /// The name of the server.
    pub server: ServerName,
    /// The description of the tool.
    pub description: String,
    /// The share of the request that it covers.
    pub confidence: f64,
}

/// A server that is not in use.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ServerMatch {
    /// A declared server.
    Declared(ExistingServer),
    /// A server that a registry lists.
    Listed(ListedServer),
}

/// A declared server, not in use before this request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExistingServer {
    /// The name of the server.
    pub name: ServerName,
    /// The description of the server.
    pub description: String,
    /// The share of the request that it covers.
    pub confidence: f64,
    /// Its namespace is trusted.
    pub trusted: bool,
    /// It was started.
    pub started: bool,
    /// The words that made the confidence, and the reason why it was started or not.
    pub reason: String,
}

/// A server that a registry lists. It is never started.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedServer {
    /// The name in the registry.
    pub name: String,
    /// The publisher's description.
    pub description: String,
    /// The share of the request that it covers.
    pub confidence: f64,
    /// The declaration that an operator could use.
    pub install: String,
}

impl CallableTool {
    pub(super) fn new(server: &ServerName, tool: &ListItem, confidence: f64) -> Self {
        let description =
            ObjectMembers::read(tool.json()).and_then(|tool| tool.string("description"));
        let description = display_text(&description.unwrap_or_default());
        Self { tool: tool.key.clone(), server: server.clone(), description, confidence }
    }
}

/// Returns a text for a suggestion: sanitized, on one line, and cut to a length that is read.
pub(super) fn display_text(text: &str) -> String {
    let line = sanitize(text);
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let beginning = cut(&line, defaults::SUGGESTION_TEXT_BYTES_MAX);
    if beginning.len() < line.len() { format!("{beginning}…") } else { line }
}

impl ProvisionReply {
    /// Returns the reply that nothing was found, with advice.
    pub(super) fn nothing(message: impl Into<String>) -> Self {
        Self::from(MatchSource::None, message)
    }

    pub(super) fn from(source: MatchSource, message: impl Into<String>) -> Self {
        let (tools, matches) = (Vec::new(), Vec::new());
        Self { source, tools, matches, server: None, message: message.into() }
    }

    /// Returns whether a match is so good that the registry need not be asked.
    pub(super) fn is_sufficient(&self) -> bool {
        let confidence = |found: &ServerMatch| match found {
            ServerMatch::Declared(server) => server.confidence,
            ServerMatch::Listed(server) => server.confidence,
        };
        let tools = self.tools.iter().map(|tool| tool.confidence);
        let mut all = tools.chain(self.matches.iter().map(confidence));
        // A server that was started is the match.
        self.server.is_some() || all.any(|found| found >= defaults::MATCH_CONFIDENCE_GOOD)
    }

    /// Adds the entries of a registry after the other matches, and the reason if it failed.
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
            let old = if listed.is_empty() { "" } else { ", so these entries may be old" };
            self.message =
                format!("{} The registry gave no usable answer{old}: {failure}.", self.message);
        }
        self.matches.extend(listed.into_iter().map(ServerMatch::Listed));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_text_becomes_one_bounded_line() {
        assert_eq!(display_text("  two\n\nlines\u{1b}[31m "), "two lines [31m");
        assert_eq!(display_text("b\u{202e}a\u{e0041}ck"), "b a ck");
        let long = display_text(&"ä".repeat(400));
        assert!(long.ends_with('…') && long.len() <= defaults::SUGGESTION_TEXT_BYTES_MAX + 3);
    }

    #[test]
    fn a_registry_match_comes_after_the_declared_matches() {
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
        assert_eq!(failed.message, "Nothing. The registry gave no usable answer: gone .");
        let old = nothing().with_listed(vec![listed()], Some("gone".into()));
        assert_eq!(old.source, MatchSource::Registry);
        assert!(old.message.ends_with("so these entries may be old: gone."), "{}", old.message);
    }

    #[test]
    fn a_likely_match_or_a_started_server_makes_a_further_search_unnecessary() {
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
