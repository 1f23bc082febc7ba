//! The answer to one request on its way to the client.
//!
//! Plain JSON when it comes soon and alone, an event stream when something comes before it or
//! when it takes long: then comments keep the connection alive.
//! Dropping a reply, as happens when the client goes away, cancels the request at the server; one
//! whose client can come back is handed to [`resume`].

use std::{sync::Arc, vec};

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream};
use hyper::StatusCode;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::{Edge, Response, beat::Beat, modern, respond, resume};
use crate::{
    budget,
    call::Exchange,
    config::defaults,
    connection::{Aside, Event, Question},
    protocol::{Era, Message, Pieces, RpcError, capability, mcp::method, sse},
    session::{Running, Session},
    view::Outcome,
};

/// What forms of an answer the client takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
    /// It comes back for the rest of a stream that broke.
    pub(super) resumption: bool,
}

impl Accepts {
    /// Both forms, and what is sent is there or lost.
    pub(super) fn both() -> Self {
        Self { json: true, events: true, resumption: false }
    }

    /// Leaves out what the operator does not want clients to be sent. One that takes nothing else
    /// gets it all the same.
    pub(super) fn preferring(self, edge: &Edge) -> Self {
        let is_plain = self.json && edge.views.config().listen.json_response;
        Self { events: self.events && !is_plain, ..self }
    }
}

/// The answer to one request.
pub(super) struct Reply {
    edge: Arc<Edge>,
    stage: Stage,
    id: String,
    accepts: Accepts,
    running: Running,
    beat: Beat,
    /// Since when nothing has come that says something.
    silent_since: Instant,
    /// What of an event is still to be sent.
    unsent: vec::IntoIter<Bytes>,
}

enum Stage {
    Handling(BoxFuture<'static, Outcome>),
    Running(Box<Exchange>),
    Done,
}

/// What goes to the client next.
pub(super) enum Part {
    /// Something that comes before the answer.
    Aside(Pieces),
    Answer(Pieces),
    /// The server lets those who can resume wait for the answer without a stream.
    Deferred,
    /// The client has cancelled: there is no answer.
    Nothing,
}

impl Reply {
    pub(super) fn new(
        edge: Arc<Edge>,
        outcome: BoxFuture<'static, Outcome>,
        (id, token): (String, Option<&str>),
        accepts: Accepts,
        running: Running,
    ) -> Self {
        let (stage, beat) = (Stage::Handling(outcome), Beat::new(token));
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
                    Part::Aside(_) | Part::Deferred => {}
                    part => break Some(part),
                }
            },
            Some(stream_after) => time::timeout(stream_after, self.next()).await.ok(),
            None => None,
        };
        match first {
            Some(Part::Answer(answer)) if self.accepts.json => {
                let status = if is_modern { modern::status_of(&answer) } else { StatusCode::OK };
                respond::json_bytes(status, answer)
            }
            // The client has cancelled, and takes no stream that could end without an answer.
            Some(Part::Nothing) if !self.accepts.events => respond::empty(StatusCode::ACCEPTED),
            first => match self.accepts.resumption.then(|| resume::permit(&self.edge)).flatten() {
                Some(permit) => resume::answer(self, first, permit),
                None => self.into_stream(first),
            },
        }
    }

    fn into_stream(self, first: Option<Part>) -> Response {
        let pieces = stream::unfold((self, first), |(mut reply, first): (Self, _)| async move {
            if let Some(piece) = reply.unsent.next() {
                return Some((piece, (reply, first)));
            }
            let part = match first {
                // The stream stays open: it cannot be resumed.
                Some(part) if !matches!(part, Part::Deferred) => part,
                _ => match reply.next_or_silence().await {
                    Ok(part) => part,
                    Err(sign) => return Some((sign, (reply, None))),
                },
            };
            match part {
                Part::Aside(message) => Some((reply.event(message), (reply, None))),
                // The stream ends right after the answer.
                Part::Answer(message) => Some((reply.event(message), (reply, Some(Part::Nothing)))),
                Part::Deferred => Some((sse::KEEP_ALIVE, (reply, None))),
                Part::Nothing => None,
            }
        });
        respond::event_stream(pieces)
    }

    /// Encodes an event and returns the first piece of it.
    fn event(&mut self, message: Pieces) -> Bytes {
        self.unsent = sse::encode_pieces(message).into_iter();
        self.unsent.next().unwrap_or_default()
    }

    /// Returns what comes next, or a sign of life when nothing has come for a while.
    async fn next_or_silence(&mut self) -> Result<Part, Bytes> {
        let silence = self.edge.views.config().listen.keep_alive;
        let next = time::timeout(silence, self.next_or_beat()).await;
        next.ok().flatten().ok_or(sse::KEEP_ALIVE)
    }

    /// Returns what comes next, or progress of ours when it is time for some; nothing when it is,
    /// and the client wants none or the server does not work on the request.
    ///
    /// # Cancel safety
    ///
    /// Safe: the next call goes on.
    pub(super) async fn next_or_beat(&mut self) -> Option<Part> {
        let silence = self.edge.views.config().service.progress_beat;
        let Some(silence) = silence else { return Some(self.next().await) };
        if let Ok(part) = time::timeout_at(self.silent_since + silence, self.next()).await {
            return Some(part);
        }
        self.silent_since = Instant::now();
        let is_running = matches!(&self.stage, Stage::Running(found) if found.is_running());
        let beat = if is_running { self.beat.next() } else { None };
        beat.map(|message| Part::Aside(message.into()))
    }

    /// Returns the edge at which the request came in.
    pub(super) fn edge(&self) -> &Arc<Edge> {
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
    async fn next(&mut self) -> Part {
        let part = tokio::select! {
            // An answer that is there goes out, whatever else has happened.
            biased;
            part = advance(&mut self.stage, &mut self.beat, &self.edge, &self.running, (&self.id, self.accepts)) => part,
            () = self.running.cancelled() => {
                if let Stage::Running(exchange) = &mut self.stage {
                    exchange.cancel();
                }
                Part::Nothing
            }
            () = self.edge.hurry.cancelled() => {
                let runs = matches!(&self.stage, Stage::Running(found) if found.is_running());
                Part::Answer(RpcError::stopping(runs).render(Some(&self.id)).into())
            }
        };
        match part {
            Part::Aside(_) => self.silent_since = Instant::now(),
            Part::Deferred => {}
            // Lets go of the request at once, not when the client has read the last byte.
            Part::Answer(_) | Part::Nothing => self.stage = Stage::Done,
        }
        part
    }
}

