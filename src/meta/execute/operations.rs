//! The operations of a script: calls of its client, on the same path and with the same rights.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json, value::RawValue};

use super::super::{
    call::responder::{call_failure, is_question},
    call_outcome::ToolOutcome,
    definitions::MetaTool,
    meta_arguments::MetaArguments,
    meta_call::{MetaCall, MetaRefusal, MetaServices, inner_request},
    meta_view,
    reply::MetaReply,
};
use crate::{
    call::Exchange,
    call_record::ParentCall,
    connection::{CallEvent, ForwardedHeaders, SideMessage},
    forward::RequestOutcome,
    protocol::{
        Message, ObjectMembers, jsonrpc::MessagePart, list_page::ListItem, payloads::method,
    },
    sandbox::message::{OperationFailure, OperationOutcome, ScriptOperation},
    script::{OperationAttempt, OperationEnd, OperationEvents, OperationRunner, ScriptEvent},
    session::{HoldOutcome, Session},
    tool::{ErrorCode, ErrorObject, RequestedTool, ResolvedTool, ToolWarning, tool_call, warnings},
};

/// The services that do the operations of one script.
pub(super) struct ScriptOperations {
    services: Arc<MetaServices>,
    session: Arc<Session>,
    /// The request that each call is made from.
    request: Message,
    forwarded: Option<Arc<ForwardedHeaders>>,
    /// The client's call as the cause of those of the script, if it is observed.
    observed: Option<ParentCall>,
}

/// The member of a recorded question that says for what this process holds the call.
const HELD: &str = "held";
const HELD_FOR_LOGIN: &str = "login";
const HELD_FOR_SERVER: &str = "server";

/// A failed operation.
type Failure = Box<OperationFailure>;

impl ScriptOperations {
    /// Returns the operations of the script that `call` runs.
    pub(super) fn of_client(call: MetaCall<'_>) -> Self {
        Self {
            forwarded: call.forwarded.cloned(),
            observed: call.observed,
            ..Self::of_operator(call.services, call.session, call.request)
        }
    }

    /// Returns the operations of the script that `request` of an operator runs.
    pub(super) fn of_operator(
        services: &Arc<MetaServices>,
        session: &Arc<Session>,
        request: &Message,
    ) -> Self {
        Self {
            services: Arc::clone(services),
            session: Arc::clone(session),
            request: inner_request(request),
            forwarded: None,
            observed: None,
        }
    }

    async fn end(
        &self,
        operation: ScriptOperation,
        attempt: OperationAttempt,
        events: &OperationEvents,
    ) -> Result<OperationEnd, Failure> {
        let value = match operation {
            ScriptOperation::Tool { server, tool, args } => {
                let called = self.call(&server, &tool, args.get(), &attempt, events).await;
                return called.map_err(|mut failure| {
                    failure.server.get_or_insert(server);
                    failure.tool.get_or_insert(tool);
                    failure
                });
            }
            ScriptOperation::Search(args) => {
                let found = self.ask(MetaTool::Discover, args.get()).await?;
                ObjectMembers::one(&found, "tools").unwrap_or("[]").to_owned()
            }
            ScriptOperation::Describe { server, tool } => {
                let args = json!({ "server": server, "tool": tool, "detail": "schema" });
                let found = self.ask(MetaTool::Discover, &args.to_string()).await?;
                let tools = ObjectMembers::one(&found, "tools").unwrap_or("[]");
                let tools: Vec<&RawValue> = serde_json::from_str(tools).unwrap_or_default();
                tools.first().map_or("null", |tool| tool.get()).to_owned()
            }
            // A chain is not repeated: some of its steps may have run.
            ScriptOperation::Chain(_) if attempt == OperationAttempt::OutcomeUnknown => {
                return Err(outcome_unknown());
            }
            ScriptOperation::Chain(args) => self.ask(MetaTool::RunChain, args.get()).await?,
            ScriptOperation::Sleep(_) => "null".to_owned(),
        };
        settled(value)
    }

    /// Answers a meta-tool, with its structured value as JSON text.
    async fn ask(&self, tool: MetaTool, args: &str) -> Result<String, Failure> {
        let reply = MetaReply::new(&self.request, &self.session, tool);
        let call = MetaCall {
            services: &self.services,
            session: &self.session,
            reply: &reply,
            request: &self.request,
            forwarded: self.forwarded.as_ref(),
            observed: self.observed,
        };
        let outcome = match MetaArguments::read(tool, Some(args)) {
            // Boxed, because a chain of meta-tools would make the future infinite.
            Ok(arguments) => Box::pin(meta_view::run(call, arguments)).await,
            Err(error) => Err(error.into()),
        };
        let refused = |refusal: MetaRefusal| RequestOutcome::Answer(refusal.answer(&reply));
        let answer = match outcome.unwrap_or_else(refused) {
            RequestOutcome::Answer(answer) => Message::parse(answer).ok(),
            RequestOutcome::Exchange(mut exchange) => {
                self.forward_headers(&mut exchange);
                self.observe(&mut exchange, Some(tool));
                let answer = exchange.finish().await;
                Some(answer.map_err(|error| failure(&ErrorObject::from(&error)))?)
            }
            RequestOutcome::Script(_) => None,
        };
        let result = answer.as_ref().and_then(|answer| answer.part(MessagePart::Result));
        let Some(result) = result else {
            let error = answer.as_ref().and_then(|answer| answer.part(MessagePart::Error));
            let error: Value = serde_json::from_str(error.unwrap_or("null")).unwrap_or_default();
            let message = error["message"].as_str().unwrap_or("metamcp gave no answer");
            let hint = error["data"]["suggestion"].as_str().unwrap_or_default();
            return Err(failure(&ErrorObject::new(ErrorCode::ValidationInput, message, hint)));
        };
        let value = ObjectMembers::one(result, "structuredContent").unwrap_or("null").to_owned();
        match tool != MetaTool::RunChain && ObjectMembers::one(result, "isError") == Some("true") {
            true => Err(failure_in(&value)),
            false => Ok(value),
        }
    }

