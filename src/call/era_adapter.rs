//! The translation of a request and its answer, if client and server speak different eras. The client
//! answers the server's questions before the request is sent again. A request about a task may take
//! several steps.

use std::{borrow::Cow, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

use super::InputRefusal;
use crate::{
    backoff::Backoff,
    config::defaults,
    connection::Connection,
    era::{
        self, ClientEra, InputRequired, TaskRequest, TaskSupport, TaskTurn, TranslatedResult,
        TranslationError,
    },
    pool::ServerSlot,
    protocol::{
        Era, Message,
        jsonrpc::MessagePart,
        payloads::{ServerProfile, method},
        task,
    },
};

/// The state of an exchange between two eras.
pub(super) struct EraAdapter {
    pub(super) client: ClientEra,
    outgoing: OutgoingRequest,
    /// The support for tasks, once it is known.
    support: TaskSupport,
    /// The client can find its tasks again.
    pub(super) carries_tasks: bool,
    /// A capability that the server needs and its client has not declared.
    pub(super) undeclared: Option<&'static str>,
    /// The number of rounds of questions to the client.
    n_rounds: u32,
    poll: Backoff,
}

/// The message to the server. Boxed where it is not the client's own, because few exchanges have one.
enum OutgoingRequest {
    /// The client's request.
    Original,
    /// The request with the answers to the server's questions.
    Answered(Box<Message>),
    /// A request about a task, with its next step.
    TaskStep(Box<(TaskRequest, Message)>),
}

/// The server's answer for the client.
pub(super) enum AdaptedAnswer {
    /// The answer in the client's era.
    Final(Message),
    /// Questions to the client. Without any, the server is asked again after the pause.
    Input(InputRequired, Duration),
}

impl EraAdapter {
    /// Returns the adapter for a request of `client`.
    pub(super) fn new(client: ClientEra) -> Self {
        Self {
            client,
            outgoing: OutgoingRequest::Original,
            support: TaskSupport::Forbidden,
            carries_tasks: false,
            undeclared: None,
            n_rounds: 0,
            poll: Backoff::new(defaults::INPUT_POLL),
        }
    }

    /// Returns the next message to the server for `request`.
    ///
    /// # Errors
    ///
    /// [`TranslationError`] if the server's era has no counterpart.
    pub(super) fn outgoing<'a>(
        &'a mut self,
        request: &'a Message,
        slot: &ServerSlot,
        connection: &Connection,
    ) -> Result<Cow<'a, Message>, TranslationError> {
        let server = connection.era();
        if let Some(era) = self.client.era().filter(|era| *era != server) {
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
            let is_started = matches!(self.outgoing, OutgoingRequest::TaskStep(_));
            if asked.starts_with(task::PREFIX)
                && self.support != TaskSupport::Forbidden
                && !is_started
            {
                let feature = asked.to_owned();
                let mut about_task = TaskRequest::of(request, era)
                    .ok_or(TranslationError::NoCounterpart(feature, era))?;
                let step = about_task.step(request, &[]);
                self.outgoing = OutgoingRequest::TaskStep(Box::new((about_task, step)));
            }
        } else {
            // The server may have spoken another era when the request was sent before.
            (self.outgoing, self.support) = (OutgoingRequest::Original, TaskSupport::Forbidden);
        }
        let message = match &self.outgoing {
            OutgoingRequest::Original => request,
            OutgoingRequest::Answered(message) => message,
            OutgoingRequest::TaskStep(task) => &task.1,
        };
        era::request(message, &self.client, server, self.support)
    }

    /// Puts the client's answers to the server's questions into the next message for `request`.
    pub(super) fn answer(
        &mut self,
        request: &Message,
        responses: &[(String, String)],
        state: Option<&str>,
    ) {
        if let OutgoingRequest::TaskStep(task) = &mut self.outgoing {
            task.1 = task.0.step(request, responses);
        } else {
            let retry = era::retry(request, responses, state);
            self.outgoing = OutgoingRequest::Answered(Box::new(retry));
        }
    }

    /// Translates a server's `answer` to the client's era, or returns its questions.
    ///
    /// # Errors
    ///
    /// [`InputRefusal`] if the client cannot be asked.
    pub(super) fn incoming(
        &mut self,
        answer: Message,
        request: &Message,
        slot: &ServerSlot,
        connection: &Connection,
    ) -> Result<AdaptedAnswer, InputRefusal> {
        if let Some(capability) = self.undeclared
            && answer.part(MessagePart::Error).is_some()
        {
            return Err(InputRefusal::Undeclared(capability));
        }
        let info =
            || connection.profile().and_then(ServerProfile::server_info).map(Value::to_string);
        if let OutgoingRequest::TaskStep(task) = &mut self.outgoing {
            return match task.0.advance(&answer, info().as_deref()) {
                TaskTurn::Answer(answer) => Ok(AdaptedAnswer::Final(answer)),
                TaskTurn::Next { questions, pause } => {
                    if !questions.questions.is_empty() {
                        self.count_round()?;
                    }
                    Ok(AdaptedAnswer::Input(questions, pause))
                }
            };
        }
        let (method, support) = (request.method().unwrap_or_default(), self.support);
        let translated = match (self.client.era(), connection.era()) {
            (Some(Era::Legacy), Era::Modern) => era::for_legacy(&answer, method, support),
            (Some(Era::Modern), Era::Legacy) => {
                era::for_modern(&answer, method, info().as_deref(), support)
            }
            _ => return Ok(AdaptedAnswer::Final(answer)),
        };
        match translated {
            TranslatedResult::Final(answer) if self.client.era() == Some(Era::Legacy) => {
                Ok(AdaptedAnswer::Final(self.as_task(answer, request, slot)))
            }
            TranslatedResult::Final(answer) | TranslatedResult::Task(answer) => {
                Ok(AdaptedAnswer::Final(answer))
            }
            TranslatedResult::Input(input) => self.questions(input, answer, request),
        }
    }

    /// Returns the server's questions. A client of the modern era gets them as its answer.
    fn questions(
        &mut self,
        input: InputRequired,
        answer: Message,
        request: &Message,
    ) -> Result<AdaptedAnswer, InputRefusal> {
        if self.client.era() == Some(Era::Modern) {
            // A client gets only questions that it has declared support for.
            if !self.client.can_be_asked(&input) {
                return Err(InputRefusal::UrlNotDeclared);
            }
            let id = request.part(MessagePart::Id).unwrap_or("null");
            let questions = Message::parse_own(Message::response(id, &input.to_result()));
            return Ok(AdaptedAnswer::Final(questions.unwrap_or(answer)));
        }
        let method = request.method().unwrap_or_default();
        if !method::MAY_NEED_INPUT.contains(&method) {
            return Err(InputRefusal::NotAllowed(method.to_owned()));
        }
        let is_empty = input.questions.is_empty();
        let pause = if is_empty { self.poll.pause(fastrand::f64()) } else { Duration::ZERO };
        self.count_round()?;
        Ok(AdaptedAnswer::Input(input, pause))
    }

    fn count_round(&mut self) -> Result<(), InputRefusal> {
        let rounds = defaults::INPUT_ROUNDS_MAX;
        self.n_rounds += 1;
        if self.n_rounds > rounds {
            return Err(InputRefusal::TooManyRounds(rounds));
        }
        Ok(())
    }

    /// Returns a modern server's final answer to a call, as a finished task if the client has asked
    /// for a task.
    fn as_task(&self, answer: Message, request: &Message, slot: &ServerSlot) -> Message {
        let is_task = self.support != TaskSupport::Forbidden
            && request.method() == Some(method::TOOLS_CALL)
            && task::is_task_call(request);
        let Some(result) = answer.part(MessagePart::Result).filter(|_| is_task) else {
            return answer;
        };
        let ttl = task::ttl_of(request).map(Duration::from_millis);
        let task = slot.finished().keep(result.to_owned(), ttl, Instant::now()).task;
        answer.with(MessagePart::Result, &format!(r#"{{"task":{task}}}"#))
    }
}
