//! Every key that there is, as the schema has it: where it stands, and what kind of value it takes.

use std::sync::LazyLock;

use serde_json::Value;

use super::schema;

/// All keys, tables with keys of their own included; sections are not keys.
pub(super) static KEYS: LazyLock<Vec<ConfigKey>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    collect(&schema::schema(), &mut Vec::new(), &mut keys);
    keys
});

/// One key.
#[derive(Clone, Debug)]
pub(super) struct ConfigKey {
    /// Where it stands.
    pub(super) path: Vec<KeySegment>,
    /// What it takes.
    pub(super) kind: ValueKind,
    /// Whether what stands in it are keys of their own.
    pub(super) has_keys: bool,
    /// What it is when nothing is said.
    pub(super) default: Option<Value>,
}

/// One part of a key's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeySegment {
    /// This name.
    Name(String),
    /// The name of any server.
    Server,
}

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// A text, a word or a duration.
    Text,
    /// A number, or true and false.
    Plain,
    /// A list or a table.
    Compound,
    /// A word, or a table.
    Either,
}

impl ConfigKey {
    /// Tells whether `path` is the place of this key.
    pub(super) fn has_path(&self, path: &[String]) -> bool {
        self.path.len() == path.len()
            && self.path.iter().zip(path).all(|(step, name)| match step {
                KeySegment::Name(known) => known == name,
                KeySegment::Server => true,
            })
    }

    /// Tells whether the key stands in a table that need not be there, and then needs others.
    pub(super) fn is_in_optional_table(&self) -> bool {
        let name = |step: &KeySegment| match step {
            KeySegment::Name(name) => name.clone(),
            KeySegment::Server => "NAME".to_owned(),
        };
        let table: Vec<String> = self.path.iter().rev().skip(1).rev().map(name).collect();
        !self.path.contains(&KeySegment::Server) && find(&table).is_some_and(|table| table.has_keys)
    }

    /// Returns the key as it is written in documentation, with `NAME` for a server's name.
    #[cfg(test)]
    pub(super) fn name(&self) -> String {
        let steps = self.path.iter().map(|step| match step {
            KeySegment::Name(name) => name.as_str(),
            KeySegment::Server => "NAME",
        });
        steps.collect::<Vec<_>>().join(".")
    }
}

/// Returns the key at `path`.
pub(super) fn find(path: &[String]) -> Option<&'static ConfigKey> {
    KEYS.iter().find(|key| key.has_path(path))
}

/// Returns the names of the sections: what stands before the first point of a key.
pub(super) fn sections() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    KEYS.iter().filter_map(move |key| match key.path.first() {
        Some(KeySegment::Name(name)) if name != last => {
            last = name;
            Some(name.as_str())
        }
        Some(_) | None => None,
    })
}

fn collect(schema: &Value, path: &mut Vec<KeySegment>, keys: &mut Vec<ConfigKey>) {
    // Of a section, and of the table with all servers, only what is in them.
    let is_key = path.len() > 1 && !matches!(path.last(), Some(KeySegment::Server));
    let children = schema["properties"].as_object();
    let servers = Some(&schema["additionalProperties"]).filter(|server| server.is_object());
    let servers = servers.filter(|server| server.get("properties").is_some());
    if is_key && servers.is_none() {
        let has_keys = children.is_some();
        let default = schema.get("default").cloned();
        keys.push(ConfigKey { path: path.clone(), kind: kind(schema), has_keys, default });
    }
    for (name, child) in children.into_iter().flatten() {
        path.push(KeySegment::Name(name.clone()));
        collect(child, path, keys);
        path.pop();
    }
    if let Some(server) = servers {
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
        // Words that have descriptions are `oneOf`.
        Some(_) | None => ValueKind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_with_what_it_takes() {
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
            KEYS.iter().filter(|key| key.name().split('.').any(str::is_empty)).collect();
        assert!(unknown.is_empty() && KEYS.len() > 80, "{} keys", KEYS.len());
    }
}
