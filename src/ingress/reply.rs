//! The answer to one request on its way to the client.
//!
//! Plain JSON when it comes soon and alone, an event stream when something comes before it or
//! when it takes long: then comments keep the connection alive.
//! Dropping a reply, as happens when the client goes away, cancels the request at the server; one
//! whose client can come back is handed to [`resumable_reply`].

use std::{sync::Arc, vec};

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream};
use hyper::StatusCode;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::{
    IngressContext, Response, modern, progress_heartbeat::ProgressHeartbeat, respond,
    resumable_reply,
};
use crate::{
    budget,
    call::Exchange,
    config::defaults,
    connection::{CallEvent, ServerRequest, SideMessage},
    protocol::{ByteChunks, Era, Message, RpcError, capability, payloads::method, sse},
    session::{RunningRequest, Session},
    view::RequestOutcome,
};

/// What forms of an answer the client takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AcceptedForms {
    pub(super) json: bool,
    pub(super) events: bool,
    /// It comes back for the rest of a stream that broke.
    pub(super) resumption: bool,
}

impl AcceptedForms {
    /// Both forms, and what is sent is there or lost.
    pub(super) fn both() -> Self {
        Self { json: true, events: true, resumption: false }
    }

    /// Leaves out what the operator does not want clients to be sent. One that takes nothing else
    /// gets it all the same.
    pub(super) fn preferring(self, edge: &IngressContext) -> Self {
        let is_plain = self.json && edge.views.config().listen.json_response;
        Self { events: self.events && !is_plain, ..self }
    }
}

/// The answer to one request.
pub(super) struct RequestReply {
    edge: Arc<IngressContext>,
    stage: Stage,
    id: String,
    accepts: AcceptedForms,
    running: RunningRequest,
    beat: ProgressHeartbeat,
    /// Since when nothing has come that says something.
    silent_since: Instant,
    /// What of an event is still to be sent.
    unsent: vec::IntoIter<Bytes>,
}

enum Stage {
    Handling(BoxFuture<'static, RequestOutcome>),
    Running(Box<Exchange>),
    Done,
}

/// What goes to the client next.
pub(super) enum ReplyPart {
    /// Something that comes before the answer.
    Aside(ByteChunks),
    Answer(ByteChunks),
    /// The server lets those who can resume wait for the answer without a stream.
    Deferred,
    /// The client has cancelled: there is no answer.
    Nothing,
}

impl RequestReply {
    pub(super) fn new(
        edge: Arc<IngressContext>,
        outcome: BoxFuture<'static, RequestOutcome>,
        (id, token): (String, Option<&str>),
        accepts: AcceptedForms,
        running: RunningRequest,
    ) -> Self {
        let (stage, beat) = (Stage::Handling(outcome), ProgressHeartbeat::new(token));
        Self {
            edge,
            stage,
            id,
            accepts,
            running,
            beat,
            silent_since: Instant::now(),
            unsent: Vec::new().into_iter(),
        }
    }

