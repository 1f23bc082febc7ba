//! The output of an event stream for several requests: each event in chunks, and keep-alive
//! comments in between.

use std::vec;

use bytes::Bytes;
use tokio::time::Instant;

use super::IngressContext;
use crate::protocol::{ByteChunks, sse};

/// The event being sent, and the time of the last output.
pub(super) struct ReplyEvents {
    /// The unsent rest of the event.
    unsent: vec::IntoIter<Bytes>,
    written_at: Instant,
}

impl ReplyEvents {
    /// Returns a stream that begins with `first`.
    pub(super) fn with_first(first: Vec<Bytes>) -> Self {
        Self { unsent: first.into_iter(), written_at: Instant::now() }
    }

    /// Begins another event after the last one was sent completely.
    pub(super) fn begin(&mut self, message: ByteChunks) {
        self.unsent = sse::encode_pieces(message).into_iter();
    }

    /// Returns the next chunk of the event, if one is left.
    pub(super) fn piece(&mut self) -> Option<Bytes> {
        let piece = self.unsent.next()?;
        self.written_at = Instant::now();
        Some(piece)
    }

    /// Returns the time at which the next keep-alive comment is due.
    pub(super) fn next_keepalive(&self, context: &IngressContext) -> Instant {
        self.written_at + context.views.config().listen.keep_alive
    }

    /// Returns a keep-alive comment.
    pub(super) fn keep_alive(&mut self) -> Bytes {
        self.written_at = Instant::now();
        sse::KEEP_ALIVE
    }
}
