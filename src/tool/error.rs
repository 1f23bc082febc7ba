//! The errors of tools, as models see them.
//!
//! An error of a tool is a result, and not an error of the protocol, so that the model reads it and
//! can react. It is given as text and as an object. Its code is one of a few; `details` has the
//! rest.

mod failed_call;
mod recorded_failure;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    call_warnings::ToolWarning,
    tool_id::{ToolId, ToolIdError},
    tool_result::text_block,
};
use crate::{
    call_record::RecordedFailure,
    compute_pool::ComputeError,
    config::defaults,
    protocol::{
        ObjectMembers, RpcError,
        json_array::RESULT_BLOCKS_MAX,
        rpc_error::{
            INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, REQUEST_TIMEOUT,
        },
    },
    redact,
    similar_names::did_you_mean,
};

/// The kind of every tool's backend: an MCP server.
pub const BACKEND_KIND: &str = "mcp";

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The server has no such tool.
    ToolNotFound,
    /// There is no such server.
    NoBackends,
    /// Another backend was requested, but a tool runs only on its own server.
    BackendOverrideInvalid,
    /// The arguments of the tool are invalid.
    ValidationInput,
    /// The answer of the tool is not a result.
    ValidationOutput,
    /// The tool failed, or could not be called.
    ExecutionFailed,
    /// Streams are not supported.
    StreamNotSupported,
    /// A step of a chain failed.
    ChainStepFailed,
    /// A script failed by its own fault.
    ScriptFailed,
    /// A script, or a call, exceeded a limit.
    LimitExceeded,
    /// The process that runs a script failed.
    SandboxFailed,
    /// A script did something else when it was repeated.
    ScriptDiverged,
    /// metamcp cannot know whether a call was executed.
    OutcomeUnknown,
    /// It took too long.
    Timeout,
    /// metamcp itself failed.
    Internal,
}

impl ErrorCode {
    /// Returns its name, as models see it.
    pub fn name(self) -> String {
        json!(self).as_str().unwrap_or_default().to_owned()
    }

    /// Returns the code with this name.
    pub fn named(name: &str) -> Option<Self> {
        serde_json::from_value(json!(name)).ok()
    }

    /// Returns whether the same call may succeed later, judged by the kind alone.
    fn is_retryable(self) -> bool {
        matches!(self, Self::ExecutionFailed | Self::Internal)
    }
}

/// The remedy of a model that names an unknown server.
const SEARCH_SERVER: &str = "Search for tools: each result names its server.";

/// The remedy of a model that names an unknown tool.
const SEARCH_TOOL: &str = "Search for the tool: it may have another name.";

/// An error of a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorObject {
    /// The kind.
    pub code: ErrorCode,
    /// The failure and the remedy.
    pub message: String,
    /// The tool to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<String>,
    /// The meta-tool that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op: Option<&'static str>,
    /// The kind of the tool's backend, if the call reached it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_kind: Option<&'static str>,
    /// The step of a chain, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_index: Option<usize>,
    /// `true` if the same call may succeed later.
    pub retryable: bool,
    /// The details.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
    /// The failure without the remedy.
    #[serde(skip)]
    failure: String,
    /// The remedy.
    #[serde(skip)]
    remedy: String,
    /// The protocol error that it was made from.
    #[serde(skip)]
    cause: Option<Box<RpcError>>,
    /// The failure in the record of the call, if it is that of a request to a server.
    #[serde(skip)]
    record: Option<Box<RecordedFailure>>,
}

impl ErrorObject {
    /// Returns an error: `message` describes the failure, `remedy` the next action.
    pub fn new(code: ErrorCode, message: impl Into<String>, remedy: &str) -> Self {
        let mut message: String = message.into();
        let failure = redact::sanitize(&message).into_owned();
        if !remedy.is_empty() {
            message.push_str(". ");
            message.push_str(remedy);
        }
        Self {
            code,
            // Much of it is text from servers.
            message: redact::sanitize(&message).into_owned(),
            tool_id: None,
            op: None,
            backend_kind: None,
            step_index: None,
            retryable: code.is_retryable(),
            details: Map::new(),
            failure,
            remedy: redact::sanitize(remedy).into_owned(),
            cause: None,
            record: None,
        }
    }

