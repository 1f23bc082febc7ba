//! The parser for Goose: `extensions` of `config.yaml`. Extensions inside of Goose have no program
//! and no address.
//!
//! Pure. Source: examples in its documentation.

use serde_json::Value;

use super::{
    declaration_origin::SourceFile,
    foreign_server::{ForeignServer, ForeignTransport},
    server_members::ImportEntry,
    variable_syntax::{ForeignText, VariableSyntax},
};

/// The members that need no counterpart.
const HARMLESS: [&str; 4] = ["name", "display_name", "bundled", "timeout"];

pub(super) fn read(document: &Value, file: &SourceFile) -> Vec<ForeignServer> {
    let servers = document["extensions"].as_object().into_iter().flatten();
    let is_external = |table: &Value| {
        let kind = table["type"].as_str();
        matches!(kind, Some("stdio" | "sse" | "streamable_http"))
    };
    let servers = servers.filter(|(_, table)| is_external(table));
    file.servers(servers, VariableSyntax::Shell, transport)
}

fn transport(entry: &mut ImportEntry<'_>) -> Result<ForeignTransport, String> {
    for key in HARMLESS {
        entry.take(key);
    }
    for (own, common) in [("cmd", "command"), ("uri", "url"), ("envs", "env")] {
        if let Some(value) = entry.take(own) {
            entry.put(common, value);
        }
    }
    let keys = entry.take("env_keys").unwrap_or_default();
    let mut transport = entry.take_transport()?;
    if let ForeignTransport::Program { env, .. } = &mut transport {
        for name in keys.as_array().into_iter().flatten().filter_map(Value::as_str) {
            env.entry(name.to_owned()).or_insert_with(|| ForeignText::variable(name));
        }
    } else {
        // An endpoint has variables only for its headers.
        entry.take("env");
    }
    Ok(transport)
}
