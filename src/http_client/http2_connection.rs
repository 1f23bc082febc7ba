//! One HTTP/2 connection, which carries many requests at a time.
//!
//! A task of its own moves the bytes of all streams. The caller of a request polls its stream, so
//! an answer costs one wake-up; hyper's client would pass each request through two further tasks.

use std::{
    fmt,
    future::{Future as _, poll_fn},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
};

use bytes::Bytes;
use h2::{
    Ping, PingPong, Reason, RecvStream, SendStream,
    client::{Builder, Connection, SendRequest},
};
use hyper::{
    Method, Request, Response,
    body::Body,
    header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE},
};
use hyper_util::rt::TokioIo;
use tokio::time::{self, Instant};

use super::{
    Origin,
    http_stream::{HttpStream, TlsAlert},
    http1_connection::noop_context,
};
use crate::{config::defaults, http_body::OutgoingBody};

type Driver = Connection<TokioIo<HttpStream>, Bytes>;

/// The streams of a connection until the peer has told its limit. A peer that allows fewer refuses
/// the others, which are sent again.
const STREAMS_AT_FIRST: usize = 8;

/// The share of a peer's streams from which another connection is made, as numerator and
/// denominator. The rest is for calls that come while it is made.
const STREAMS_SHARE: (usize, usize) = (3, 4);

/// The window of a stream, in bytes: what a peer may send before metamcp reads it. With a round
/// trip of 100 ms, it allows 10 MB a second.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;

/// The window of a connection, in bytes, over all of its streams.
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// The largest frame from a peer, in bytes: the smallest limit that HTTP/2 allows.
const FRAME_BYTES_MAX: u32 = 16 << 10;

/// The streams whose late frames are ignored for a second after a reset. h2 counts each stream that
/// ends, and answers late frames of the others with an error that can end the connection.
const RESET_STREAMS_MAX: usize = 1024;

/// The headers of a request over HTTP/1.1 that HTTP/2 forbids. Source: RFC 9113, section 8.2.2.
const HTTP1_HEADERS: [HeaderName; 7] = [
    CONNECTION,
    HOST,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The reason why a request over HTTP/2 got no answer.
#[derive(Debug)]
pub(super) struct Http2Failure {
    pub(super) source: h2::Error,
    /// The peer provably did not execute the request.
    pub(super) is_unsent: bool,
}

/// One HTTP/2 connection.
pub(super) struct Http2Connection {
    sender: SendRequest<Bytes>,
    /// Polled by the task of the connection; `None` once it has ended.
    driver: Mutex<Option<Driver>>,
    n_streams: AtomicUsize,
    /// The end of the last stream.
    used: Mutex<Instant>,
    /// `true` once the peer takes no further requests.
    is_retired: AtomicBool,
    pub(super) alert: Option<TlsAlert>,
}

/// A stream in use on a connection; dropping it returns the stream.
pub(super) struct StreamGuard {
    connection: Arc<Http2Connection>,
    /// The request on the stream, once it was answered.
    answered: Option<SendStream<Bytes>>,
}

impl Http2Connection {
    /// Returns a connection on `stream`, which [`Http2Connection::drive`] must drive.
    pub(super) async fn start(stream: HttpStream) -> Result<Arc<Self>, h2::Error> {
        let alert = stream.alert();
        let header_bytes_max = u32::try_from(defaults::HTTP_BUFFER_BYTES_MAX).unwrap_or(u32::MAX);
        let (sender, driver) = Builder::new()
            .enable_push(false)
            .initial_max_send_streams(STREAMS_AT_FIRST)
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES_MAX)
            .max_header_list_size(header_bytes_max)
            .max_concurrent_reset_streams(RESET_STREAMS_MAX)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Arc::new(Self {
            sender,
            driver: Mutex::new(Some(driver)),
            n_streams: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
            is_retired: AtomicBool::new(false),
            alert,
        }))
    }

    /// Drives the connection until it ends, or its peer has left a probe unanswered. Each stream
    /// receives the error of its own.
    pub(super) async fn drive(&self) {
        let pings = self.driver().as_mut().and_then(Driver::ping_pong);
        let Some(mut pings) = pings else { return };
        tokio::select! {
            () = self.move_bytes() => {}
            () = self.wait_until_dead(&mut pings) => {}
        }
        self.close();
    }

    /// Moves the bytes of all streams until the connection ends. Retires the connection once the
    /// peer says that it takes no further requests.
    async fn move_bytes(&self) {
        let mut sender = self.sender.clone();
        poll_fn(|context| {
            let mut driver = self.driver();
            let moved = driver.as_mut().map(|driver| Pin::new(driver).poll(context));
            if let Poll::Ready(Err(_)) = sender.poll_ready(&mut noop_context()) {
                self.retire();
            }
            match moved {
                Some(Poll::Pending) => Poll::Pending,
                Some(Poll::Ready(_)) | None => Poll::Ready(()),
            }
        })
        .await;
    }

    /// Waits until the peer does not answer a probe. It is sent while a stream is in use, as often
    /// as a probe of TCP, and behind proxies as well.
    async fn wait_until_dead(&self, pings: &mut PingPong) {
        let timeout = defaults::UPSTREAM_TCP_PROBE_INTERVAL * defaults::UPSTREAM_TCP_PROBES;
        loop {
            time::sleep(defaults::UPSTREAM_TCP_PROBE_AFTER).await;
            if self.n_streams() > 0
                && !matches!(time::timeout(timeout, pings.ping(Ping::opaque())).await, Ok(Ok(_)))
            {
                return;
            }
        }
    }

    /// Sends no further requests here. The connection closes after its last stream.
    pub(super) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    /// Closes the connection at once.
    pub(super) fn close(&self) {
        self.retire();
        *self.driver() = None;
    }

    /// Returns whether the connection takes further requests, as far as is known.
    pub(super) fn is_usable(&self) -> bool {
        !self.is_retired.load(Ordering::Relaxed)
    }

    /// Returns the number of streams in use.
    pub(super) fn n_streams(&self) -> usize {
        self.n_streams.load(Ordering::Relaxed)
    }

    /// Returns the number of streams that the peer allows at a time.
    pub(super) fn streams_max(&self) -> usize {
        self.sender.current_max_send_streams()
    }

    /// Returns whether so many streams are in use that another connection is due.
    pub(super) fn is_busy(&self) -> bool {
        is_busy(self.n_streams(), self.streams_max())
    }

    /// Returns the time of the last use, or `None` while a stream is in use.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (self.n_streams() == 0).then(|| *self.used())
    }

    fn driver(&self) -> MutexGuard<'_, Option<Driver>> {
        // Held for one poll.
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn used(&self) -> MutexGuard<'_, Instant> {
        // Held for statements on plain data.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamGuard {
    /// Takes a stream of a connection, whether or not the peer allows another one now.
    pub(super) fn take(connection: &Arc<Http2Connection>) -> Self {
        connection.n_streams.fetch_add(1, Ordering::Relaxed);
        Self { connection: Arc::clone(connection), answered: None }
    }

    /// Returns the connection of the stream.
    pub(super) fn connection(&self) -> &Http2Connection {
        &self.connection
    }

    /// Sends a request and waits for the head of its answer. Dropping the future gives up the
    /// request.
    pub(super) async fn send(
        &mut self,
        request: Request<OutgoingBody>,
    ) -> Result<Response<RecvStream>, Http2Failure> {
        let (head, mut body) = request.into_parts();
        let mut sender = self.connection.sender.clone();
        let unsent = |source| Http2Failure { source, is_unsent: true };
        let (answer, mut stream) = sender
            .send_request(Request::from_parts(head, ()), body.is_end_stream())
            .map_err(unsent)?;
        // The chunks share the memory of the message: a queue of them takes none.
        while let Some(chunk) = body.next()
            // The peer may answer, or refuse, before it has read the request.
            && stream.send_data(chunk, body.is_end_stream()).is_ok()
        {}
        let answer = answer.await.map_err(|source| {
            let is_unsent = was_not_executed(&source);
            Http2Failure { source, is_unsent }
        })?;
        self.answered = Some(stream);
        Ok(answer)
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        if let Some(request) = &mut self.answered {
            // The peer may never read the rest of the request, which would stay queued. Nothing is
            // sent if the stream has ended on both sides.
            request.send_reset(Reason::CANCEL);
        }
        *self.connection.used() = Instant::now();
        self.connection.n_streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Http2Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2Connection")
            .field("n_streams", &self.n_streams())
            .field("is_usable", &self.is_usable())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for StreamGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamGuard").field(&self.connection).finish()
    }
}