    /// Returns the error for an unknown tool; `similar` are the ids of similar tools.
    pub fn unknown_tool(id: &ToolId, similar: &[String]) -> Self {
        let remedy = did_you_mean(similar, SEARCH_TOOL);
        let tool = redact::cut(&id.tool, defaults::SUGGESTION_BYTES_MAX);
        let message = format!("server `{}` has no tool `{tool}`", id.server);
        Self::new(ErrorCode::ToolNotFound, message, &remedy).detail("similarTools", json!(similar))
    }

    /// Returns the error for an unknown server, with similar ones and the first `available` ones.
    pub fn unknown_server(server: &str, similar: &[String], available: &[String]) -> Self {
        let remedy = did_you_mean(similar, SEARCH_SERVER);
        let shown = redact::cut(server, defaults::SUGGESTION_BYTES_MAX);
        Self::new(ErrorCode::NoBackends, format!("there is no server `{shown}`"), &remedy)
            .detail("similarServers", json!(similar))
            .detail("availableServers", json!(available))
    }

    /// Returns the error for a server that the configuration disables.
    pub fn disabled_server(server: &str) -> Self {
        let remedy = format!("Run `metamcp enable {server}`.");
        Self::new(ErrorCode::NoBackends, format!("server `{server}` is disabled"), &remedy)
            .detail("reason", json!("server_disabled"))
    }

    /// Returns the error for a tool id without a server; `similar` are ids with that tool name.
    pub fn bad_id(error: &ToolIdError, similar: &[String]) -> Self {
        let remedy = did_you_mean(similar, error.hint());
        let error = Self::new(ErrorCode::ValidationInput, error.to_string(), &remedy)
            .detail("reason", json!("invalid_format"));
        if similar.is_empty() { error } else { error.detail("similarTools", json!(similar)) }
    }

    /// Returns the error for a server's name in place of a tool id; `tools` are ids of its tools.
    pub fn server_as_tool(server: &str, tools: &[String]) -> Self {
        let remedy = match tools.is_empty() {
            true => format!("List the tools of this server, and write `{server}/TOOL`."),
            false => format!("Name one of its tools, such as `{}`.", tools.join("`, `")),
        };
        let message = format!("`{server}` is a server and not a tool");
        Self::new(ErrorCode::ValidationInput, message, &remedy)
            .detail("reason", json!("invalid_format"))
    }

    /// Returns the error for expensive work while the service is too busy.
    pub fn too_busy(error: &ComputeError) -> Self {
        let remedy = "No tool was called. Call again when fewer calls are running.";
        Self::new(ErrorCode::ExecutionFailed, error.to_string(), remedy)
            .detail("reason", json!("service_busy"))
    }

    /// Returns the error for a request to run code where that is impossible.
    pub fn execution_unavailable(reason: &str, remedy: &str) -> Self {
        let mut error = Self::new(ErrorCode::ExecutionFailed, reason, remedy)
            .detail("reason", json!("execution_unavailable"));
        error.retryable = false;
        error
    }

    /// Returns the error for a request to stream a result.
    pub fn no_stream() -> Self {
        let remedy = "Leave `stream` out: the whole result comes in one answer.";
        Self::new(ErrorCode::StreamNotSupported, "metamcp does not stream results", remedy)
    }

    /// Returns the error for a step of a chain that asks for input, which no client can answer.
    pub fn needs_input() -> Self {
        let message = "the tool asks for input, which is impossible in a chain";
        let remedy = "Call the tool alone and answer its question.";
        Self::new(ErrorCode::ExecutionFailed, message, remedy)
    }

    /// Returns the error for a request to run a tool on another backend.
    pub fn no_override() -> Self {
        let remedy = "Leave `backend_override` out, and name the server in `tool_id`.";
        let message = "a tool runs only on its own server";
        Self::new(ErrorCode::BackendOverrideInvalid, message, remedy)
    }

