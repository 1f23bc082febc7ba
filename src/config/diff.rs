//! The servers that a new configuration changes; a reload touches no others.

use super::Config;
use crate::server_name::ServerName;

/// The servers that a new configuration adds, removes or changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerDiff {
    /// The servers declared only in the new configuration.
    pub added: Vec<ServerName>,
    /// The servers declared only in the old one.
    pub removed: Vec<ServerName>,
    /// The servers declared differently in both.
    pub changed: Vec<ServerName>,
}

impl ServerDiff {
    /// Compares the servers of two configurations.
    pub fn between(old: &Config, new: &Config) -> Self {
        let mut diff = Self::default();
        for (name, server) in &new.servers {
            match old.servers.get(name) {
                None => diff.added.push(name.clone()),
                Some(before) if before != server => diff.changed.push(name.clone()),
                Some(_) => {}
            }
        }
        diff.removed
            .extend(old.servers.keys().filter(|name| !new.servers.contains_key(*name)).cloned());
        diff
    }
}
