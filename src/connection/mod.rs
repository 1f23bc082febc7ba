//! One live MCP link to a server, shared by every client.
//!
//! ```text
//!  clients' requests            Connection                     server
//!  id 1, token "a" ──┐    ┌──────── mux ────────┐
//!  id 1, token "a" ──┼──▶ │ 41 → waiter, token  │ ──▶ link ──▶ id 41, token 41
//!  id "x"          ──┘    │ 42 → waiter, token  │     (stdio   id 42, token 42
//!                         │ 43 → waiter         │ ◀── or HTTP) …
//!                         └─────────────────────┘
//! ```
//!
//! All clients number their requests from 0 or 1. metamcp therefore replaces each id and progress
//! token by a number that is unique on the connection; [`crate::call`] restores the client's own.
//! All other bytes of a message pass unchanged.
//!
//! A connection never reconnects: when it is gone, the pool makes one of the next generation.

use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    capacity_holder::{Account, Holder},
    config::defaults,
    descriptor_limit,
    era::{ClientEra, introduce},
    protocol::{
        Era, LoggingLevel, Message, MessageKind, client_meta,
        jsonrpc::MessagePart,
        payloads::{ServerProfile, method},
    },
    redact::Redactor,
    server_name::ServerName,
};

mod announcement;
mod connection_owner;
mod dial;
mod http;
mod inbox;
mod incoming_dispatch;
mod keepalive;
mod keepalive_driver;
mod list_prefetch;
mod mux;
mod pending_request;
mod request_failure;
mod server_request;
mod shutdown;
mod stdio;
mod subscription;
mod traffic_counters;
mod wait_for_capacity;

pub use announcement::{Announcement, NoticeSource, SideMessage};
pub use connection_owner::{ConnectionOwner, SessionOwner};
pub use dial::{ConnectError, Dialer, ReconnectWindow};
use inbox::Inbox;
use list_prefetch::WarmUp;
pub use list_prefetch::repeatable_tools;
use mux::{Mux, Queueable};
use pending_request::RequestOrigin;
pub use pending_request::{CallEvent, PendingRequest};
pub use request_failure::{RequestFailure, TransportKind};
pub use server_request::{ClientReply, ServerRequest};
use traffic_counters::DropCounters;
pub use traffic_counters::{ConnectionTraffic, ListRevisions};

/// The time limits of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The longest time that a request may stay silent.
    pub silence: Duration,
    /// The longest time that a request may take in all.
    pub total: Duration,
}

/// One live MCP link to a server.
#[derive(Debug)]
pub struct Connection {
    server: ServerName,
    generation: u64,
    since: Instant,
    party: ConnectionOwner,
    announcements: mpsc::Sender<Announcement>,
    link: Link,
    redactor: Redactor,
    mux: Mutex<Mux<Waiter>>,
    profile: OnceLock<ServerProfile>,
    /// Cancelled once no new request may use this connection.
    gone: CancellationToken,
    /// Cancelled when a caller waits for the end, the slot closes, or the service stops.
    leaving: CancellationToken,
    /// Cancelled to close the connection: a child token of the slot's.
    closing: CancellationToken,
    /// Cancelled once the link is down and no request waits.
    down: CancellationToken,
    /// The reason why the connection ended.
    reason: OnceLock<RequestFailure>,
    idle: Notify,
    /// The longest total time that any request so far may take, in milliseconds.
    longest_ms: AtomicU64,
    lists: Arc<ListRevisions>,
    counters: DropCounters,
    warm_up: WarmUp,
    mirrors: http::ParameterHeaders,
    notices: subscription::NoticeSubscriptions,
    /// Used once, to log the first request of a server that may not send any.
    is_asking: Once,
}

