//! The parser for OpenCode: `mcp` of `opencode.json`, or `mcp.servers` in its second version.
//!
//! Pure. Source: examples in its documentation.

use serde_json::Value;

use super::{
    declaration_origin::{DeclarationOrigin, ImportContext},
    foreign_server::{ForeignServer, ForeignTransport},
    server_members::{self, ImportEntry},
    variable_syntax::VariableSyntax,
};

pub(super) fn read(
    document: &Value,
    origin: &DeclarationOrigin,
    context: &ImportContext,
) -> Vec<ForeignServer> {
    let table = &document["mcp"];
    // A server may itself be called `servers`.
    let is_server = |table: &Value| table["command"].is_array() || table["url"].is_string();
    let table = match &table["servers"] {
        servers if servers.is_object() && !is_server(servers) => servers,
        _ => table,
    };
    let servers = table.as_object().into_iter().flatten();
    servers
        .filter_map(|(name, table)| {
            let Some(mut entry) = ImportEntry::new(table, VariableSyntax::Braces, context) else {
                return Some(server_members::unreadable(name, origin));
            };
            // A file may only enable or disable a server that another file declares.
            let is_switch = table
                .as_object()
                .is_some_and(|table| table.len() == 1 && table.contains_key("enabled"));
            if is_switch {
                return None;
            }
            let way = way(&mut entry);
            Some(entry.finish(name, origin, way))
        })
        .collect()
}

fn way(entry: &mut ImportEntry<'_>) -> Result<ForeignTransport, String> {
    if let Some(url) = entry.text(&["url"])? {
        return Ok(ForeignTransport::Endpoint { url, headers: entry.table(&["headers"])? });
    }
    let mut words = entry.list("command")?.into_iter();
    let command = words.next().ok_or("it has neither a `command` nor a `url`")?;
    let env = entry.table(&["environment", "env"])?;
    let cwd = entry.text(&["cwd"])?;
    Ok(ForeignTransport::Program { command, args: words.collect(), env, cwd })
}
