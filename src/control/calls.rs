//! The method `daemon/calls`: the records of the last calls, and the wait for more.

use serde_json::json;

use super::{ControlRequest, MethodResult, ring_page::ring_page};
use crate::call_record::CallRecord;

/// Answers `daemon/calls`. With `wait`, the answer may be delayed until a call has ended.
pub(super) async fn calls(request: &ControlRequest<'_>) -> MethodResult {
    let (params, parts) = (&request.params, &request.service.parts);
    let text = |name| params.optional::<String>(name);
    let (server, tool, client) = (text("server")?, text("tool")?, text("client")?);
    let only_failed = params.optional::<bool>("failed")?.unwrap_or_default();
    let ring = parts.views.calls().ring();
    let is_at = |call: &CallRecord| {
        server
            .as_deref()
            .is_none_or(|server| call.server().is_some_and(|found| found.as_str() == server))
    };
    // A server may have been removed since its last call.
    if let Some(server) = server.as_deref()
        && !ring.has(is_at)
    {
        parts.operators.check_declared(server)?;
    }
    let is_wanted = |call: &CallRecord| {
        is_at(call)
            && tool.as_deref().is_none_or(|tool| call.is_of_tool(tool))
            && client.as_deref().is_none_or(|client| call.caller.name.name == client)
            && !(only_failed && call.outcome.is_ok())
    };
    let mut page = ring_page(request, ring, "calls", is_wanted, CallRecord::to_json).await?;
    page["enabled"] = json!(parts.views.calls().is_enabled());
    page["file"] = json!(parts.views.calls().file());
    Ok(page.to_string())
}