#[derive(Debug)]
enum Link {
    Stdio(stdio::StdioLink),
    Http(Box<http::HttpLink>),
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Waiter {
    inbox: Arc<Inbox>,
    /// The account that the answer counts for.
    account: Account,
    /// `true` if metamcp itself sent the request, so that no client can be asked on its stream.
    is_ours: bool,
    /// `true` if the request asked for progress.
    has_token: bool,
    /// The lowest level of log messages that a request of the modern era asked for.
    level: Option<LoggingLevel>,
    /// `Some` if the answer has header marks of tools to learn: `true` for the first page.
    lists_tools: Option<bool>,
    /// The age of the connection at which the time of the request is over.
    ends: Duration,
    /// Receives the id once there is room.
    admitted: Option<oneshot::Sender<u64>>,
}

impl Queueable for Waiter {
    fn admitted(&mut self, id: u64) {
        if let Some(admitted) = self.admitted.take() {
            // A request that has left finds the id in its channel, and gives it back.
            let _left = admitted.send(id);
        }
    }
}

impl Connection {
    fn new(
        server: ServerName,
        generation: u64,
        party: ConnectionOwner,
        announcements: mpsc::Sender<Announcement>,
        link: Link,
        redactor: Redactor,
        (leaving, closing): (CancellationToken, CancellationToken),
    ) -> Self {
        let in_flight_max = match &link {
            Link::Stdio(_) => defaults::IN_FLIGHT_MAX,
            // Each request has a TCP connection of its own.
            Link::Http(_) => {
                let n_descriptors =
                    descriptor_limit::limit() / defaults::IN_FLIGHT_DESCRIPTORS_PART;
                defaults::IN_FLIGHT_MAX.min(n_descriptors)
            }
        };
        Self {
            server,
            generation,
            since: Instant::now(),
            party,
            announcements,
            link,
            redactor,
            mux: Mutex::new(Mux::new(in_flight_max, defaults::DRAINING_MAX)),
            profile: OnceLock::new(),
            gone: CancellationToken::new(),
            leaving: leaving.child_token(),
            closing,
            down: CancellationToken::new(),
            reason: OnceLock::new(),
            idle: Notify::new(),
            longest_ms: AtomicU64::new(0),
            lists: Arc::default(),
            counters: DropCounters::default(),
            warm_up: WarmUp::default(),
            mirrors: http::ParameterHeaders::default(),
            notices: subscription::NoticeSubscriptions::default(),
            is_asking: Once::new(),
        }
    }

    /// Returns the server's name.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// Returns how many times the server was connected, this time included.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns text of the server for use in an error: without secrets, on one line, and truncated.
    pub fn quote(&self, text: &str) -> String {
        self.redactor.quote(text)
    }

    /// Returns the profile that the server reported in the handshake, once that is done.
    pub fn profile(&self) -> Option<&ServerProfile> {
        self.profile.get()
    }

    /// Returns the era of the server: that of its handshake, or the legacy era before it.
    pub fn era(&self) -> Era {
        self.profile().map_or(Era::Legacy, ServerProfile::era)
    }

    /// Returns the process id of a spawned child.
    pub fn pid(&self) -> Option<u32> {
        match &self.link {
            Link::Stdio(link) => link.pid(),
            Link::Http(_) => None,
        }
    }

    /// Returns whether the server runs for this connection alone and ends with it.
    pub fn is_child(&self) -> bool {
        match &self.link {
            Link::Stdio(_) => true,
            Link::Http(_) => false,
        }
    }

    /// Returns how often the server was opened for this connection: twice if the era changed.
    pub fn n_opened(&self) -> u32 {
        1 + u32::from(self.counters.is_second.load(Ordering::Relaxed))
    }

    /// Returns the counters of announced list changes.
    pub fn lists(&self) -> &Arc<ListRevisions> {
        &self.lists
    }

    /// Returns the counters for status output.
    pub fn traffic(&self) -> ConnectionTraffic {
        let mux = self.mux();
        ConnectionTraffic {
            in_flight: mux.in_flight(),
            draining: mux.draining(),
            requests: mux.admitted(),
            late_answers: self.counters.late.load(Ordering::Relaxed),
            noise_lines: self.counters.noise.load(Ordering::Relaxed),
            cut_off: self.counters.cut_off.load(Ordering::Relaxed),
            dropped_notifications: self.counters.overflow.load(Ordering::Relaxed),
            last_check_ms: Some(self.counters.heard.last_check_ms()),
            missed_pings: self.counters.heard.n_missed_pings(),
        }
    }

    /// Sends `request` for `holder` with an id that is unique on the connection. At the bound on
    /// requests in flight it waits its turn, at most for its silence timeout. Cancel safe: a
    /// request that was not sent yet is forgotten.
    ///
    /// # Errors
    ///
    /// [`RequestFailure`] when the link did not take the request, which was not executed then.
    pub async fn call(
        self: &Arc<Self>,
        holder: Holder,
        request: &Message,
        limits: ConnectionLimits,
    ) -> Result<PendingRequest, RequestFailure> {
        self.note_client_use();
        self.admit(holder, request, RequestOrigin::OfClient, limits).await
    }

