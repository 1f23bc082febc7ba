//! The parser for Gemini CLI: `mcpServers` of `settings.json`. Variables are written as in a shell,
//! and `mcp.excluded` names the servers that are switched off.
//!
//! Pure. Source: examples in its documentation.

use serde_json::Value;

use super::{
    declaration_origin::SourceFile, foreign_server::ForeignServer, server_members::ImportEntry,
    variable_syntax::VariableSyntax,
};

pub(super) fn read(document: &Value, file: &SourceFile) -> Vec<ForeignServer> {
    let servers = document["mcpServers"].as_object().into_iter().flatten();
    let mut found = file.servers(servers, VariableSyntax::Shell, ImportEntry::take_transport);
    let names = |list: &Value| -> Vec<String> {
        let names = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    };
    let (allowed, excluded) =
        (names(&document["mcp"]["allowed"]), names(&document["mcp"]["excluded"]));
    for server in &mut found {
        let is_allowed = allowed.is_empty() || allowed.contains(&server.name);
        server.is_disabled |= !is_allowed || excluded.contains(&server.name);
    }
    found
}
