//! The set of servers that were added to the declared ones. Pure.
//!
//! An added server counts as declared under `[servers]` while it is declared under
//! `[provision.servers]`. The effective configuration is then compared as after any reload.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    config::{Config, diff::ServerDiff},
    server_name::ServerName,
};

/// The configuration file, and the servers that were added.
#[derive(Debug)]
pub(super) struct AddedServers {
    config: Arc<Config>,
    names: BTreeSet<ServerName>,
}

/// The new effective configuration, and its difference from the last one.
#[derive(Debug)]
pub(super) struct ServerSetChange {
    pub(super) config: Config,
    pub(super) diff: ServerDiff,
}

impl AddedServers {
    /// Returns the set for `config`, with no server added.
    pub(super) fn new(config: Arc<Config>) -> Self {
        Self { config, names: BTreeSet::new() }
    }

    /// Adds a server. Returns `None` if it was added before, or is not declared.
    pub(super) fn add(&mut self, name: &ServerName) -> Option<ServerSetChange> {
        if !may_be_added(&self.config, name) || self.names.contains(name) {
            return None;
        }
        let before = self.in_force();
        self.names.insert(name.clone());
        Some(self.change_from(&before))
    }

    /// Applies another configuration. An added server stays if it is still declared.
    pub(super) fn replace(&mut self, config: Arc<Config>) -> ServerSetChange {
        let before = self.in_force();
        self.config = config;
        self.names.retain(|name| may_be_added(&self.config, name));
        self.change_from(&before)
    }

    fn change_from(&self, before: &Config) -> ServerSetChange {
        let config = self.in_force();
        ServerSetChange { diff: ServerDiff::between(before, &config), config }
    }

    fn in_force(&self) -> Config {
        let mut config = Config::clone(&self.config);
        let provisionable = &self.config.provision.servers;
        let added = self
            .names
            .iter()
            .filter_map(|name| Some((name.clone(), Arc::clone(&provisionable.get(name)?.server))));
        config.servers.extend(added);
        config
    }
}

fn may_be_added(config: &Config, name: &ServerName) -> bool {
    config.provision.is_enabled && config.provision.servers.contains_key(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::parsed;

    fn name(text: &str) -> ServerName {
        ServerName::new(text).expect("a name")
    }

    fn names(all: &[&str]) -> Vec<ServerName> {
        all.iter().copied().map(name).collect()
    }

    fn config(text: &str) -> Arc<Config> {
        Arc::new(parsed(text))
    }

    const WAITING: &str = "[servers.there]\ncommand = \"x\"\n\
        [provision.servers.a]\ncommand = \"a\"\ndescription = \"does\"\n\
        [provision.servers.b]\ncommand = \"b\"\ndescription = \"does\"\n";

    #[test]
    fn a_dormant_server_is_added_once_and_an_undeclared_server_is_never_added() {
        let mut added = AddedServers::new(config(WAITING));
        let change = added.add(&name("a")).expect("it waits");
        assert_eq!(change.diff.added, names(&["a"]));
        assert!(change.diff.removed.is_empty() && change.diff.changed.is_empty());
        assert!(
            change.config.servers.contains_key("there") && !change.config.servers.contains_key("b")
        );
        assert!(added.add(&name("a")).is_none(), "it is there");
        assert!(added.add(&name("there")).is_none(), "it was there from the start");
        assert!(added.add(&name("unheard-of")).is_none());
        let mut off =
            AddedServers::new(config(&format!("[provision]\nenabled = false\n{WAITING}")));
        assert!(off.add(&name("a")).is_none());
    }

    #[test]
    fn a_reload_keeps_what_was_added_as_long_as_it_is_declared() {
        for (what, after, expected) in [
            ("the same", WAITING.to_owned(), ServerDiff::default()),
            (
                "another program",
                WAITING.replace("command = \"a\"", "command = \"other\""),
                ServerDiff { changed: names(&["a"]), ..ServerDiff::default() },
            ),
            ("another description", WAITING.replace("does", "does it"), ServerDiff::default()),
            (
                "no longer declared",
                "[servers.there]\ncommand = \"x\"\n".to_owned(),
                ServerDiff { removed: names(&["a"]), ..ServerDiff::default() },
            ),
            (
                "switched off",
                format!("[provision]\nenabled = false\n{WAITING}"),
                ServerDiff { removed: names(&["a"]), ..ServerDiff::default() },
            ),
            (
                "there from the start now",
                "[servers.there]\ncommand = \"x\"\n[servers.a]\ncommand = \"a\"\n".to_owned(),
                ServerDiff::default(),
            ),
        ] {
            let mut added = AddedServers::new(config(WAITING));
            added.add(&name("a")).expect("it waits");
            let change = added.replace(config(&after));
            assert_eq!(change.diff, expected, "{what}");
        }
    }

    #[test]
    fn a_dormant_server_that_is_removed_and_declared_again_can_be_added_again() {
        let mut added = AddedServers::new(config(WAITING));
        added.add(&name("a")).expect("it waits");
        added.replace(config(""));
        let change = added.replace(config(WAITING));
        assert_eq!(change.diff.added, names(&["there"]));
        assert!(added.add(&name("a")).is_some());
    }
}
