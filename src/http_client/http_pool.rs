//! The connections to one origin, kept open between requests.
//!
//! An `https` origin chooses the protocol in the TLS handshake. Over HTTP/1.1, a request has a
//! connection for itself. Over HTTP/2, requests share connections; another one is made when most
//! streams are in use, so that long streams starve no call. Until the protocol is known, and for a
//! further HTTP/2 connection, one request connects and the others wait for it.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::Duration,
};

use hyper::{Request, Response};
use tokio::{
    sync::Semaphore,
    time::{self, Instant},
};

use super::{
    BrokenConnection, Connector, DialError, HttpSendError, Origin, OwnedTasks, ResponseBody,
    TlsFailure,
    http_stream::TlsAlert,
    http1_connection::Http1Connection,
    http2_connection::{Http2Connection, StreamGuard, for_http2},
};
use crate::{config::defaults, error_report::chain, http_body::OutgoingBody};

/// The largest number of connections that requests over HTTP/2 share. Beyond it, streams queue.
const HTTP2_CONNECTIONS_MAX: usize = 8;

/// The largest number of times that a request is sent that the peer did not execute: enough for a
/// peer that closes connections, and refuses streams on the next one.
const TRIES_MAX: u32 = 4;

/// The pause after a peer has refused a stream; it grows by as much with each refusal. The source is
/// a judgement: a call that ends frees a stream.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

/// The protocol of an origin, once a connection was made.
const UNKNOWN: u8 = 0;
const HTTP1: u8 = 1;
const HTTP2: u8 = 2;

/// A connection for one request.
enum RequestCarrier {
    Http1(Http1Connection),
    Http2(StreamGuard),
}

/// The connections to one origin.
#[derive(Debug)]
pub struct HttpPool {
    connector: Arc<Connector>,
    origin: Origin,
    /// The idle HTTP/1.1 connections; the one used last is at the end.
    idle: Mutex<Vec<(Http1Connection, Instant)>>,
    /// The HTTP/2 connections.
    shared: Mutex<Vec<Arc<Http2Connection>>>,
    protocol: AtomicU8,
    /// The turn to connect, where one request connects for all.
    turn: Semaphore,
    /// The number of failed turns, and the reason of the last one.
    failed: Mutex<(u64, Option<Arc<DialError>>)>,
    /// `true` once the origin has accepted a connection.
    is_reached: AtomicBool,
    /// The tasks that drive HTTP/2 connections.
    tasks: OwnedTasks,
}

impl HttpPool {
    /// Returns a pool without connections to `origin`.
    pub fn new(connector: Arc<Connector>, origin: Origin) -> Arc<Self> {
        Arc::new(Self {
            connector,
            origin,
            idle: Mutex::default(),
            shared: Mutex::default(),
            protocol: AtomicU8::new(UNKNOWN),
            turn: Semaphore::new(1),
            failed: Mutex::default(),
            is_reached: AtomicBool::new(false),
            tasks: OwnedTasks::default(),
        })
    }

    /// Returns the origin of all requests.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns whether the origin has ever accepted a connection.
    pub fn is_reached(&self) -> bool {
        self.is_reached.load(Ordering::Relaxed)
    }

    /// Sends the request that `request` builds, and waits for the head of the answer. The request
    /// is one for HTTP/1.1: its URL is a path, and it has a `Host`. Dropping the future gives up the
    /// request.
    ///
    /// # Errors
    ///
    /// [`HttpSendError::Dial`] when the request was not executed, else
    /// [`HttpSendError::BrokenOff`].
    pub async fn send(
        self: &Arc<Self>,
        request: impl Fn() -> Request<OutgoingBody>,
    ) -> Result<Response<ResponseBody>, HttpSendError> {
        let mut n_left = TRIES_MAX;
        loop {
            n_left -= 1;
            let (mut connection, was_idle) = match self.take() {
                Some(connection) => (connection, true),
                // Boxed: mostly there is an idle one, and no space is needed for this.
                None => match Box::pin(self.obtain()).await.map_err(HttpSendError::Dial)? {
                    RequestCarrier::Http1(connection) => (connection, false),
                    RequestCarrier::Http2(stream) => {
                        let request = for_http2(request(), &self.origin);
                        match Box::pin(self.send_on(stream, request)).await {
                            Err(HttpSendError::Dial(error)) if n_left > 0 && error.is_passing() => {
                                if error.is_busy() {
                                    time::sleep(REFUSED_PAUSE * (TRIES_MAX - n_left)).await;
                                }
                                continue;
                            }
                            sent => return sent,
                        }
                    }
                },
            };
            if !connection.is_ready().await && was_idle {
                // Each idle connection is taken once.
                n_left += 1;
                continue;
            }
            match connection.send(&request).await {
                Ok(answer) => {
                    let pool = Arc::clone(self);
                    return Ok(answer.map(|body| ResponseBody::http1(body, connection, pool)));
                }
                // The peer closed it at the moment of its reuse, and nothing was written.
                Err(error) if error.is_canceled() && was_idle => n_left += 1,
                Err(error) => {
                    let is_unsent = error.is_canceled();
                    let error = BrokenConnection::Http1(error);
                    return Err(self.failure(error, is_unsent, connection.alert.as_ref()));
                }
            }
        }
    }

