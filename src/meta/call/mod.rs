//! The meta-tools that call one tool: `mcp_call` and `run_tool`.

mod call_arguments;
pub(super) mod responder;

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

pub use call_arguments::{CallArguments, RunArguments};
use responder::{CallTimeouts, MetaResponder, ResultForm};

use super::{
    cursor::CursorError,
    meta_call::{MetaCall, MetaRefusal},
    progress::ToolProgress,
};
use crate::{
    forward::RequestOutcome,
    tool::{ErrorObject, RequestedTool, ResolvedTool, tool_call},
};

/// Answers `mcp_call`.
pub(super) async fn call_tool(
    call: MetaCall<'_>,
    arguments: CallArguments,
) -> Result<RequestOutcome, MetaRefusal> {
    if let Some(cursor) = &arguments.cursor {
        return read_on(call, &arguments.tool, cursor);
    }
    let timeouts = call_timeouts(call, arguments.timeout);
    let resolved = call.resolve(&arguments.tool, timeouts.limits).await;
    let resolved = resolved.map_err(|error| timeouts.with_timeout_hint(error))?;
    run(call, resolved, &arguments.args, ResultForm::Original(arguments.fields), timeouts).await
}

/// Answers `run_tool`.
pub(super) async fn run_tool(
    call: MetaCall<'_>,
    arguments: RunArguments,
) -> Result<RequestOutcome, MetaRefusal> {
    if arguments.is_stream {
        return Err(ErrorObject::no_stream().into());
    }
    if arguments.is_overridden {
        return Err(ErrorObject::no_override().into());
    }
    if let Some(cursor) = &arguments.cursor {
        return read_on(call, &arguments.tool, cursor);
    }
    let timeouts = call_timeouts(call, None);
    let resolved = call.resolve(&arguments.tool, timeouts.limits).await?;
    let args = arguments.args.clone();
    run(call, resolved, &args, ResultForm::Wrapped(Box::new(arguments)), timeouts).await
}

async fn run(
    call: MetaCall<'_>,
    resolved: ResolvedTool,
    args: &str,
    form: ResultForm,
    timeouts: CallTimeouts,
) -> Result<RequestOutcome, MetaRefusal> {
    let (services, ResolvedTool { slot, id, item }) = (call.services, resolved);
    let verdict = services.checker.check(call.session.holder(), &item, args).await;
    let warning = services.checker.apply(verdict, &id, &item)?;
    let request = tool_call(call.request, &item.key, args);
    let responder = MetaResponder {
        results: Arc::clone(&services.results),
        reply: call.reply.clone(),
        id: id.clone(),
        item,
        form,
        warning,
        timeouts,
        progress: call.token().map(ToolProgress::new),
        bytes_max: services.forwarder.peek_config().tools.result_bytes_max,
        since: Instant::now(),
    };
    let forwarded = services.forwarder.forward_with(
        slot,
        call.session,
        request,
        timeouts.limits,
        Some(Box::new(responder)),
    );
    forwarded.await.map_err(|error| ErrorObject::from(&error).about(&id).into())
}

/// Returns the next page of a stored result.
fn read_on(
    call: MetaCall<'_>,
    tool: &RequestedTool,
    cursor: &str,
) -> Result<RequestOutcome, MetaRefusal> {
    let bytes_max = call.services.forwarder.peek_config().tools.result_bytes_max;
    let mut refused = None;
    for id in tool.readings().map_err(|error| ErrorObject::bad_id(&error, &[]))? {
        match call.services.results.page(call.reply.tool, &id, cursor, bytes_max) {
            Ok(page) => return Ok(call.reply.result(&page)),
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.unwrap_or(CursorError::Broken).into())
}

/// Returns the limits of a call with the client's timeout, at most those of the service.
fn call_timeouts(call: MetaCall<'_>, timeout: Option<Duration>) -> CallTimeouts {
    let forwarder = &call.services.forwarder;
    let limits = forwarder.limits_within(timeout);
    CallTimeouts { limits, given: timeout.filter(|given| *given < forwarder.limits().total) }
}
