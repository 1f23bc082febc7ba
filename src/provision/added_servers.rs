//! The set of servers that were added to the declared ones. Pure.
//!
//! An added server counts as declared under `[servers]` while it is declared under
//! `[provision.servers]`. The servers in force are then compared as after any reload.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    config::{Config, ServerConfigs},
    server_name::ServerName,
};

/// The current configuration, and the servers that were added.
#[derive(Clone, Debug)]
pub(super) struct AddedServers {
    pub(super) config: Arc<Config>,
    names: BTreeSet<ServerName>,
}

impl AddedServers {
    /// Returns the set for `config`, with no server added.
    pub(super) fn new(config: Arc<Config>) -> Self {
        Self { config, names: BTreeSet::new() }
    }

    /// Returns the set with another server; `None` if it was added before, or is not declared.
    pub(super) fn with(&self, name: &ServerName) -> Option<Self> {
        let mut added = self.clone();
        (may_be_added(&self.config, name) && added.names.insert(name.clone())).then_some(added)
    }

    /// Returns the set under another configuration. An added server stays if it is still declared.
    pub(super) fn under(&self, config: &Arc<Config>) -> Self {
        let is_kept = |name: &&ServerName| may_be_added(config, name);
        let names = self.names.iter().filter(is_kept).cloned().collect();
        Self { config: Arc::clone(config), names }
    }

    /// Returns the servers in force: the declared and the added ones.
    pub(super) fn in_force(&self) -> ServerConfigs {
        let mut servers = self.config.servers.clone();
        let provisionable = &self.config.provision.servers;
        let added = self
            .names
            .iter()
            .filter_map(|name| Some((name.clone(), Arc::clone(&provisionable.get(name)?.server))));
        servers.extend(added);
        servers
    }
}

fn may_be_added(config: &Config, name: &ServerName) -> bool {
    config.provision.is_enabled && config.provision.servers.contains_key(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ServerConfig, TransportConfig, load::parsed};

    fn name(text: &str) -> ServerName {
        ServerName::new(text).expect("a name")
    }

    fn config(text: &str) -> Arc<Config> {
        Arc::new(parsed(text))
    }

    const WAITING: &str = "[servers.there]\ncommand = \"x\"\n\
        [provision.servers.a]\ncommand = \"a\"\ndescription = \"does\"\n\
        [provision.servers.b]\ncommand = \"b\"\ndescription = \"does\"\n";

    /// Returns the servers in force, each with its transport.
    fn in_force(added: &AddedServers) -> Vec<(String, String)> {
        let servers = added.in_force();
        let command = |server: &ServerConfig| match &server.transport {
            TransportConfig::Stdio { command, .. } => command.clone(),
            other => panic!("a command, not {other:?}"),
        };
        servers.iter().map(|(name, server)| (name.to_string(), command(server))).collect()
    }

    fn servers(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, command)| ((*name).to_owned(), (*command).to_owned())).collect()
    }

    #[test]
    fn a_dormant_server_is_added_once_and_an_undeclared_server_is_never_added() {
        let before = AddedServers::new(config(WAITING));
        assert_eq!(in_force(&before), servers(&[("there", "x")]));
        let added = before.with(&name("a")).expect("it waits");
        assert_eq!(in_force(&added), servers(&[("a", "a"), ("there", "x")]));
        assert!(added.with(&name("a")).is_none(), "it is there");
        assert!(added.with(&name("there")).is_none(), "it was there from the start");
        assert!(added.with(&name("unheard-of")).is_none());
        let off = AddedServers::new(config(&format!("[provision]\nenabled = false\n{WAITING}")));
        assert!(off.with(&name("a")).is_none());
    }

    #[test]
    fn a_reload_keeps_what_was_added_as_long_as_it_is_declared() {
        let there = ("there", "x");
        for (what, after, expected) in [
            ("the same", WAITING.to_owned(), &[("a", "a"), there][..]),
            (
                "another program",
                WAITING.replace("command = \"a\"", "command = \"other\""),
                &[("a", "other"), there],
            ),
            ("another description", WAITING.replace("does", "does it"), &[("a", "a"), there]),
            ("no longer declared", "[servers.there]\ncommand = \"x\"\n".to_owned(), &[there]),
            ("switched off", format!("[provision]\nenabled = false\n{WAITING}"), &[there]),
            (
                "there from the start now",
                "[servers.there]\ncommand = \"x\"\n[servers.a]\ncommand = \"a\"\n".to_owned(),
                &[("a", "a"), there],
            ),
        ] {
            let added = AddedServers::new(config(WAITING)).with(&name("a")).expect("it waits");
            assert_eq!(in_force(&added.under(&config(&after))), servers(expected), "{what}");
        }
    }

    #[test]
    fn a_dormant_server_that_is_removed_and_declared_again_can_be_added_again() {
        let added = AddedServers::new(config(WAITING)).with(&name("a")).expect("it waits");
        let added = added.under(&config("")).under(&config(WAITING));
        assert_eq!(in_force(&added), servers(&[("there", "x")]));
        assert!(added.with(&name("a")).is_some());
    }
}
