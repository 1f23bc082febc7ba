//! The parser for Claude Code: `.mcp.json` of a project, and the user's `.claude.json`, which also
//! declares the servers of each project.
//!
//! Pure. Source: examples in its documentation.

use serde_json::Value;

use super::{declaration_origin::SourceFile, foreign_server::ForeignServer};

pub(super) fn read(document: &Value, file: &SourceFile) -> Vec<ForeignServer> {
    let mut found = file.mcp_servers(own_servers(document));
    for (path, project) in document["projects"].as_object().into_iter().flatten() {
        let mut servers = file.of_project(path).mcp_servers(&project["mcpServers"]);
        let disabled = project["disabledMcpServers"].as_array();
        for server in &mut servers {
            let is_server = |name: &Value| name.as_str() == Some(server.name.as_str());
            server.is_disabled |= disabled.is_some_and(|names| names.iter().any(is_server));
        }
        found.extend(servers);
    }
    found
}

/// Returns the table of servers. The file of a plug-in may itself be that table.
fn own_servers(document: &Value) -> &Value {
    let is_server = |table: &Value| table["command"].is_string() || table["url"].is_string();
    let is_table = document
        .as_object()
        .is_some_and(|servers| !servers.is_empty() && servers.values().all(is_server));
    if is_table { document } else { &document["mcpServers"] }
}
