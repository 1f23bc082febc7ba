//! The method `resources/read`.

use serde_json::json;

use super::{ControlRequest, MethodResult, finish_call};
use crate::protocol::payloads::method;

/// Answers `resources/read`.
pub(super) async fn read(request: &ControlRequest<'_>) -> MethodResult {
    let server: String = request.params.required("server")?;
    let uri: String = request.params.required("uri")?;
    finish_call(request, &server, method::RESOURCES_READ, &json!({ "uri": uri })).await
}