    /// Records that the server receives data of a client: what it writes to standard error from now
    /// on may be about that client, and is for operators only.
    pub fn note_client_use(&self) {
        if let Link::Stdio(link) = &self.link {
            link.seal_errors();
        }
    }

    /// Returns the last lines that a child wrote to standard error, oldest first. They may be about
    /// any client, and are for operators only.
    pub fn error_lines(&self) -> Vec<String> {
        match &self.link {
            Link::Stdio(link) => link.error_lines(),
            Link::Http(_) => Vec::new(),
        }
    }

    /// Makes the link end without a grace period, because a caller waits for its end.
    pub fn skip_drain(&self) {
        self.leaving.cancel();
    }

    /// Sends a request of metamcp itself, as [`Connection::call`] does. Questions of the server go
    /// to clients, not to this request.
    ///
    /// # Errors
    ///
    /// As [`Connection::call`].
    ///
    /// # Cancel safety
    ///
    /// As [`Connection::call`].
    pub async fn call_internal(
        self: &Arc<Self>,
        holder: Holder,
        request: &Message,
        limits: ConnectionLimits,
    ) -> Result<PendingRequest, RequestFailure> {
        self.admit(holder, request, RequestOrigin::Ours, limits).await
    }

    async fn admit(
        self: &Arc<Self>,
        holder: Holder,
        request: &Message,
        kind: RequestOrigin,
        limits: ConnectionLimits,
    ) -> Result<PendingRequest, RequestFailure> {
        let total_ms = u64::try_from(limits.total.as_millis()).unwrap_or(u64::MAX);
        self.longest_ms.fetch_max(total_ms, Ordering::Relaxed);
        let request = &*self.introduced(request);
        self.begin(holder, request, kind, limits).await
    }

