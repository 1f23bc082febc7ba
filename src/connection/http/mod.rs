//! The link over HTTP: a POST to the upstream for every message.
//!
//! Over streamable HTTP, the answer is JSON or an event stream. A stream that breaks off may
//! continue in another one ([`stream`]). One more stream carries messages that belong to no request
//! ([`notice_stream`]). An upstream of protocol version 2024-11-05 has one stream for everything
//! ([`legacy_sse`]).
//!
//! Every request carries the session that the upstream created for the one `initialize`, so the
//! upstream sees a single client. An upstream of the modern era has no sessions: each request is
//! independent ([`modern`]).

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::{Response, StatusCode};
use tokio::{
    sync::mpsc,
    time::{self, Instant},
};
use tokio_util::task::TaskTracker;

use super::{Connection, ForwardedHeaders, Inbox, RequestFailure};
use crate::{
    compute_pool::read_in_place,
    config::defaults,
    http_client::ResponseBody,
    protocol::{
        ByteChunks, Message, MessageKind, ParseError, client_meta, jsonrpc::MessagePart,
        payloads::method,
    },
};

mod authorized_request;
mod endpoint;
mod legacy_sse;
mod modern;
mod notice_stream;
mod parameter_headers;
mod stream;
mod wait_as_asked;

pub(super) use endpoint::HttpUpstream;
pub(super) use legacy_sse::{ForeignEndpoint, open};
pub(super) use parameter_headers::ParameterHeaders;
pub(super) use stream::ReopenAttempts;
use wait_as_asked::{LatestWait, RequestWaits};

/// The sending end of a link.
#[derive(Debug)]
pub(super) struct HttpLink {
    pub(super) upstream: HttpUpstream,
    /// `true` if every answer comes on the one event stream of the connection, as in protocol
    /// version 2024-11-05, and not in the response to its POST.
    pub(super) is_legacy_sse: bool,
    /// Cancellations, and answers to the server's own requests.
    side_messages: mpsc::Sender<Bytes>,
    tasks: TaskTracker,
    latest_wait: LatestWait,
}

/// A request on its way to the upstream.
pub(super) struct OutgoingPost {
    /// The id that it has at the upstream.
    pub(super) id: u64,
    /// The request as it came from the caller.
    pub(super) request: Message,
    /// The request as it is sent.
    pub(super) frame: ByteChunks,
    /// The headers of the client that the upstream gets.
    pub(super) forwarded: Option<Arc<ForwardedHeaders>>,
    /// The longest time that the upstream may stay silent.
    pub(super) silence: Duration,
    /// The time at which the request ends at the latest.
    pub(super) ends: Instant,
}

/// The receiving end of a link, for [`run`].
pub(super) struct HttpReceivers {
    side_messages: mpsc::Receiver<Bytes>,
    stream: Option<legacy_sse::LegacySseStream>,
}

impl HttpLink {
    /// Returns a link to a streamable HTTP endpoint, or to an upstream over its open event `stream`.
    /// Nothing is sent yet.
    pub(super) fn new(
        upstream: HttpUpstream,
        stream: Option<legacy_sse::LegacySseStream>,
        tasks: TaskTracker,
    ) -> (Self, HttpReceivers) {
        let (sender, side_messages) = mpsc::channel(defaults::SIDE_MESSAGE_QUEUE);
        let is_legacy_sse = stream.is_some();
        let latest_wait = LatestWait::default();
        let link = Self { upstream, is_legacy_sse, side_messages: sender, tasks, latest_wait };
        (link, HttpReceivers { side_messages, stream })
    }

    /// Waits until the upstream counts as unreachable. Never returns if it accepts a connection.
    pub(super) async fn wait_until_unreachable(&self) {
        time::sleep(defaults::CONNECT_NOTICED_AFTER).await;
        if self.upstream.pool.is_reached() {
            pending::<()>().await;
        }
    }

