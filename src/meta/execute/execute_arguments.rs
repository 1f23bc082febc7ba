//! The arguments of `mcp_execute` and `execute_code`.

use std::time::Duration;

use super::super::{
    arguments::{ArgumentError, FieldReader},
    definitions::MetaTool,
};
use crate::{
    config::{ExecuteConfig, defaults},
    script::ScriptLimits,
};

/// The languages of `execute_code`.
const LANGUAGES: [(&str, ()); 4] = [("javascript", ()), ("js", ()), ("typescript", ()), ("ts", ())];

/// The arguments of a tool that runs code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecuteArguments {
    /// The body of an async function.
    pub code: String,
    /// The longest duration.
    pub timeout: Option<Duration>,
    /// The most calls of tools.
    pub calls_max: Option<usize>,
    /// The position from which to read on in a kept result.
    pub cursor: Option<String>,
}

impl ExecuteArguments {
    pub(in crate::meta) fn read(
        tool: MetaTool,
        fields: &FieldReader<'_>,
    ) -> Result<Self, ArgumentError> {
        if tool == MetaTool::ExecuteCode && fields.word("language", &LANGUAGES)?.is_none() {
            return Err(fields.missing("language"));
        }
        let cursor = fields.text("cursor")?;
        let code = match &cursor {
            Some(_) => fields.text("code")?.unwrap_or_default(),
            None => fields.required("code")?,
        };
        Ok(Self {
            code,
            timeout: fields.timeout("timeout_ms", defaults::EXECUTE_TIMEOUT_MAX)?,
            calls_max: fields.count("max_tool_calls", 1, defaults::EXECUTE_CALLS_MAX)?,
            cursor,
        })
    }

    /// Returns the limits of the script.
    pub(super) fn limits(&self, config: &ExecuteConfig) -> ScriptLimits {
        ScriptLimits {
            wall: self.timeout.map_or(config.timeout, |timeout| timeout.min(config.timeout)),
            sleep_max: config.sleep_max,
            output_bytes_max: config.output_bytes_max,
            calls_max: self.calls_max.unwrap_or(config.max_tool_calls),
            parallel_max: config.max_parallel,
            memory_bytes_max: config.memory_bytes_max,
        }
    }
}
