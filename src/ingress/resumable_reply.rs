//! Answers on streams that a client can resume where they broke.
//!
//! A task drives the reply, and the stream reads what comes of it: so the request goes on while its
//! client is away, until that has taken too long. Source: MCP 2025-11-25, "Resumability".
//!
//! An answer that was written to a socket may be lost with it: that a client has gone is often known
//! only then. So it is kept for as long as a client may be away, unless that comes back for what is
//! after it, or too much is kept.

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use tokio::{sync::OwnedSemaphorePermit, time};

use super::{
    IngressContext, Response,
    reply::{ReplyPart, RequestReply},
    respond,
};
use crate::{
    config::defaults,
    protocol::{ByteChunks, sse},
    session::{ResumableStream, StreamRemainder},
};

/// Returns the permit for one more such stream; nothing where there are too many.
pub(super) fn permit(edge: &IngressContext) -> Option<OwnedSemaphorePermit> {
    Arc::clone(&edge.resumable).try_acquire_owned().ok()
}

/// Sends the answer, which begins with `first`, on a stream that can be resumed.
pub(super) fn answer(
    reply: RequestReply,
    first: Option<ReplyPart>,
    permit: OwnedSemaphorePermit,
) -> Response {
    let edge = Arc::clone(reply.edge());
    let (resumable, rest) = reply.session().begin_resumable();
    edge.tasks.spawn(drive(reply, first, resumable, permit));
    self::send_remainder(edge, rest)
}

/// Sends what is left of an answer.
pub(super) fn send_remainder(edge: Arc<IngressContext>, rest: StreamRemainder) -> Response {
    let position = rest.position().to_string();
    let first = sse::encode_priming(&position, Some(defaults::RESUME_AFTER));
    let reading = Reading { edge, rest, first: Some(first) };
    respond::event_stream(stream::unfold(reading, |mut reading| async move {
        reading.next().await.map(|piece| (piece, reading))
    }))
}

/// Drives a reply to its end, with or without its client.
async fn drive(
    mut reply: RequestReply,
    first: Option<ReplyPart>,
    resumable: ResumableStream,
    permit: OwnedSemaphorePermit,
) {
    let edge = Arc::clone(reply.edge());
    let mut gone = pin!(gone(&edge, &resumable));
    let is_answered = tokio::select! {
        is_answered = tell(&mut reply, first, &resumable) => is_answered,
        () = &mut gone => {
            tracing::debug!("a client did not come back for its answer");
            return;
        }
    };
    drop(reply);
    resumable.finish();
    tokio::select! {
        () = resumable.read_out() => {}
        () = &mut gone => return,
    }
    if is_answered && let Some(_kept) = room(&edge, resumable.n_bytes()) {
        drop(permit);
        tokio::select! {
            () = resumable.wait_until_delivered() => {}
            () = gone => {}
        }
    }
}

/// Returns the permit to keep so much that was sent; nothing where too much is kept.
fn room(edge: &IngressContext, n_bytes: usize) -> Option<OwnedSemaphorePermit> {
    let n_units = 1 + n_bytes / defaults::SENT_BYTES_UNIT;
    Arc::clone(&edge.sent).try_acquire_many_owned(u32::try_from(n_units).ok()?).ok()
}

/// Puts down what comes of a reply, as fast as the client reads; `false` when there is no answer.
async fn tell(
    reply: &mut RequestReply,
    mut first: Option<ReplyPart>,
    resumable: &ResumableStream,
) -> bool {
    loop {
        let part = match first.take() {
            Some(part) => part,
            None => {
                resumable.wait_for_room().await;
                let Some(part) = reply.next_or_heartbeat().await else { continue };
                part
            }
        };
        match part {
            ReplyPart::Aside(message) => resumable.push(message),
            ReplyPart::Deferred => resumable.end_reading(),
            ReplyPart::Answer(message) => {
                resumable.push(message);
                return true;
            }
            ReplyPart::Nothing => return false,
        }
    }
}

/// Waits until the client has been away for too long, which it is at once when the service stops.
async fn gone(edge: &IngressContext, resumable: &ResumableStream) {
    let at_the_stop = async {
        edge.stop.cancelled().await;
        resumable.abandoned(Duration::ZERO).await;
    };
    tokio::select! {
        () = resumable.abandoned(defaults::RESUME_WITHIN) => {}
        () = at_the_stop => {}
    }
}

/// A client that reads an answer.
struct Reading {
    edge: Arc<IngressContext>,
    rest: StreamRemainder,
    /// What goes out before anything is read.
    first: Option<Bytes>,
}

impl Reading {
    /// Returns what goes to the client next; `None` ends the stream.
    async fn next(&mut self) -> Option<ByteChunks> {
        if let Some(first) = self.first.take() {
            return Some(first.into());
        }
        let silence = self.edge.views.config().listen.keep_alive;
        match time::timeout(silence, self.rest.next()).await {
            Ok(Some((id, message))) => Some(sse::encode_pieces_with_id(&id.to_string(), message)),
            Ok(None) => None,
            Err(_) => Some(sse::KEEP_ALIVE.into()),
        }
    }
}