    /// Waits for what comes first and chooses the form of the answer by it.
    pub(super) async fn into_response(mut self) -> Response {
        let is_modern = self.running.session().is_modern();
        // In the modern era the status says what an error is about: it waits for the answer.
        let soon = if is_modern { Some(defaults::STREAM_AFTER) } else { None };
        let first = match self.edge.views.config().listen.stream_after.or(soon) {
            // A client that takes no stream gets the answer alone.
            _ if !self.accepts.events => loop {
                match self.next().await {
                    ReplyPart::Aside(_) | ReplyPart::Deferred => {}
                    part => break Some(part),
                }
            },
            Some(stream_after) => time::timeout(stream_after, self.next()).await.ok(),
            None => None,
        };
        match first {
            Some(ReplyPart::Answer(answer)) if self.accepts.json => {
                let status = if is_modern { modern::status_of(&answer) } else { StatusCode::OK };
                respond::json_bytes(status, answer)
            }
            // The client has cancelled, and takes no stream that could end without an answer.
            Some(ReplyPart::Nothing) if !self.accepts.events => {
                respond::empty(StatusCode::ACCEPTED)
            }
            first => {
                match self.accepts.resumption.then(|| resumable_reply::permit(&self.edge)).flatten()
                {
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
                // The stream stays open: it cannot be resumed.
                Some(part) if !matches!(part, ReplyPart::Deferred) => part,
                _ => match reply.next_or_silence().await {
                    Ok(part) => part,
                    Err(sign) => return Some((sign, (reply, None))),
                },
            };
            match part {
                ReplyPart::Aside(message) => Some((reply.event(message), (reply, None))),
                // The stream ends right after the answer.
                ReplyPart::Answer(message) => {
                    Some((reply.event(message), (reply, Some(ReplyPart::Nothing))))
                }
                ReplyPart::Deferred => Some((sse::KEEP_ALIVE, (reply, None))),
                ReplyPart::Nothing => None,
            }
        });
        respond::event_stream(pieces)
    }

    /// Encodes an event and returns the first piece of it.
    fn event(&mut self, message: ByteChunks) -> Bytes {
        self.unsent = sse::encode_pieces(message).into_iter();
        self.unsent.next().unwrap_or_default()
    }

    /// Returns what comes next, or a sign of life when nothing has come for a while.
    async fn next_or_silence(&mut self) -> Result<ReplyPart, Bytes> {
        let silence = self.edge.views.config().listen.keep_alive;
        let next = time::timeout(silence, self.next_or_heartbeat()).await;
        next.ok().flatten().ok_or(sse::KEEP_ALIVE)
    }

    /// Returns what comes next, or progress of ours when it is time for some; nothing when it is,
    /// and the client wants none or the server does not work on the request.
    ///
    /// # Cancel safety
    ///
    /// Safe: the next call goes on.
    pub(super) async fn next_or_heartbeat(&mut self) -> Option<ReplyPart> {
        let silence = self.edge.views.config().service.progress_beat;
        let Some(silence) = silence else { return Some(self.next().await) };
        if let Ok(part) = time::timeout_at(self.silent_since + silence, self.next()).await {
            return Some(part);
        }
        self.silent_since = Instant::now();
        let is_running = matches!(&self.stage, Stage::Running(found) if found.is_running());
        let beat = if is_running { self.beat.next() } else { None };
        beat.map(|message| ReplyPart::Aside(message.into()))
    }

    /// Returns the edge at which the request came in.
    pub(super) fn edge(&self) -> &Arc<IngressContext> {
        &self.edge
    }

    /// Returns the session of the client.
    pub(super) fn session(&self) -> &Arc<Session> {
        self.running.session()
    }

    /// Returns what cancels the request.
    pub(super) fn canceller(&self) -> CancellationToken {
        self.running.canceller()
    }