    /// Sends a request on a stream of an HTTP/2 connection.
    async fn send_on(
        self: &Arc<Self>,
        mut stream: StreamGuard,
        request: Request<OutgoingBody>,
    ) -> Result<Response<ResponseBody>, HttpSendError> {
        match stream.send(request).await {
            Ok(answer) => {
                let (head, body) = answer.into_parts();
                let body = ResponseBody::http2(body, &head.headers, stream, Arc::clone(self));
                Ok(Response::from_parts(head, body))
            }
            Err(failure) if failure.is_refusal() => {
                Err(HttpSendError::Dial(Arc::new(DialError::Busy { origin: self.origin.clone() })))
            }
            Err(failure) => {
                if !failure.is_reset_stream() {
                    stream.connection().retire();
                }
                let (error, alert) = (failure.source, stream.connection().alert.as_ref());
                Err(self.failure(BrokenConnection::Http2(error), failure.is_unsent, alert))
            }
        }
    }

    /// Returns the reason why a request got no answer. A server that refuses the certificate of
    /// metamcp may say so only now, and has read no request.
    fn failure(
        &self,
        error: BrokenConnection,
        is_unsent: bool,
        alert: Option<&TlsAlert>,
    ) -> HttpSendError {
        let origin = self.origin.clone();
        if let Some(alert) = alert.and_then(|alert| alert.get()) {
            let source = TlsFailure::of(alert, origin.host());
            return HttpSendError::Dial(Arc::new(DialError::Tls { origin, source }));
        }
        match is_unsent {
            true => HttpSendError::Dial(Arc::new(DialError::Closed { origin, why: chain(&error) })),
            false => HttpSendError::BrokenOff(error),
        }
    }

    /// Returns a connection that is not idle: a shared one, or a new one.
    async fn obtain(self: &Arc<Self>) -> Result<RequestCarrier, Arc<DialError>> {
        if !self.origin.is_secure() || self.protocol.load(Ordering::Relaxed) == HTTP1 {
            return self.connect().await;
        }
        if let Some(stream) = self.share(false) {
            return Ok(RequestCarrier::Http2(stream));
        }
        let n_failed = self.failed().0;
        let turn = match self.turn.try_acquire() {
            Ok(turn) => turn,
            Err(_) => match self.share(true) {
                Some(stream) => return Ok(RequestCarrier::Http2(stream)),
                // The semaphore is never closed; without a permit, this request connects too.
                None => match self.turn.acquire().await {
                    Ok(turn) => turn,
                    Err(_) => return self.connect().await,
                },
            },
        };
        if let Some(stream) = self.share(false) {
            return Ok(RequestCarrier::Http2(stream));
        }
        if self.protocol.load(Ordering::Relaxed) == HTTP1 {
            drop(turn);
            return self.connect().await;
        }
        if let (now, Some(error)) = &*self.failed()
            && *now != n_failed
        {
            return Err(Arc::clone(error));
        }
        match self.connect().await {
            Ok(carrier) => Ok(carrier),
            Err(error) => match self.share(true) {
                Some(stream) => Ok(RequestCarrier::Http2(stream)),
                None => {
                    let mut failed = self.failed();
                    *failed = (failed.0 + 1, Some(Arc::clone(&error)));
                    Err(error)
                }
            },
        }
    }

