//! The arguments of `mcp_execute` and `execute_code`.

use super::{
    super::{
        arguments::{ArgumentError, FieldReader},
        definitions::MetaTool,
    },
    requested_script::RequestedScript,
};
use crate::config::defaults;

/// The languages of `execute_code`.
const LANGUAGES: [(&str, ()); 4] = [("javascript", ()), ("js", ()), ("typescript", ()), ("ts", ())];

/// The arguments of a tool that runs code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecuteArguments {
    /// The script.
    pub script: RequestedScript,
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
        let script = RequestedScript {
            code,
            args: None,
            timeout: fields.timeout("timeout_ms", defaults::EXECUTE_TIMEOUT_MAX)?,
            calls_max: fields.count("max_tool_calls", 1, defaults::EXECUTE_CALLS_MAX)?,
        };
        Ok(Self { script, cursor })
    }
}
