//! The methods `prompts/list` and `prompts/get`.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Asker, ControlParams, ControlService, MethodResult, listing, params::ParamKind};
use crate::{protocol::list_page::ListKind, view::operator};

impl ParamKind for BTreeMap<String, String> {
    const WORDS: &'static str = "an object whose values are strings";
}

/// Answers `prompts/list`.
pub(super) async fn list(desk: &ControlService, params: &ControlParams<'_>) -> MethodResult {
    listing::list_result(desk, params, ListKind::Prompts, "prompt").await
}

/// Answers `prompts/get`.
pub(super) async fn get(
    desk: &ControlService,
    params: &ControlParams<'_>,
    asker: &Asker,
) -> MethodResult {
    let server: String = params.required("server")?;
    let name: String = params.required("name")?;
    let arguments: Option<BTreeMap<String, String>> = params.optional("arguments")?;
    let asked = match arguments {
        Some(arguments) => json!({ "name": name, "arguments": arguments }),
        None => json!({ "name": name }),
    };
    let exchange =
        desk.views.operator_prompt(&server, &name, &asked.to_string(), asker.holder()).await?;
    operator::finish(exchange, None).await
}
