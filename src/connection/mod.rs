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
//! All clients count their requests from 0 or 1, so every id and progress token is rewritten to
//! a number that is unique on the connection (ruling 4); [`crate::call`] puts back the client's own.
//! The rest of a message passes byte for byte.
//!
//! A connection does not heal: once it is gone, the pool dials another of the next generation.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    config::defaults,
    name::ServerName,
    protocol::{
        Message, Shape,
        jsonrpc::Part,
        mcp::{List, Profile, method},
    },
    redact::Redactor,
};

mod call;
mod dial;
mod failure;
mod health;
mod http;
mod inbound;
mod keepalive;
mod mux;
mod stdio;
mod traffic;
mod warm_up;

pub use call::{Call, Event};
pub use dial::{DialError, Dialer};
pub use failure::Failure;
use mux::Mux;
pub use traffic::Traffic;
use traffic::{Counters, ListRevisions};
use warm_up::WarmUp;

/// How long requests may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a request may stay silent.
    pub silence: Duration,
    /// How long it may take in all.
    pub total: Duration,
}

/// One live MCP link to a server.
#[derive(Debug)]
pub struct Connection {
    server: ServerName,
    generation: u64,
    link: Link,
    redactor: Redactor,
    mux: Mutex<Mux<Waiter>>,
    profile: OnceLock<Profile>,
    /// Cancelled once no new request may use this connection.
    gone: CancellationToken,
    /// Cancelled to make it go: a child of the slot's token.
    closing: CancellationToken,
    /// Cancelled once the link is down and nothing waits any more.
    down: CancellationToken,
    /// Why it went.
    reason: OnceLock<Failure>,
    idle: Notify,
    /// The longest time that any request so far may take, in milliseconds.
    longest_ms: AtomicU64,
    lists: ListRevisions,
    counters: Counters,
    warm_up: WarmUp,
}

#[derive(Debug)]
enum Link {
    Stdio(stdio::Link),
    Http(Box<http::Link>),
}

/// Who waits for an answer.
#[derive(Debug)]
struct Waiter {
    /// Absent where no notification can belong to the request.
    notifications: Option<mpsc::Sender<Message>>,
    /// It asked for progress.
    has_token: bool,
    answer: oneshot::Sender<Result<Message, Failure>>,
    /// Cancelled when nobody waits any more, so that an upstream's stream can be let go.
    abandoned: CancellationToken,
}

