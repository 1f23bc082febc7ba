//! The parts of a request that HTTP headers repeat, so that intermediaries need not read the body:
//! the method, the name, and the arguments that a tool's schema marks with `x-mcp-header`.
//!
//! Source: MCP 2026-07-28, "Streamable HTTP", "Request Metadata".

use std::{borrow::Cow, collections::HashMap};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::{
    Message, ObjectMembers,
    jsonrpc::MessagePart,
    list_page::{ListKind, ListPage},
    payloads::method,
    task,
};

/// The header that repeats the method.
pub const METHOD: &str = "mcp-method";
/// The header that repeats the name of the tool or prompt, or the URI of the resource.
pub const NAME: &str = "mcp-name";
/// The prefix of the headers of marked arguments.
pub const ARGUMENT_PREFIX: &str = "mcp-param-";

/// The schema keyword that marks an argument.
const MARK: &str = "x-mcp-header";
/// The prefix and suffix of an encoded value, which a header could not carry as it is.
const ENCODED: (&str, &str) = ("=?base64?", "?=");
/// The largest integer that every client reads exactly. Source: MCP, "Schema Extension", 2^53 − 1.
const INTEGER_MAX: i64 = (1 << 53) - 1;

/// Returns the value of the name header of a request, and whether the header is mandatory.
///
/// Source: MCP 2026-07-28, "Standard Request Headers", and SEP-2663, "Routing Headers".
pub fn name_of(request: &Message) -> Option<(String, bool)> {
    let part = match request.method()? {
        method::TOOLS_CALL | method::PROMPTS_GET => MessagePart::Name,
        method::RESOURCES_READ => MessagePart::Uri,
        other if other.starts_with(task::PREFIX) => {
            return task::id_of(request).map(|id| (id, false));
        }
        _ => return None,
    };
    request.string(part).map(|name| (name, true))
}

/// Returns `value` in the encoding of a header.
pub fn encode(value: &str) -> Cow<'_, str> {
    let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && value.trim_ascii() == value
        && between_marks(value).is_none();
    if is_plain {
        return value.into();
    }
    let (before, after) = ENCODED;
    format!("{before}{}{after}", STANDARD.encode(value)).into()
}

/// Returns the value of a header, or `None` if it cannot be decoded.
pub fn decode(header: &str) -> Option<Cow<'_, str>> {
    let header = header.trim_matches([' ', '\t']);
    if !header.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        return None;
    }
    match between_marks(header) {
        None => Some(header.into()),
        Some(text) => String::from_utf8(STANDARD.decode(text).ok()?).ok().map(Cow::Owned),
    }
}

fn between_marks(text: &str) -> Option<&str> {
    text.strip_prefix(ENCODED.0)?.strip_suffix(ENCODED.1)
}

/// A tool's argument that a header repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderParameter {
    /// The name of the header, in lower case.
    pub header: String,
    /// The path to the argument: the names of properties, outermost first.
    pub path: Vec<String>,
}

/// The reason why the marks in a tool's schema, and thus the tool, are unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderMarkError {
    /// The mark is not a valid suffix of a header name.
    #[error("`x-mcp-header` is {0}, which is not a valid header name")]
    Name(String),
    /// Two arguments would share one header.
    #[error("two `x-mcp-header` members select the same header `{0}`")]
    Twice(String),
    /// The value is not simple enough for a header.
    #[error("`x-mcp-header` `{0}` marks a property that is not an integer, string or boolean")]
    Kind(String),
    /// No path leads to the argument.
    #[error("`x-mcp-header` {0} marks a schema that no chain of `properties` leads to")]
    Place(String),
}

/// Returns the arguments marked in a tool's schema, given as JSON text.
///
/// # Errors
///
/// [`HeaderMarkError`] if a mark is invalid; clients omit such a tool.
pub fn header_parameters(schema: &str) -> Result<Vec<HeaderParameter>, HeaderMarkError> {
    // Nearly all schemas have none.
    if !schema.contains(MARK) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    collect(&schema, Some(&[]), &mut found)?;
    Ok(found)
}

/// Returns the tools with marked arguments on a page of `tools/list`, the text of its result. Tools
/// with invalid marks are left out.
pub fn marked_tools(page: &str) -> HashMap<String, Vec<HeaderParameter>> {
    // Nearly all pages have none.
    if !page.contains(MARK) {
        return HashMap::new();
    }
    let items = ListPage::read(ListKind::Tools, page).map(|page| page.items).unwrap_or_default();
    let marked = items.into_iter().filter_map(|tool| {
        let schema = ObjectMembers::read(tool.json())?.get("inputSchema")?.to_owned();
        let marks = header_parameters(&schema).ok().filter(|marks| !marks.is_empty())?;
        Some((tool.key, marks))
    });
    marked.collect()
}

