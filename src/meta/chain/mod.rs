//! The meta-tool `run_chain`: a chain of tool calls in one exchange with the client.
//!
//! An error that only the client can fix is returned unchanged until a step has run. Later it is
//! the failure of its step, so that the results of earlier steps are kept.

mod tool_chain;

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

pub use tool_chain::{
    ChainIncludes, ChainStep, StepArguments, StepResult, TooManySteps, ToolChain,
};

use super::{
    call::responder::{call_failure, is_client_fault, is_for_client, is_question},
    call_outcome::ToolOutcome,
    meta_call::{MetaCall, MetaRefusal, inner_request},
    reply::MetaReply,
};
use crate::{
    call::{AttemptOutcome, CallContinuation, CallError, NextAction},
    capacity_holder::Account,
    compute_pool::{ComputeError, StopFlag},
    forward::{RequestOutcome, client_exchange},
    pool::ServerSlot,
    protocol::{Message, ObjectMembers, jsonrpc::MessagePart},
    tool::{ArgumentChecker, ErrorCode, ErrorObject, RequestedTool, ResolvedTool, tool_call},
};

struct RunningChain {
    chain: ToolChain,
    /// The tools of the steps, by the name in the request.
    tools: HashMap<RequestedTool, Result<ResolvedTool, ErrorObject>>,
    checker: Arc<ArgumentChecker>,
    /// The account that the checks of arguments count for.
    account: Account,
    /// The reason why the arguments of the current step were not checked, if so.
    warning: Option<String>,
    reply: MetaReply,
    /// The call that each step's request is made from.
    request: Message,
    /// The client's progress token, as JSON text.
    token: Option<String>,
    bytes_max: usize,
    notices: Vec<Message>,
}

/// Answers `run_chain`. Resolves the tools of all steps first. An unknown tool fails its step.
pub(in crate::meta) async fn run_chain(
    call: MetaCall<'_>,
    steps: Vec<StepArguments>,
    includes: ChainIncludes,
) -> Result<RequestOutcome, MetaRefusal> {
    let MetaCall { services, session, reply, .. } = call;
    let (config, limits) = (services.forwarder.peek_config(), services.forwarder.limits());
    let requested: Vec<RequestedTool> = steps.iter().map(|step| step.tool.clone()).collect();
    let chain = ToolChain::new(steps, config.tools.max_steps, includes)
        .map_err(|error| error.to_error())?;
    let mut tools = HashMap::new();
    for tool in requested {
        if let Entry::Vacant(vacant) = tools.entry(tool) {
            let resolved = call.resolve(vacant.key(), limits).await;
            vacant.insert(resolved);
        }
    }
    let per_session = tools.values().flatten().find(|found| found.slot.is_per_session());
    let one_shot = match per_session {
        Some(found) => services.forwarder.one_shot_client(&found.slot, session).await,
        None => None,
    };
    let mut running = RunningChain {
        chain,
        tools,
        checker: Arc::clone(&services.checker),
        account: session.holder().account,
        warning: None,
        reply: reply.clone(),
        request: inner_request(call.request),
        token: call.token().map(str::to_owned),
        bytes_max: config.tools.result_bytes_max,
        notices: Vec::new(),
    };
    running.report();
    let mut action = running.advance(None);
    if matches!(action, NextAction::Compute) {
        let work = move |stop: &StopFlag| {
            let action = running.advance(Some(stop));
            (running, action)
        };
        let computed = services.forwarder.computer().clone().run(session.holder(), work).await;
        (running, action) = computed.map_err(|error| ErrorObject::too_busy(&error))?;
    }
    let (slot, first) = match action {
        NextAction::Request(slot, first) => (slot, first),
        NextAction::Compute => return Err(ErrorObject::too_busy(&ComputeError::Full).into()),
        NextAction::Answer(answer) => {
            return Ok(RequestOutcome::Answer(answer.bytes().clone()));
        }
        NextAction::Error(error) => return Err(ErrorObject::from(&error).into()),
    };
    let mut exchange = client_exchange(session, one_shot, slot, first, limits)
        .with_continuation(Box::new(running), services.forwarder.computer().clone());
    if let Some(token) = call.token() {
        exchange = exchange.with_progress_token(token);
    }
    Ok(RequestOutcome::Exchange(Box::new(exchange)))
}

