//! What is answered to somebody who asks for a server. Pure.
//!
//! ```text
//!  tools that are there ──┐ the surest of the two, tools first        "local" / "catalog"
//!  declared servers ──────┘ good: nothing else is looked at
//!  a registry ────────────── after them, where none is good           "registry" if it is alone
//!                                                                      "none"
//! ```

use serde::Serialize;

use super::{matching::Fit, trust::Verdict};
use crate::{
    config::{Provisionable, defaults},
    name::ServerName,
    redact::cut,
};

/// What is answered to somebody who asks for a server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Provisioned {
    /// Where the best match is from.
    pub source: Source,
    /// Tools that can be called now, the best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<FoundTool>,
    /// Servers that are not there, the best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<Match>,
    /// The server that was started, or would have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// What to do next.
    pub message: String,
}

/// Where the best match is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
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
pub struct FoundTool {
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
pub enum Match {
    /// One that is declared.
    Declared(DeclaredServer),
    /// One that a registry lists.
    Listed(ListedServer),
}

/// A declared server that was not there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeclaredServer {
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

impl FoundTool {
    /// Returns the tool of which `json` is the definition.
    pub(super) fn new(server: &ServerName, tool: &str, json: &str, confidence: f64) -> Self {
        #[derive(serde::Deserialize)]
        struct Described {
            description: Option<String>,
        }
        let described = serde_json::from_str::<Described>(json).ok();
        let description = described.and_then(|found| found.description).unwrap_or_default();
        let (tool, server) = (tool.to_owned(), server.clone());
        Self { tool, server, description: shown(&description), confidence }
    }
}

impl DeclaredServer {
    /// Returns a server that fits and was not started.
    pub(super) fn new(
        name: &ServerName,
        server: &Provisionable,
        fit: &Fit,
        verdict: &Verdict,
    ) -> Self {
        Self {
            name: name.clone(),
            description: shown(&server.description),
            confidence: fit.confidence,
            trusted: verdict.trust.is_ok(),
            started: false,
            reason: format!("{fit}; {verdict}"),
        }
    }
}

/// Returns a text fit to be shown in a suggestion: on one line, and not longer than is read.
pub(super) fn shown(text: &str) -> String {
    let line = text.replace(char::is_control, " ");
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let beginning = cut(&line, defaults::SUGGESTION_TEXT_BYTES_MAX);
    if beginning.len() < line.len() { format!("{beginning}…") } else { line }
}

impl Provisioned {
    /// Returns that nothing was found, and what could be done.
    pub(super) fn nothing(message: impl Into<String>) -> Self {
        Self::from(Source::None, message)
    }

    pub(super) fn from(source: Source, message: impl Into<String>) -> Self {
        let (tools, matches) = (Vec::new(), Vec::new());
        Self { source, tools, matches, server: None, message: message.into() }
    }

    /// Adds what a registry lists, after what is declared.
    pub(super) fn and_listed(mut self, listed: Vec<ListedServer>) -> Self {
        if listed.is_empty() {
            return self;
        }
        if self.source == Source::None {
            self.source = Source::Registry;
            self.message =
                "Not declared here, so it cannot be started: suggest to the operator to declare one."
                    .to_owned();
        }
        self.matches.extend(listed.into_iter().map(Match::Listed));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_from_elsewhere_is_one_line_that_ends() {
        assert_eq!(shown("  two\n\nlines\u{1b}[31m "), "two lines [31m");
        let long = shown(&"ä".repeat(400));
        assert!(long.ends_with('…') && long.len() <= defaults::SUGGESTION_TEXT_BYTES_MAX + 3);
    }

    #[test]
    fn what_a_registry_lists_comes_after_what_is_declared() {
        let listed = || {
            let text = || "x".to_owned();
            vec![ListedServer {
                name: text(),
                description: text(),
                confidence: 1.0,
                install: text(),
            }]
        };
        let alone = Provisioned::nothing("Nothing.").and_listed(listed());
        assert_eq!((alone.source, alone.matches.len()), (Source::Registry, 1));
        let after = Provisioned::from(Source::Catalog, "Weak.").and_listed(listed());
        assert_eq!((after.source, after.message.as_str()), (Source::Catalog, "Weak."));
        assert_eq!(Provisioned::nothing("Nothing.").and_listed(Vec::new()).source, Source::None);
    }
}
