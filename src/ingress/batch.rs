//! The answer to a batch: an array if all answers arrive soon, otherwise an event stream.
//!
//! A request that fails has its own error. On a stream, each answer leaves when it arrives, so a
//! slow request delays no other.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use hyper::StatusCode;
use tokio::time;

use super::{
    IngressContext, Response,
    concurrent_requests::{ConcurrentEvent, ConcurrentRequests},
    http_response,
    reply::{AcceptedForms, RequestReply},
    reply_events::ReplyEvents,
};
use crate::{
    config::defaults,
    protocol::{ByteChunks, RpcError, batch, rpc_error::INTERNAL_ERROR},
};

/// The requests of a batch and the answers so far.
pub(super) struct BatchReplies {
    context: Arc<IngressContext>,
    accepts: AcceptedForms,
    running: ConcurrentRequests,
    ready: VecDeque<ByteChunks>,
    n_bytes: usize,
    events: ReplyEvents,
}

impl BatchReplies {
    pub(super) fn new(context: Arc<IngressContext>, accepts: AcceptedForms) -> Self {
        Self {
            context,
            accepts,
            running: ConcurrentRequests::default(),
            ready: VecDeque::new(),
            n_bytes: 0,
            events: ReplyEvents::with_first(Vec::new()),
        }
    }

    /// Adds a request.
    pub(super) fn push(&mut self, reply: RequestReply) {
        self.running.push(Box::new(reply));
    }

    /// Adds work that has no answer.
    pub(super) fn push_background(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.running.push_background(work);
    }

    /// Adds an answer that already exists.
    pub(super) fn push_answer(&mut self, answer: Bytes) {
        self.ready.push_back(answer.into());
    }

    /// Waits until all work is done, and discards its results.
    pub(super) async fn finish(mut self) {
        while self.running.next().await.is_some() {}
    }

    /// Waits for the answers and chooses their form according to the time they take.
    pub(super) async fn into_response(mut self) -> Response {
        let is_complete = if self.accepts.events {
            time::timeout(defaults::STREAM_AFTER, self.collect()).await.unwrap_or(false)
        } else {
            self.collect().await
        };
        match (is_complete, self.ready.is_empty()) {
            (true, false) if self.accepts.json => {
                http_response::json_bytes(StatusCode::OK, batch::merge(self.ready))
            }
            // The client has cancelled all requests and accepts no stream.
            (true, true) if !self.accepts.events => http_response::empty(StatusCode::ACCEPTED),
            _ => self.into_stream(),
        }
    }

    /// Collects answers. Returns `true` once all are there, `false` if a stream must send them.
    /// Cancel safe. All collected messages are kept.
    async fn collect(&mut self) -> bool {
        while let Some(next) = self.running.next().await {
            match next {
                ConcurrentEvent::Answer { id, message } if !self.accepts.events => {
                    self.store(&id, message);
                }
                // A client that accepts no stream receives only the answers.
                ConcurrentEvent::Message(_) if !self.accepts.events => {}
                ConcurrentEvent::Message(message) => {
                    self.ready.push_back(message);
                    return false;
                }
                ConcurrentEvent::Answer { message, .. } => {
                    self.n_bytes += message.len();
                    self.ready.push_back(message);
                    if self.n_bytes > defaults::BATCH_ANSWER_BYTES_MAX {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Stores an answer until the others arrive, or an error if the batch is too large.
    fn store(&mut self, id: &str, message: ByteChunks) {
        let n_bytes = self.n_bytes + message.len();
        if n_bytes > defaults::BATCH_ANSWER_BYTES_MAX {
            self.ready.push_back(too_large(id).into());
            return;
        }
        self.n_bytes = n_bytes;
        self.ready.push_back(message);
    }

    /// Returns the next output for a client with one pipe for everything. Other messages leave at
    /// once, and all answers follow together at the end. Cancel safe. All collected messages are
    /// kept.
    pub(super) async fn next_for_pipe(&mut self) -> Option<ByteChunks> {
        while let Some(next) = self.running.next().await {
            match next {
                ConcurrentEvent::Message(message) => return Some(message),
                ConcurrentEvent::Answer { id, message } => self.store(&id, message),
            }
        }
        let answers = std::mem::take(&mut self.ready);
        (!answers.is_empty()).then(|| batch::merge(answers))
    }

    fn into_stream(self) -> Response {
        http_response::event_stream(stream::unfold(self, |mut replies| async move {
            replies.next().await.map(|piece| (piece, replies))
        }))
    }

    /// Returns the next output for the client. The stream ends after the last answer.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.events.piece() {
                return Some(piece);
            }
            if let Some(message) = self.ready.pop_front() {
                self.events.begin(message);
                continue;
            }
            let silent_until = self.events.next_keepalive(&self.context);
            match time::timeout_at(silent_until, self.running.next()).await {
                Ok(Some(
                    ConcurrentEvent::Message(message) | ConcurrentEvent::Answer { message, .. },
                )) => {
                    self.ready.push_back(message);
                }
                Ok(None) => return None,
                Err(_) => return Some(self.events.keep_alive()),
            }
        }
    }
}

/// Returns the error that replaces an answer for which there was no room.
fn too_large(id: &str) -> Bytes {
    let message = format!(
        "the answers of the batch exceed {} bytes in total",
        defaults::BATCH_ANSWER_BYTES_MAX
    );
    RpcError::new(INTERNAL_ERROR, "BATCH_ANSWER_TOO_LARGE", message)
        .suggest("Send this request on its own, outside a batch.")
        .render(Some(id))
}
