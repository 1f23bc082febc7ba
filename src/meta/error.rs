//! Why a tool of ours did not do what it was asked for, as the model sees it.
//!
//! An error of a tool is a result, not an error of the protocol: the model reads it and can do
//! better. It is told twice, in words and as an object; its code is one of a few, and what it was in
//! detail is in `details`.

mod call;
mod rpc;

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    backend::BACKEND_KIND,
    definitions::MetaTool,
    result_document,
    tool_id::{ToolId, ToolIdError},
    warnings::ToolWarning,
};
use crate::{
    compute_pool::ComputeError,
    config::defaults,
    protocol::{ObjectMembers, RpcError, json_array::RESULT_BLOCKS_MAX, rpc_error},
    redact,
};

/// What kind of failure it is. Source: seed 002, `ErrorObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The server has no such tool.
    ToolNotFound,
    /// There is no such server.
    NoBackends,
    /// A tool runs on its own server and on no other.
    BackendOverrideInvalid,
    /// The tool does not run on what was asked for.
    BackendOverrideNoMatch,
    /// The tool cannot be called with these arguments.
    ValidationInput,
    /// The tool's answer is none.
    ValidationOutput,
    /// The tool has failed, or could not be asked.
    ExecutionFailed,
    /// There are no streams.
    StreamNotSupported,
    /// A stream broke off.
    StreamFailed,
    /// A step of a chain has failed.
    ChainStepFailed,
    /// The caller does not want it any more.
    Cancelled,
    /// It took too long.
    Timeout,
    /// Something of ours has failed.
    Internal,
}

impl ErrorCode {
    /// Tells whether the same again may succeed, as far as the kind tells.
    fn is_retryable(self) -> bool {
        match self {
            Self::ExecutionFailed | Self::StreamFailed | Self::Internal => true,
            Self::ToolNotFound
            | Self::NoBackends
            | Self::BackendOverrideInvalid
            | Self::BackendOverrideNoMatch
            | Self::ValidationInput
            | Self::ValidationOutput
            | Self::StreamNotSupported
            | Self::ChainStepFailed
            | Self::Cancelled
            | Self::Timeout => false,
        }
    }
}

/// An error of a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorObject {
    /// The kind.
    pub code: ErrorCode,
    /// What failed, and what to do about it.
    pub message: String,
    /// The tool that was to be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<String>,
    /// The tool of ours that was to do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op: Option<&'static str>,
    /// What the tool runs on, if it came that far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_kind: Option<&'static str>,
    /// The step of a chain, the first at 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_index: Option<usize>,
    /// The same again may succeed.
    pub retryable: bool,
    /// More about it.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
    /// What failed, without what to do about it.
    #[serde(skip)]
    pub(super) said: String,
    /// What to do about it.
    #[serde(skip)]
    pub(super) remedy: String,
    /// The error of the protocol that it was made of.
    #[serde(skip)]
    pub(super) cause: Option<Box<RpcError>>,
}

impl ErrorObject {
    /// Returns an error; `message` says what failed, `remedy` what to do about it.
    pub fn new(code: ErrorCode, message: impl Into<String>, remedy: &str) -> Self {
        let mut message: String = message.into();
        let said = redact::sanitize(&message).into_owned();
        if !remedy.is_empty() {
            message.push_str(". ");
            message.push_str(remedy);
        }
        Self {
            code,
            // Much of it is in the words of servers.
            message: redact::sanitize(&message).into_owned(),
            tool_id: None,
            op: None,
            backend_kind: None,
            step_index: None,
            retryable: code.is_retryable(),
            details: Map::new(),
            said,
            remedy: redact::sanitize(remedy).into_owned(),
            cause: None,
        }
    }

    /// The server has no such tool; `similar` are ids of tools that may be meant.
    pub fn unknown_tool(id: &ToolId, similar: &[String]) -> Self {
        let remedy = match similar {
            [] => "Search for tools: it may be called otherwise.".to_owned(),
            [one, ..] => format!("Did you mean `{one}`?"),
        };
        let shown = redact::cut(&id.tool, defaults::SUGGESTION_BYTES_MAX);
        let message = format!("server `{}` has no tool `{shown}`", id.server);
        Self::new(ErrorCode::ToolNotFound, message, &remedy).detail("similarTools", json!(similar))
    }

