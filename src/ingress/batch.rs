//! The answer to a batch: an array when all answers come soon and alone, else a stream of events.
//!
//! One of its requests that fails has its own error, and one that is slow holds up none of the
//! others: on a stream each answer goes out when it comes.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use hyper::StatusCode;
use tokio::time;

use super::{
    IngressContext, Response,
    concurrent::{ConcurrentEvent, ConcurrentRequests},
    reply::{AcceptedForms, RequestReply},
    reply_events::ReplyEvents,
    respond,
};
use crate::{
    config::defaults,
    protocol::{ByteChunks, RpcError, batch, rpc_error::INTERNAL_ERROR},
};

/// The requests of a batch, and what is answered so far.
pub(super) struct BatchReplies {
    edge: Arc<IngressContext>,
    accepts: AcceptedForms,
    running: ConcurrentRequests,
    ready: VecDeque<ByteChunks>,
    n_bytes: usize,
    events: ReplyEvents,
}

impl BatchReplies {
    pub(super) fn new(edge: Arc<IngressContext>, accepts: AcceptedForms) -> Self {
        Self {
            edge,
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

    /// Adds work that is not answered.
    pub(super) fn push_background(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.running.push_background(work);
    }

    /// Adds an answer that is there already.
    pub(super) fn push_answer(&mut self, answer: Bytes) {
        self.ready.push_back(answer.into());
    }

    /// Waits until nothing runs any more. What comes is of no concern.
    pub(super) async fn finish(mut self) {
        while self.running.next().await.is_some() {}
    }

    /// Waits for the answers and chooses their form by when they come.
    pub(super) async fn into_response(mut self) -> Response {
        let is_complete = if self.accepts.events {
            time::timeout(defaults::STREAM_AFTER, self.collect()).await.unwrap_or(false)
        } else {
            self.collect().await
        };
        match (is_complete, self.ready.is_empty()) {
            (true, false) if self.accepts.json => {
                respond::json_bytes(StatusCode::OK, batch::merge(self.ready))
            }
            // The client has cancelled all of them, and takes no stream without an answer.
            (true, true) if !self.accepts.events => respond::empty(StatusCode::ACCEPTED),
            _ => self.into_stream(),
        }
    }

    /// Collects answers until all are there, or until they are to be sent as a stream: `false`.
    ///
    /// # Cancel safety
    ///
    /// Safe: what has come is kept.
    async fn collect(&mut self) -> bool {
        while let Some(next) = self.running.next().await {
            let (id, message) = match next {
                ConcurrentEvent::Answer { id, message } => (id, message),
                ConcurrentEvent::Aside(message) if self.accepts.events => {
                    self.ready.push_back(message);
                    return false;
                }
                // One that takes no stream gets the answers alone.
                ConcurrentEvent::Aside(_) => continue,
            };
            if self.accepts.events {
                self.n_bytes += message.len();
                self.ready.push_back(message);
                if self.n_bytes > defaults::BATCH_ANSWER_BYTES_MAX {
                    return false;
                }
            } else {
                self.keep(&id, message);
            }
        }
        true
    }

    /// Keeps an answer for the others to come, if there is room for it.
    fn keep(&mut self, id: &str, message: ByteChunks) {
        let n_bytes = self.n_bytes + message.len();
        if n_bytes > defaults::BATCH_ANSWER_BYTES_MAX {
            self.ready.push_back(too_large(id).into());
            return;
        }
        self.n_bytes = n_bytes;
        self.ready.push_back(message);
    }

    /// Returns what goes to a client next that has one pipe for everything: what comes before an
    /// answer when it comes, and at the end all answers together.
    ///
    /// # Cancel safety
    ///
    /// Safe: what has come is kept.
    pub(super) async fn next_for_pipe(&mut self) -> Option<ByteChunks> {
        while let Some(next) = self.running.next().await {
            match next {
                ConcurrentEvent::Aside(message) => return Some(message),
                ConcurrentEvent::Answer { id, message } => self.keep(&id, message),
            }
        }
        let answers = std::mem::take(&mut self.ready);
        (!answers.is_empty()).then(|| batch::merge(answers))
    }

    fn into_stream(self) -> Response {
        respond::event_stream(stream::unfold(self, |mut replies| async move {
            replies.next().await.map(|piece| (piece, replies))
        }))
    }

    /// Returns what goes to the client next; the stream ends after the last answer.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.events.piece() {
                return Some(piece);
            }
            if let Some(message) = self.ready.pop_front() {
                self.events.begin(message);
                continue;
            }
            let silent_until = self.events.next_keepalive(&self.edge);
            match time::timeout_at(silent_until, self.running.next()).await {
                Ok(Some(
                    ConcurrentEvent::Aside(message) | ConcurrentEvent::Answer { message, .. },
                )) => {
                    self.ready.push_back(message);
                }
                Ok(None) => return None,
                Err(_) => return Some(self.events.sign()),
            }
        }
    }
}

/// Tells the client of one answer that there was no room for it.
fn too_large(id: &str) -> Bytes {
    let message = format!(
        "the answers of the batch have more than {} bytes together",
        defaults::BATCH_ANSWER_BYTES_MAX
    );
    RpcError::new(INTERNAL_ERROR, "BATCH_ANSWER_TOO_LARGE", message)
        .suggest("Send the request alone.")
        .render(Some(id))
}
