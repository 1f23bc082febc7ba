//! One request that was sent to a server, until its answer.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::time::{self, Instant};

use super::{Connection, ConnectionLimits, Inbox, Link, RequestFailure, SideMessage, http};
use crate::{
    config::defaults,
    protocol::{ByteChunks, Message, payloads::method},
};

/// A request in flight. Dropping it cancels the request at the server.
pub struct PendingRequest {
    connection: Arc<Connection>,
    id: u64,
    inbox: Arc<Inbox>,
    /// The POST that carries it and brings its answer, where the link has one for each request.
    posting: Option<BoxFuture<'static, ()>>,
    limits: ConnectionLimits,
    silent_until: Instant,
    ends: Instant,
    /// It is on its way to the server.
    is_sent: bool,
    /// The protocol lets it be cancelled.
    is_cancellable: bool,
    kind: RequestOrigin,
    /// Its answer is of no use to anybody, so that the server's stream can be let go.
    is_cancelled: bool,
}

/// Whose request it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestOrigin {
    /// That of a client, who can be asked something on its stream.
    OfClient,
    /// Ours.
    Ours,
    /// Ours, to find out whether the server is there: whoever sent it draws the conclusion.
    Probe,
}

impl RequestOrigin {
    /// Tells whether no client waits for it.
    pub(super) fn is_internal(self) -> bool {
        match self {
            Self::OfClient => false,
            Self::Ours | Self::Probe => true,
        }
    }
}

/// What comes back for a request.
#[derive(Debug)]
pub enum CallEvent {
    /// Something that belongs to the request; the answer is still to come.
    Aside(SideMessage),
    /// The answer, a result or an error. Nothing comes after it.
    Answer(Message),
    /// The server has ended its stream before the answer, which we will fetch: it wants those who
    /// wait to come back for it, and not to keep a stream open.
    Deferred,
}

impl From<SideMessage> for CallEvent {
    fn from(aside: SideMessage) -> Self {
        Self::Aside(aside)
    }
}

impl PendingRequest {
    pub(super) fn new(
        connection: Arc<Connection>,
        kind: RequestOrigin,
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
            kind,
            is_cancelled: false,
        }
    }

    pub(super) fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.inbox)
    }

    /// Puts it aside until [`PendingRequest::resume`]: nobody can pick up what comes meanwhile.
    pub fn pause(&self) {
        self.inbox.set_paused(true);
    }

    /// Leaves out of its time what it was put aside for: meanwhile its client was asked something.
    pub fn resume(&mut self, paused: Duration) {
        self.silent_until += paused;
        self.ends += paused;
        self.inbox.set_paused(false);
    }

    /// Lets its silence begin now: until now it has waited for room.
    pub(super) fn restart(&mut self) {
        self.silent_until = Instant::now() + self.limits.silence;
    }

    /// Takes the id that the request was given; until then there is none with the id 0.
    pub(super) fn admitted(&mut self, id: u64) {
        self.id = id;
    }

    pub(super) async fn send(
        &mut self,
        request: &Message,
        frame: ByteChunks,
        is_cancellable: bool,
    ) -> Result<(), RequestFailure> {
        match &self.connection.link {
            Link::Stdio(link) => {
                // A child that does not read fills its queue: the wait for it is bounded too.
                time::timeout_at(self.silent_until, link.send(frame, Some(self.id)))
                    .await
                    .map_err(|_| self.timed_out(self.limits.silence))??;
                self.is_sent = true;
            }
            Link::Http(_) => {
                let connection = Arc::clone(&self.connection);
                let post = http::OutgoingPost { id: self.id, request: request.clone(), frame };
                let posting = http::HttpLink::post(connection, post, self.inbox());
                self.posting = Some(posting);
            }
        }
        self.is_cancellable = is_cancellable;
        Ok(())
    }

    /// Returns what comes next.
    ///
    /// # Errors
    ///
    /// [`RequestFailure`] when no answer will come; nothing comes after it either.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost, and the next call goes on.
    pub async fn next(&mut self) -> Result<CallEvent, RequestFailure> {
        let deadline = self.silent_until.min(self.ends);
        // Not a race of two: a server that never stops sending would leave the clock no turn.
        let coming = std::future::poll_fn(|context| self.poll_next(context));
        match time::timeout_at(deadline, coming).await {
            Ok(event) => {
                // While its client is asked something, the server has nothing to say.
                let silence = match &event {
                    Ok(CallEvent::Aside(SideMessage::Question(_))) => {
                        self.limits.silence.max(defaults::INPUT_TIMEOUT)
                    }
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

    /// Nothing came in time: of the server neither, perhaps.
    fn timed_out(&self, after: Duration) -> RequestFailure {
        if self.kind != RequestOrigin::Probe {
            let has_older = self.connection.mux().has_older(self.id);
            let patience = self.limits.silence.min(after);
            self.connection.counters.heard.missed_answer(patience, has_older);
        }
        RequestFailure::Timeout { after }
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<CallEvent, RequestFailure>> {
        if let Some(posting) = &mut self.posting {
            // What has come before is picked up before more is read.
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

    /// Waits for the answer to a request of our own. Log messages are for everybody, other
    /// notifications go by, questions are refused.
    ///
    /// # Errors
    ///
    /// As [`PendingRequest::next`].
    ///
    /// # Cancel safety
    ///
    /// Dropping it cancels the request at the server.
    pub async fn finish(mut self) -> Result<Message, RequestFailure> {
        loop {
            match self.next().await? {
                CallEvent::Answer(answer) => return Ok(answer),
                CallEvent::Aside(aside)
                    if aside.message().method() == Some(method::LOG_MESSAGE) =>
                {
                    self.connection.announce(aside);
                }
                CallEvent::Aside(_) | CallEvent::Deferred => {}
            }
        }
    }

    /// Gives the request up: the client has said that it does not want the answer.
    ///
    /// Dropping a call tells the server as well, but its answer is read to the end: some servers
    /// keep a request whose reader went away in their books for ever.
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
            // Else the end of its stream is how the server is told.
            && !self.connection.is_stateless()
        {
            let (connection, inbox) = (Arc::clone(&self.connection), Arc::clone(&self.inbox));
            link.drain(connection, self.id, posting, inbox, self.ends);
        }
    }
}
