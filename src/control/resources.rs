//! The methods `resources/list` and `resources/read`.

use serde_json::json;

use super::{Asker, ControlParams, ControlService, MethodResult, listing};
use crate::{
    protocol::{list_page::ListKind, payloads::method},
    view::operator,
};

/// Answers `resources/list`.
pub(super) async fn list(desk: &ControlService, params: &ControlParams<'_>) -> MethodResult {
    listing::list_result(desk, params, ListKind::Resources, "resource").await
}

/// Answers `resources/read`.
pub(super) async fn read(
    desk: &ControlService,
    params: &ControlParams<'_>,
    asker: &Asker,
) -> MethodResult {
    let server: String = params.required("server")?;
    let uri: String = params.required("uri")?;
    let asked = json!({ "uri": uri }).to_string();
    let exchange =
        desk.views.operator_ask(&server, method::RESOURCES_READ, &asked, asker.holder())?;
    operator::finish(exchange, None).await
}
