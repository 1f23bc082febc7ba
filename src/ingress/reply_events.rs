//! What goes out on a stream of events of several requests: each event in pieces, and a sign of life
//! when nothing has for a while.

use std::vec;

use bytes::Bytes;
use tokio::time::Instant;

use super::IngressContext;
use crate::protocol::{ByteChunks, sse};

/// The event that is being sent, and since when nothing was.
pub(super) struct ReplyEvents {
    /// What of it is still to be sent.
    unsent: vec::IntoIter<Bytes>,
    written_at: Instant,
}

impl ReplyEvents {
    /// Returns a stream that begins with `first`.
    pub(super) fn with_first(first: Vec<Bytes>) -> Self {
        Self { unsent: first.into_iter(), written_at: Instant::now() }
    }

    /// Begins another event; the last one was sent.
    pub(super) fn begin(&mut self, message: ByteChunks) {
        self.unsent = sse::encode_pieces(message).into_iter();
    }

    /// Returns the next piece of the event, if it is not sent yet.
    pub(super) fn piece(&mut self) -> Option<Bytes> {
        let piece = self.unsent.next()?;
        self.written_at = Instant::now();
        Some(piece)
    }

    /// Returns until when nothing need be sent.
    pub(super) fn next_keepalive(&self, edge: &IngressContext) -> Instant {
        self.written_at + edge.views.config().listen.keep_alive
    }

    /// Returns a sign of life.
    pub(super) fn sign(&mut self) -> Bytes {
        self.written_at = Instant::now();
        sse::KEEP_ALIVE
    }
}
