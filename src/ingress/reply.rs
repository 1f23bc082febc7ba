//! The answer to a request on its way to the client.
//!
//! It is plain JSON if it arrives soon and alone. It is an event stream if messages precede it or
//! it takes long; comments then keep the connection alive. Dropping a reply, as when the client
//! disconnects, cancels the request at the server. If the client can resume, [`resumable_reply`]
//! takes over the reply instead.

use std::{sync::Arc, vec};

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream};
use hyper::StatusCode;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::{
    IngressContext, Response, http_response, progress_heartbeat::ProgressHeartbeat,
    resumable_reply, side_messages::SideMessages,
};
use crate::{
    call::Exchange,
    config::defaults,
    connection::{CallEvent, ServerRequest, SideMessage},
    forward::RequestOutcome,
    memory_budget,
    protocol::{ByteChunks, Era, Message, RpcError, payloads::method, sse},
    script::{ScriptExchange, ScriptStep},
    session::{HoldOutcome, RunningRequest, Session},
};

/// The forms of an answer that the client accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AcceptedForms {
    pub(super) json: bool,
    pub(super) events: bool,
    /// `true` if the client resumes broken streams.
    pub(super) resumption: bool,
}

impl AcceptedForms {
    /// Both forms, without resumption.
    pub(super) fn both() -> Self {
        Self { json: true, events: true, resumption: false }
    }

    /// An event stream, without resumption: a pipe or a stream carries every message once.
    pub(super) fn events_only() -> Self {
        Self { json: false, events: true, resumption: false }
    }

    /// Removes forms that the operator does not want to be used, unless the client accepts no
    /// other.
    pub(super) fn restricted(self, context: &IngressContext) -> Self {
        let is_plain = self.json && context.views.config().listen.json_response;
        Self { events: self.events && !is_plain, ..self }
    }
}

/// The answer to a request.
pub(super) struct RequestReply {
    context: Arc<IngressContext>,
    stage: Stage,
    id: String,
    accepts: AcceptedForms,
    running: RunningRequest,
    heartbeat: ProgressHeartbeat,
    /// The time of the last message that showed activity.
    silent_since: Instant,
    /// The unsent rest of an event.
    unsent: vec::IntoIter<Bytes>,
}

enum Stage {
    Handling(BoxFuture<'static, RequestOutcome>),
    Running(Box<Exchange>),
    Scripting(Box<ScriptExchange>),
    Done,
}

impl Stage {
    /// Returns whether a server, or a script, works on the request.
    fn is_running(&self) -> bool {
        match self {
            Self::Running(exchange) => exchange.is_running(),
            Self::Scripting(_) => true,
            Self::Handling(_) | Self::Done => false,
        }
    }
}

/// The next output for the client.
pub(super) enum ReplyPart {
    /// A message that precedes the answer.
    Message(ByteChunks),
    Answer(ByteChunks),
    /// The server lets clients that can resume wait for the answer without a stream.
    Deferred,
    /// The client has cancelled the request: there is no answer.
    Nothing,
}

impl RequestReply {
    pub(super) fn new(
        context: Arc<IngressContext>,
        handling: BoxFuture<'static, RequestOutcome>,
        (id, token): (String, Option<&str>),
        accepts: AcceptedForms,
        running: RunningRequest,
    ) -> Self {
        let (stage, heartbeat) = (Stage::Handling(handling), ProgressHeartbeat::new(token));
        Self {
            context,
            stage,
            id,
            accepts,
            running,
            heartbeat,
            silent_since: Instant::now(),
            unsent: Vec::new().into_iter(),
        }
    }