    /// Returns the error for a JSON-RPC error of `server`, given as JSON text.
    pub fn of_server(server: &str, rpc: &str) -> Self {
        let rpc: Value = match rpc.len() <= defaults::ERROR_DETAIL_BYTES_MAX {
            true => serde_json::from_str(rpc).unwrap_or_default(),
            false => outline(rpc),
        };
        let reason = rpc["message"].as_str().unwrap_or("it gave no reason");
        let reason = redact::cut(reason, defaults::QUOTE_BYTES_MAX);
        let code = rpc["code"].as_i64();
        let is_lasting = matches!(code, Some(INVALID_PARAMS | METHOD_NOT_FOUND | INVALID_REQUEST));
        let message = format!("server `{server}` refused the call: {reason}");
        let mut error = Self::new(ErrorCode::ExecutionFailed, message, "").on_server();
        error.retryable = !is_lasting;
        if rpc.is_null() { error } else { error.detail("rpc", rpc) }
    }

    /// Returns the error for a failed tool; `text` is that of its result.
    pub fn of_tool(text: &str) -> Self {
        let reason = match text.trim() {
            "" => "the tool failed without a message",
            text => redact::cut(text, defaults::QUOTE_BYTES_MAX),
        };
        Self::new(ErrorCode::ExecutionFailed, reason, "").on_server()
    }

    /// Returns the error for an answer that is not a tool result.
    pub fn no_result(server: &str) -> Self {
        let message = format!("server `{server}` sent an answer that is not a tool result");
        let remedy =
            "Report it to the maintainer of the server: it violates the MCP specification.";
        Self::new(ErrorCode::ValidationOutput, message, remedy).on_server()
    }

    /// Returns the error for a result with more blocks than metamcp reads.
    pub fn too_many_blocks(server: &str) -> Self {
        let message = format!(
            "server `{server}` sent a result of more than {RESULT_BLOCKS_MAX} content blocks, the maximum"
        );
        let remedy = "Request less from the tool at a time.";
        Self::new(ErrorCode::ValidationOutput, message, remedy).on_server()
    }

    /// Changes a timeout error to say that the caller's `timeoutMs`, which was `given`, was too
    /// short. Any other error stays unchanged.
    #[must_use]
    pub fn with_timeout(mut self, given: Duration) -> Self {
        if self.code != ErrorCode::Timeout {
            return self;
        }
        let has_begun = self.details.get("reason").is_some_and(|reason| reason == "timeout");
        let (failure, remedy) = match has_begun {
            true => (
                "gave no answer",
                "The call may still be running: check its effects before you call again, with a larger \
                 `timeoutMs`.",
            ),
            false => ("was not connected", "Call again, with a larger `timeoutMs`."),
        };
        let server = self.details.get("server").and_then(Value::as_str);
        let server =
            server.map_or_else(|| "the server".to_owned(), |name| format!("server `{name}`"));
        let given = given.as_millis();
        self.message = format!("{server} {failure} within the {given} ms of `timeoutMs`. {remedy}");
        self.detail("timeoutMs", json!(u64::try_from(given).unwrap_or(u64::MAX)))
    }

    /// Adds warnings for a repeated call of a tool that may have run already.
    #[must_use]
    pub fn with_warnings(self, warnings: &[ToolWarning]) -> Self {
        if warnings.is_empty() {
            return self;
        }
        let words: Vec<String> = warnings.iter().map(ToolWarning::to_string).collect();
        self.detail("warnings", json!(words))
    }

    /// Adds the tool to run.
    #[must_use]
    pub fn about(self, id: &ToolId) -> Self {
        Self { tool_id: Some(id.to_string()), ..self }
    }

    /// Adds the name of the meta-tool that was called.
    #[must_use]
    pub fn during(self, op: &'static str) -> Self {
        Self { op: Some(op), ..self }
    }

    /// Adds a detail.
    #[must_use]
    pub fn detail(mut self, name: &str, value: Value) -> Self {
        self.details.insert(name.to_owned(), value);
        self
    }

