//! Requests whose client and server speak different eras. The answer is translated, and the client
//! answers the server's questions before the request is sent again. A request about a task may take
//! several steps.

use std::{borrow::Cow, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

use super::{CallError, Connected, Exchange, InputExchange, InputRefusal, Stage};
use crate::{
    backoff::Backoff,
    config::defaults,
    connection::{Connection, ConnectionLimits, RequestFailure},
    era::{
        self, ClientEra, InputRequired, TaskRequest, TaskSupport, TaskTurn, TranslatedResult,
        TranslationError,
    },
    pool::{ConnectionLease, ServerSlot},
    protocol::{
        Era, Message,
        jsonrpc::MessagePart,
        payloads::{ServerProfile, method},
        task,
    },
    server_name::ServerName,
};

/// The state of an exchange between two eras.
pub(super) struct EraAdapter {
    /// The request with the answers to the server's questions, or the next step of a task request.
    /// Boxed, like `task`, because most exchanges have neither.
    retry: Option<Box<Message>>,
    /// The task request, if the request is about a task.
    task: Option<Box<TaskRequest>>,
    /// The support for tasks, once it is known.
    support: TaskSupport,
    /// The client can find its tasks again.
    pub(super) carries_tasks: bool,
    /// A capability that the server needs and its client has not declared.
    undeclared: Option<&'static str>,
    /// The number of rounds of questions to the client.
    n_rounds: u32,
    poll: Backoff,
}

impl Default for EraAdapter {
    fn default() -> Self {
        Self {
            retry: None,
            task: None,
            support: TaskSupport::Forbidden,
            carries_tasks: false,
            undeclared: None,
            n_rounds: 0,
            poll: Backoff::new(defaults::INPUT_POLL),
        }
    }
}

impl EraAdapter {
    /// Returns the next message to the server for a `request` of `client`.
    ///
    /// # Errors
    ///
    /// [`TranslationError`] if the server's era has no counterpart.
    pub(super) fn outgoing<'a>(
        &'a mut self,
        request: &'a Message,
        client: &ClientEra,
        slot: &ServerSlot,
        connection: &Connection,
    ) -> Result<Cow<'a, Message>, TranslationError> {
        let server = connection.era();
        if let Some(era) = client.era().filter(|era| *era != server) {
            self.support = match connection.profile() {
                Some(profile) if self.carries_tasks && profile.has_tasks() => {
                    let requires_task = |tool: String| slot.hints().requires_task(&tool);
                    match request.string(MessagePart::Name).is_some_and(requires_task) {
                        true => TaskSupport::Required,
                        false => TaskSupport::Optional,
                    }
                }
                Some(_) | None => TaskSupport::Forbidden,
            };
            let asked = request.method().unwrap_or_default();
            if asked.starts_with(task::PREFIX)
                && self.support != TaskSupport::Forbidden
                && self.task.is_none()
            {
                let about_task = TaskRequest::of(request, era);
                let feature = asked.to_owned();
                let task =
                    about_task.ok_or(TranslationError::NoCounterpart { feature, client: era })?;
                let step = self.task.insert(Box::new(task)).step(request, &[]);
                self.retry = Some(Box::new(step));
            }
        } else {
            // The server may have spoken another era when the request was sent before.
            (self.retry, self.task, self.support) = (None, None, TaskSupport::Forbidden);
        }
        era::request(self.retry.as_deref().unwrap_or(request), client, server, self.support)
    }
}

/// Returns the error of a request that has exceeded its total time.
pub(super) fn timed_out(server: &ServerName, limits: ConnectionLimits) -> CallError {
    let source = RequestFailure::Timeout { after: limits.total };
    CallError::Failed { server: server.clone(), source }
}

impl Exchange {
    /// Translates the answer to the client's era. Returns `None` if the client must answer a
    /// question first.
    pub(super) fn translated(&mut self, answer: Message) -> Result<Option<Message>, CallError> {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let Stage::Connected(Connected { call, lease }) = stage else { return Ok(Some(answer)) };
        // The request has its answer, so that there is nothing to cancel.
        drop(call);
        let connection = &lease.connection;
        let method = self.request.method().unwrap_or_default();
        if let Some(capability) = self.adapter.undeclared
            && answer.part(MessagePart::Error).is_some()
        {
            return Err(self.unanswered(InputRefusal::Undeclared { capability }));
        }
        let info =
            || connection.profile().and_then(ServerProfile::server_info).map(Value::to_string);
        if let Some(task) = &mut self.adapter.task {
            return match task.advance(&answer, info().as_deref()) {
                TaskTurn::Answer(answer) => Ok(Some(answer)),
                TaskTurn::Next { questions, pause } => {
                    if !questions.questions.is_empty() {
                        self.count_round()?;
                    }
                    self.request_input(questions, pause, lease).map(|()| None)
                }
            };
        }
        let support = self.adapter.support;
        let translated = match (self.client.era(), connection.era()) {
            (Some(Era::Legacy), Era::Modern) => match era::for_legacy(&answer, method, support) {
                TranslatedResult::Final(answer) => TranslatedResult::Final(self.as_task(answer)),
                other @ (TranslatedResult::Task(_) | TranslatedResult::Input(_)) => other,
            },
            (Some(Era::Modern), Era::Legacy) => {
                era::for_modern(&answer, method, info().as_deref(), support)
            }
            _ => TranslatedResult::Final(answer),
        };
        match translated {
            TranslatedResult::Final(answer) | TranslatedResult::Task(answer) => Ok(Some(answer)),
            TranslatedResult::Input(input) => self.forward_questions(input, lease),
        }
    }

