//! What tools run on.

use serde::Serialize;

/// What a tool's server is to the tools of ours: an MCP server, as all of them are.
pub const BACKEND_KIND: &str = "mcp";

/// What a tool has run on.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetaBackend<'a> {
    kind: &'static str,
    server_name: &'a str,
}

impl<'a> MetaBackend<'a> {
    /// Returns the server called `name`.
    pub fn of(name: &'a str) -> Self {
        Self { kind: BACKEND_KIND, server_name: name }
    }
}
