//! A request that was sent to a server, until its answer.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::time::{self, Instant};

use super::{
    CallEvent, Connection, ConnectionLimits, ForwardedHeaders, Inbox, Link, RequestFailure,
    SideMessage, http,
};
use crate::{
    config::defaults,
    protocol::{ByteChunks, Message, payloads::method},
};

/// A request in flight. Dropping it cancels the request at the server.
pub struct PendingRequest {
    connection: Arc<Connection>,
    /// 0, which no request has, until the request is given its id.
    pub(super) id: u64,
    inbox: Arc<Inbox>,
    /// The POST that carries the request and brings its answer, if the link has one per request.
    posting: Option<BoxFuture<'static, ()>>,
    limits: ConnectionLimits,
    silent_until: Instant,
    ends: Instant,
    /// `true` once the request is on its way to the server.
    is_sent: bool,
    /// `true` if the protocol lets the request be cancelled.
    is_cancellable: bool,
    origin: RequestOrigin,
    /// `true` if the answer is not wanted, so that the server's stream can be closed.
    is_cancelled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestOrigin {
    /// A client, which can be asked something on its stream.
    Client,
    /// metamcp itself.
    Metamcp,
    /// A probe of metamcp: its sender judges the outcome.
    Probe,
}

impl PendingRequest {
    pub(super) fn new(
        connection: Arc<Connection>,
        origin: RequestOrigin,
        limits: ConnectionLimits,
    ) -> Self {
        let now = Instant::now();
        Self {
            connection,
            id: 0,
            inbox: Arc::default(),
            posting: None,
            limits,
            silent_until: now + limits.silence,
            ends: now + limits.total,
            is_sent: false,
            is_cancellable: false,
            origin,
            is_cancelled: false,
        }
    }

    pub(super) fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.inbox)
    }

    /// Pauses the request until [`PendingRequest::resume`]: its messages are not taken meanwhile.
    pub fn pause(&self) {
        self.inbox.set_paused(true);
    }

    /// Extends the time limits by the pause, in which the client was asked something.
    pub fn resume(&mut self, paused: Duration) {
        self.silent_until += paused;
        self.ends += paused;
        self.inbox.set_paused(false);
    }

    /// Restarts the silence timeout: until now the request has waited for room.
    pub(super) fn restart(&mut self) {
        self.silent_until = Instant::now() + self.limits.silence;
    }

    pub(super) async fn send(
        &mut self,
        request: &Message,
        frame: ByteChunks,
        is_cancellable: bool,
        forwarded: Option<Arc<ForwardedHeaders>>,
    ) -> Result<(), RequestFailure> {
        match &self.connection.link {
            Link::Stdio(link) => {
                // A child that does not read fills its queue, so the wait for it is bounded too.
                time::timeout_at(self.silent_until, link.send(frame, Some(self.id)))
                    .await
                    .map_err(|_| self.timed_out(self.limits.silence))??;
                self.is_sent = true;
            }
            Link::Http(_) => {
                let connection = Arc::clone(&self.connection);
                let (id, request, limits) = (self.id, request.clone(), self.limits);
                let post = http::OutgoingPost {
                    id,
                    request,
                    frame,
                    forwarded,
                    silence: limits.silence,
                    ends: self.ends,
                };
                self.posting = Some(http::HttpLink::post(connection, post, self.inbox()));
            }
        }
        self.is_cancellable = is_cancellable;
        Ok(())
    }

    /// Returns the next event. Cancel safe: no event is lost.
    ///
    /// # Errors
    ///
    /// [`RequestFailure`] when no answer will come; no event follows it.
    pub async fn next(&mut self) -> Result<CallEvent, RequestFailure> {
        let deadline = self.silent_until.min(self.ends);
        // Not a `select!`: a server that never stops sending would starve the timer.
        let coming = std::future::poll_fn(|context| self.poll_next(context));
        match time::timeout_at(deadline, coming).await {
            Ok(event) => {
                // While the client answers a question, the server has nothing to send.
                let silence = match &event {
                    Ok(CallEvent::Message(SideMessage::Question(_))) => {
                        self.limits.silence.max(defaults::INPUT_TIMEOUT)
                    }
                    Ok(CallEvent::RetryAfter(asked)) => self.limits.silence + asked.longest_pause(),
                    Ok(_) | Err(_) => self.limits.silence,
                };
                self.silent_until = Instant::now() + silence;
                event
            }
            Err(_) => {
                let after =
                    if deadline == self.ends { self.limits.total } else { self.limits.silence };
                Err(self.timed_out(after))
            }
        }
    }

    /// Returns the failure for a timeout, and records that the server may be unresponsive.
    fn timed_out(&self, after: Duration) -> RequestFailure {
        if self.origin != RequestOrigin::Probe {
            let has_older = self.connection.mux().has_older(self.id);
            let timeout = self.limits.silence.min(after);
            self.connection.counters.heard.note_missed_answer(timeout, has_older);
        }
        RequestFailure::Timeout(after)
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<CallEvent, RequestFailure>> {
        if let Some(posting) = &mut self.posting {
            // Messages that have already come are taken before more is read.
            if let Some(event) = self.inbox.take() {
                return Poll::Ready(event);
            }
            self.is_sent = true;
            if posting.as_mut().poll(context).is_ready() {
                self.posting = None;
            }
        }
        self.inbox.poll_next(context)
    }

    /// Waits for the answer to a request of metamcp itself. Log messages are announced, other
    /// notifications are dropped, and questions are refused. Dropping the future cancels the
    /// request at the server.
    ///
    /// # Errors
    ///
    /// As [`PendingRequest::next`].
    pub async fn finish(mut self) -> Result<Message, RequestFailure> {
        loop {
            match self.next().await? {
                CallEvent::Answer(answer) => return Ok(answer),
                CallEvent::Message(message)
                    if message.message().method() == Some(method::LOG_MESSAGE) =>
                {
                    self.connection.announce(message);
                }
                CallEvent::Message(_) | CallEvent::Deferred | CallEvent::RetryAfter(_) => {}
            }
        }
    }

    /// Cancels the request, because the client does not want the answer.
    ///
    /// Dropping the request cancels it as well, but its answer is read to the end: some servers
    /// never forget a request if its reader goes away.
    pub fn cancel(mut self) {
        self.is_cancelled = true;
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let was_sent = self.is_sent && self.is_cancellable;
        self.connection.cancel_request(self.id, self.is_cancelled, was_sent);
        if self.is_sent
            && let Some(posting) = self.posting.take()
            && let Link::Http(link) = &self.connection.link
            // A stateless server notices the end of the stream instead.
            && !self.connection.is_stateless()
        {
            let (connection, inbox) = (Arc::clone(&self.connection), Arc::clone(&self.inbox));
            link.drain(connection, self.id, posting, inbox, self.ends);
        }
    }
}