    /// Waits for the first output and chooses the form of the answer accordingly.
    pub(super) async fn into_response(mut self) -> Response {
        let is_modern = self.running.session().is_modern();
        // In the modern era, the status reflects the kind of error, so it waits for the answer.
        let modern_wait = if is_modern { Some(defaults::STREAM_AFTER) } else { None };
        let first = match self.context.views.config().listen.stream_after.or(modern_wait) {
            // A client that accepts no stream receives only the answer.
            _ if !self.accepts.events => loop {
                match self.next().await {
                    ReplyPart::Message(_) | ReplyPart::Deferred => {}
                    part => break Some(part),
                }
            },
            Some(stream_after) => time::timeout(stream_after, self.next()).await.ok(),
            None => None,
        };
        match first {
            Some(ReplyPart::Answer(answer)) if self.accepts.json => {
                let status =
                    if is_modern { http_response::modern_status(&answer) } else { StatusCode::OK };
                http_response::json_bytes(status, answer)
            }
            // The client has cancelled, and accepts no stream that could end without an answer.
            Some(ReplyPart::Nothing) if !self.accepts.events => {
                http_response::empty(StatusCode::ACCEPTED)
            }
            first => {
                let context = &self.context;
                let permit = self.accepts.resumption.then(|| resumable_reply::permit(context));
                match permit.flatten() {
                    Some(permit) => resumable_reply::answer(self, first, permit),
                    None => self.into_stream(first),
                }
            }
        }
    }

    fn into_stream(self, first: Option<ReplyPart>) -> Response {
        let pieces = stream::unfold((self, first), |(mut reply, first): (Self, _)| async move {
            if let Some(piece) = reply.unsent.next() {
                return Some((piece, (reply, first)));
            }
            let part = match first {
                // The stream stays open, because it cannot be resumed.
                Some(part) if !matches!(part, ReplyPart::Deferred) => part,
                _ => match reply.next_or_silence().await {
                    Ok(part) => part,
                    Err(sign) => return Some((sign, (reply, None))),
                },
            };
            match part {
                ReplyPart::Message(message) => Some((reply.event(message), (reply, None))),
                // The stream ends right after the answer.
                ReplyPart::Answer(message) => {
                    Some((reply.event(message), (reply, Some(ReplyPart::Nothing))))
                }
                ReplyPart::Deferred => Some((sse::KEEP_ALIVE, (reply, None))),
                ReplyPart::Nothing => None,
            }
        });
        http_response::event_stream(pieces)
    }

    /// Encodes an event and returns its first chunk.
    fn event(&mut self, message: ByteChunks) -> Bytes {
        self.unsent = sse::encode_pieces(message).into_iter();
        self.unsent.next().unwrap_or_default()
    }

    /// Returns the next output, or a keep-alive comment after a period of silence.
    async fn next_or_silence(&mut self) -> Result<ReplyPart, Bytes> {
        let silence = self.context.views.config().listen.keep_alive;
        let next = time::timeout(silence, self.next_or_heartbeat()).await;
        next.ok().flatten().ok_or(sse::KEEP_ALIVE)
    }

    /// Returns the next output, or a progress notification of metamcp when one is due. Returns
    /// `None` if one is due but the client wants none or the server is not working on the request.
    /// Cancel safe. The next call continues.
    pub(super) async fn next_or_heartbeat(&mut self) -> Option<ReplyPart> {
        let silence = self.context.views.config().service.progress_beat;
        let Some(silence) = silence else { return Some(self.next().await) };
        if let Ok(part) = time::timeout_at(self.silent_since + silence, self.next()).await {
            return Some(part);
        }
        self.silent_since = Instant::now();
        let heartbeat = if self.stage.is_running() { self.heartbeat.next() } else { None };
        heartbeat.map(|message| ReplyPart::Message(message.into()))
    }

    /// Returns the state of the interface on which the request arrived.
    pub(super) fn context(&self) -> &Arc<IngressContext> {
        &self.context
    }

    /// Returns the session of the client.
    pub(super) fn session(&self) -> &Arc<Session> {
        self.running.session()
    }

    /// Returns the token that cancels the request.
    pub(super) fn canceller(&self) -> CancellationToken {
        self.running.canceller()
    }