    /// Returns the id of the request, as the client wrote it.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns what comes next.
    ///
    /// # Cancel safety
    ///
    /// Safe: the next call goes on.
    async fn next(&mut self) -> ReplyPart {
        let part = tokio::select! {
            // An answer that is there goes out, whatever else has happened.
            biased;
            part = advance(&mut self.stage, &mut self.beat, &self.edge, &self.running, (&self.id, self.accepts)) => part,
            () = self.running.cancelled() => {
                if let Stage::Running(exchange) = &mut self.stage {
                    exchange.cancel();
                }
                ReplyPart::Nothing
            }
            () = self.edge.hurry.cancelled() => {
                let runs = matches!(&self.stage, Stage::Running(found) if found.is_running());
                ReplyPart::Answer(RpcError::stopping(runs).render(Some(&self.id)).into())
            }
        };
        match part {
            ReplyPart::Aside(_) => self.silent_since = Instant::now(),
            ReplyPart::Deferred => {}
            // Lets go of the request at once, not when the client has read the last byte.
            ReplyPart::Answer(_) | ReplyPart::Nothing => self.stage = Stage::Done,
        }
        part
    }
}

/// Goes on to what comes next for the client.
async fn advance(
    stage: &mut Stage,
    beat: &mut ProgressHeartbeat,
    edge: &IngressContext,
    running: &RunningRequest,
    (id, accepts): (&str, AcceptedForms),
) -> ReplyPart {
    loop {
        let exchange = match stage {
            Stage::Handling(outcome) => match outcome.await {
                RequestOutcome::Answer(answer) => {
                    let account = Some(running.session().holder().account);
                    return ReplyPart::Answer(match budget::counted(account, answer) {
                        Ok(answer) => answer.into(),
                        Err(exhausted) => {
                            let error = exhausted.to_rpc().for_era(running.session().era());
                            error.render(Some(id)).into()
                        }
                    });
                }
                RequestOutcome::Exchange(exchange) => {
                    *stage = Stage::Running(exchange);
                    continue;
                }
            },
            Stage::Running(exchange) => exchange,
            Stage::Done => return ReplyPart::Nothing,
        };
        let aside = match exchange.next().await {
            Ok(CallEvent::Answer(message)) => {
                running.answered();
                return ReplyPart::Answer(exchange.restore(&message));
            }
            Ok(CallEvent::Deferred) if accepts.resumption => return ReplyPart::Deferred,
            Ok(CallEvent::Deferred) => continue,
            Ok(CallEvent::Aside(SideMessage::Notification(message))) => {
                notification(&message, exchange, beat, edge, running)
            }
            Ok(CallEvent::Aside(SideMessage::Question(question)))
                if running.session().is_modern() =>
            {
                if !running.session().can_be_asked(question.message()) || !exchange.can_be_held() {
                    exchange.note_missing_capability(capability::of(question.message()));
                    question.refuse();
                    continue;
                }
                let Stage::Running(exchange) = std::mem::replace(stage, Stage::Done) else {
                    continue;
                };
                let id = exchange.client_id().to_owned();
                let asked = edge.views.sessions().hold(exchange, question);
                return ReplyPart::Answer(match asked {
                    Ok(result) => Message::response(&id, &result).into(),
                    Err(error) => error.to_rpc().for_era(Era::Modern).render(Some(&id)).into(),
                });
            }
            Ok(CallEvent::Aside(SideMessage::Question(question))) => {
                ask(question, running, accepts).map(ByteChunks::from)
            }
            Err(error) => {
                let error = error.to_rpc().for_era(running.session().era());
                return ReplyPart::Answer(error.render(Some(exchange.client_id())).into());
            }
        };
        if let Some(aside) = aside {
            return ReplyPart::Aside(aside);
        }
    }
}

/// Returns a notification as the client is to see it, if it is.
fn notification(
    message: &Message,
    exchange: &Exchange,
    beat: &mut ProgressHeartbeat,
    edge: &IngressContext,
    running: &RunningRequest,
) -> Option<ByteChunks> {
    let session = running.session();
    match message.method().unwrap_or_default() {
        // Nothing else belongs to a request of the modern era.
        other
            if session.is_modern() && !matches!(other, method::LOG_MESSAGE | method::PROGRESS) =>
        {
            return None;
        }
        method::PROGRESS if !exchange.wants_progress() => return None,
        method::LOG_MESSAGE if !session.wants_log(message, edge.views.sessions().has_levels()) => {
            return None;
        }
        method::CANCELLED => {
            return session
                .recall(exchange.server(), exchange.generation()?, message)
                .map(ByteChunks::from);
        }
        method::PROGRESS => beat.note(message),
        _ => {}
    }
    Some(exchange.restore(message))
}

fn ask(question: ServerRequest, running: &RunningRequest, accepts: AcceptedForms) -> Option<Bytes> {
    if accepts.events {
        return running.session().ask(question, Some(running.number()));
    }
    // One that takes no stream cannot be asked.
    question.refuse();
    None
}
