//! Requests of one client that run concurrently in the task of its connection.
//!
//! They start one by one and yield to other clients in between, so a batch delays only its own
//! client. Dropping them cancels all that still run.

use std::collections::VecDeque;

use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};

use super::reply::{ReplyPart, RequestReply};
use crate::protocol::ByteChunks;

/// The running requests and the work that belongs to them.
#[derive(Default)]
pub(super) struct ConcurrentRequests {
    /// The requests that have not started yet.
    waiting: VecDeque<Box<RequestReply>>,
    running: FuturesUnordered<BoxFuture<'static, Step>>,
}

/// The next result of a request or of other work.
enum Step {
    Part(Box<RequestReply>, ReplyPart),
    /// The end of work that has no answer.
    Done,
}

/// A message for the client.
pub(super) enum ConcurrentEvent {
    /// A message that precedes an answer.
    Message(ByteChunks),
    /// The answer to the request with this id, in the client's spelling.
    Answer { id: String, message: ByteChunks },
}

impl ConcurrentRequests {
    /// Adds a request.
    pub(super) fn push(&mut self, reply: Box<RequestReply>) {
        self.waiting.push_back(reply);
    }

    fn start(&mut self, mut reply: Box<RequestReply>) {
        self.running.push(Box::pin(async move {
            loop {
                // Keep-alive signs are sent once, for the shared stream.
                if let Some(part) = reply.next_or_heartbeat().await {
                    return Step::Part(reply, part);
                }
            }
        }));
    }

    /// Adds work that has no answer.
    pub(super) fn push_background(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.running.push(Box::pin(async move {
            work.await;
            Step::Done
        }));
    }

    /// Returns the number of running and waiting requests and other work.
    pub(super) fn len(&self) -> usize {
        self.running.len() + self.waiting.len()
    }

    /// Returns the next step, or `None` if nothing runs. Starts waiting requests meanwhile.
    async fn advance(&mut self) -> Option<Step> {
        while let Some(reply) = self.waiting.pop_front() {
            self.start(reply);
            tokio::select! {
                biased;
                step = self.running.next() => return step,
                () = tokio::task::yield_now() => {}
            }
        }
        self.running.next().await
    }

    /// Returns the next message, for an answer with the id of its request. Returns `None` if
    /// nothing runs. Cancel safe. The next call continues.
    pub(super) async fn next(&mut self) -> Option<ConcurrentEvent> {
        loop {
            match self.advance().await? {
                Step::Part(reply, ReplyPart::Message(message)) => {
                    self.start(reply);
                    return Some(ConcurrentEvent::Message(message));
                }
                Step::Part(reply, ReplyPart::Answer(message)) => {
                    return Some(ConcurrentEvent::Answer { id: reply.id().to_owned(), message });
                }
                // A stream for several requests cannot be resumed.
                Step::Part(reply, ReplyPart::Deferred) => self.start(reply),
                Step::Part(_, ReplyPart::Nothing) | Step::Done => {}
            }
        }
    }
}