    /// There is no such server; `similar` may be meant, `available` are the first there are.
    pub fn unknown_server(server: &str, similar: &[String], available: &[String]) -> Self {
        let remedy = match similar {
            [] => "Search for tools: their servers are named with them.".to_owned(),
            [one, ..] => format!("Did you mean `{one}`?"),
        };
        let shown = redact::cut(server, defaults::SUGGESTION_BYTES_MAX);
        Self::new(ErrorCode::NoBackends, format!("there is no server `{shown}`"), &remedy)
            .detail("similarServers", json!(similar))
            .detail("availableServers", json!(available))
    }

    /// What was written names no tool.
    pub fn bad_id(error: &ToolIdError) -> Self {
        Self::new(ErrorCode::ValidationInput, error.to_string(), error.hint())
            .detail("reason", json!("invalid_format"))
    }

    /// What was written names no server; `similar` are ids of tools that are called so.
    pub fn server_not_named(error: &ToolIdError, similar: &[String]) -> Self {
        let Some(one) = similar.first() else { return Self::bad_id(error) };
        let remedy = format!("Did you mean `{one}`?");
        Self::new(ErrorCode::ValidationInput, error.to_string(), &remedy)
            .detail("reason", json!("invalid_format"))
            .detail("similarTools", json!(similar))
    }

    /// What was asked for takes long, and the service has too much of that to do.
    pub fn too_busy(error: &ComputeError) -> Self {
        let remedy = "Nothing was called. Call again when fewer calls run.";
        Self::new(ErrorCode::ExecutionFailed, error.to_string(), remedy)
            .detail("reason", json!("service_busy"))
    }

    /// Programs cannot be run here.
    pub fn execution_disabled() -> Self {
        let remedy = "Call the tools one by one.";
        let mut error =
            Self::new(ErrorCode::ExecutionFailed, "running code is not enabled", remedy)
                .detail("reason", json!("execution_disabled"));
        error.retryable = false;
        error
    }

    /// Results come whole.
    pub fn no_stream() -> Self {
        let remedy = "Leave `stream` out: the result comes when it is there.";
        Self::new(ErrorCode::StreamNotSupported, "results are not streamed", remedy)
    }

    /// A tool asks something, and is a step of a chain, which nobody can answer for.
    pub fn needs_input() -> Self {
        let remedy = "Call it alone, and answer what it asks.";
        Self::new(ErrorCode::ExecutionFailed, "the tool wants to know something first", remedy)
    }

    /// A tool runs on its own server.
    pub fn no_override() -> Self {
        let remedy = "Leave `backend_override` out, and name the server in `tool_id`.";
        let message = "a tool runs on its own server and on no other";
        Self::new(ErrorCode::BackendOverrideInvalid, message, remedy)
    }

    /// The tool of `server` was answered with a JSON-RPC error, which is given as JSON text.
    pub fn of_server(server: &str, rpc: &str) -> Self {
        let rpc: Value = match rpc.len() <= defaults::ERROR_DETAIL_BYTES_MAX {
            true => serde_json::from_str(rpc).unwrap_or_default(),
            false => outline(rpc),
        };
        let said = rpc["message"].as_str().unwrap_or("no reason that is of use");
        let said = redact::cut(said, defaults::QUOTE_BYTES_MAX);
        let is_lasting = matches!(
            rpc["code"].as_i64(),
            Some(
                rpc_error::INVALID_PARAMS
                    | rpc_error::METHOD_NOT_FOUND
                    | rpc_error::INVALID_REQUEST
            )
        );
        let message = format!("server `{server}` refused the call: {said}");
        let mut error = Self::new(ErrorCode::ExecutionFailed, message, "").on_server();
        error.retryable = !is_lasting;
        if rpc.is_null() { error } else { error.detail("rpc", rpc) }
    }

