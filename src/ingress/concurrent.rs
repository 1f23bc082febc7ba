//! Several requests of one client that run at the same time, in the task of its connection.
//!
//! They are started one after the other, and between two of them other clients have their turn: a
//! batch holds up only its own client. Dropping them cancels all that still run.

use std::collections::VecDeque;

use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};

use super::reply::{ReplyPart, RequestReply};
use crate::protocol::ByteChunks;

/// Requests that run, and other work that belongs to them.
#[derive(Default)]
pub(super) struct ConcurrentRequests {
    /// Requests to be started.
    waiting: VecDeque<Box<RequestReply>>,
    running: FuturesUnordered<BoxFuture<'static, Step>>,
}

/// What one of them has come to.
enum Step {
    Part(Box<RequestReply>, ReplyPart),
    /// Work that is not answered is done.
    Done,
}

/// What goes to the client next.
pub(super) enum ConcurrentEvent {
    /// Something that comes before an answer.
    Aside(ByteChunks),
    /// The answer to the request with this id, as the client wrote it.
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
                // Signs of life are for the stream of all of them.
                if let Some(part) = reply.next_or_heartbeat().await {
                    return Step::Part(reply, part);
                }
            }
        }));
    }

    /// Adds work that is not answered.
    pub(super) fn push_background(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.running.push(Box::pin(async move {
            work.await;
            Step::Done
        }));
    }

    /// Returns how many run.
    pub(super) fn len(&self) -> usize {
        self.running.len() + self.waiting.len()
    }

    /// Returns what comes next of those that run; nothing when none does. The others are started
    /// meanwhile.
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

    /// Returns what comes next of any of them, with the id of its request where it is the answer;
    /// nothing when none runs.
    ///
    /// # Cancel safety
    ///
    /// Safe: the next call goes on.
    pub(super) async fn next(&mut self) -> Option<ConcurrentEvent> {
        loop {
            match self.advance().await? {
                Step::Part(reply, ReplyPart::Aside(message)) => {
                    self.start(reply);
                    return Some(ConcurrentEvent::Aside(message));
                }
                Step::Part(reply, ReplyPart::Answer(message)) => {
                    return Some(ConcurrentEvent::Answer { id: reply.id().to_owned(), message });
                }
                // What has one stream for several is not resumed.
                Step::Part(reply, ReplyPart::Deferred) => self.start(reply),
                Step::Part(_, ReplyPart::Nothing) | Step::Done => {}
            }
        }
    }
}
