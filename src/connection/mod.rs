//! One live MCP connection to a server, shared by every client.
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
    sync::{
        Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    capacity_holder::Account,
    config::defaults,
    descriptor_limit,
    protocol::{Era, LoggingLevel, payloads::ServerProfile},
    redact::Redactor,
    server_name::ServerName,
};

mod announcement;
mod connection_owner;
mod dial;
mod forwarded_headers;
mod http;
mod inbox;
mod incoming_dispatch;
mod keepalive;
mod keepalive_driver;
mod list_prefetch;
mod mux;
mod outgoing_dispatch;
mod pending_request;
mod request_failure;
mod retry_after;
mod server_durations;
mod server_request;
mod shutdown;
mod stdio;
mod subscription;
mod traffic_counters;

pub use announcement::{Announcement, NoticeSource, SideMessage};
pub use connection_owner::{ConnectionOwner, SessionOwner};
pub use dial::{ConnectError, Dialer, ReconnectWindow};
pub use forwarded_headers::ForwardedHeaders;
pub use inbox::CallEvent;
use inbox::Inbox;
use list_prefetch::WarmUp;
pub use list_prefetch::repeatable_tools;
pub use mux::with_client_ids;
use mux::{Mux, Queueable, SettledRequest};
pub use pending_request::PendingRequest;
use pending_request::RequestOrigin;
pub use request_failure::{RequestFailure, StdioPipe};
pub use retry_after::RetryAfter;
pub use server_durations::ServerDurations;
pub use server_request::{ClientReply, ServerRequest};
use stdio::StdioLink;
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

impl ConnectionLimits {
    /// Returns limits with which a request may be silent for all of `total`.
    pub fn of_total(total: Duration) -> Self {
        Self { silence: total, total }
    }
}

/// One live MCP link to a server.
#[derive(Debug)]
pub struct Connection {
    server: ServerName,
    generation: u64,
    since: Instant,
    owner: ConnectionOwner,
    announcements: mpsc::Sender<Announcement>,
    durations: ServerDurations,
    link: Link,
    redactor: Redactor,
    mux: Mutex<Mux<Waiter>>,
    profile: OnceLock<ServerProfile>,
    /// Cancelled once no new request may use this connection.
    gone: CancellationToken,
    /// Cancelled when a caller waits for the end, the slot closes, or the service stops.
    skip_drain: CancellationToken,
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
    parameter_headers: http::ParameterHeaders,
    notices: subscription::NoticeSubscriptions,
    /// Used once, to log the first request of a server that may not send any.
    question_warning: Once,
}

#[derive(Debug)]
enum Link {
    Stdio(StdioLink),
    Http(Box<http::HttpLink>),
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Waiter {
    inbox: Arc<Inbox>,
    /// The account that the answer counts for.
    account: Account,
    /// `true` if metamcp itself sent the request, so that no client can be asked on its stream.
    is_internal: bool,
    /// `true` if the request asked for progress.
    has_token: bool,
    /// The lowest level of log messages that a request of the modern era asked for.
    level: Option<LoggingLevel>,
    /// `Some` for a `tools/list`, whose answer marks parameter headers: `true` for the first page.
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
        owner: ConnectionOwner,
        (announcements, durations): (mpsc::Sender<Announcement>, ServerDurations),
        link: Link,
        redactor: Redactor,
        (slot_closing, closing): (CancellationToken, CancellationToken),
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
            owner,
            announcements,
            durations,
            link,
            redactor,
            mux: Mutex::new(Mux::new(in_flight_max, defaults::DRAINING_MAX)),
            profile: OnceLock::new(),
            gone: CancellationToken::new(),
            skip_drain: slot_closing.child_token(),
            closing,
            down: CancellationToken::new(),
            reason: OnceLock::new(),
            idle: Notify::new(),
            longest_ms: AtomicU64::new(0),
            lists: Arc::default(),
            counters: DropCounters::default(),
            warm_up: WarmUp::default(),
            parameter_headers: http::ParameterHeaders::default(),
            notices: subscription::NoticeSubscriptions::default(),
            question_warning: Once::new(),
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
        match &self.link {
            Link::Stdio(_) => self.redactor.quote(text),
            Link::Http(link) => self.redactor.quote(&link.upstream.without_tokens(text)),
        }
    }

