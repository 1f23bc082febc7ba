//! The backends that run tools.

use serde::Serialize;

/// The kind of every tool's backend: an MCP server.
pub const BACKEND_KIND: &str = "mcp";

/// The backend that ran a tool.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetaBackend<'a> {
    kind: &'static str,
    server_name: &'a str,
}

impl<'a> MetaBackend<'a> {
    /// Returns the backend for the server `name`.
    pub fn of(name: &'a str) -> Self {
        Self { kind: BACKEND_KIND, server_name: name }
    }
}
