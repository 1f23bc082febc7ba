//! The effective configuration: each value, defaults included, and its source.

use serde_json::{Value, json};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Config,
    diagnostic::SettingOrigin,
    duration,
    key_paths::{self, KEYS},
    secret::{SECRET_TABLES, SecretValue},
    url,
};
use crate::server_name::ServerName;

/// A configured value and its source. `Debug` omits the value, which may be a secret.
#[derive(Clone)]
pub struct EffectiveValue {
    /// The parts of the key.
    pub path: Vec<String>,
    /// The value as JSON.
    value: Value,
    /// The source of the value.
    pub origin: SettingOrigin,
    /// The line of the file, from 1; 0 for another source.
    pub line: usize,
}

impl std::fmt::Debug for EffectiveValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by {:?}", self.path.join("."), self.origin)
    }
}

/// One effective key, safe to show: without literals of `env` and `headers`, and without the logins
/// and queries of URLs.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveEntry {
    /// The parts of the key.
    pub path: Vec<String>,
    /// The value; `None` if the key is not set and has no default.
    pub value: Option<Value>,
    /// The source of the value; `None` for a default.
    pub origin: Option<SettingOrigin>,
    /// The line of the file, from 1; 0 for another source.
    pub line: usize,
}

impl EffectiveEntry {
    /// Describes the source of the value.
    pub fn place(&self) -> String {
        match &self.origin {
            None if self.value.is_none() => "not set".to_owned(),
            None => "default".to_owned(),
            Some(SettingOrigin::File(path)) => format!("{}:{}", path.display(), self.line),
            Some(SettingOrigin::Environment(name)) => format!("environment {name}"),
            Some(SettingOrigin::Flag(name)) => format!("flag {name}"),
        }
    }

    /// Returns the value and its source as JSON.
    pub fn to_json(&self) -> Value {
        let source = match &self.origin {
            None => json!({ "kind": "default" }),
            Some(SettingOrigin::File(path)) => {
                json!({ "kind": "file", "file": path, "line": self.line })
            }
            Some(SettingOrigin::Environment(name)) => {
                json!({ "kind": "environment", "name": name })
            }
            Some(SettingOrigin::Flag(name)) => json!({ "kind": "flag", "name": name }),
        };
        json!({ "value": self.value, "source": source })
    }
}

/// Lists all configured values; `origin` returns the source and line of the text at an offset.
pub(super) fn values(
    root: &DeTable<'_>,
    text: &str,
    origin: impl Fn(usize) -> (SettingOrigin, usize),
) -> Vec<EffectiveValue> {
    let mut all = Vec::new();
    collect(root, text, &origin, &mut Vec::new(), &mut all);
    all
}

fn collect(
    table: &DeTable<'_>,
    text: &str,
    origin: &impl Fn(usize) -> (SettingOrigin, usize),
    path: &mut Vec<String>,
    all: &mut Vec<EffectiveValue>,
) {
    for (name, value) in table {
        path.push(name.get_ref().clone().into_owned());
        if let DeValue::Table(below) = value.get_ref() {
            collect(below, text, origin, path, all);
        } else {
            let (origin, line) = origin(value.span().start);
            let value = as_json(value, text);
            all.push(EffectiveValue { path: path.clone(), value, origin, line });
        }
        path.pop();
    }
}

/// Returns a value as JSON, parsed from its own text.
fn as_json(value: &Spanned<DeValue<'_>>, text: &str) -> Value {
    let text = text.get(value.span()).unwrap_or_default();
    let table: Option<toml::Table> = toml::from_str(&format!("v = {text}")).ok();
    let found = table.and_then(|mut table| table.remove("v"));
    found.and_then(|found| serde_json::to_value(found).ok()).unwrap_or_default()
}

/// Lists every key of every section and server, with its configured value or its default.
pub fn entries(config: &Config, configured: &[EffectiveValue]) -> Vec<EffectiveEntry> {
    let mut entries = Vec::new();
    let path = |table: &[&str], name: &ServerName| -> Vec<String> {
        table.iter().copied().chain([name.as_str()]).map(str::to_owned).collect()
    };
    let declared = config.declared_servers().map(|(name, _)| path(&["servers"], name));
    let provisionable = config.provision.servers.keys();
    let provisionable = provisionable.map(|name| path(&["provision", "servers"], name));
    let servers: Vec<Vec<String>> = declared.chain(provisionable).collect();
    for key in KEYS.iter().filter(|key| !key.has_keys) {
        if !key.is_of_server() {
            entries.extend(of_key(key, key.path_for(""), configured, config));
            continue;
        }
        for server in &servers {
            let path = key.path_for(server.last().map_or("", String::as_str));
            if path.starts_with(server) {
                // A key of a server that is not set and has no default is left out.
                let found = of_key(key, path, configured, config);
                entries.extend(found.into_iter().filter(|entry| entry.value.is_some()));
            }
        }
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    entries
}

/// Returns the entry of one key, or the entries of a table with free names, such as `env`.
fn of_key(
    key: &key_paths::ConfigKey,
    path: Vec<String>,
    configured: &[EffectiveValue],
    config: &Config,
) -> Vec<EffectiveEntry> {
    let found: Vec<EffectiveEntry> = configured
        .iter()
        .filter(|found| found.path.starts_with(&path))
        .map(|found| EffectiveEntry {
            value: Some(shown(&found.path, &found.value)),
            path: found.path.clone(),
            origin: Some(found.origin.clone()),
            line: found.line,
        })
        .collect();
    if !found.is_empty() {
        return found;
    }
    // The keys of an absent table have no defaults.
    let is_below = |table: &[String]| configured.iter().any(|found| found.path.starts_with(table));
    let is_in_absent_table =
        key.is_in_optional_table() && path.split_last().is_some_and(|(_, table)| !is_below(table));
    let is_own_health = path.iter().any(|name| name == "health") && path.len() > 2;
    let value = match path.join(".").as_str() {
        // A short `max_total_timeout` shortens it.
        "service.request_timeout" => Some(json!(duration::text(config.service.request_timeout))),
        // Without its table, nothing can be provisioned.
        "provision.enabled" => Some(json!(config.provision.is_enabled)),
        // A server without its own `health` uses `[health]`.
        _ if is_own_health || is_in_absent_table => None,
        _ => key.default.clone(),
    };
    vec![EffectiveEntry { path, value, origin: None, line: 0 }]
}

/// Hides possible secrets: literals of `env` and `headers`, and the login and query of a URL.
fn shown(path: &[String], value: &Value) -> Value {
    let Some(text) = value.as_str() else { return value.clone() };
    let table = path.iter().rev().nth(1);
    let is_hidden = table.is_some_and(|name| SECRET_TABLES.contains(&name.as_str()))
        && path.iter().any(|name| name == "servers");
    if is_hidden && !SecretValue::from(text.to_owned()).is_reference() {
        json!("***")
    } else if !is_hidden && path.last().is_some_and(|name| name == "url" || name == "proxy") {
        json!(url::without_secrets(text))
    } else {
        value.clone()
    }
}