impl Connection {
    fn new(
        server: ServerName,
        generation: u64,
        link: Link,
        redactor: Redactor,
        closing: CancellationToken,
    ) -> Self {
        Self {
            server,
            generation,
            link,
            redactor,
            mux: Mutex::new(Mux::new(defaults::IN_FLIGHT_MAX)),
            profile: OnceLock::new(),
            gone: CancellationToken::new(),
            closing,
            down: CancellationToken::new(),
            reason: OnceLock::new(),
            idle: Notify::new(),
            longest_ms: AtomicU64::new(0),
            lists: ListRevisions::default(),
            counters: Counters::default(),
            warm_up: WarmUp::default(),
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

    /// Returns the server's own words fit for an error: without secrets, on one line, and cut.
    pub fn quote(&self, text: &str) -> String {
        self.redactor.quote(text)
    }

    /// Returns what the server said about itself, once the handshake is done.
    pub fn profile(&self) -> Option<&Profile> {
        self.profile.get()
    }

    /// Returns the process id of a spawned child.
    pub fn pid(&self) -> Option<u32> {
        match &self.link {
            Link::Stdio(link) => Some(link.pid()),
            Link::Http(_) => None,
        }
    }

    /// Tells whether a new request may use the connection.
    pub fn is_live(&self) -> bool {
        !self.gone.is_cancelled()
    }

    /// Waits until no new request may use the connection.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Waits until the link is down: a child is reaped, a session ended.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn down(&self) {
        self.down.cancelled().await;
    }

    /// Returns why the connection went, once that is known.
    pub fn reason(&self) -> Option<&Failure> {
        self.reason.get()
    }

    /// Returns a number that grows whenever the server announces that `list` has changed.
    pub fn revision(&self, list: List) -> u64 {
        self.lists.of(list).load(Ordering::Relaxed)
    }

    /// Returns the numbers for status output.
    pub fn traffic(&self) -> Traffic {
        let mux = self.mux();
        Traffic {
            in_flight: mux.in_flight(),
            requests: mux.admitted(),
            late_answers: self.counters.late.load(Ordering::Relaxed),
            noise_lines: self.counters.noise.load(Ordering::Relaxed),
            dropped_notifications: self.counters.overflow.load(Ordering::Relaxed),
        }
    }

    /// Sends `request` with an id of our own.
    ///
    /// # Errors
    ///
    /// [`Failure`] when the request could not be handed to the link; it was not executed then.
    ///
    /// # Cancel safety
    ///
    /// Safe: a request that was not sent yet is forgotten.
    pub async fn call(
        self: &Arc<Self>,
        request: &Message,
        limits: Limits,
    ) -> Result<Call, Failure> {
        debug_assert_eq!(request.shape(), Shape::Request, "only requests are called");
        let total_ms = u64::try_from(limits.total.as_millis()).unwrap_or(u64::MAX);
        self.longest_ms.fetch_max(total_ms, Ordering::Relaxed);
        // On a pipe only a progress token tells whose a notification is.
        let has_token = request.part(Part::ProgressToken).is_some();
        let may_be_notified = has_token || matches!(self.link, Link::Http(_));
        let (notifications, notified) =
            may_be_notified.then(|| mpsc::channel(defaults::NOTIFICATION_QUEUE)).unzip();
        let (answer, answered) = oneshot::channel();
        let abandoned = CancellationToken::new();
        let waiter = Waiter { notifications, has_token, answer, abandoned: abandoned.clone() };
        let id = self.mux().admit(waiter).map_err(|_| Failure::Saturated)?;
        let mut call = Call::new(Arc::clone(self), id, notified, answered, limits);
        // Looked at after the admission: whoever takes the link down either sees the waiter or is
        // seen here.
        if !self.is_live() {
            return Err(Failure::Gone);
        }
        let number = id.to_string();
        let frame = request.edit([(Part::Id, &number), (Part::ProgressToken, &number)]);
        let is_cancellable = request.method() != Some(method::INITIALIZE);
        call.send(frame, abandoned, is_cancellable).await?;
        Ok(call)
    }

    /// Sends a notification. It is lost when the server is gone, or does not take it within
    /// [`defaults::GOODBYE_TIMEOUT`]: nobody waits for an answer to it.
    ///
    /// # Cancel safety
    ///
    /// Safe: it is sent or not.
    pub async fn notify(self: &Arc<Self>, notification: &Message) {
        let frame = notification.bytes().clone();
        let sending = async {
            match &self.link {
                Link::Stdio(link) => link.send(frame, None).await,
                Link::Http(link) => link.notify(frame).await,
            }
        };
        match tokio::time::timeout(defaults::GOODBYE_TIMEOUT, sending).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(mcp_server = %self.server, %error, "notification lost");
            }
            Err(_) => tracing::debug!(mcp_server = %self.server, "notification lost: too slow"),
        }
    }

    /// Returns the longest time that any request so far may take: none runs for longer.
    pub fn longest(&self) -> Duration {
        Duration::from_millis(self.longest_ms.load(Ordering::Relaxed))
    }

    /// Lets running requests finish for at most `patience`, then closes the connection.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves the connection open for requests that run, and for no new ones.
    pub async fn drain_and_close(&self, patience: Duration) {
        self.gone.cancel();
        let drained = async {
            loop {
                let idle = self.idle.notified();
                if self.mux().in_flight() == 0 {
                    break;
                }
                idle.await;
            }
        };
        let _late = tokio::time::timeout(patience, drained).await;
        self.closing.cancel();
    }

    /// Takes no new requests, for `reason`; those that run may still finish.
    fn retire(&self, reason: Failure) {
        let _first_counts = self.reason.set(reason);
        self.gone.cancel();
    }

    /// No answer will come any more: everything that still waits fails.
    fn lose(&self, failure: Failure) {
        let _first_counts = self.reason.set(failure.clone());
        self.gone.cancel();
        let waiters = self.mux().drain();
        for waiter in waiters {
            let _gone = waiter.answer.send(Err(failure.clone()));
        }
        self.idle.notify_waiters();
    }

    fn told_idle(&self) {
        if self.mux().in_flight() == 0 {
            self.idle.notify_waiters();
        }
    }

    fn mux(&self) -> MutexGuard<'_, Mux<Waiter>> {
        // Held for single statements on plain data.
        self.mux.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
