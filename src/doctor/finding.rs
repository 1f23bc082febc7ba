//! What was found. Pure.

use serde::Serialize;

/// How bad it is, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth to know.
    Note,
    /// Something may go wrong.
    Warning,
    /// Something does not work.
    Error,
}

/// What was found about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// What was looked at, as in `server git`.
    pub subject: String,
    /// What is the case.
    pub what: String,
    /// Why that matters, or what shows it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// What to set instead on NixOS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nix: Option<String>,
}

impl Finding {
    /// Returns a finding without a reason and a remedy.
    pub fn new(level: Level, subject: impl Into<String>, what: impl Into<String>) -> Self {
        let (subject, what) = (subject.into(), what.into());
        Self { level, subject, what, why: Vec::new(), fix: None, nix: None }
    }

    /// Adds a line that says why it matters, or what shows it.
    #[must_use]
    pub fn why(mut self, line: impl Into<String>) -> Self {
        self.why.push(line.into());
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Adds what to set instead on NixOS.
    #[must_use]
    pub fn nix(mut self, nix: impl Into<String>) -> Self {
        self.nix = Some(nix.into());
        self
    }

    /// Returns the finding with what to do about it on NixOS in the place of what to do elsewhere.
    #[must_use]
    pub fn on_nix(mut self) -> Self {
        self.fix = self.nix.clone().or(self.fix);
        self
    }
}

/// Returns how many findings are of a level.
pub fn count(findings: &[Finding], level: Level) -> usize {
    findings.iter().filter(|finding| finding.level == level).count()
}