    /// Calls a tool of a server.
    async fn call(
        &self,
        server: &str,
        tool: &str,
        args: &str,
        attempt: &OperationAttempt,
        events: &OperationEvents,
    ) -> Result<OperationEnd, Failure> {
        let Self { services, session, .. } = self;
        let requested = RequestedTool { server: Some(server.to_owned()), tool: tool.to_owned() };
        let list_owner = services.forwarder.list_owner(session);
        let limits = services.forwarder.limits();
        let resolved = services.directory.resolve(list_owner, &requested, limits).await;
        let ResolvedTool { slot, id, item } = resolved.map_err(|error| failure(&error))?;
        if *attempt == OperationAttempt::OutcomeUnknown && !may_repeat(&item) {
            return Err(outcome_unknown());
        }
        let verdict = services.checker.check(session.holder(), &item, args).await;
        services.checker.apply(verdict, &id, &item).map_err(|error| failure(&error))?;
        let mut request = tool_call(&self.request, &item.key, args);
        if let OperationAttempt::Answered { question, answers } = attempt {
            request = self.retry(request, question, answers)?;
        }
        let forwarded = services.forwarder.forward(slot, session, request).await;
        match forwarded.map_err(|error| failure(&ErrorObject::from(&error).about(&id)))? {
            RequestOutcome::Exchange(mut exchange) => {
                self.forward_headers(&mut exchange);
                self.observe(&mut exchange, None);
                self.drive(exchange, &item, events).await
            }
            RequestOutcome::Answer(answer) => match Message::parse(answer) {
                Ok(answer) => self.end_of(server, &answer).await,
                Err(_) => Err(failure(&ErrorObject::no_result(server))),
            },
            RequestOutcome::Script(_) => Err(failure(&ErrorObject::no_result(server))),
        }
    }

    /// Records an exchange as caused by the script: a request to a server, or a chain of them that
    /// `tool` of metamcp makes.
    fn observe(&self, exchange: &mut Exchange, tool: Option<MetaTool>) {
        let calls = self.services.forwarder.calls();
        let call = calls.observe(|| self.session.caller(), &self.request, self.observed);
        if let Some(mut call) = call {
            if let Some(tool) = tool {
                call.names(None, tool.name());
            }
            exchange.observe(call);
        }
    }

    /// Returns the request that goes on after the client's answers.
    fn retry(&self, request: Message, question: &str, answers: &str) -> Result<Message, Failure> {
        let question = ObjectMembers::read(question).unwrap_or_default();
        let state = question.get("requestState");
        let is_held = || {
            let state = question.string("requestState").unwrap_or_default();
            self.services.forwarder.sessions().is_held(&state)
        };
        match question.string(HELD).as_deref() {
            // The call was not executed, and the login is over, or asked for again.
            Some(HELD_FOR_LOGIN) if !is_held() => return Ok(request),
            Some(_) if !is_held() => {
                let message = "the call no longer waits for this answer: the service was restarted, too many calls waited, or the answer came too late";
                let remedy = "Check the effects of the call before you repeat it.";
                let error = ErrorObject::new(ErrorCode::OutcomeUnknown, message, remedy);
                return Err(failure(&error));
            }
            _ => {}
        }
        Ok(request.with_params(|params| {
            params.set("inputResponses", answers.to_owned());
            if let Some(state) = state {
                params.set("requestState", state.to_owned());
            }
        }))
    }

    fn forward_headers(&self, exchange: &mut Exchange) {
        if let Some(forwarded) = &self.forwarded {
            exchange.forward_headers(Arc::clone(forwarded));
        }
    }