    /// Returns the id of the request in the client's spelling.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the next output. Cancel safe. The next call continues.
    async fn next(&mut self) -> ReplyPart {
        let side = SideMessages {
            heartbeat: &mut self.heartbeat,
            context: &self.context,
            running: &self.running,
            has_stream: self.accepts.events,
        };
        let part = tokio::select! {
            // An answer that is ready has priority over everything else.
            biased;
            part = advance(&mut self.stage, side, &self.id, self.accepts.resumption) => part,
            () = self.running.cancelled() => {
                if let Stage::Running(exchange) = &mut self.stage {
                    exchange.cancel();
                }
                ReplyPart::Nothing
            }
            () = self.context.drain_deadline.cancelled() => {
                let error = RpcError::stopping(self.stage.is_running());
                let answer = error.render(Some(&self.id));
                if let Stage::Running(exchange) = &mut self.stage {
                    exchange.ends_by(&error, answer.len());
                }
                ReplyPart::Answer(answer.into())
            }
        };
        match part {
            ReplyPart::Message(_) => self.silent_since = Instant::now(),
            ReplyPart::Deferred => {}
            // Releases the request now, and not when the client has read the last byte.
            ReplyPart::Answer(_) | ReplyPart::Nothing => self.stage = Stage::Done,
        }
        part
    }
}

/// Advances to the next output for the client.
async fn advance(
    stage: &mut Stage,
    mut side: SideMessages<'_>,
    id: &str,
    can_defer: bool,
) -> ReplyPart {
    let SideMessages { context, running, .. } = side;
    loop {
        let exchange = match stage {
            Stage::Handling(handling) => match handling.await {
                RequestOutcome::Answer(answer) => return own_answer(answer, running, id),
                RequestOutcome::Exchange(exchange) => {
                    *stage = Stage::Running(exchange);
                    continue;
                }
                RequestOutcome::Script(script) => {
                    *stage = Stage::Scripting(script);
                    continue;
                }
            },
            Stage::Running(exchange) => exchange,
            Stage::Scripting(script) => match script.next().await {
                ScriptStep::Answer(answer) => return own_answer(answer, running, id),
                ScriptStep::Event(event) => match side.event(*event) {
                    Some(message) => return ReplyPart::Message(message),
                    None => continue,
                },
            },
            Stage::Done => return ReplyPart::Nothing,
        };
        let message = match exchange.next().await {
            Ok(CallEvent::Answer(message)) => {
                running.note_answered();
                return ReplyPart::Answer(exchange.restore(&message));
            }
            Ok(CallEvent::Deferred) if can_defer => return ReplyPart::Deferred,
            Ok(CallEvent::Deferred) => continue,
            Ok(CallEvent::RetryAfter(asked)) => {
                side.wait(&format!("server `{}` {asked}", exchange.server()))
            }
            Ok(CallEvent::Message(SideMessage::Notification(message)))
                if message.method() == Some(method::PROGRESS) && !exchange.wants_progress() =>
            {
                None
            }
            Ok(CallEvent::Message(SideMessage::Notification(message))) => {
                let source = (exchange.server(), exchange.generation());
                side.notification(&message, source, || exchange.restore(&message))
            }
            Ok(CallEvent::Message(SideMessage::Question(question)))
                if running.session().is_modern() =>
            {
                match hold_for_input(stage, question, context, running) {
                    Some(answer) => return answer,
                    None => continue,
                }
            }
            Ok(CallEvent::Message(SideMessage::Question(question))) => side.question(question),
            Err(error) => {
                let error = error.to_rpc().for_era(running.session().era());
                return ReplyPart::Answer(error.render(Some(exchange.client_id())).into());
            }
        };
        if let Some(message) = message {
            return ReplyPart::Message(message);
        }
    }
}

/// Returns an answer of metamcp itself, which counts for the client's account.
fn own_answer(answer: Bytes, running: &RunningRequest, id: &str) -> ReplyPart {
    let session = running.session();
    let counted = memory_budget::counted(Some(session.holder().account), answer);
    let answer =
        counted.unwrap_or_else(|error| error.to_rpc().for_era(session.era()).render(Some(id)));
    ReplyPart::Answer(answer.into())
}

/// Holds a call until its modern client answers `question`. Refuses the question and returns `None`
/// if the client cannot answer it.
fn hold_for_input(
    stage: &mut Stage,
    question: ServerRequest,
    context: &IngressContext,
    running: &RunningRequest,
) -> Option<ReplyPart> {
    let Stage::Running(exchange) = std::mem::replace(stage, Stage::Done) else { return None };
    let id = exchange.client_id().to_owned();
    let answer = match context.views.sessions().try_hold(running.session(), exchange, question) {
        HoldOutcome::Held(result) => Message::response(&id, &result),
        HoldOutcome::Failed(error) => error.to_rpc().for_era(Era::Modern).render(Some(&id)),
        HoldOutcome::Refused(exchange) => {
            *stage = Stage::Running(exchange);
            return None;
        }
    };
    Some(ReplyPart::Answer(answer.into()))
}
