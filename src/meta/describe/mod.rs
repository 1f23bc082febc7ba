//! The meta-tools that describe one tool: `describe_tool` and `list_tool_examples`.

mod described_tool;
mod examples;

use std::convert::identity;

use serde_json::json;

pub use described_tool::DescribedTool;
pub use examples::{ArgumentExample, examples};

use super::{
    arguments::DetailLevel,
    meta_call::{MetaCall, MetaRefusal},
};
use crate::{
    forward::RequestOutcome,
    tool::{ErrorObject, RequestedTool, ResolvedTool},
};

/// Answers `describe_tool`.
pub(super) async fn describe_tool(
    call: MetaCall<'_>,
    tool: &RequestedTool,
    detail: DetailLevel,
    examples_max: usize,
) -> Result<RequestOutcome, MetaRefusal> {
    let describe = move |tool: &DescribedTool<'_>| tool.described(detail, examples_max);
    Ok(call.reply.value(&of_tool(call, tool, identity, describe).await?))
}

/// Answers `list_tool_examples`.
pub(super) async fn list_examples(
    call: MetaCall<'_>,
    tool: &RequestedTool,
    max: usize,
) -> Result<RequestOutcome, MetaRefusal> {
    let list =
        move |tool: &DescribedTool<'_>| json!({ "examples": tool.examples(max) }).to_string();
    Ok(call.reply.value(&of_tool(call, tool, identity, list).await?))
}

/// Returns the text that `make` derives from the definition of a tool. `cost` returns the number of
/// bytes that take as long to read as a definition of so many bytes.
pub(super) async fn of_tool(
    call: MetaCall<'_>,
    tool: &RequestedTool,
    cost: impl FnOnce(usize) -> usize,
    make: impl FnOnce(&DescribedTool<'_>) -> String + Send + 'static,
) -> Result<String, ErrorObject> {
    let ResolvedTool { id, item, .. } =
        call.resolve(tool, call.services.forwarder.limits()).await?;
    let bytes = cost(item.json().len());
    let work = move || make(&DescribedTool::new(id, item.json()));
    let text = call.services.forwarder.compute(call.session.holder(), bytes, move |_| work()).await;
    text.map_err(|error| ErrorObject::too_busy(&error))
}
