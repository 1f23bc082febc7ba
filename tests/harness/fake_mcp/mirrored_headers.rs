//! The headers of a modern POST that repeat parts of its body.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::HeaderMap;
use serde_json::Value;

use crate::{
    fake::Fake,
    message::{Members, RpcError},
    tools,
};

/// The header of the protocol version.
pub(crate) const VERSION: &str = "mcp-protocol-version";

/// The methods with a repeated subject, and the member of the body that has it.
const NAMED: [(&str, &str); 6] = [
    ("tools/call", "name"),
    ("prompts/get", "name"),
    ("resources/read", "uri"),
    ("tasks/cancel", "taskId"),
    ("tasks/get", "taskId"),
    ("tasks/update", "taskId"),
];

/// Refuses a request without its version or its method in the headers.
pub(crate) fn check_presence(headers: &HeaderMap) -> Result<(), RpcError> {
    [VERSION, "mcp-method"].into_iter().try_for_each(|name| match headers.contains_key(name) {
        true => Ok(()),
        false => Err(RpcError::mismatch(format!("`{name}` is missing"))),
    })
}

/// Refuses a request with headers that contradict its body.
pub(crate) fn check(
    fake: &Fake,
    headers: &HeaderMap,
    version: &str,
    method: &str,
    params: &Members,
) -> Result<(), RpcError> {
    same(VERSION, plain(headers, VERSION)?, Some(version))?;
    same("mcp-method", plain(headers, "mcp-method")?, Some(method))?;
    if let Some((_, member)) = NAMED.iter().find(|(named, _)| *named == method) {
        let name: Option<String> = params.optional(member)?;
        same("mcp-name", decoded(headers, "mcp-name")?.as_deref(), name.as_deref())?;
    }
    if method != "tools/call" {
        return Ok(());
    }
    let name: String = params.required("name")?;
    let arguments: Value = params.optional("arguments")?.unwrap_or_default();
    let tools = tools::list(fake, true);
    let Some(tool) = tools.iter().find(|tool| tool["name"] == name) else { return Ok(()) };
    let mut mirrored = Vec::new();
    mirrors(&tool["inputSchema"], &arguments, &mut mirrored);
    for (header, value) in mirrored {
        let header = format!("mcp-param-{}", header.to_ascii_lowercase());
        let report = decoded(headers, &header)?;
        let are_equal_numbers = || Some(report.as_ref()?.parse::<f64>().ok()? == value.as_f64()?);
        let text = match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        if are_equal_numbers() != Some(true) {
            same(&header, report.as_deref(), text.as_deref())?;
        }
    }
    Ok(())
}

/// Returns the headers of the protocol.
pub(crate) fn mirrored(headers: &HeaderMap) -> BTreeMap<String, String> {
    let of_protocol = headers.iter().filter(|(name, _)| name.as_str().starts_with("mcp-"));
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    of_protocol.map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect()
}

/// Finds the arguments that must be repeated in a header.
fn mirrors<'a>(schema: &'a Value, value: &'a Value, found: &mut Vec<(&'a str, &'a Value)>) {
    const ABSENT: &Value = &Value::Null;
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let value = value.get(name).unwrap_or(ABSENT);
        if let Some(header) = schema["x-mcp-header"].as_str() {
            found.push((header, value));
        }
        mirrors(schema, value, found);
    }
}

/// Returns a header without surrounding space.
fn plain<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match value.to_str() {
        Ok(value) if values.next().is_none() => Ok(Some(value.trim_matches([' ', '\t']))),
        _ => Err(RpcError::mismatch(format!("`{name}` is there twice or not ASCII"))),
    }
}

/// Returns a header that may be in Base64.
fn decoded(headers: &HeaderMap, name: &str) -> Result<Option<String>, RpcError> {
    let Some(value) = plain(headers, name)? else { return Ok(None) };
    let encoded = value.strip_prefix("=?base64?").and_then(|value| value.strip_suffix("?="));
    let Some(encoded) = encoded else { return Ok(Some(value.to_owned())) };
    let bytes = STANDARD.decode(encoded).ok();
    match bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(text) => Ok(Some(text)),
        None => Err(RpcError::mismatch(format!("`{name}` is not Base64 of UTF-8"))),
    }
}

fn same(name: &str, header: Option<&str>, body: Option<&str>) -> Result<(), RpcError> {
    if header == body {
        return Ok(());
    }
    Err(RpcError::mismatch(format!("`{name}` is {header:?}, and {body:?} in the body")))
}
