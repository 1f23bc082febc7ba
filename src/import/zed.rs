//! The parser for Zed: `context_servers` of `settings.json`. Entries of extensions have no command.
//!
//! Pure. Source: examples in its documentation.

use serde_json::Value;

use super::{
    declaration_origin::SourceFile,
    foreign_server::{ForeignServer, ForeignTransport},
    server_members::ImportEntry,
    variable_syntax::VariableSyntax,
};

pub(super) fn read(document: &Value, file: &SourceFile) -> Vec<ForeignServer> {
    let servers = document["context_servers"].as_object().into_iter().flatten();
    let is_own = |table: &Value| table.get("command").is_some() || table.get("url").is_some();
    let servers = servers.filter(|(_, table)| !table.is_object() || is_own(table));
    file.servers(servers, VariableSyntax::Plain, transport)
}

/// Earlier versions have the program, its arguments and its variables in one table, `command`.
fn transport(entry: &mut ImportEntry<'_>) -> Result<ForeignTransport, String> {
    if let Some(Value::Object(command)) = entry.take_if("command", Value::is_object) {
        for (key, value) in command {
            entry.put(if key == "path" { "command" } else { &key }, value);
        }
    }
    entry.take_transport()
}