    /// Returns the redactors of the secrets that the server was given.
    pub fn redactors(&self) -> Vec<Redactor> {
        let tokens = match &self.link {
            Link::Stdio(_) => None,
            Link::Http(link) => link.upstream.token_redactor(),
        };
        [Some(self.redactor.clone()), tokens].into_iter().flatten().collect()
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
        self.stdio().and_then(|link| link.pid)
    }

    /// Returns whether the server runs for this connection alone and ends with it.
    pub fn is_child(&self) -> bool {
        self.stdio().is_some()
    }

    /// Returns how often the server was opened for this connection: twice if the era changed.
    pub fn n_opened(&self) -> u32 {
        1 + u32::from(self.counters.is_reopened.load(Ordering::Relaxed))
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
            draining: mux.n_draining,
            requests: mux.admitted(),
            late_answers: self.counters.late.load(Ordering::Relaxed),
            noise_lines: self.counters.noise.load(Ordering::Relaxed),
            cut_off: self.counters.cut_off.load(Ordering::Relaxed),
            dropped_notifications: self.counters.overflow.load(Ordering::Relaxed),
            last_check_ms: Some(self.counters.heard.last_check_ms()),
            missed_pings: self.counters.heard.n_missed_pings(),
        }
    }

    /// Records that the server receives data of a client: what it writes to standard error from now
    /// on may be about that client, and is for operators only.
    pub fn note_client_use(&self) {
        if let Some(link) = self.stdio() {
            link.stderr_tail.seal();
        }
    }

    /// Returns the last lines that a child wrote to standard error, oldest first. They may be about
    /// any client, and are for operators only.
    pub fn error_lines(&self) -> Vec<String> {
        self.stdio().map(|link| link.stderr_tail.for_operators()).unwrap_or_default()
    }

    /// Makes the link end without a grace period, because a caller waits for its end.
    pub fn skip_drain(&self) {
        self.skip_drain.cancel();
    }

    fn stdio(&self) -> Option<&StdioLink> {
        match &self.link {
            Link::Stdio(link) => Some(link),
            Link::Http(_) => None,
        }
    }

    /// Returns whether each request is an independent HTTP exchange. The server takes no other
    /// messages then: closing the stream cancels a request. Source: MCP 2026-07-28, "Streamable
    /// HTTP".
    fn is_stateless(&self) -> bool {
        matches!(self.link, Link::Http(_)) && self.era() == Era::Modern
    }

    fn mux(&self) -> MutexGuard<'_, Mux<Waiter>> {
        // Held for single statements on plain data.
        self.mux.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the answer to request `id`, whose caller no longer waits.
    fn note_drained(&self, id: u64) {
        self.counters.heard.note_answer();
        if let SettledRequest::Drained(_) = self.settle(Some(id)) {
            self.counters.late.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the account that the answer to request `id` counts for, while a caller waits for it.
    fn account_of(&self, id: u64) -> Option<Account> {
        self.mux().waiter(id).map(|waiter| waiter.account)
    }

    /// Ends the wait for request `id`. If it was the last one, wakes the tasks that wait for that.
    fn settle(&self, id: Option<u64>) -> SettledRequest<Waiter> {
        let Some(id) = id else { return SettledRequest::Unknown };
        let (settled, is_idle) = {
            let mut mux = self.mux();
            (mux.settle(id), mux.in_flight() == 0)
        };
        if is_idle {
            self.idle.notify_waiters();
        }
        settled
    }

    /// Fails the request `id` alone, if a caller still waits for it.
    fn fail(&self, id: u64, failure: RequestFailure) {
        if let SettledRequest::Wanted(waiter) = self.settle(Some(id)) {
            waiter.inbox.finish(Err(failure));
        }
    }

    /// Returns whether a caller waits for the answer to request `id`.
    fn is_waiting(&self, id: u64) -> bool {
        self.mux().waiter(id).is_some()
    }

    /// Ends the wait for request `id` without an answer.
    fn forget(&self, id: u64) {
        let _no_waiter = self.settle(Some(id));
    }

    /// Returns whether the answer to request `id` is still to come, wanted or not.
    fn is_open(&self, id: u64) -> bool {
        self.mux().is_open(id)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::in_process;
