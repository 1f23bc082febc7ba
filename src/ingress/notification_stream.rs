//! The stream that a client opens with GET: what servers say that answers no request of it.
//!
//! Its events have ids and are kept for a while, so that a client whose stream broke misses nothing.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use tokio::time;

use super::{
    IngressContext, Response,
    respond::{self, IngressError},
};
use crate::{
    protocol::{ByteChunks, sse},
    session::{EventId, OutboxItem, OutboxReader, Session},
    share::EvictablePermit,
};

/// Who listens, and to what.
struct Listening {
    edge: Arc<IngressContext>,
    reader: OutboxReader,
    /// What goes out before anything is read.
    first: Option<Bytes>,
    /// The session that is of no use without the stream.
    passing: Option<Arc<Session>>,
    permit: EvictablePermit,
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(id) = self.passing.as_ref().and_then(|session| session.id()) {
            self.edge.views.sessions().end(id);
        }
    }
}

/// Opens the stream of `session` after the event `last`. A client that `takes_priming` is told the
/// id of the beginning at once, so that it can resume even before the first event. A session that
/// `is_passing`, whose client does not know its id, ends with the stream.
pub(super) fn open(
    edge: Arc<IngressContext>,
    session: &Arc<Session>,
    last: Option<EventId>,
    takes_priming: bool,
    is_passing: bool,
) -> Result<Response, IngressError> {
    let permit = edge.stream_permit(session.holder())?;
    let reader = session.read(last);
    let first = match takes_priming {
        true => sse::encode_priming(&reader.position().to_string(), None),
        // A proxy in between may hold the head back until something comes after it.
        false => sse::KEEP_ALIVE,
    };
    let passing = is_passing.then(|| Arc::clone(session));
    let listening = Listening { edge, reader, first: Some(first), passing, permit };
    Ok(respond::event_stream(stream::unfold(listening, |mut listening| async move {
        listening.next().await.map(|piece| (piece, listening))
    })))
}

impl Listening {
    /// Returns what goes to the client next; `None` ends the stream.
    async fn next(&mut self) -> Option<ByteChunks> {
        if let Some(first) = self.first.take() {
            return Some(first.into());
        }
        let silence = self.edge.views.config().listen.keep_alive;
        let next = tokio::select! {
            next = time::timeout(silence, self.reader.next()) => next,
            () = self.edge.stop.cancelled() => return None,
            // The client may open another one.
            () = self.permit.evicted() => return None,
        };
        match next {
            Ok(OutboxItem::Event(id, message)) => {
                self.permit.touch();
                Some(sse::encode_pieces_with_id(&id.to_string(), message.into()))
            }
            Ok(OutboxItem::Closed) => None,
            Ok(OutboxItem::Overtaken) => {
                tracing::warn!("a client does not read its stream: it is cut off");
                None
            }
            Err(_) => Some(sse::KEEP_ALIVE.into()),
        }
    }
}
