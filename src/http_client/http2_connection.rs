//! One HTTP/2 connection, which carries many requests at a time.

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

use hyper::{
    Request, Response,
    body::Incoming,
    client::conn::http2,
    header::{CONNECTION, HOST},
};
use hyper_util::rt::TokioTimer;
use tokio::time::Instant;

use super::{
    Origin,
    http_stream::{HttpStream, TlsAlert},
    scoped_tasks::TaskSpawner,
};
use crate::{config::defaults, http_body::OutgoingBody};

type Driver = http2::Connection<HttpStream, OutgoingBody, TaskSpawner>;

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

/// The unsent bytes of one stream, which more would wait for.
const SEND_BUFFER_BYTES_MAX: usize = 256 << 10;

/// One HTTP/2 connection.
pub(super) struct Http2Connection {
    sender: http2::SendRequest<OutgoingBody>,
    /// Polled by the task of the connection; `None` once it has ended.
    driver: Mutex<Option<Pin<Box<Driver>>>>,
    n_streams: AtomicUsize,
    /// The end of the last stream.
    used: Mutex<Instant>,
    /// `true` once the peer takes no further requests.
    is_retired: AtomicBool,
    pub(super) alert: Option<TlsAlert>,
}

/// A stream in use on a connection; dropping it returns the stream.
pub(super) struct StreamGuard(Arc<Http2Connection>);

impl Http2Connection {
    /// Returns a connection on `stream`, which [`Http2Connection::drive`] must drive.
    pub(super) async fn start(
        stream: HttpStream,
        spawner: TaskSpawner,
    ) -> Result<Arc<Self>, hyper::Error> {
        let alert = stream.alert();
        let header_bytes_max = u32::try_from(defaults::HTTP_BUFFER_BYTES_MAX).unwrap_or(u32::MAX);
        let (sender, driver) = http2::Builder::new(spawner)
            .timer(TokioTimer::new())
            .initial_max_send_streams(STREAMS_AT_FIRST)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES_MAX)
            .max_header_list_size(header_bytes_max)
            .max_send_buf_size(SEND_BUFFER_BYTES_MAX)
            // A dead peer is noticed as soon as by the probes of TCP, and behind proxies as well.
            .keep_alive_interval(defaults::UPSTREAM_TCP_PROBE_AFTER)
            .keep_alive_timeout(
                defaults::UPSTREAM_TCP_PROBE_INTERVAL * defaults::UPSTREAM_TCP_PROBES,
            )
            .handshake(stream)
            .await?;
        Ok(Arc::new(Self {
            sender,
            driver: Mutex::new(Some(Box::pin(driver))),
            n_streams: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
            is_retired: AtomicBool::new(false),
            alert,
        }))
    }

    /// Drives the connection until it ends.
    pub(super) async fn drive(&self) {
        poll_fn(|context| {
            let mut driver = self.driver();
            match driver.as_mut().map(|driver| driver.as_mut().poll(context)) {
                Some(Poll::Pending) => Poll::Pending,
                // Each stream receives the error of its own.
                Some(Poll::Ready(_)) | None => {
                    *driver = None;
                    Poll::Ready(())
                }
            }
        })
        .await;
        self.retire();
    }

    /// Sends no further requests here. The connection closes after its last stream.
    pub(super) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    /// Closes a connection without streams.
    pub(super) fn close(&self) {
        self.retire();
        *self.driver() = None;
    }

    /// Returns whether the connection takes further requests, as far as is known.
    pub(super) fn is_usable(&self) -> bool {
        !self.is_retired.load(Ordering::Relaxed) && !self.sender.is_closed()
    }

    /// Returns the number of streams in use.
    pub(super) fn n_streams(&self) -> usize {
        self.n_streams.load(Ordering::Relaxed)
    }

    /// Returns the number of streams that the peer allows at a time.
    pub(super) fn streams_max(&self) -> usize {
        self.driver().as_ref().map_or(0, |driver| driver.current_max_send_streams())
    }

    /// Returns whether so many streams are in use that another connection is due.
    pub(super) fn is_busy(&self) -> bool {
        is_busy(self.n_streams(), self.streams_max())
    }

    /// Returns the time of the last use, or `None` while a stream is in use.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (self.n_streams() == 0).then(|| *self.used())
    }

    fn driver(&self) -> MutexGuard<'_, Option<Pin<Box<Driver>>>> {
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
        Self(Arc::clone(connection))
    }

    /// Returns the connection of the stream.
    pub(super) fn connection(&self) -> &Http2Connection {
        &self.0
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send(
        &self,
        request: Request<OutgoingBody>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        self.0.sender.clone().send_request(request).await
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        *self.0.used() = Instant::now();
        self.0.n_streams.fetch_sub(1, Ordering::Relaxed);
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
        f.debug_tuple("StreamGuard").field(&self.0).finish()
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
    request.headers_mut().remove(HOST);
    request.headers_mut().remove(CONNECTION);
    request
}

/// Returns whether the peer provably did not execute a request: it was never written, or the peer
/// says so. Source: RFC 9113, sections 6.8 and 8.7.
pub(super) fn was_not_executed(error: &hyper::Error) -> bool {
    error.is_canceled()
        || http2_cause(error).is_some_and(|error| {
            error.is_remote()
                && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM))
        })
}

/// Returns whether the peer refused one stream, and takes others.
pub(super) fn is_refused_stream(error: &hyper::Error) -> bool {
    http2_cause(error).is_some_and(|error| error.is_reset() && error.is_remote())
}

fn http2_cause(error: &hyper::Error) -> Option<&h2::Error> {
    std::error::Error::source(error)?.downcast_ref()
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