    /// Makes a connection.
    async fn connect(self: &Arc<Self>) -> Result<RequestCarrier, Arc<DialError>> {
        let dialed = self.connector.dial(&self.origin).await.map_err(Arc::new)?;
        self.is_reached.store(true, Ordering::Relaxed);
        let closed =
            |error| Arc::new(DialError::Closed { origin: self.origin.clone(), why: chain(&error) });
        if !dialed.is_http2 {
            self.protocol.store(HTTP1, Ordering::Relaxed);
            let starting = Http1Connection::start(dialed.stream).await;
            let connection = starting.map_err(BrokenConnection::Http1).map_err(closed)?;
            return Ok(RequestCarrier::Http1(connection));
        }
        let starting = Http2Connection::start(dialed.stream).await;
        let connection = starting.map_err(BrokenConnection::Http2).map_err(closed)?;
        self.protocol.store(HTTP2, Ordering::Relaxed);
        let stream = StreamGuard::take(&connection);
        self.shared().push(Arc::clone(&connection));
        self.tasks.spawn(run(Arc::downgrade(self), connection));
        Ok(RequestCarrier::Http2(stream))
    }

    /// Takes a stream of the HTTP/2 connection that has the fewest in use. A busy one is taken only
    /// if there can be no further connection, or if `is_making_another` and the peer allows it.
    fn share(&self, is_making_another: bool) -> Option<StreamGuard> {
        let mut shared = self.shared();
        shared.retain(|connection| connection.is_usable());
        let best = shared.iter().min_by_key(|connection| connection.n_streams())?;
        let is_taken = shared.len() >= HTTP2_CONNECTIONS_MAX
            || !best.is_busy()
            || (is_making_another && best.n_streams() < best.streams_max());
        is_taken.then(|| StreamGuard::take(best))
    }

    /// Closes an HTTP/2 connection if it has been idle for too long. Returns the time of the next
    /// check otherwise.
    fn close_idle(&self, connection: &Arc<Http2Connection>) -> Option<Instant> {
        // A stream is taken under the same lock.
        let mut shared = self.shared();
        let now = Instant::now();
        let ends = connection.idle_since().unwrap_or(now) + defaults::HTTP2_IDLE_TIMEOUT;
        if ends > now && connection.is_usable() {
            return Some(ends);
        }
        shared.retain(|other| !Arc::ptr_eq(other, connection));
        if connection.n_streams() > 0 {
            return Some(now + defaults::HTTP2_IDLE_TIMEOUT);
        }
        connection.close();
        None
    }

    /// Takes the idle connection that was used last, unless it has been idle for too long.
    fn take(&self) -> Option<Http1Connection> {
        let mut idle = self.idle();
        let (connection, since) = idle.pop()?;
        if since.elapsed() < defaults::UPSTREAM_IDLE_TIMEOUT {
            return Some(connection);
        }
        // The others have been idle even longer.
        idle.clear();
        None
    }

    /// Keeps a connection for the next request.
    pub(super) fn give_back(&self, connection: Http1Connection) {
        let now = Instant::now();
        let mut idle = self.idle();
        if idle.len() >= defaults::UPSTREAM_IDLE_MAX
            || idle.first().is_some_and(|(_, since)| {
                now.duration_since(*since) >= defaults::UPSTREAM_IDLE_TIMEOUT
            })
        {
            idle.remove(0);
        }
        idle.push((connection, now));
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Http1Connection, Instant)>> {
        // Held for statements on plain data.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared(&self) -> MutexGuard<'_, Vec<Arc<Http2Connection>>> {
        // Held while connections are counted.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> MutexGuard<'_, (u64, Option<Arc<DialError>>)> {
        // Held for statements on plain data.
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drives an HTTP/2 connection until it ends, or has been idle for too long.
async fn run(pool: Weak<HttpPool>, connection: Arc<Http2Connection>) {
    let idle = async {
        let mut check = Instant::now() + defaults::HTTP2_IDLE_TIMEOUT;
        loop {
            time::sleep_until(check).await;
            match pool.upgrade().and_then(|pool| pool.close_idle(&connection)) {
                Some(next) => check = next,
                None => return,
            }
        }
    };
    tokio::select! {
        () = connection.drive() => {}
        () = idle => {}
    }
}
