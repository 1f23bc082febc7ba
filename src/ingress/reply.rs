//! The answer to one request on its way to the client.
//!
//! Plain JSON when it comes soon and alone, an event stream when something comes before it or
//! when it takes long: then comments keep the connection alive.
//! Dropping a reply, as happens when the client goes away, cancels the request at the server.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::{StatusCode, body::Frame};
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::{Response, in_flight::Registration, respond};
use crate::{
    call::Exchange,
    config::defaults,
    connection::Event,
    protocol::{RpcError, error::INTERNAL_ERROR, sse},
    view::Outcome,
};

/// What forms of an answer the client takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

/// The answer to one request.
pub(super) struct Reply {
    stage: Stage,
    id: String,
    registration: Registration,
    hurry: CancellationToken,
}

enum Stage {
    Handling(BoxFuture<'static, Outcome>),
    Running(Box<Exchange>),
    Done,
}

/// What goes to the client next.
enum Part {
    Notification(Bytes),
    Answer(Bytes),
    /// The client has cancelled: there is no answer.
    Nothing,
}

impl Reply {
    pub(super) fn new(
        outcome: BoxFuture<'static, Outcome>,
        id: String,
        registration: Registration,
        hurry: CancellationToken,
    ) -> Self {
        Self { stage: Stage::Handling(outcome), id, registration, hurry }
    }

    /// Waits for what comes first and chooses the form of the answer by it.
    pub(super) async fn into_response(mut self, accepts: Accepts) -> Response {
        let first = if accepts.events {
            time::timeout(defaults::STREAM_AFTER, self.next()).await.ok()
        } else {
            // A client that takes no stream gets the answer alone.
            loop {
                match self.next().await {
                    Part::Notification(_) => {}
                    part => break Some(part),
                }
            }
        };
        match first {
            Some(Part::Answer(answer)) if accepts.json => {
                respond::json_bytes(StatusCode::OK, answer)
            }
            first => self.into_stream(first),
        }
    }

    fn into_stream(self, first: Option<Part>) -> Response {
        let frames = stream::unfold((self, first), |(mut reply, first): (Self, _)| async move {
            let part = match first {
                Some(part) => part,
                None => match reply.next_or_silence().await {
                    Some(part) => part,
                    None => return Some((sse::KEEP_ALIVE, (reply, None))),
                },
            };
            match part {
                Part::Notification(message) => Some((sse::encode(&message), (reply, None))),
                // The stream ends right after the answer.
                Part::Answer(message) => {
                    Some((sse::encode(&message), (reply, Some(Part::Nothing))))
                }
                Part::Nothing => None,
            }
        });
        let frames =
            futures_util::StreamExt::map(frames, |bytes| Ok::<_, Infallible>(Frame::data(bytes)));
        respond::event_stream(StreamBody::new(frames).boxed_unsync())
    }

    /// Returns what comes next, or `None` when it is time for a sign of life.
    async fn next_or_silence(&mut self) -> Option<Part> {
        time::timeout(defaults::KEEP_ALIVE, self.next()).await.ok()
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
            part = advance(&mut self.stage) => part,
            () = self.registration.cancelled.cancelled() => Part::Nothing,
            () = self.hurry.cancelled() => {
                let error = RpcError::new(INTERNAL_ERROR, "SERVICE_STOPPING", "the service is stopping")
                    .suggest("Call again in a moment: the service may come back.");
                Part::Answer(error.render(Some(&self.id)))
            }
        };
        if !matches!(part, Part::Notification(_)) {
            // Lets go of the request at once, not when the client has read the last byte.
            self.stage = Stage::Done;
        }
        part
    }
}

async fn advance(stage: &mut Stage) -> Part {
    loop {
        match stage {
            Stage::Handling(outcome) => match outcome.await {
                Outcome::Answer(answer) => return Part::Answer(answer),
                Outcome::Exchange(exchange) => *stage = Stage::Running(exchange),
            },
            Stage::Running(exchange) => {
                return match exchange.next().await {
                    Ok(Event::Notification(message)) => {
                        Part::Notification(exchange.restore(&message))
                    }
                    Ok(Event::Answer(message)) => Part::Answer(exchange.restore(&message)),
                    Err(error) => Part::Answer(error.to_rpc().render(Some(exchange.client_id()))),
                };
            }
            Stage::Done => return Part::Nothing,
        }
    }
}
