//! Answers on streams that a client can resume.
//!
//! A task drives the reply, and the stream reads its output. The request therefore continues while
//! its client is away, up to a time limit. Source: MCP 2025-11-25, "Resumability".
//!
//! An answer written to a socket may be lost with it, since a disconnect is often detected only
//! later. It is kept for as long as a client may be away. It is dropped earlier if the client
//! resumes after it, and not kept if too much is kept.

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use tokio::{sync::OwnedSemaphorePermit, time};

use super::{
    IngressContext, Response, http_response,
    reply::{ReplyPart, RequestReply},
};
use crate::{
    config::defaults,
    protocol::{ByteChunks, sse},
    session::{ResumableStream, StreamRemainder},
};

/// Returns a permit for a resumable stream, or `None` if there are too many.
pub(super) fn permit(context: &IngressContext) -> Option<OwnedSemaphorePermit> {
    Arc::clone(&context.resumable).try_acquire_owned().ok()
}

/// Sends the answer, which begins with `first`, on a resumable stream.
pub(super) fn answer(
    reply: RequestReply,
    first: Option<ReplyPart>,
    permit: OwnedSemaphorePermit,
) -> Response {
    let context = Arc::clone(reply.context());
    let (resumable, rest) = reply.session().begin_resumable();
    context.tasks.spawn(drive(reply, first, resumable, permit));
    send_remainder(context, rest)
}

/// Sends the rest of an answer.
pub(super) fn send_remainder(context: Arc<IngressContext>, rest: StreamRemainder) -> Response {
    let position = rest.position().to_string();
    let first = sse::encode_priming(&position, Some(defaults::RESUME_AFTER));
    let output = RemainderOutput { context, rest, first: Some(first) };
    http_response::event_stream(stream::unfold(output, |mut output| async move {
        output.next().await.map(|piece| (piece, output))
    }))
}

/// Drives a reply to its end, with or without its client.
async fn drive(
    mut reply: RequestReply,
    first: Option<ReplyPart>,
    resumable: ResumableStream,
    permit: OwnedSemaphorePermit,
) {
    let context = Arc::clone(reply.context());
    let mut client_gone = pin!(client_gone(&context, &resumable));
    let is_answered = tokio::select! {
        is_answered = store_output(&mut reply, first, &resumable) => is_answered,
        () = &mut client_gone => {
            tracing::debug!("answer dropped: the client did not resume its stream in time");
            return;
        }
    };
    drop(reply);
    resumable.finish();
    tokio::select! {
        () = resumable.wait_until_read() => {}
        () = &mut client_gone => return,
    }
    if is_answered && let Some(_kept) = reserve_memory(&context, resumable.n_bytes()) {
        drop(permit);
        tokio::select! {
            () = resumable.wait_until_delivered() => {}
            () = client_gone => {}
        }
    }
}

/// Returns a permit to keep `n_bytes` of sent data, or `None` if too much is kept.
fn reserve_memory(context: &IngressContext, n_bytes: usize) -> Option<OwnedSemaphorePermit> {
    let n_units = 1 + n_bytes / defaults::SENT_BYTES_UNIT;
    Arc::clone(&context.sent).try_acquire_many_owned(u32::try_from(n_units).ok()?).ok()
}

/// Stores the output of a reply as fast as the client reads; returns `false` without an answer.
async fn store_output(
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
            ReplyPart::Message(message) => resumable.push(message),
            ReplyPart::Deferred => resumable.end_reading(),
            ReplyPart::Answer(message) => {
                resumable.push(message);
                return true;
            }
            ReplyPart::Nothing => return false,
        }
    }
}

/// Waits until the client has been away for too long. During shutdown, any absence is too long.
async fn client_gone(context: &IngressContext, resumable: &ResumableStream) {
    let at_shutdown = async {
        context.stop.cancelled().await;
        resumable.wait_until_abandoned(Duration::ZERO).await;
    };
    tokio::select! {
        () = resumable.wait_until_abandoned(defaults::RESUME_WITHIN) => {}
        () = at_shutdown => {}
    }
}

/// The delivery of an answer to its client.
struct RemainderOutput {
    context: Arc<IngressContext>,
    rest: StreamRemainder,
    /// The first output, sent before any message is read.
    first: Option<Bytes>,
}

impl RemainderOutput {
    /// Returns the next output for the client; `None` ends the stream.
    async fn next(&mut self) -> Option<ByteChunks> {
        if let Some(first) = self.first.take() {
            return Some(first.into());
        }
        let silence = self.context.views.config().listen.keep_alive;
        match time::timeout(silence, self.rest.next()).await {
            Ok(Some((id, message))) => Some(sse::encode_pieces_with_id(&id.to_string(), message)),
            Ok(None) => None,
            Err(_) => Some(sse::KEEP_ALIVE.into()),
        }
    }
}
