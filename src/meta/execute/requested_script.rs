//! A script as its caller asks for it, and its check.

use std::time::Duration;

use super::script_answer::limit_error;
use crate::{
    config::ExecuteConfig,
    script::{PreparedScript, ScriptContext, ScriptLimits},
    tool::ErrorObject,
};

/// A script, with the limits that its caller sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedScript {
    /// The body of an async function.
    pub code: String,
    /// The constant `args` of a script of an operator.
    pub args: Option<Vec<String>>,
    /// The longest duration.
    pub timeout: Option<Duration>,
    /// The most calls of tools.
    pub calls_max: Option<usize>,
}

impl RequestedScript {
    /// Checks the size of the script.
    ///
    /// # Errors
    ///
    /// [`ErrorObject`] if it is too large.
    pub(super) fn check(&self, config: &ExecuteConfig) -> Result<(), Box<ErrorObject>> {
        let (code_max, code) = (config.code_bytes_max, self.code.len());
        let args: usize = self.args.iter().flatten().map(String::len).sum();
        if code + args <= code_max {
            return Ok(());
        }
        let subject = match args {
            0 => format!("the code has {code} bytes"),
            _ => format!("the code and its arguments have {} bytes", code + args),
        };
        let message = format!("{subject}, and the limit is {code_max} (`execute.code_bytes_max`)");
        let remedy = "Shorten it, or split it into several scripts.";
        Err(Box::new(limit_error(&message, "code", code_max, remedy)))
    }

    /// Returns the script, ready to run. `request` is the digest of the client's request.
    pub(super) fn into_task(
        self,
        config: &ExecuteConfig,
        request: String,
        context: ScriptContext,
    ) -> PreparedScript {
        let limits = ScriptLimits {
            wall: self.timeout.map_or(config.timeout, |timeout| timeout.min(config.timeout)),
            wall_is_callers: self.timeout.is_some_and(|timeout| timeout < config.timeout),
            sleep_max: config.sleep_max,
            output_bytes_max: config.output_bytes_max,
            calls_max: self.calls_max.unwrap_or(config.max_tool_calls),
            parallel_max: config.max_parallel,
            memory_bytes_max: config.memory_bytes_max,
        };
        PreparedScript::new(self.code, self.args, limits, request, context)
    }
}