    /// Returns the request as a server of the modern era expects it. A request without client data
    /// gets the capabilities of the connection's owner.
    fn introduced<'a>(&self, request: &'a Message) -> Cow<'a, Message> {
        if self.era() == Era::Legacy || client_meta::version_of(request).is_some() {
            return Cow::Borrowed(request);
        }
        let client =
            ClientEra::Legacy { capabilities: self.party.capabilities().into(), level: None };
        Cow::Owned(introduce(request, &client))
    }

    /// Probes the server with the request of its era.
    async fn probe(self: &Arc<Self>, patience: Duration) -> Result<Message, RequestFailure> {
        let question = match self.era() {
            Era::Legacy => Message::request(method::PING, None),
            Era::Modern => dial::discovery(),
        };
        self.inquire(&question, patience).await
    }

    /// Asks the server about itself. The request is not work: the connection counts as idle
    /// meanwhile.
    async fn inquire(
        self: &Arc<Self>,
        question: &Message,
        patience: Duration,
    ) -> Result<Message, RequestFailure> {
        let limits = ConnectionLimits { silence: patience, total: patience };
        self.begin(Holder::SERVICE, question, RequestOrigin::Probe, limits).await?.finish().await
    }

    /// Assigns an id to `request` and sends it.
    async fn begin(
        self: &Arc<Self>,
        holder: Holder,
        request: &Message,
        kind: RequestOrigin,
        limits: ConnectionLimits,
    ) -> Result<PendingRequest, RequestFailure> {
        debug_assert_eq!(request.shape(), MessageKind::Request, "only requests are called");
        // Parts of a request may come from several messages, none of which was too deep by itself.
        if request.is_too_deep() {
            return Err(RequestFailure::TooDeep);
        }
        let has_token = request.part(MessagePart::ProgressToken).is_some();
        let now = self.since.elapsed();
        let ends = now + limits.total;
        let lists_tools = (self.is_stateless() && request.method() == Some(method::TOOLS_LIST))
            .then(|| request.part(MessagePart::Cursor).is_none());
        let level = if self.era() == Era::Modern { client_meta::level_of(request) } else { None };
        let mut call = PendingRequest::new(Arc::clone(self), kind, limits);
        let (inbox, is_ours) = (call.inbox(), kind.is_internal());
        let account = holder.account;
        let waiter =
            Waiter { inbox, account, is_ours, has_token, level, lists_tools, ends, admitted: None };
        self.expire(now);
        let id = match kind {
            RequestOrigin::OfClient | RequestOrigin::Ours => self.mux().admit(holder, waiter),
            RequestOrigin::Probe => Ok(self.mux().probe(waiter)),
        };
        let id = match id {
            Ok(id) => id,
            // Boxed: requests that find room need not reserve space for it.
            Err(waiter) => {
                let id = Box::pin(self.queued(holder, waiter, limits)).await?;
                call.restart();
                id
            }
        };
        call.admitted(id);
        // Checked after the admission: a task that takes the link down either sees the waiter or is
        // seen here.
        if !self.is_live() {
            return Err(RequestFailure::Gone);
        }
        let number = id.to_string();
        let frame = request
            .edit_in_pieces([(MessagePart::Id, &number), (MessagePart::ProgressToken, &number)]);
        // A handshake cannot be cancelled.
        let is_cancellable =
            !matches!(request.method(), Some(method::INITIALIZE | method::DISCOVER));
        call.send(request, frame, is_cancellable).await?;
        Ok(call)
    }

    /// Removes requests that have drained for too long, and draining ones where there is no room.
    /// `now` is the age of the connection.
    fn expire(&self, now: Duration) {
        let expired = self.mux().expire(now);
        expired.iter().for_each(|waiter| waiter.inbox.close(true));
    }

    /// Sends an internal request and waits for its answer, as [`PendingRequest::finish`] does.
    /// Dropping it cancels the request at the server.
    ///
    /// # Errors
    ///
    /// As [`Connection::call`] and [`PendingRequest::next`].
    pub async fn ask(
        self: &Arc<Self>,
        request: &Message,
        limits: ConnectionLimits,
    ) -> Result<Message, RequestFailure> {
        let request = match self.era() {
            Era::Legacy => Cow::Borrowed(request),
            Era::Modern => Cow::Owned(introduce(request, &ClientEra::Ourselves)),
        };
        self.call_internal(Holder::SERVICE, &request, limits).await?.finish().await
    }

    /// Sends a notification. Servers of the modern era accept only cancellations, so they are sent
    /// no others. A notification is lost if the server is gone, or does not take it within
    /// [`defaults::GOODBYE_TIMEOUT`]. Cancel safe: the notification is sent or not.
    pub async fn notify(self: &Arc<Self>, notification: &Message) {
        let is_known = match self.era() {
            Era::Legacy => true,
            Era::Modern => notification.method() == Some(method::CANCELLED),
        };
        if is_known {
            self.deliver(notification.bytes().clone()).await;
        }
    }

    /// Sends a message that has no answer, as [`Connection::notify`] does.
    async fn deliver(&self, frame: Bytes) {
        if !self.takes_asides() {
            return;
        }
        let sending = async {
            match &self.link {
                Link::Stdio(link) => link.send(frame.into(), None).await,
                Link::Http(link) => link.notify(frame).await,
            }
        };
        match tokio::time::timeout(defaults::GOODBYE_TIMEOUT, sending).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(mcp_server = %self.server, %error, "message without answer lost");
            }
            Err(_) => tracing::debug!(mcp_server = %self.server, "message lost: too slow"),
        }
    }

    /// Queues a message that has no answer. It is lost only if very many are queued already.
    fn deliver_soon(&self, frame: Bytes) {
        if !self.takes_asides() {
            return;
        }
        match &self.link {
            Link::Stdio(link) => link.try_send(frame),
            Link::Http(link) => link.try_notify(frame),
        }
    }

    /// Returns whether the server takes messages other than requests. Source: MCP 2026-07-28,
    /// "Streamable HTTP": closing the stream cancels a request, and no other message is needed.
    fn takes_asides(&self) -> bool {
        !self.is_stateless()
    }

    /// Returns whether each request is an independent HTTP exchange.
    fn is_stateless(&self) -> bool {
        matches!(self.link, Link::Http(_)) && self.era() == Era::Modern
    }

    fn mux(&self) -> MutexGuard<'_, Mux<Waiter>> {
        // Held for single statements on plain data.
        self.mux.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(crate) mod in_process;
