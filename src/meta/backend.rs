//! The backends that run tools.

use serde_json::json;

/// The kind of every tool's backend: an MCP server.
pub const BACKEND_KIND: &str = "mcp";

/// Returns the backend for the tools of a server, as JSON text.
pub fn backend_of(server: &str) -> String {
    json!({ "kind": BACKEND_KIND, "serverName": server }).to_string()
}
