//! The parts that the demo servers share: tool descriptions, the parsing of arguments, and results.
//!
//! The input schema alone defines names and required arguments; types and ranges are checked when
//! an argument is taken. Every error is `-32602`, names the argument and states the accepted
//! values.

use std::{borrow::Cow, ops::RangeInclusive};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResult, ContentBlock, CustomRequest, ErrorCode,
        Implementation, JsonObject, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Map, Value, json};

use super::Demo;

/// The context of a request: its peer, progress token and cancellation.
pub(super) type DemoContext = RequestContext<RoleServer>;

/// The position in a list. Each list of a demo server has one page.
pub(super) type ListCursor = Option<PaginatedRequestParams>;

/// The reply to a request.
pub(super) type Reply<T> = Result<T, ErrorData>;

/// Returns what `demo` declares in the handshake.
pub(super) fn config(
    demo: Demo,
    capabilities: ServerCapabilities,
    instructions: &str,
) -> ServerConfig {
    let name = format!("metamcp-demo-{demo}");
    ServerConfig::new(capabilities)
        .with_server_info(Implementation::new(name, env!("CARGO_PKG_VERSION")))
        .with_instructions(instructions)
}

/// Returns a tool whose arguments are exactly `properties`.
///
/// `output` holds the properties of the structured result, all of them required.
pub(super) fn describe(
    name: &'static str,
    title: &'static str,
    description: impl Into<Cow<'static, str>>,
    properties: Value,
    required: &[&str],
    output: Value,
) -> Tool {
    let promised = output.as_object().into_iter().flat_map(Map::keys).cloned().collect();
    let input = object_schema(properties, json!(required));
    let output = object_schema(output, promised);
    Tool::new(name, description, input).with_title(title).with_raw_output_schema(output.into())
}

/// Returns `value` as an object; for literals written with [`json!`].
pub(super) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// Returns the name of the called tool, and its arguments.
///
/// # Errors
///
/// `-32602` with the names of all tools, or for the first unknown or missing argument.
pub(super) fn accept(tools: &[Tool], call: CallToolRequestParams) -> Reply<(&str, DemoArguments)> {
    let Some(tool) = tools.iter().find(|tool| tool.name == call.name) else {
        let names: Vec<String> = tools.iter().map(|tool| format!("`{}`", tool.name)).collect();
        let names = names.join(", ");
        return Err(invalid(format!("no tool is called `{}`: use one of {names}", call.name)));
    };
    Ok((&tool.name, DemoArguments::check(tool, call.arguments)?))
}

/// Returns the error for a request that rmcp could not parse as a known method.
///
/// Known methods arrive here too if their `params` have a wrong shape, for example `tools/call`
/// with an array as `arguments`.
pub(super) fn unreadable(request: &CustomRequest) -> ErrorData {
    let method = request.method.as_str();
    match method {
        "tools/call" | "prompts/get" => invalid(format!(
            "params of `{method}` are malformed: pass `name` as a string and `arguments` as an object"
        )),
        "resources/read" => {
            invalid("params of `resources/read` are malformed: pass `uri` as a string".to_owned())
        }
        _ => ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!("method `{method}` is not supported"),
            None,
        ),
    }
}

pub(super) fn invalid(message: String) -> ErrorData {
    ErrorData::invalid_params(message, None)
}

/// Returns a result with `text` for users and `data` for programs.
pub(super) fn succeeded(text: String, data: Value) -> CallToolResult {
    let mut result = CallToolResult::structured(data);
    result.content = vec![ContentBlock::text(text)];
    result
}

pub(super) fn failed(message: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message)])
}

/// The arguments of one call, checked for unknown and missing names.
#[derive(Debug)]
pub(super) struct DemoArguments {
    values: JsonObject,
}

impl DemoArguments {
    /// Checks the names in `values` against the input schema of `tool`.
    ///
    /// # Errors
    ///
    /// `-32602` for the first unknown or missing argument.
    fn check(tool: &Tool, values: Option<JsonObject>) -> Reply<Self> {
        let values = values.unwrap_or_default();
        let known = tool.input_schema.get("properties").and_then(Value::as_object);
        let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
        if let Some(name) = values.keys().find(|name| !is_known(name)) {
            let names: Vec<String> =
                known.into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
            let remedy = match names.is_empty() {
                true => "pass no arguments".to_owned(),
                false => format!("use {}", names.join(", ")),
            };
            return Err(invalid(format!(
                "tool `{}` has no argument `{name}`: {remedy}",
                tool.name
            )));
        }
        let required = tool.input_schema.get("required").and_then(Value::as_array);
        let missing = required
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .find(|name| !values.contains_key(*name));
        match missing {
            Some(name) => Err(invalid(format!(
                "argument `{name}` of tool `{}` is missing: pass it, see the input schema",
                tool.name
            ))),
            None => Ok(Self { values }),
        }
    }

    /// Takes a string.
    ///
    /// # Errors
    ///
    /// `-32602` when the argument is not a string.
    pub(super) fn text(&mut self, name: &str) -> Reply<String> {
        match self.values.remove(name) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(invalid(format!("argument `{name}` must be a string"))),
        }
    }

    /// Takes a whole number within `range`, or `default` when the argument is absent.
    ///
    /// # Errors
    ///
    /// `-32602` when the argument is not a whole number or lies outside the range.
    pub(super) fn integer_or(
        &mut self,
        name: &str,
        range: RangeInclusive<i64>,
        default: i64,
    ) -> Reply<i64> {
        let Some(value) = self.values.remove(name) else { return Ok(default) };
        value.as_i64().filter(|number| range.contains(number)).ok_or_else(|| {
            let (least, most) = range.into_inner();
            invalid(format!(
                "argument `{name}` is {value}: pass a whole number from {least} to {most}"
            ))
        })
    }
}

/// Returns the schema of a closed object.
fn object_schema(properties: Value, required: Value) -> JsonObject {
    object(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }))
}