    /// Forwards the server's questions to the client. Returns the answer that carries them, or
    /// `None` if the client is asked before the answer.
    fn forward_questions(
        &mut self,
        input: InputRequired,
        lease: ConnectionLease,
    ) -> Result<Option<Message>, CallError> {
        if self.client.era() == Some(Era::Modern) {
            // A client gets only questions that it has declared support for.
            if !self.client.can_be_asked(&input) {
                return Err(self.unanswered(InputRefusal::UrlNotDeclared));
            }
            let answer = Message::response(self.client_id(), &input.to_result());
            return Ok(Message::parse_own(answer).ok());
        }
        let method = self.request.method().unwrap_or_default();
        if !method::MAY_NEED_INPUT.contains(&method) {
            let method = method.to_owned();
            return Err(self.unanswered(InputRefusal::NotAllowed { method }));
        }
        let is_empty = input.questions.is_empty();
        let pause =
            if is_empty { self.adapter.poll.pause(fastrand::f64()) } else { Duration::ZERO };
        self.count_round()?;
        self.request_input(input, pause, lease).map(|()| None)
    }

    /// Returns a modern server's final answer to a call, as a finished task if the client has asked
    /// for a task.
    fn as_task(&self, answer: Message) -> Message {
        let is_task = self.adapter.support != TaskSupport::Forbidden
            && self.request.method() == Some(method::TOOLS_CALL)
            && task::is_task_call(&self.request);
        let Some(result) = answer.part(MessagePart::Result).filter(|_| is_task) else {
            return answer;
        };
        let ttl = task::ttl_of(&self.request).map(Duration::from_millis);
        let task = self.slot.finished().keep(result.to_owned(), ttl, Instant::now()).task;
        answer.with(MessagePart::Result, &format!(r#"{{"task":{task}}}"#))
    }

    pub(super) fn unanswered(&self, source: InputRefusal) -> CallError {
        CallError::Unanswered { server: self.slot.name().clone(), source }
    }

    /// Records a capability that the server needs and the modern-era client has not declared. If
    /// the server fails, the error names it. Source: MCP 2026-07-28, "Base Protocol", `_meta`.
    pub fn note_missing_capability(&mut self, capability: Option<&'static str>) {
        self.adapter.undeclared = self.adapter.undeclared.or(capability);
    }

    fn count_round(&mut self) -> Result<(), CallError> {
        let rounds = defaults::INPUT_ROUNDS_MAX;
        self.adapter.n_rounds += 1;
        if self.adapter.n_rounds > rounds {
            return Err(self.unanswered(InputRefusal::TooManyRounds { rounds }));
        }
        Ok(())
    }

    /// Asks the client the server's questions. Without questions, asks the server again after a
    /// `pause`.
    fn request_input(
        &mut self,
        input: InputRequired,
        pause: Duration,
        lease: ConnectionLease,
    ) -> Result<(), CallError> {
        let left = self.time_left();
        if left.is_zero() {
            return Err(timed_out(self.slot.name(), self.limits));
        }
        let exchange = InputExchange::new(input, &lease.connection, pause.min(left));
        self.stage = Stage::AwaitingInput(Box::new(exchange), lease);
        Ok(())
    }

    /// Sends the request again with the client's answers.
    pub(super) fn resend(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let Stage::AwaitingInput(input, lease) = stage else { return };
        let (responses, state) = input.answers();
        let retry = match &mut self.adapter.task {
            Some(task) => task.step(&self.request, responses),
            None => era::retry(&self.request, responses, state),
        };
        self.adapter.retry = Some(Box::new(retry));
        // The client's time to answer does not count against the server. Polling does.
        if !responses.is_empty() {
            self.ends += input.elapsed();
        }
        // The messages that the client got stay valid if the request is sent twice.
        self.has_begun = false;
        self.stage = Stage::Connected(Connected { call: None, lease });
    }

    /// Pauses the request until [`Exchange::resume`], while its client answers a question.
    pub fn pause(&self) {
        if let Stage::Connected(Connected { call: Some(call), .. }) = &self.stage {
            call.pause();
        }
    }

    /// Continues after a `pause` as the client's request `retry`, which has the answer to the
    /// server's question.
    pub fn resume(&mut self, retry: Message, pause: Duration) {
        self.request = retry;
        self.ends += pause;
        if let Stage::Connected(Connected { call: Some(call), .. }) = &mut self.stage {
            call.resume(pause);
        }
    }

    /// Returns the digest that identifies a repetition of this request.
    pub fn digest(&self) -> [u8; 32] {
        era::digest(&self.request)
    }
}