/// Returns whether so many of a peer's streams are in use that another connection is due. A peer
/// that tells no limit has the largest one.
fn is_busy(n_streams: usize, streams_max: usize) -> bool {
    let (numerator, denominator) = STREAMS_SHARE;
    n_streams >= (streams_max.saturating_mul(numerator) / denominator).max(1)
}

/// Turns a request for HTTP/1.1 into one for HTTP/2, where the URL names the host.
pub(super) fn for_http2(
    mut request: Request<OutgoingBody>,
    origin: &Origin,
) -> Request<OutgoingBody> {
    if let Some(url) = origin.url(request.uri()) {
        *request.uri_mut() = url;
    }
    let length = Body::size_hint(request.body()).exact();
    let length = length.filter(|length| *length > 0 || request.method() == Method::POST);
    let headers = request.headers_mut();
    for name in &HTTP1_HEADERS {
        headers.remove(name);
    }
    if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    request
}

impl Http2Failure {
    /// Returns whether the peer ended one stream, and takes others.
    pub(super) fn is_reset_stream(&self) -> bool {
        self.source.is_reset() && self.source.is_remote()
    }

    /// Returns whether the peer refused one stream: it has no room for it.
    pub(super) fn is_refusal(&self) -> bool {
        self.is_reset_stream() && self.source.reason() == Some(Reason::REFUSED_STREAM)
    }
}

/// Returns whether the peer says that it did not execute a request. Source: RFC 9113, sections 6.8
/// and 8.7.
fn was_not_executed(error: &h2::Error) -> bool {
    error.is_remote() && (error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM))
}

#[cfg(test)]
mod tests {
    use super::is_busy;

    #[test]
    fn a_connection_is_busy_from_three_quarters_of_its_streams() {
        assert!(!is_busy(5, 8) && is_busy(6, 8));
        assert!(!is_busy(0, 1) && is_busy(1, 1) && is_busy(1, 0));
        assert!(!is_busy(1 << 20, usize::MAX), "the peer tells no limit");
    }
}