/// Goes on to what comes next for the client.
async fn advance(
    stage: &mut Stage,
    beat: &mut Beat,
    edge: &Edge,
    running: &Running,
    (id, accepts): (&str, Accepts),
) -> Part {
    loop {
        let exchange = match stage {
            Stage::Handling(outcome) => match outcome.await {
                Outcome::Answer(answer) => {
                    let account = Some(running.session().holder().account);
                    return Part::Answer(match budget::counted(account, answer) {
                        Ok(answer) => answer.into(),
                        Err(exhausted) => {
                            let error = exhausted.to_rpc().for_era(running.session().era());
                            error.render(Some(id)).into()
                        }
                    });
                }
                Outcome::Exchange(exchange) => {
                    *stage = Stage::Running(exchange);
                    continue;
                }
            },
            Stage::Running(exchange) => exchange,
            Stage::Done => return Part::Nothing,
        };
        let aside = match exchange.next().await {
            Ok(Event::Answer(message)) => {
                running.answered();
                return Part::Answer(exchange.restore(&message));
            }
            Ok(Event::Deferred) if accepts.resumption => return Part::Deferred,
            Ok(Event::Deferred) => continue,
            Ok(Event::Aside(Aside::Notification(message))) => {
                notification(&message, exchange, beat, edge, running)
            }
            Ok(Event::Aside(Aside::Question(question))) if running.session().is_modern() => {
                if !running.session().can_be_asked(question.message()) || !exchange.can_be_held() {
                    exchange.lacks(capability::of(question.message()));
                    question.refuse();
                    continue;
                }
                let Stage::Running(exchange) = std::mem::replace(stage, Stage::Done) else {
                    continue;
                };
                let id = exchange.client_id().to_owned();
                let asked = edge.views.sessions().hold(exchange, question);
                return Part::Answer(match asked {
                    Ok(result) => Message::response(&id, &result).into(),
                    Err(error) => error.to_rpc().for_era(Era::Modern).render(Some(&id)).into(),
                });
            }
            Ok(Event::Aside(Aside::Question(question))) => {
                ask(question, running, accepts).map(Pieces::from)
            }
            Err(error) => {
                let error = error.to_rpc().for_era(running.session().era());
                return Part::Answer(error.render(Some(exchange.client_id())).into());
            }
        };
        if let Some(aside) = aside {
            return Part::Aside(aside);
        }
    }
}

/// Returns a notification as the client is to see it, if it is.
fn notification(
    message: &Message,
    exchange: &Exchange,
    beat: &mut Beat,
    edge: &Edge,
    running: &Running,
) -> Option<Pieces> {
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
                .map(Pieces::from);
        }
        method::PROGRESS => beat.note(message),
        _ => {}
    }
    Some(exchange.restore(message))
}

fn ask(question: Question, running: &Running, accepts: Accepts) -> Option<Bytes> {
    if accepts.events {
        return running.session().ask(question, Some(running.number()));
    }
    // One that takes no stream cannot be asked.
    question.refuse();
    None
}
