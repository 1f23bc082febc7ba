//! The parser for OpenCode: `mcp` of `opencode.json`, or `mcp.servers` in its second version.
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
    let table = &document["mcp"];
    // A server may itself be called `servers`.
    let is_server = |table: &Value| table["command"].is_array() || table["url"].is_string();
    let table = match &table["servers"] {
        servers if servers.is_object() && !is_server(servers) => servers,
        _ => table,
    };
    // A file may only enable or disable a server that another file declares.
    let is_switch = |table: &Value| {
        table.as_object().is_some_and(|table| table.len() == 1 && table.contains_key("enabled"))
    };
    let servers = table.as_object().into_iter().flatten().filter(|(_, table)| !is_switch(table));
    file.servers(servers, VariableSyntax::Braces, transport)
}

fn transport(entry: &mut ImportEntry<'_>) -> Result<ForeignTransport, String> {
    if let Some(url) = entry.text(&["url"])? {
        return entry.endpoint(url).map(ForeignTransport::Endpoint);
    }
    let mut words = entry.list("command")?.into_iter();
    let command = words.next().ok_or("it has neither a `command` nor a `url`")?;
    let env = entry.table(&["environment", "env"])?;
    let cwd = entry.text(&["cwd"])?;
    Ok(ForeignTransport::Program { command, args: words.collect(), env, cwd })
}
