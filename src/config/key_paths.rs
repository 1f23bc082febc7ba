//! All keys of the configuration, from the schema: their paths and the kinds of their values.

use std::sync::LazyLock;

use serde_json::Value;

use super::schema;

/// All keys, including tables that have keys of their own. Sections are not keys.
pub(super) static KEYS: LazyLock<Vec<ConfigKey>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    collect(&schema::schema(), &mut Vec::new(), &mut keys);
    keys
});

/// One key.
#[derive(Clone, Debug)]
pub(super) struct ConfigKey {
    /// The path of the key.
    pub(super) path: Vec<KeySegment>,
    /// The kind of its value.
    pub(super) kind: ValueKind,
    /// `true` for a table that has keys of its own.
    pub(super) has_keys: bool,
    /// The value if the key is not set.
    pub(super) default: Option<Value>,
}

/// One part of the path of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeySegment {
    /// This name.
    Name(String),
    /// The name of any server.
    Server,
}

/// The kind of value that a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// A text, a word or a duration.
    Text,
    /// A number or a boolean.
    Plain,
    /// A list or a table.
    Compound,
    /// A word, or a table.
    Either,
}

impl ConfigKey {
    /// Returns whether `path` is the path of this key.
    pub(super) fn has_path(&self, path: &[String]) -> bool {
        self.path.len() == path.len()
            && self.path.iter().zip(path).all(|(segment, name)| match segment {
                KeySegment::Name(known) => known == name,
                KeySegment::Server => true,
            })
    }

    /// Returns the path of this key for the server of this name.
    pub(super) fn path_for(&self, server: &str) -> Vec<String> {
        let names = self.path.iter().map(|segment| match segment {
            KeySegment::Name(name) => name.as_str(),
            KeySegment::Server => server,
        });
        names.map(str::to_owned).collect()
    }

    /// Returns the name of the section.
    pub(super) fn section(&self) -> Option<&str> {
        match self.path.first() {
            Some(KeySegment::Name(name)) => Some(name),
            Some(KeySegment::Server) | None => None,
        }
    }

    /// Returns whether the key is of a server.
    pub(super) fn is_of_server(&self) -> bool {
        self.path.contains(&KeySegment::Server)
    }

    /// Returns whether the key is in a table that may be absent, such as `listen.tls`.
    pub(super) fn is_in_optional_table(&self) -> bool {
        let path = self.path_for("NAME");
        let table = path.split_last().and_then(|(_, table)| find(table));
        !self.is_of_server() && table.is_some_and(|table| table.has_keys)
    }
}

/// Returns the key at `path`.
pub(super) fn find(path: &[String]) -> Option<&'static ConfigKey> {
    KEYS.iter().find(|key| key.has_path(path))
}

/// Returns the names of the sections: the first parts of the keys.
pub(super) fn sections() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    KEYS.iter().filter_map(ConfigKey::section).filter(move |name| {
        let is_new = *name != last;
        last = *name;
        is_new
    })
}

fn collect(schema: &Value, path: &mut Vec<KeySegment>, keys: &mut Vec<ConfigKey>) {
    // A section, and the table of all servers, are not keys; only their contents are.
    let is_key = path.len() > 1 && !matches!(path.last(), Some(KeySegment::Server));
    let children = schema["properties"].as_object();
    let server = &schema["additionalProperties"];
    let server = server.get("properties").is_some().then_some(server);
    if is_key && server.is_none() {
        let has_keys = children.is_some();
        let default = schema.get("default").cloned();
        keys.push(ConfigKey { path: path.clone(), kind: kind(schema), has_keys, default });
    }
    for (name, child) in children.into_iter().flatten() {
        path.push(KeySegment::Name(name.clone()));
        collect(child, path, keys);
        path.pop();
    }
    if let Some(server) = server {
        path.push(KeySegment::Server);
        collect(server, path, keys);
        path.pop();
    }
}

fn kind(schema: &Value) -> ValueKind {
    if schema.get("anyOf").is_some() {
        return ValueKind::Either;
    }
    match schema["type"].as_str() {
        Some("integer" | "number" | "boolean") => ValueKind::Plain,
        Some("array" | "object") => ValueKind::Compound,
        // Words with descriptions have `oneOf` and no `type`.
        _ => ValueKind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_with_the_kind_of_its_value() {
        let kind = |path: &str| {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            find(&path).map(|key| key.kind)
        };
        assert_eq!(kind("pool.size"), Some(ValueKind::Plain));
        assert_eq!(kind("listen.rpc"), Some(ValueKind::Plain));
        assert_eq!(kind("listen.tls"), Some(ValueKind::Compound));
        assert_eq!(kind("listen.tls.certificate"), Some(ValueKind::Text));
        assert_eq!(kind("service.log_level"), Some(ValueKind::Text));
        assert_eq!(kind("search.embedding.url"), Some(ValueKind::Text));
        assert_eq!(kind("servers.git.args"), Some(ValueKind::Compound));
        assert_eq!(kind("servers.git.lifecycle"), Some(ValueKind::Either));
        assert_eq!(kind("servers.git.health.failures"), Some(ValueKind::Plain));
        assert_eq!(kind("provision.servers.git.keywords"), Some(ValueKind::Compound));
        assert_eq!(kind("provision.registry.ttl"), Some(ValueKind::Text));
        assert_eq!(kind("servers.git.namespace"), None);
        assert_eq!(kind("pool"), None);
        assert!(sections().any(|section| section == "tasks"));
        let unknown: Vec<_> =
            KEYS.iter().filter(|key| key.path_for("NAME").iter().any(String::is_empty)).collect();
        assert!(unknown.is_empty() && KEYS.len() > 80, "{} keys", KEYS.len());
    }
}
