//! What was found: how grave it is, why, and what to do about it.
//!
//! Pure.

use serde::Serialize;

use crate::name::ServerName;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    /// All is well.
    Ok,
    /// Good to know.
    Note,
    /// It works, and could be better.
    Warning,
    /// It does not work.
    Error,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingArea {
    /// The configuration and where it comes from.
    Configuration,
    /// The sockets that the service listens on.
    Sockets,
    /// Files and directories, and who may use them.
    Permissions,
    /// A server.
    Servers,
    /// What tools are called, and how many there are.
    Names,
    /// The unit of systemd.
    Unit,
    /// What time it is.
    Clock,
    /// How much memory there is.
    Memory,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How grave it is.
    pub level: FindingSeverity,
    /// What it is about.
    pub area: FindingArea,
    /// The server that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// What there is.
    pub what: String,
    /// Why that is so, or why it matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The option of the NixOS module to set for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nix: Option<String>,
}

impl FindingArea {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Sockets => "sockets",
            Self::Permissions => "permissions",
            Self::Servers => "servers",
            Self::Names => "names",
            Self::Unit => "unit",
            Self::Clock => "clock",
            Self::Memory => "memory",
        }
    }
}

impl FindingSeverity {
    /// Returns its name.
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
        Self { level, area, server: None, what: what.into(), why: None, fix: None, nix: None }
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

    /// Says which server it is about.
    pub(super) fn of(mut self, server: &ServerName) -> Self {
        self.server = Some(server.clone());
        self
    }

    /// Says why.
    pub(super) fn because(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// Says what to do.
    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Says which option of the NixOS module to set.
    pub(super) fn nix(mut self, nix: impl Into<String>) -> Self {
        self.nix = Some(nix.into());
        self
    }
}