impl RunningChain {
    /// Advances to the next step that needs a request, or to the answer. Long computations run only
    /// with a flag that stops them.
    fn advance(&mut self, stop: Option<&StopFlag>) -> NextAction {
        while let Some(step) = self.chain.next() {
            match self.prepare(&step, stop) {
                Ok(action) => return action,
                Err(error) => self.failed(*error),
            }
        }
        NextAction::Answer(self.reply.message(&self.chain.to_result(self.bytes_max)))
    }

    fn prepare(
        &mut self,
        step: &ChainStep,
        stop: Option<&StopFlag>,
    ) -> Result<NextAction, Box<ErrorObject>> {
        let ResolvedTool { slot, id, item } = match self.tools.get(&step.tool) {
            Some(Ok(resolved)) => resolved,
            Some(Err(error)) => return Err(Box::new(error.clone())),
            None => {
                let message = "metamcp did not resolve the tool of this step";
                return Err(Box::new(ErrorObject::new(ErrorCode::Internal, message, "")));
            }
        };
        let verdict = self.checker.check_now(self.account, item, &step.args, stop);
        let Some(verdict) = verdict else { return Ok(NextAction::Compute) };
        self.warning = self.checker.apply(verdict, id, item)?;
        let call = tool_call(&self.request, &item.key, &step.args);
        Ok(NextAction::Request(Arc::<ServerSlot>::clone(slot), call))
    }

    /// Records that the current step failed.
    fn failed(&mut self, error: ErrorObject) {
        self.ran(ToolOutcome::Failed(Box::new(error)));
    }

    fn ran(&mut self, outcome: ToolOutcome) {
        let tool = self.tool();
        let id = tool.map(|tool| tool.id.clone());
        let definition = tool.map(|tool| tool.item.json().to_owned());
        let warning = self.warning.take();
        self.chain.record_result(StepResult { id, definition, outcome, warning });
        self.report();
    }

    /// Returns the tool of the current step.
    fn tool(&self) -> Option<&ResolvedTool> {
        self.tools.get(self.chain.tool()?)?.as_ref().ok()
    }

    /// Returns the outcome of an attempt, with the queued notifications.
    fn outcome(&mut self, action: NextAction) -> AttemptOutcome {
        AttemptOutcome { notices: std::mem::take(&mut self.notices), action }
    }

    /// Queues a progress notification if the client wants them.
    fn report(&mut self) {
        let Some(token) = &self.token else { return };
        self.notices.push(self.chain.progress().to_notice(token));
    }
}

impl CallContinuation for RunningChain {
    fn start(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.notices)
    }

    fn on_outcome(&mut self, outcome: Result<Message, CallError>, _: &StopFlag) -> AttemptOutcome {
        let server = self.tool().map(|tool| tool.id.server.clone()).unwrap_or_default();
        // Before the first step has run, the client can fix the error and run the whole chain
        // again. Later that would repeat earlier steps, and lose their results.
        let is_first = !self.chain.has_started();
        match outcome {
            Ok(answer) => match (answer.part(MessagePart::Result), answer.part(MessagePart::Error))
            {
                (Some(result), _)
                    if ObjectMembers::read(result).as_ref().is_some_and(is_question) =>
                {
                    self.failed(ErrorObject::needs_input());
                }
                (Some(result), _) => self.ran(ToolOutcome::read(&server, result)),
                (None, Some(error)) if is_first && is_for_client(error) => {
                    return self.outcome(NextAction::Answer(answer));
                }
                (None, error) => {
                    self.failed(ErrorObject::of_server(&server, error.unwrap_or("null")));
                }
            },
            Err(error) if is_first && is_client_fault(&error) => {
                return self.outcome(NextAction::Error(error));
            }
            Err(error) => {
                let error = match self.tool() {
                    Some(tool) => call_failure(&error, &tool.item),
                    None => ErrorObject::from(&error),
                };
                self.failed(error);
            }
        }
        let action = self.advance(None);
        self.outcome(action)
    }

    fn resume(&mut self, stop: &StopFlag) -> AttemptOutcome {
        let action = self.advance(Some(stop));
        self.outcome(action)
    }

    fn may_continue(&self) -> bool {
        true
    }
}
