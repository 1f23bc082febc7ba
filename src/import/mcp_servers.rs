//! The parser for `mcpServers`, common to Claude Desktop, Cursor, Windsurf and Claude Code.
//!
//! Pure. Source: examples in their documentation.

use serde_json::Value;

use super::{
    declaration_origin::SourceFile, foreign_server::ForeignServer, server_members::ImportEntry,
    variable_syntax::VariableSyntax,
};

/// Reads all servers of a table.
pub(super) fn read(servers: &Value, file: &SourceFile) -> Vec<ForeignServer> {
    let servers = servers.as_object().into_iter().flatten();
    file.servers(servers, VariableSyntax::Dollar, ImportEntry::take_transport)
}
