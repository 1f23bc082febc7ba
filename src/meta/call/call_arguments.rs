//! The arguments of the meta-tools that call one tool.
//!
//! Pure.

use std::time::Duration;

use super::super::arguments::{ArgumentError, FieldReader};
use crate::{
    config::defaults,
    tool::{FieldSelection, RequestedTool, ToolId},
};

/// The arguments of `mcp_call`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallArguments {
    /// The tool.
    pub tool: RequestedTool,
    /// Its arguments, as the JSON text of an object.
    pub args: String,
    /// The wanted parts of the result; empty for all.
    pub fields: FieldSelection,
    /// The maximum duration.
    pub timeout: Option<Duration>,
    /// The position from which to read on in a kept result.
    pub cursor: Option<String>,
}

/// The arguments of `run_tool`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunArguments {
    /// The tool.
    pub tool: RequestedTool,
    /// Its arguments, as the JSON text of an object.
    pub args: String,
    /// `true` if a stream is requested, which is not supported.
    pub is_stream: bool,
    /// `true` if another backend than the tool's server is requested, which is not supported.
    pub is_overridden: bool,
    /// `true` to add the tool's definition.
    pub include_tool: bool,
    /// `true` to add the server that ran it.
    pub include_backend: bool,
    /// `true` to add the original result.
    pub include_mcp_result: bool,
    /// The position from which to read on in a kept result.
    pub cursor: Option<String>,
}

impl CallArguments {
    pub(in crate::meta) fn read(fields: &FieldReader<'_>) -> Result<Self, ArgumentError> {
        let (server, tool) = (fields.text("server")?, fields.required("tool")?);
        // The name of the tool may begin with the server.
        if server.is_none() && ToolId::parse(&tool).is_err() {
            return Err(fields.missing("server"));
        }
        let paths = fields.texts("fields")?;
        Ok(Self {
            tool: RequestedTool { server, tool },
            args: fields.object("args")?,
            fields: FieldSelection::parse(paths.iter().map(String::as_str))
                .map_err(|error| fields.invalid("fields", error.to_string()))?,
            timeout: fields.timeout("timeoutMs", defaults::META_CALL_TIMEOUT_MAX)?,
            cursor: fields.text("cursor")?,
        })
    }
}

impl RunArguments {
    pub(in crate::meta) fn read(fields: &FieldReader<'_>) -> Result<Self, ArgumentError> {
        Ok(Self {
            tool: fields.tool_id()?,
            args: fields.object("args")?,
            is_stream: fields.flag("stream", false)?,
            is_overridden: fields.has("backend_override"),
            include_tool: fields.flag("include_tool", false)?,
            include_backend: fields.flag("include_backend", false)?,
            include_mcp_result: fields.flag("include_mcp_result", false)?,
            cursor: fields.text("cursor")?,
        })
    }
}
