//! A link over HTTP: a POST for every message to the upstream.
//!
//! Over streamable HTTP the answer comes back as JSON or as an event stream, which may break off
//! and go on elsewhere ([`stream`]), and one more stream brings what belongs to no request
//! ([`listen`]). An upstream of protocol version 2024-11-05 has one stream for everything
//! ([`legacy_sse`]).
//!
//! The session that the upstream minted for our one `initialize` is stamped on every request, so
//! the upstream sees one client, however many there are. An upstream of the modern era knows no
//! sessions: each request stands for itself ([`stateless`]).

use std::{convert::Infallible, future::pending, sync::Arc};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::StatusCode;
use tokio::{
    sync::mpsc,
    time::{self, Instant},
};
use tokio_util::task::TaskTracker;

use super::{Connection, Inbox, RequestFailure};
use crate::{
    compute_pool::read_in_place,
    config::defaults,
    protocol::{
        ByteChunks, Message, MessageKind, ParseError, client_meta,
        jsonrpc::MessagePart,
        payloads::{ServerProfile, method},
    },
};

mod http_pool;
mod legacy_sse;
mod listen;
mod parameter_headers;
mod stateless;
mod stream;
mod upstream;

use http_pool::ResponseBody;
pub(super) use legacy_sse::{ForeignEndpoint, LegacyEndpoint, open};
pub(super) use parameter_headers::ParameterHeaders;
pub(super) use stream::ReopenAttempts;
pub(super) use upstream::HttpUpstream;

/// The sending end of a link.
#[derive(Debug)]
pub(super) struct HttpLink {
    upstream: HttpUpstream,
    answers: Answers,
    /// Cancellations, and answers to the server's own requests.
    aside: mpsc::Sender<Bytes>,
    tasks: TaskTracker,
}

/// A request on its way to the upstream.
pub(super) struct OutgoingPost {
    /// The id that it has there.
    pub(super) id: u64,
    /// As it was asked.
    pub(super) request: Message,
    /// As it is sent.
    pub(super) frame: ByteChunks,
}

/// How the answer to a POST comes back.
#[derive(Debug)]
enum Answers {
    /// With the POST.
    There,
    /// On the one event stream of the connection, as in protocol version 2024-11-05.
    Elsewhere,
}

/// The receiving end of a link, for [`run`].
pub(super) struct HttpReceivers {
    queue: mpsc::Receiver<Bytes>,
    stream: Option<legacy_sse::LegacySseStream>,
}

impl HttpLink {
    /// Returns a link to a streamable HTTP endpoint; nothing is sent yet.
    pub(super) fn new(upstream: HttpUpstream, tasks: TaskTracker) -> (Self, HttpReceivers) {
        Self::with(upstream, Answers::There, None, tasks)
    }

    /// Returns a link to an upstream whose event stream was opened.
    pub(super) fn legacy(opened: LegacyEndpoint, tasks: TaskTracker) -> (Self, HttpReceivers) {
        Self::with(opened.upstream, Answers::Elsewhere, Some(opened.stream), tasks)
    }

    fn with(
        upstream: HttpUpstream,
        answers: Answers,
        stream: Option<legacy_sse::LegacySseStream>,
        tasks: TaskTracker,
    ) -> (Self, HttpReceivers) {
        let (aside, queue) = mpsc::channel(defaults::ASIDE_QUEUE);
        (Self { upstream, answers, aside, tasks }, HttpReceivers { queue, stream })
    }

    /// Tells whether everything comes on one event stream, so that nothing says what belongs to a
    /// request.
    pub(super) fn has_one_stream(&self) -> bool {
        matches!(self.answers, Answers::Elsewhere)
    }

    /// Waits until it is time to say that the upstream takes no connections: for ever if it took one.
    pub(super) async fn wait_until_unreachable(&self) {
        time::sleep(defaults::CONNECT_NOTICED_AFTER).await;
        if self.upstream.is_reached() {
            pending::<()>().await;
        }
    }

    /// Remembers the protocol version for the headers of later messages.
    pub(super) fn set_protocol_version(&self, profile: &ServerProfile) {
        self.upstream.set_session(profile);
    }

