//! The member `mcpServers`, which Claude Desktop, Cursor and Windsurf have alike, and Claude Code too.
//!
//! Pure. As examples in their documentation have it.

use serde_json::Value;

use super::{
    context::{DeclarationOrigin, ImportContext},
    foreign_server::ForeignServer,
    server_members::{self, ImportEntry},
    variable_syntax::VariableSyntax,
};

/// Reads every server of a table.
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