/// Collects the marks in a schema; `path` leads to its value, if a path of properties exists.
fn collect(
    schema: &Value,
    path: Option<&[&str]>,
    found: &mut Vec<HeaderParameter>,
) -> Result<(), HeaderMarkError> {
    let Value::Object(schema) = schema else { return Ok(()) };
    if let Some(mark) = schema.get(MARK) {
        let path = path.filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| HeaderMarkError::Place(mark.to_string()))?;
        let one = marked(mark, schema, path)?;
        if found.iter().any(|other| other.header == one.header) {
            return Err(HeaderMarkError::Twice(one.header));
        }
        found.push(one);
    }
    for (keyword, value) in schema {
        match keyword.as_str() {
            "properties" => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    let inner_path = path.map(|path| [path, &[name.as_str()]].concat());
                    collect(inner, inner_path.as_deref(), found)?;
                }
            }
            "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                for inner in value.as_object().into_iter().flat_map(Map::values) {
                    collect(inner, None, found)?;
                }
            }
            "allOf"
            | "anyOf"
            | "oneOf"
            | "prefixItems"
            | "items"
            | "additionalItems"
            | "contains"
            | "unevaluatedItems"
            | "additionalProperties"
            | "unevaluatedProperties"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else" => {
                collect(value, None, found)?;
                for inner in value.as_array().into_iter().flatten() {
                    collect(inner, None, found)?;
                }
            }
            // All other keywords hold values, not schemas.
            _ => {}
        }
    }
    Ok(())
}

fn marked(
    mark: &Value,
    schema: &Map<String, Value>,
    path: &[&str],
) -> Result<HeaderParameter, HeaderMarkError> {
    let name = mark.as_str().filter(|name| is_token(name));
    let name = name.ok_or_else(|| HeaderMarkError::Name(mark.to_string()))?;
    let is_simple = |kind: &Value| kind == "integer" || kind == "string" || kind == "boolean";
    let is_fit = match schema.get("type") {
        Some(Value::Array(kinds)) => {
            kinds.iter().any(is_simple)
                && kinds.iter().all(|kind| is_simple(kind) || kind == "null")
        }
        Some(kind) => is_simple(kind),
        None => false,
    };
    if !is_fit {
        return Err(HeaderMarkError::Kind(name.to_owned()));
    }
    let header = format!("{ARGUMENT_PREFIX}{}", name.to_ascii_lowercase());
    Ok(HeaderParameter { header, path: path.iter().map(|&name| name.to_owned()).collect() })
}

/// Returns whether `name` can be part of a header's name. Source: RFC 9110, "tchar".
fn is_token(name: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_tchar)
}

/// Returns the arguments of a tool call, as JSON text.
pub fn arguments(call: &Message) -> Option<String> {
    ObjectMembers::one(call.params()?, "arguments").map(str::to_owned)
}

impl HeaderParameter {
    /// Returns the expected value of the header, not yet encoded. Returns `None` if the argument is
    /// missing or no header can carry it.
    pub fn value(&self, arguments: &Value) -> Option<String> {
        match self.argument(arguments)? {
            Value::String(text) => Some(text.clone()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Number(number) => integer(number).map(|number| number.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Returns whether the header agrees with the arguments: equal values, or both absent.
    pub fn agrees(&self, arguments: &Value, header: Option<&str>) -> bool {
        let sent = header.map(decode);
        match (self.value(arguments), sent) {
            (None, None) => true,
            (Some(value), Some(Some(sent))) => {
                let is_number = self.argument(arguments).is_some_and(Value::is_number);
                value == sent || (is_number && is_same_number(&value, &sent))
            }
            (Some(_), None | Some(None)) | (None, Some(_)) => false,
        }
    }

    fn argument<'a>(&self, arguments: &'a Value) -> Option<&'a Value> {
        self.path.iter().try_fold(arguments, |value, name| value.as_object()?.get(name))
    }
}

/// Returns the value of a number that is an integer, `42.0` included.
fn integer(number: &serde_json::Number) -> Option<i64> {
    let exact = number.as_i64().or_else(|| {
        let number = number.as_f64().filter(|number| number.fract() == 0.0)?;
        // The conversion saturates outside of `i64`, and so never yields an integer in the range.
        #[expect(clippy::cast_possible_truncation, reason = "the range is looked at below")]
        Some(number as i64)
    })?;
    (-INTEGER_MAX..=INTEGER_MAX).contains(&exact).then_some(exact)
}

fn is_same_number(expected: &str, sent: &str) -> bool {
    let sent: Option<serde_json::Number> = serde_json::from_str(sent).ok();
    sent.and_then(|sent| integer(&sent)).is_some_and(|sent| sent.to_string() == expected)
}

#[cfg(test)]
mod tests;
