//! The reload of the configuration as data: the description of a change, and the trait of all that
//! a change reaches.
//!
//! ```text
//!  check ──▶ describe ──▶ apply
//!  file, certificate,     a ConfigChange to each part,
//!  token, addresses       in the order of the daemon's list
//! ```
//!
//! A refused file changes nothing, because these checks come before the first part is reached. What
//! compiles holds the rest:
//!
//! - A new field of the daemon does not compile until `daemon::reload` has it in its list of parts,
//!   or says that a reload does not concern it.
//! - A new part of the description does not compile until the daemon supplies it.
//! - A new section of [`Config`] does not compile until `daemon::reload` says that a reload applies
//!   it, or names it among those that need a restart.
//! - A new key compiles. A part gets its whole section, or reads the key from the current
//!   configuration at each use; only a key that is read once needs more.
//!
//! Parts above this module implement [`Reconfigure`] here, and those below it in their own module.

use std::sync::Arc;

use crate::{
    bearer_token::{BearerToken, CurrentToken},
    config::{Config, ServerConfigs},
    memory_budget::MemoryBudget,
    server_name::ServerName,
    telemetry::log::LogControl,
    tls::{CurrentTls, TlsIdentity},
};

/// A part of the service that takes another configuration while it runs.
pub trait Reconfigure {
    /// Applies a change. It was checked before, so it is not refused.
    fn reconfigure(&self, change: &ConfigChange);
}

/// The checked difference between two configurations.
#[derive(Debug, Default)]
pub struct ConfigChange {
    /// The configuration in force until now.
    pub old: Arc<Config>,
    /// The configuration in force from now on.
    pub new: Arc<Config>,
    /// The servers in force from now on: the declared and the added ones.
    pub servers: ServerConfigs,
    /// The servers that differ from those in force until now.
    pub diff: ServerDiff,
    /// The certificate that `new` declares.
    pub identity: Option<Arc<TlsIdentity>>,
    /// The token that `new` declares.
    pub token: Option<BearerToken>,
}

/// The servers that a change adds, removes or declares differently. It touches no others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerDiff {
    /// The servers in force only after the change.
    pub added: Vec<ServerName>,
    /// The servers in force only before it.
    pub removed: Vec<ServerName>,
    /// The servers declared differently before and after it.
    pub changed: Vec<ServerName>,
}

impl Reconfigure for LogControl {
    fn reconfigure(&self, change: &ConfigChange) {
        self.set(change.new.service.log_level);
    }
}

impl Reconfigure for &'static MemoryBudget {
    fn reconfigure(&self, change: &ConfigChange) {
        self.configure(&change.new.service);
    }
}

impl Reconfigure for CurrentTls {
    fn reconfigure(&self, change: &ConfigChange) {
        if self.replace(change.identity.clone()) {
            let tls = change.identity.is_some();
            tracing::info!(tls, "new connections use the new `listen.tls`");
        }
    }
}

impl Reconfigure for CurrentToken {
    fn reconfigure(&self, change: &ConfigChange) {
        if self.replace(change.token) {
            let token = change.token.is_some();
            tracing::info!(token, "new requests are checked against the new `listen.token`");
        }
    }
}
