//! The meta-tools that run code: `mcp_execute` and `execute_code`.

mod execute_arguments;
mod operations;
mod operator_scripts;
mod requested_script;
mod script_answer;

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};

pub use execute_arguments::ExecuteArguments;
use operations::ScriptOperations;
pub use operator_scripts::{OperatorScripts, operator_exchange};
pub use requested_script::RequestedScript;
use script_answer::script_answer;

use super::meta_call::{MetaCall, MetaRefusal};
use crate::{
    era,
    forward::RequestOutcome,
    protocol::{Message, jsonrpc::MessagePart},
    script::{PreparedScript, ResumeError, ScriptContext, ScriptEnd, ScriptExchange},
    tool::{ErrorCode, ErrorObject, ToolId},
};

/// Answers a tool that runs code: begins its script, or goes on with it.
pub(super) async fn execute(
    call: MetaCall<'_>,
    arguments: ExecuteArguments,
) -> Result<RequestOutcome, MetaRefusal> {
    let services = call.services;
    let config = services.forwarder.config();
    let launcher = services.sandbox_launcher().map_err(|reason| {
        ErrorObject::execution_unavailable(&reason, "Call the tools one by one.")
    })?;
    if let Some(cursor) = &arguments.cursor {
        return read_on(call, cursor);
    }
    arguments.script.check(&config.execute)?;
    let MetaCall { session, request, .. } = call;
    let context = ScriptContext {
        launcher,
        runner: Arc::new(ScriptOperations::of_client(call)),
        records: Arc::clone(&services.scripts.records),
        places: Arc::clone(&services.scripts.places),
        can_suspend: session.is_modern(),
        token: call.token().map(str::to_owned),
        holder: session.holder(),
    };
    let digest = BASE64_STANDARD_NO_PAD.encode(era::digest(request));
    let responses = request.part(MessagePart::InputResponses);
    let task = match request.part(MessagePart::RequestState) {
        // A state of another party must not run the script a second time.
        Some(_) => {
            let state = request.string(MessagePart::RequestState).unwrap_or_default();
            let responses = responses.unwrap_or("{}");
            let resumed = PreparedScript::resume(&state, &digest, responses, context).await;
            resumed.map_err(|error| not_resumed(&error))?
        }
        None if responses.is_some() => return Err(not_resumed(&ResumeError::NoState).into()),
        None => arguments.script.into_task(&config.execute, digest, context),
    };
    let (reply, services) = (call.reply.clone(), Arc::clone(services));
    let (holder, bytes_max) = (call.session.holder(), config.tools.result_bytes_max);
    let request_id = request.part(MessagePart::Id).unwrap_or("null").to_owned();
    Ok(RequestOutcome::Script(Box::new(ScriptExchange::new(task, async move |outcome| {
        if let ScriptEnd::Suspended(question) = &outcome.end {
            return Message::response(&request_id, question);
        }
        let (maker, results) = (reply.clone(), Arc::clone(&services.results));
        let n_bytes = outcome.n_bytes();
        let make = move |_: &_| {
            let result = script_answer(maker.tool, outcome);
            maker.render(&results.shown(maker.tool, &script_id(), result, bytes_max))
        };
        services.forwarder.compute(holder, n_bytes, make).await.unwrap_or_else(|error| {
            let error = ErrorObject::too_busy(&error).during(reply.tool.name());
            reply.render(&error.to_result())
        })
    }))))
}

/// Returns the next page of a stored result.
fn read_on(call: MetaCall<'_>, cursor: &str) -> Result<RequestOutcome, MetaRefusal> {
    let bytes_max = call.services.forwarder.peek_config().tools.result_bytes_max;
    let page = call.services.results.page(call.reply.tool, &script_id(), cursor, bytes_max)?;
    Ok(call.reply.result(&page))
}

/// Returns the id under which the results of scripts are kept.
fn script_id() -> ToolId {
    ToolId::new("metamcp", "script")
}

fn not_resumed(error: &ResumeError) -> ErrorObject {
    let remedy = match error {
        ResumeError::Running => "Wait for its answer.",
        ResumeError::NoState => "Send the `requestState` of the question with the answers.",
        _ => {
            "Call again without `requestState` and answers: the script runs from its start, and makes its calls again."
        }
    };
    ErrorObject::new(ErrorCode::ValidationInput, error.to_string(), remedy)
}
