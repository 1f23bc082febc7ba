//! The parser for `mcpServers`, common to Claude Desktop, Cursor, Windsurf and Claude Code.
//!
//! Pure. Source: examples in their documentation.

use serde_json::Value;

use super::{
    declaration_origin::{DeclarationOrigin, ImportContext},
    foreign_server::ForeignServer,
    server_members::{self, ImportEntry},
    variable_syntax::VariableSyntax,
};

/// Reads all servers of a table.
pub(super) fn read(
    servers: &Value,
    origin: &DeclarationOrigin,
    context: &ImportContext,
) -> Vec<ForeignServer> {
    let servers = servers.as_object().into_iter().flatten();
    servers
        .map(|(name, table)| {
            let Some(mut entry) = ImportEntry::new(table, VariableSyntax::Dollar, context) else {
                return server_members::unreadable(name, origin);
            };
            let way = entry.take_transport();
            entry.finish(name, origin, way)
        })
        .collect()
}