    /// The tool has failed, and says so in its result with the words `said`.
    pub fn of_tool(said: &str) -> Self {
        let said = match said.trim() {
            "" => "the tool has failed and does not say why",
            said => redact::cut(said, defaults::QUOTE_BYTES_MAX),
        };
        Self::new(ErrorCode::ExecutionFailed, said, "").on_server()
    }

    /// The tool's answer is no result of a tool.
    pub fn no_result(server: &str) -> Self {
        let message = format!("server `{server}` answered with something that is no result");
        let remedy = "Tell whoever maintains the server: it breaks the protocol.";
        Self::new(ErrorCode::ValidationOutput, message, remedy).on_server()
    }

    /// The tool's result has more blocks than are read.
    pub fn too_many_blocks(server: &str) -> Self {
        let message = format!(
            "server `{server}` answered with more than {RESULT_BLOCKS_MAX} blocks, which is the most that are read"
        );
        let remedy = "Ask the tool for less at a time.";
        Self::new(ErrorCode::ValidationOutput, message, remedy).on_server()
    }

    /// Says of a tool that took too long that it had as long as its caller gave it, who can give it
    /// more: as `timeoutMs`, which was `given`.
    #[must_use]
    pub fn with_timeout(mut self, given: Duration) -> Self {
        if self.code != ErrorCode::Timeout {
            return self;
        }
        let has_begun = self.details.get("reason").is_some_and(|reason| reason == "timeout");
        let (what, remedy) = match has_begun {
            true => (
                "gave no answer",
                "It may still be at it: check before you call again, with a larger `timeoutMs`.",
            ),
            false => ("was not connected", "Call again, with a larger `timeoutMs`."),
        };
        let server = self.details.get("server").and_then(Value::as_str);
        let who = server.map_or_else(|| "the server".to_owned(), |name| format!("server `{name}`"));
        let given = given.as_millis();
        self.message = format!("{who} {what} within the {given} ms of `timeoutMs`. {remedy}");
        self.detail("timeoutMs", json!(u64::try_from(given).unwrap_or(u64::MAX)))
    }

    /// Adds what to mind before a tool is called again that may have run already.
    #[must_use]
    pub fn with_warnings(self, warnings: &[ToolWarning]) -> Self {
        if warnings.is_empty() {
            return self;
        }
        let words: Vec<String> = warnings.iter().map(ToolWarning::to_string).collect();
        self.detail("warnings", json!(words))
    }

    /// Adds the tool that was to be run.
    #[must_use]
    pub fn about(self, id: &ToolId) -> Self {
        Self { tool_id: Some(id.to_string()), ..self }
    }

    /// Adds the tool of ours that was to do it.
    #[must_use]
    pub fn during(self, op: MetaTool) -> Self {
        Self { op: Some(op.name()), ..self }
    }

    /// Adds something about it.
    #[must_use]
    pub fn detail(mut self, name: &str, value: Value) -> Self {
        self.details.insert(name.to_owned(), value);
        self
    }

    fn on_server(self) -> Self {
        Self { backend_kind: Some(BACKEND_KIND), ..self }
    }

    /// Returns the error in words.
    pub fn text(&self) -> String {
        let lists = ["validationErrors", "warnings"].map(|name| self.details.get(name));
        let lines = lists.into_iter().flatten().filter_map(Value::as_array).flatten();
        let lines = lines.filter_map(Value::as_str).map(redact::sanitize);
        lines.fold(self.message.clone(), |text, line| format!("{text}\n- {line}"))
    }

    /// Returns the error as the result of a tool, JSON text.
    pub fn to_result(&self) -> String {
        let (block, error) = (result_document::text_block(&self.text()), json!(self));
        format!(r#"{{"content":[{block}],"structuredContent":{{"error":{error}}},"isError":true}}"#)
    }
}

/// Returns what matters of a JSON-RPC error that is too large to be passed on.
fn outline(rpc: &str) -> Value {
    let Some(error) = ObjectMembers::read(rpc) else { return Value::Null };
    let code = error.get("code").and_then(|code| code.parse::<i64>().ok());
    let said = error.string("message").unwrap_or_default();
    json!({ "code": code, "message": redact::cut(&said, defaults::QUOTE_BYTES_MAX) })
}

#[cfg(test)]
mod tests;