    /// Returns what posts a request and hands all that comes back to the connection. Whoever asked
    /// polls it; [`HttpLink::drain`] goes on when they leave.
    pub(super) fn post(
        connection: Arc<Connection>,
        post: OutgoingPost,
        inbox: Arc<Inbox>,
    ) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Some(link) = connection.http() else { return };
            let id = post.id;
            // Only a request of the modern era names its version. Boxed: others need not have the room.
            let exchanged = match client_meta::version_of(&post.request) {
                Some(_) => Box::pin(link.exchange_stateless(&connection, &post, &inbox)).await,
                None => link.exchange(&connection, id, post.frame.clone(), &inbox).await,
            };
            if let Err(failure) = exchanged {
                // A subscription is opened again, and costs nobody a request.
                let is_request = post.request.method() != Some(method::SUBSCRIPTIONS_LISTEN);
                if matches!(failure, RequestFailure::SessionLost(_) | RequestFailure::EraLost(_))
                    || (is_request && matches!(failure, RequestFailure::Connect(_)))
                {
                    connection.abandon(failure.clone());
                }
                connection.fail(id, failure);
            }
        })
    }

    /// Reads the answer to a request on that nobody waits for any more, until `ends` at most: an
    /// upstream that is left in the middle of an answer may keep the call in its books for ever.
    pub(super) fn drain(
        &self,
        connection: Arc<Connection>,
        id: u64,
        posting: BoxFuture<'static, ()>,
        inbox: Arc<Inbox>,
        ends: Instant,
    ) {
        self.tasks.spawn(async move {
            let cancelled = async {
                inbox.cancelled().await;
                // Some upstreams never end the stream of a cancelled request.
                time::sleep(defaults::GOODBYE_TIMEOUT).await;
            };
            tokio::select! {
                () = posting => {}
                () = cancelled => connection.forget(id),
                () = time::sleep_until(ends) => connection.forget(id),
                () = connection.down() => {}
            }
        });
    }

    /// Sends a message that has no answer, and waits until it was taken.
    pub(super) async fn notify(&self, frame: Bytes) -> Result<(), RequestFailure> {
        self.upstream.notify(frame).await
    }

    /// Sends a message that has no answer, in the background and in order. It is lost only where very
    /// many wait already.
    pub(super) fn try_notify(&self, frame: Bytes) {
        let _full_or_gone = self.aside.try_send(frame);
    }

    /// Posts a request and hands everything that comes back to the connection.
    async fn exchange(
        &self,
        connection: &Arc<Connection>,
        id: u64,
        frame: ByteChunks,
        inbox: &Inbox,
    ) -> Result<(), RequestFailure> {
        let (account, holds) = (connection.account_of(id), frame.len());
        let answer = self.upstream.post(frame).await?;
        let status = answer.status();
        match self.answers {
            Answers::Elsewhere if status.is_success() => {
                upstream::finish(answer.into_body()).await;
                return Ok(());
            }
            Answers::Elsewhere => {}
            Answers::There => self.upstream.pin(&answer),
        }
        if upstream::is_event_stream(&answer) {
            // Boxed: an answer that is no stream need not have the room.
            let events = stream::MeteredEvents::new(account, holds);
            return Box::pin(self.follow(connection, id, answer.into_body(), inbox, events)).await;
        }
        let mut body = answer.into_body();
        let body = tokio::select! {
            biased;
            whole = upstream::read_whole(&mut body, account, holds) => whole?,
            // It takes no memory where nobody waits for it.
            () = inbox.closed() => return self.drained(connection, id, status, body).await,
        };
        match read_in_place(body.len(), || Message::parse_lossy(body.clone())) {
            Ok(message)
                if connection.profile().is_some()
                    && stateless::is_modern_refusal(status, &message) =>
            {
                Err(RequestFailure::EraLost(status))
            }
            // An answer to this very request is one, whatever the status.
            Ok(message)
                if message.shape() == MessageKind::Response
                    && message.integer(MessagePart::Id) == Some(id) =>
            {
                connection.receive(message, Some(id));
                Ok(())
            }
            Err(ParseError::TooDeep { .. }) => Err(RequestFailure::AnswerTooDeep),
            _ if self.has_session() && upstream::is_session_lost(status, &body) => {
                Err(RequestFailure::SessionLost(status))
            }
            _ => Err(upstream::no_message(connection, status, &body)),
        }
    }

    /// Reads the answer to its end that nobody waits for any more, and takes note of what it tells.
    async fn drained(
        &self,
        connection: &Connection,
        id: u64,
        status: StatusCode,
        body: ResponseBody,
    ) -> Result<(), RequestFailure> {
        match upstream::drained(body).await {
            Ok(_) if status.is_success() => connection.drained(id),
            Ok(body) if self.has_session() && upstream::is_session_lost(status, &body) => {
                return Err(RequestFailure::SessionLost(status));
            }
            Ok(_) | Err(_) => connection.forget(id),
        }
        Ok(())
    }

    /// Tells whether there is a session that the upstream could forget.
    fn has_session(&self) -> bool {
        match self.answers {
            Answers::There => self.upstream.is_pinned(),
            // It is in the address that the stream has named.
            Answers::Elsewhere => true,
        }
    }

    /// Sends one after the other what was put aside.
    async fn send_aside(&self, mut queue: mpsc::Receiver<Bytes>) -> Infallible {
        while let Some(frame) = queue.recv().await {
            let _lost = time::timeout(defaults::GOODBYE_TIMEOUT, self.notify(frame)).await;
        }
        // Our own sender is in the link.
        pending().await
    }

    /// Ends the session at the upstream, if it minted one and has not forgotten it.
    async fn goodbye(&self, connection: &Connection) {
        // What was heard on it afterwards shows that it was another instance that knows nothing of
        // it, or a proxy: a session that nobody ends may keep a set of processes for ever.
        let is_lost = matches!(connection.reason(), Some(RequestFailure::SessionLost(_)))
            && !connection.counters.heard.has_recovered();
        if self.upstream.is_pinned() && !is_lost {
            let _unheard = time::timeout(defaults::GOODBYE_TIMEOUT, self.upstream.delete()).await;
        }
    }
}

/// Runs the link until the connection is to be closed, and says goodbye to the upstream.
pub(super) async fn run(connection: Arc<Connection>, ends: HttpReceivers) {
    let Some(link) = connection.http() else { return };
    let received = async {
        match ends.stream {
            Some(stream) => stream.read(&connection).await,
            None => match link.listen(&connection).await {},
        }
    };
    let why = tokio::select! {
        () = connection.closing.cancelled() => RequestFailure::Closed,
        why = received => why,
        never = link.send_aside(ends.queue) => match never {},
    };
    connection.gone.cancel();
    link.goodbye(&connection).await;
    connection.fail_all(why);
    connection.down.cancel();
}

impl Connection {
    /// Returns the name of the transport for status output.
    pub fn transport(&self) -> &'static str {
        match &self.link {
            super::Link::Stdio(link) => link.transport(),
            super::Link::Http(link) => match link.answers {
                Answers::There => "http",
                Answers::Elsewhere => "sse",
            },
        }
    }

    fn http(&self) -> Option<&HttpLink> {
        match &self.link {
            super::Link::Http(link) => Some(link),
            super::Link::Stdio(_) => None,
        }
    }
}
