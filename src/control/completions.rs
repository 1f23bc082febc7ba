//! The method `completions/complete`.

use serde_json::{Value, json};

use super::{ControlParams, ControlRequest, MethodResult, finish_call};
use crate::protocol::{RpcError, payloads::method};

/// Answers `completions/complete`.
pub(super) async fn complete(request: &ControlRequest<'_>) -> MethodResult {
    let params = &request.params;
    let server: String = params.required("server")?;
    let reference = object(params, "ref")?;
    let member = |name: &str| word(params, &reference, "ref", name);
    let reference = match member("type")? {
        "ref/prompt" | "prompt" => json!({ "type": "ref/prompt", "name": member("name")? }),
        "ref/resource" | "resource" => {
            // `name` may hold the URI, too.
            let is_name = reference["uri"].is_null() && !reference["name"].is_null();
            let uri = member(if is_name { "name" } else { "uri" })?;
            json!({ "type": "ref/resource", "uri": uri })
        }
        _ => return Err(params.invalid("ref.type", "`ref/prompt` or `ref/resource`")),
    };
    let argument = object(params, "argument")?;
    let [name, value] = ["name", "value"].map(|member| word(params, &argument, "argument", member));
    let mut asked = json!({ "ref": reference, "argument": { "name": name?, "value": value? } });
    if params.raw("context").is_some() {
        asked["context"] = object(params, "context")?;
    }
    finish_call(request, &server, method::COMPLETE, &asked).await
}

/// Returns a parameter that is an object.
fn object(params: &ControlParams<'_>, name: &str) -> Result<Value, Box<RpcError>> {
    let text = params.object(name)?.ok_or_else(|| params.missing(name))?;
    serde_json::from_str(text).map_err(|_| params.invalid(name, "an object"))
}

/// Returns a string member of an object parameter.
fn word<'a>(
    params: &ControlParams<'_>,
    object: &'a Value,
    parameter: &str,
    member: &str,
) -> Result<&'a str, Box<RpcError>> {
    let path = format!("{parameter}.{member}");
    match &object[member] {
        Value::Null => Err(params.missing(&path)),
        Value::String(word) => Ok(word),
        _ => Err(params.invalid(&path, "a string")),
    }
}
