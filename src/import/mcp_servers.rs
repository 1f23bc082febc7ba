//! The member `mcpServers`, which Claude Desktop, Cursor and Windsurf have alike, and Claude Code too.
//!
//! Pure. As examples in their documentation have it.

use serde_json::Value;

use super::{
    context::{DeclarationOrigin, ImportContext},
    entry::{self, ImportEntry},
    foreign::ForeignServer,
    value::VariableSyntax,
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
                return entry::broken(name, origin);
            };
            let way = entry.way();
            entry.finish(name, origin, way)
        })
        .collect()
}
