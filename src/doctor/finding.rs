//! A finding: its severity, its reason, and its fix.
//!
//! Pure.

use std::path::PathBuf;

use serde::Serialize;

use crate::server_name::ServerName;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    /// No problem.
    Ok,
    /// A fact that needs no action.
    Note,
    /// A problem that does not prevent operation.
    Warning,
    /// A problem that prevents operation.
    Error,
}

/// The subject area of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingArea {
    /// The configuration and its source.
    Configuration,
    /// The running service and its environment.
    Service,
    /// The sockets that the service listens on.
    Sockets,
    /// The permissions of files and directories.
    Permissions,
    /// The servers.
    Servers,
    /// The names of tools, and their number.
    Names,
    /// The isolation of scripts.
    Scripts,
    /// The systemd unit.
    Unit,
    /// The system clock.
    Clock,
    /// The available memory.
    Memory,
}

/// One result of the examination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The severity.
    pub level: FindingSeverity,
    /// The subject area.
    pub area: FindingArea,
    /// The server concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// The observation.
    pub what: String,
    /// The reason, or the consequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The option of the NixOS module that fixes the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nix: Option<String>,
    /// The fix that `metamcp doctor` itself can apply.
    #[serde(skip)]
    pub repair: Option<Repair>,
}

/// A fix that `metamcp doctor` can apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Remove a control socket that no process listens at.
    RemoveSocket(PathBuf),
    /// Create a system group.
    MakeGroup(String),
}

/// Returns a number with its noun: `1 tool`, `2 tools`.
pub(super) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

impl FindingSeverity {
    /// Returns the name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Finding {
    pub(super) fn new(level: FindingSeverity, area: FindingArea, what: impl Into<String>) -> Self {
        Self {
            level,
            area,
            server: None,
            what: what.into(),
            why: None,
            fix: None,
            nix: None,
            repair: None,
        }
    }

    pub(super) fn ok(area: FindingArea, what: impl Into<String>) -> Self {
        Self::new(FindingSeverity::Ok, area, what)
    }

    pub(super) fn note(area: FindingArea, what: impl Into<String>) -> Self {
        Self::new(FindingSeverity::Note, area, what)
    }

    pub(super) fn warning(area: FindingArea, what: impl Into<String>) -> Self {
        Self::new(FindingSeverity::Warning, area, what)
    }

    pub(super) fn error(area: FindingArea, what: impl Into<String>) -> Self {
        Self::new(FindingSeverity::Error, area, what)
    }

    pub(super) fn of(mut self, server: &ServerName) -> Self {
        self.server = Some(server.clone());
        self
    }

    pub(super) fn because(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub(super) fn repair(mut self, repair: Repair) -> Self {
        self.repair = Some(repair);
        self
    }

    pub(super) fn nix(mut self, nix: impl Into<String>) -> Self {
        self.nix = Some(nix.into());
        self
    }
}
