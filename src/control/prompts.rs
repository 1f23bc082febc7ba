//! The method `prompts/get`.

use std::collections::BTreeMap;

use serde_json::json;

use super::{ControlRequest, MethodResult, params::ParamKind};
use crate::view::operator;

impl ParamKind for BTreeMap<String, String> {
    const WORDS: &'static str = "an object whose values are strings";
}

/// Answers `prompts/get`.
pub(super) async fn get(request: &ControlRequest<'_>) -> MethodResult {
    let server: String = request.params.required("server")?;
    let name: String = request.params.required("name")?;
    let arguments: Option<BTreeMap<String, String>> = request.params.optional("arguments")?;
    let asked = match arguments {
        Some(arguments) => json!({ "name": name, "arguments": arguments }),
        None => json!({ "name": name }),
    };
    let (operators, asked) = (&request.service.parts.operators, asked.to_string());
    let exchange = operators.prompt(&server, &name, &asked, request.holder()).await?;
    operator::finish(exchange, None).await
}
