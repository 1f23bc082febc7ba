//! The methods `resources/list` and `resources/read`.

use serde_json::json;

use super::{ControlRequest, MethodResult, finish_call, listing};
use crate::protocol::{list_page::ListKind, payloads::method};

/// Answers `resources/list`.
pub(super) async fn list(request: &ControlRequest<'_>) -> MethodResult {
    listing::list_result(request, ListKind::Resources, "resource").await
}

/// Answers `resources/read`.
pub(super) async fn read(request: &ControlRequest<'_>) -> MethodResult {
    let server: String = request.params.required("server")?;
    let uri: String = request.params.required("uri")?;
    finish_call(request, &server, method::RESOURCES_READ, &json!({ "uri": uri })).await
}