    /// Returns the future that posts a request and passes all that comes back to the connection.
    /// The caller polls it; [`HttpLink::drain`] continues it after the caller has gone.
    pub(super) fn post(
        connection: Arc<Connection>,
        post: OutgoingPost,
        inbox: Arc<Inbox>,
    ) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Some(link) = connection.http() else { return };
            let id = post.id;
            // Only requests of the modern era name their version. Boxed: the allocator keeps two
            // blocks of up to 1 KiB at hand, and searches for one that is larger.
            let is_modern = client_meta::version_of(&post.request).is_some();
            let exchanged = match is_modern {
                true => Box::pin(link.exchange_modern(&connection, &post, &inbox)).await,
                false => Box::pin(link.exchange(&connection, &post, &inbox)).await,
            };
            if let Err(failure) = exchanged {
                // A lost subscription is opened again, and no client's request fails with it.
                let is_request = post.request.method() != Some(method::SUBSCRIPTIONS_LISTEN);
                if matches!(failure, RequestFailure::SessionLost(_) | RequestFailure::EraLost(_))
                    || (is_request
                        && matches!(failure, RequestFailure::Connect(_))
                        && !failure.is_busy())
                {
                    connection.retire_established(failure.clone());
                }
                connection.fail(id, failure);
            }
        })
    }

    /// Reads the rest of the answer to an abandoned request, until `ends` at most: some upstreams
    /// never forget a call if the client leaves in the middle of the answer.
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
                time::sleep(defaults::SESSION_END_TIMEOUT).await;
            };
            tokio::select! {
                () = posting => {}
                () = cancelled => connection.forget(id),
                () = time::sleep_until(ends) => connection.forget(id),
                () = connection.down() => {}
            }
        });
    }

    /// Queues a message that has no answer; queued messages are sent in order. It is lost only if
    /// very many wait already.
    pub(super) fn try_notify(&self, frame: Bytes) {
        let _full_or_gone = self.side_messages.try_send(frame);
    }

    /// Posts a request and hands everything that comes back to the connection.
    async fn exchange(
        &self,
        connection: &Arc<Connection>,
        post: &OutgoingPost,
        inbox: &Inbox,
    ) -> Result<(), RequestFailure> {
        let OutgoingPost { id, frame, forwarded, .. } = post;
        let (id, account, holds) = (*id, connection.account_of(*id), frame.len());
        let mut waits = RequestWaits::default();
        let answer = loop {
            let asked =
                match endpoint::unless_wait(self.upstream.post(frame, forwarded.as_deref()).await?)
                {
                    Ok(answer) => break answer,
                    Err(asked) => asked,
                };
            // Boxed, like all rare paths.
            if !Box::pin(self.wait_as_asked(connection, post, inbox, &mut waits, asked)).await? {
                return Ok(());
            }
        };
        let (status, is_event_stream, mut body) = self.opened(answer);
        if self.is_legacy_sse && status.is_success() {
            endpoint::finish(body).await;
            return Ok(());
        }
        if is_event_stream {
            // Boxed: an answer that is not a stream need not reserve space.
            let events = stream::MeteredEvents::new(account, holds);
            return Box::pin(self.follow(connection, post, body, inbox, events)).await;
        }
        let body = tokio::select! {
            biased;
            whole = endpoint::read_whole(&mut body, account, holds) => whole?,
            // An unwanted answer takes no memory.
            () = inbox.closed() => return self.drain_answer(connection, id, status, body).await,
        };
        match read_in_place(body.len(), || Message::parse_lossy(body.clone())) {
            Ok(message)
                if connection.profile().is_some()
                    && modern::is_modern_refusal(status, &message) =>
            {
                Err(RequestFailure::EraLost(status))
            }
            // An answer to this very request counts, regardless of the status.
            Ok(message)
                if message.kind() == MessageKind::Response
                    && message.integer(MessagePart::Id) == Some(id) =>
            {
                connection.receive(message, Some(id));
                Ok(())
            }
            Err(ParseError::TooDeep { .. }) => Err(RequestFailure::AnswerTooDeep),
            _ if self.has_session() && endpoint::is_session_lost(status, &body) => {
                Err(RequestFailure::SessionLost(status))
            }
            _ => Err(endpoint::no_message(connection, status, &body)),
        }
    }

    /// Stores the session that an answer names. Returns the status of the answer, whether it is an
    /// event stream, and its body.
    fn opened(&self, answer: Response<ResponseBody>) -> (StatusCode, bool, ResponseBody) {
        if !self.is_legacy_sse {
            self.upstream.pin(&answer);
        }
        (answer.status(), endpoint::is_event_stream(&answer), answer.into_body())
    }

    /// Reads an unwanted answer to its end, and records what it shows about request and session.
    async fn drain_answer(
        &self,
        connection: &Connection,
        id: u64,
        status: StatusCode,
        body: ResponseBody,
    ) -> Result<(), RequestFailure> {
        match endpoint::drain(body).await {
            Ok(_) if status.is_success() => connection.note_drained(id),
            Ok(body) if self.has_session() && endpoint::is_session_lost(status, &body) => {
                return Err(RequestFailure::SessionLost(status));
            }
            Ok(_) | Err(_) => connection.forget(id),
        }
        Ok(())
    }

    /// Returns whether there is a session that the upstream could forget.
    fn has_session(&self) -> bool {
        // Otherwise the session is in the address that the stream has named.
        self.is_legacy_sse || self.upstream.is_pinned()
    }

    /// Sends the queued messages one after the other.
    async fn send_side_messages(&self, mut queue: mpsc::Receiver<Bytes>) -> Infallible {
        while let Some(frame) = queue.recv().await {
            let _lost =
                time::timeout(defaults::SESSION_END_TIMEOUT, self.upstream.notify(frame)).await;
        }
        // The link has a sender, so the queue never ends.
        pending().await
    }

    /// Ends the session at the upstream, if the upstream created one and has not forgotten it.
    async fn goodbye(&self, connection: &Connection) {
        // Messages after the loss show that another instance or a proxy did not know the session.
        // It is ended then: an abandoned session may keep a set of processes without end.
        let is_lost = matches!(connection.reason(), Some(RequestFailure::SessionLost(_)))
            && !connection.counters.heard.has_recovered();
        if self.upstream.is_pinned() && !is_lost {
            let _not_ended =
                time::timeout(defaults::SESSION_END_TIMEOUT, self.upstream.delete()).await;
        }
    }
}

/// Runs the link until the connection is to be closed, then ends the session at the upstream.
pub(super) async fn run(connection: Arc<Connection>, receivers: HttpReceivers) {
    let Some(link) = connection.http() else { return };
    let received = async {
        match receivers.stream {
            Some(stream) => stream.read(&connection).await,
            None => match link.listen(&connection).await {},
        }
    };
    let why = tokio::select! {
        () = connection.closing.cancelled() => RequestFailure::Closed,
        why = received => why,
        never = link.send_side_messages(receivers.side_messages) => match never {},
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
            super::Link::Http(link) if link.is_legacy_sse => "sse",
            super::Link::Http(_) => "http",
        }
    }

    fn http(&self) -> Option<&HttpLink> {
        match &self.link {
            super::Link::Http(link) => Some(link),
            super::Link::Stdio(_) => None,
        }
    }
}
