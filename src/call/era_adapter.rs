//! A request whose client is of another era than its server: the answer is translated, and what the
//! server wants to know is asked of the client before the request is sent again. One about a task may
//! take several steps.

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
    name::ServerName,
    pool::{ConnectionLease, ServerSlot},
    protocol::{
        Era, Message,
        jsonrpc::MessagePart,
        payloads::{ServerProfile, method},
        task,
    },
};

/// What of an exchange is about the two eras.
pub(super) struct EraAdapter {
    /// The request with what its server has wanted to know, or the next step of one about a task.
    /// Boxed like the next one: most exchanges have neither.
    retry: Option<Box<Message>>,
    /// The request is about a task.
    task: Option<Box<TaskRequest>>,
    /// How a call can be a task, once that is known.
    support: TaskSupport,
    /// The client finds its tasks again.
    pub(super) carries_tasks: bool,
    /// A capability that the server would need and its client has not declared.
    undeclared: Option<&'static str>,
    /// How often the server has asked its client for something.
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
    /// Returns what is sent to the server next for a `request` of `client`.
    ///
    /// # Errors
    ///
    /// [`TranslationError`] when the server's era has nothing like it.
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
                    let demands = |tool: String| slot.hints().demands_task(&tool);
                    match request.string(MessagePart::Name).is_some_and(demands) {
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
            // The server may have been of another era when the request was sent before.
            (self.retry, self.task, self.support) = (None, None, TaskSupport::Forbidden);
        }
        era::request(self.retry.as_deref().unwrap_or(request), client, server, self.support)
    }
}

/// Returns the error of a request that has taken all of its time, in however many steps.
pub(super) fn too_late(server: &ServerName, limits: ConnectionLimits) -> CallError {
    let source = RequestFailure::Timeout { after: limits.total };
    CallError::Failed { server: server.clone(), source }
}

impl Exchange {
    /// Returns the answer as the client's era has it; nothing if the client is asked first.
    pub(super) fn translated(&mut self, answer: Message) -> Result<Option<Message>, CallError> {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let Stage::Connected(Connected { call, lease }) = stage else { return Ok(Some(answer)) };
        // It has its answer: nothing is left of it to be cancelled.
        drop(call);
        let connection = &lease.connection;
        let method = self.request.method().unwrap_or_default();
        if let Some(capability) = self.crossing.undeclared
            && answer.part(MessagePart::Error).is_some()
        {
            return Err(self.unanswered(InputRefusal::Undeclared { capability }));
        }
        let info =
            || connection.profile().and_then(ServerProfile::server_info).map(Value::to_string);
        if let Some(task) = &mut self.crossing.task {
            return match task.advance(&answer, info().as_deref()) {
                TaskTurn::Answer(answer) => Ok(Some(answer)),
                TaskTurn::Next { questions, pause } => {
                    if !questions.questions.is_empty() {
                        self.count_round()?;
                    }
                    self.inquire(questions, pause, lease).map(|()| None)
                }
            };
        }
        let support = self.crossing.support;
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
        match (translated, self.client.era()) {
            (TranslatedResult::Final(answer) | TranslatedResult::Task(answer), _) => {
                Ok(Some(answer))
            }
            (TranslatedResult::Input(input), Some(Era::Modern)) => {
                // Nobody is asked for what they have not declared.
                if !self.client.can_be_asked(&input) {
                    return Err(self.unanswered(InputRefusal::NoVisits));
                }
                let answer = Message::response(self.client_id(), &input.to_result());
                Ok(Message::parse_own(answer).ok())
            }
            (TranslatedResult::Input(_), _) if !method::ASKING.contains(&method) => {
                Err(self.unanswered(InputRefusal::OutOfPlace { method: method.to_owned() }))
            }
            (TranslatedResult::Input(input), _) => {
                let is_empty = input.questions.is_empty();
                let pause = if is_empty {
                    self.crossing.poll.pause(fastrand::f64())
                } else {
                    Duration::ZERO
                };
                self.count_round()?;
                self.inquire(input, pause, lease).map(|()| None)
            }
        }
    }

    /// Returns the last answer of a modern server to a call, translated; the result of one that was to
    /// be a task as a task that is finished.
    fn as_task(&self, answer: Message) -> Message {
        let is_to_be_task = self.crossing.support != TaskSupport::Forbidden
            && self.request.method() == Some(method::TOOLS_CALL)
            && task::is_asked_for(&self.request);
        let Some(result) = answer.part(MessagePart::Result).filter(|_| is_to_be_task) else {
            return answer;
        };
        let ttl = task::ttl_of(&self.request).map(Duration::from_millis);
        let task = self.slot.finished().keep(result.to_owned(), ttl, Instant::now()).task;
        answer.with(MessagePart::Result, &format!(r#"{{"task":{task}}}"#))
    }

    fn unanswered(&self, source: InputRefusal) -> CallError {
        CallError::Unanswered { server: self.slot.name().clone(), source }
    }

    /// Notes that the server has asked what a client of the modern era cannot be asked. If it fails for
    /// that, its client is told what it takes; it may do without. Source: MCP 2026-07-28, "Base
    /// Protocol", `_meta`.
    pub fn note_missing_capability(&mut self, capability: Option<&'static str>) {
        self.crossing.undeclared = self.crossing.undeclared.or(capability);
    }

    fn count_round(&mut self) -> Result<(), CallError> {
        self.crossing.n_rounds += 1;
        if self.crossing.n_rounds > defaults::INPUT_ROUNDS_MAX {
            return Err(
                self.unanswered(InputRefusal::TooMany { rounds: defaults::INPUT_ROUNDS_MAX })
            );
        }
        Ok(())
    }

    /// Has the client asked what the server wants to know. Where that is nothing, the server is asked
    /// again after a `pause`.
    fn inquire(
        &mut self,
        input: InputRequired,
        pause: Duration,
        lease: ConnectionLease,
    ) -> Result<(), CallError> {
        let left = self.time_left();
        if left.is_zero() {
            return Err(too_late(self.slot.name(), self.limits));
        }
        let inquiry = InputExchange::new(input, &lease.connection, pause.min(left));
        self.stage = Stage::Asking(Box::new(inquiry), lease);
        Ok(())
    }

    /// Sends the request again with what the client has answered.
    pub(super) fn resend(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let Stage::Asking(inquiry, lease) = stage else { return };
        let (responses, state) = inquiry.answers();
        let retry = match &mut self.crossing.task {
            Some(task) => task.step(&self.request, responses),
            None => era::retry(&self.request, responses, state),
        };
        self.crossing.retry = Some(Box::new(retry));
        // The client's time is none of the server's; without a question, all of it is the server's.
        if !responses.is_empty() {
            self.ends += inquiry.elapsed();
        }
        // What the client has seen so far stays true if this is sent twice.
        self.has_begun = false;
        self.stage = Stage::Connected(Connected { call: None, lease });
    }

    /// Puts it aside until [`Exchange::resume`]: its client is asked something.
    pub fn pause(&self) {
        if let Stage::Connected(Connected { call: Some(call), .. }) = &self.stage {
            call.pause();
        }
    }

    /// Goes on after a `pause` as the request `retry` of the client, which has meanwhile learned what
    /// the server wants to know.
    pub fn resume(&mut self, retry: Message, pause: Duration) {
        self.request = retry;
        self.ends += pause;
        if let Stage::Connected(Connected { call: Some(call), .. }) = &mut self.stage {
            call.resume(pause);
        }
    }

    /// Returns what tells whether another request is this one sent again.
    pub fn digest(&self) -> [u8; 32] {
        era::digest(&self.request)
    }
}
