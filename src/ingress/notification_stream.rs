//! The stream that a client opens with GET, for server messages that answer no request.
//!
//! Events have ids and are kept for a while, so that a client can resume a broken stream.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use tokio::time;

use super::{IngressContext, Response, error::IngressError, http_response};
use crate::{
    fair_share::EvictablePermit,
    protocol::{ByteChunks, sse},
    session::{EventId, OutboxItem, OutboxReader, Session},
};

/// An open stream with its source of messages.
struct NotificationStream {
    context: Arc<IngressContext>,
    reader: OutboxReader,
    /// The first output, sent before any message is read.
    first: Option<Bytes>,
    /// The session that ends with the stream.
    ephemeral: Option<Arc<Session>>,
    permit: EvictablePermit,
}

impl Drop for NotificationStream {
    fn drop(&mut self) {
        if let Some(id) = self.ephemeral.as_ref().and_then(|session| session.id()) {
            self.context.views.sessions().end(id);
        }
    }
}

/// Opens the stream of `session` after the event `last`. A client that `takes_priming` receives the
/// id of the start, so that it can resume before the first event. A session that `is_ephemeral`
/// ends with the stream, because its client does not know its id.
pub(super) fn open(
    context: Arc<IngressContext>,
    session: &Arc<Session>,
    last: Option<EventId>,
    takes_priming: bool,
    is_ephemeral: bool,
) -> Result<Response, IngressError> {
    let permit = context.stream_permit(session.holder())?;
    let reader = session.read(last);
    let first = match takes_priming {
        true => sse::encode_priming(&reader.position().to_string(), None),
        // A proxy may hold back the head until data follows.
        false => sse::KEEP_ALIVE,
    };
    let ephemeral = is_ephemeral.then(|| Arc::clone(session));
    let output = NotificationStream { context, reader, first: Some(first), ephemeral, permit };
    Ok(http_response::event_stream(stream::unfold(output, |mut output| async move {
        output.next().await.map(|piece| (piece, output))
    })))
}

impl NotificationStream {
    /// Returns the next output for the client; `None` ends the stream.
    async fn next(&mut self) -> Option<ByteChunks> {
        if let Some(first) = self.first.take() {
            return Some(first.into());
        }
        let silence = self.context.views.config().listen.keep_alive;
        let next = tokio::select! {
            next = time::timeout(silence, self.reader.next()) => next,
            () = self.context.stop.cancelled() => return None,
            // The client may open another stream.
            () = self.permit.evicted() => return None,
        };
        match next {
            Ok(OutboxItem::Event(id, message)) => {
                self.permit.touch();
                Some(sse::encode_pieces_with_id(&id.to_string(), message.into()))
            }
            Ok(OutboxItem::Closed) => None,
            Ok(OutboxItem::Overflow) => {
                tracing::warn!(
                    "stream closed: the client does not read its messages as fast as they arrive"
                );
                None
            }
            Err(_) => Some(sse::KEEP_ALIVE.into()),
        }
    }
}
