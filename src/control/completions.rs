//! The method `completions/complete`.

use serde_json::{Value, json};

use super::{Asker, ControlParams, ControlService, MethodResult};
use crate::{protocol::payloads::method, view::operator};

/// Answers `completions/complete`.
pub(super) async fn complete(
    desk: &ControlService,
    params: &ControlParams<'_>,
    asker: &Asker,
) -> MethodResult {
    let server: String = params.required("server")?;
    let reference = object(params, "ref")?;
    let kind = match word(params, &reference, "ref", "type")? {
        "ref/prompt" | "prompt" => "ref/prompt",
        "ref/resource" | "resource" => "ref/resource",
        _ => return Err(params.invalid("ref.type", "`ref/prompt` or `ref/resource`")),
    };
    let reference = match kind {
        "ref/prompt" => json!({ "type": kind, "name": word(params, &reference, "ref", "name")? }),
        // `name` may hold the URI, too.
        _ => {
            let member = if reference["uri"].is_null() && !reference["name"].is_null() {
                "name"
            } else {
                "uri"
            };
            json!({ "type": kind, "uri": word(params, &reference, "ref", member)? })
        }
    };
    let argument = object(params, "argument")?;
    let [name, value] = ["name", "value"].map(|member| word(params, &argument, "argument", member));
    let mut asked = json!({ "ref": reference, "argument": { "name": name?, "value": value? } });
    if params.raw("context").is_some() {
        asked["context"] = object(params, "context")?;
    }
    let exchange =
        desk.views.operator_ask(&server, method::COMPLETE, &asked.to_string(), asker.holder())?;
    operator::finish(exchange, None).await
}

/// Returns a parameter that is an object.
fn object(params: &ControlParams<'_>, name: &str) -> Result<Value, Box<crate::protocol::RpcError>> {
    let text = params.object(name)?.ok_or_else(|| params.missing(name))?;
    serde_json::from_str(text).map_err(|_| params.invalid(name, "an object"))
}

/// Returns a string member of an object parameter.
fn word<'a>(
    params: &ControlParams<'_>,
    object: &'a Value,
    parameter: &str,
    member: &str,
) -> Result<&'a str, Box<crate::protocol::RpcError>> {
    let path = format!("{parameter}.{member}");
    match &object[member] {
        Value::Null => Err(params.missing(&path)),
        Value::String(word) => Ok(word),
        _ => Err(params.invalid(&path, "a string")),
    }
}