    /// Waits for the end of a call. Passes questions and messages on to the client.
    async fn drive(
        &self,
        mut exchange: Box<Exchange>,
        item: &ListItem,
        events: &OperationEvents,
    ) -> Result<OperationEnd, Failure> {
        let server = exchange.server().clone();
        let mut is_asking = false;
        loop {
            let event = exchange.next().await;
            if std::mem::take(&mut is_asking) {
                events.note_continued().await;
            }
            match event {
                Ok(CallEvent::Answer(answer)) => {
                    return self.end_of(server.as_str(), &answer).await;
                }
                Ok(CallEvent::Message(SideMessage::Notification(notice))) => {
                    // The call has no progress token: its progress is that of the script.
                    if notice.method() != Some(method::PROGRESS) {
                        let generation = exchange.generation();
                        let event = ScriptEvent::Notification(notice, server.clone(), generation);
                        events.send(event).await;
                    }
                }
                Ok(CallEvent::Message(SideMessage::Question(question)))
                    if self.session.is_modern() =>
                {
                    let sessions = self.services.forwarder.sessions();
                    let held =
                        if question.is_of_metamcp() { HELD_FOR_LOGIN } else { HELD_FOR_SERVER };
                    match sessions.try_hold(&self.session, exchange, question) {
                        HoldOutcome::Held(result) => {
                            let mut question = ObjectMembers::read(&result).unwrap_or_default();
                            question.set(HELD, json!(held).to_string());
                            return Ok(OperationEnd::Asked(question.to_string()));
                        }
                        HoldOutcome::Failed(error) => {
                            return Err(failure(&ErrorObject::from(&error)));
                        }
                        HoldOutcome::Refused(refused) => exchange = refused,
                    }
                }
                Ok(CallEvent::Message(SideMessage::Question(question))) => {
                    is_asking = true;
                    events.send(ScriptEvent::Question(question)).await;
                }
                Ok(CallEvent::RetryAfter(asked)) => {
                    events.send(ScriptEvent::Wait(format!("server `{server}` {asked}"))).await;
                }
                Ok(CallEvent::Deferred) => {}
                Err(error) => return Err(failure(&call_failure(&error, item))),
            }
        }
    }

    /// Returns the end of a call with this answer.
    async fn end_of(&self, server: &str, answer: &Message) -> Result<OperationEnd, Failure> {
        let Some(result) = answer.part(MessagePart::Result) else {
            let error = answer.part(MessagePart::Error).unwrap_or("null");
            return Err(failure(&ErrorObject::of_server(server, error)));
        };
        if let Some(mut question) = ObjectMembers::read(result).filter(is_question) {
            question.take(HELD);
            return Ok(OperationEnd::Asked(question.to_string()));
        }
        let (holder, bytes) = (self.session.holder(), result.len());
        let (server, result) = (server.to_owned(), result.to_owned());
        let read = move |_: &_| ToolOutcome::read(&server, &result);
        match self.services.forwarder.compute(holder, bytes, read).await {
            Ok(ToolOutcome::Value(value)) => settled(value),
            Ok(ToolOutcome::Failed(error)) => Err(failure(&error)),
            Err(error) => Err(failure(&ErrorObject::too_busy(&error))),
        }
    }
}

impl OperationRunner for ScriptOperations {
    fn run(
        self: Arc<Self>,
        operation: ScriptOperation,
        attempt: OperationAttempt,
        events: OperationEvents,
    ) -> BoxFuture<'static, OperationEnd> {
        Box::pin(async move {
            let end = self.end(operation, attempt, &events).await;
            end.unwrap_or_else(|failure| OperationEnd::Settled(OperationOutcome::Failure(*failure)))
        })
    }
}

/// Returns the end of an operation with this value, JSON text.
fn settled(value: String) -> Result<OperationEnd, Failure> {
    let value = RawValue::from_string(value);
    let value = value.map_err(|_| failure(&ErrorObject::no_result("metamcp")))?;
    Ok(OperationEnd::Settled(OperationOutcome::Value(value)))
}

/// Returns whether a tool may run again although it may have run: it only reads, or says that a
/// second run adds nothing.
fn may_repeat(item: &ListItem) -> bool {
    !warnings(item.json()).contains(&ToolWarning::NotIdempotent)
}

fn outcome_unknown() -> Failure {
    let message = "the script was interrupted while the call ran: it may have been executed";
    let remedy = "Check its effects before you call the tool again.";
    failure(&ErrorObject::new(ErrorCode::OutcomeUnknown, message, remedy))
}

/// Returns a failure as the script sees it.
fn failure(error: &ErrorObject) -> Failure {
    let id = error.tool_id.as_deref().and_then(|id| id.split_once('/'));
    Box::new(OperationFailure {
        code: error.code.name(),
        message: error.failure().to_owned(),
        hint: error.remedy().to_owned(),
        server: id.map(|(server, _)| server.to_owned()),
        tool: id.map(|(_, tool)| tool.to_owned()),
        details: error.details.clone(),
    })
}

/// Returns the failure in the structured value of a failed meta-tool, JSON text.
fn failure_in(value: &str) -> Failure {
    let value: Value = serde_json::from_str(value).unwrap_or_default();
    let error = &value["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    Box::new(OperationFailure {
        code: text("code"),
        message: text("message"),
        hint: String::new(),
        server: None,
        tool: None,
        details: error["details"].as_object().cloned().unwrap_or_else(Map::new),
    })
}