    fn on_server(self) -> Self {
        Self { backend_kind: Some(BACKEND_KIND), ..self }
    }

    /// Returns the failure without the remedy.
    pub fn failure(&self) -> &str {
        &self.failure
    }

    /// Returns the remedy; empty without one.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }

    /// Returns the error as text.
    pub fn text(&self) -> String {
        let lists = ["validationErrors", "warnings"].map(|name| self.details.get(name));
        let lines = lists.into_iter().flatten().filter_map(Value::as_array).flatten();
        let lines = lines.filter_map(Value::as_str).map(redact::sanitize);
        lines.fold(self.message.clone(), |text, line| format!("{text}\n- {line}"))
    }

    /// Returns the error as operators see it: the protocol error that it was made from, if any.
    pub fn to_rpc(&self) -> RpcError {
        if let Some(cause) = &self.cause {
            return (**cause).clone();
        }
        let is_because = |word| self.details.get("reason").is_some_and(|reason| reason == word);
        let is_format = is_because("invalid_format");
        let (code, name) = match self.code {
            ErrorCode::ToolNotFound => (INVALID_PARAMS, "TOOL_NOT_FOUND"),
            ErrorCode::NoBackends if is_because("server_disabled") => {
                (INVALID_PARAMS, "SERVER_DISABLED")
            }
            ErrorCode::NoBackends => (INVALID_PARAMS, "SERVER_NOT_FOUND"),
            ErrorCode::ValidationInput if is_format => (INVALID_PARAMS, "INVALID_FORMAT"),
            ErrorCode::ValidationInput
            | ErrorCode::BackendOverrideInvalid
            | ErrorCode::StreamNotSupported => (INVALID_PARAMS, "INVALID_ARGUMENTS"),
            ErrorCode::Timeout => (REQUEST_TIMEOUT, "TIMEOUT"),
            ErrorCode::ValidationOutput => (INTERNAL_ERROR, "INVALID_RESULT"),
            ErrorCode::LimitExceeded => (INVALID_PARAMS, "LIMIT_EXCEEDED"),
            ErrorCode::ScriptFailed => (INTERNAL_ERROR, "SCRIPT_FAILED"),
            ErrorCode::SandboxFailed => (INTERNAL_ERROR, "SANDBOX_FAILED"),
            ErrorCode::ScriptDiverged => (INTERNAL_ERROR, "SCRIPT_DIVERGED"),
            ErrorCode::OutcomeUnknown => (INTERNAL_ERROR, "OUTCOME_UNKNOWN"),
            ErrorCode::ExecutionFailed if is_because("execution_unavailable") => {
                (INTERNAL_ERROR, "EXECUTION_UNAVAILABLE")
            }
            ErrorCode::ExecutionFailed | ErrorCode::ChainStepFailed | ErrorCode::Internal => {
                (INTERNAL_ERROR, "EXECUTION_FAILED")
            }
        };
        // An operator has commands in place of the meta-tools.
        let remedy = match self.remedy.as_str() {
            SEARCH_SERVER => "Run `metamcp servers` to list the servers.",
            SEARCH_TOOL => "Run `metamcp tools` to list the tools.",
            remedy => remedy,
        };
        RpcError::new(code, name, self.failure.clone())
            .suggest(remedy)
            .context(Value::Object(self.details.clone()))
    }

    /// Returns the error as the result of a tool, JSON text.
    pub fn to_result(&self) -> String {
        let (block, error) = (text_block(&self.text()), json!(self));
        format!(r#"{{"content":[{block}],"structuredContent":{{"error":{error}}},"isError":true}}"#)
    }
}

/// Returns the code and the message of a JSON-RPC error that is too large to be passed on.
fn outline(rpc: &str) -> Value {
    let Some(error) = ObjectMembers::read(rpc) else { return Value::Null };
    let code = error.get("code").and_then(|code| code.parse::<i64>().ok());
    let message = error.string("message").unwrap_or_default();
    json!({ "code": code, "message": redact::cut(&message, defaults::QUOTE_BYTES_MAX) })
}

#[cfg(test)]
mod tests;
