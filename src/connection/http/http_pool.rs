//! The TCP connections to one upstream, kept open between requests.
//!
//! One task, that of the caller, polls both a request and its TCP connection: with a task per
//! connection, each answer would cost two more wake-ups. An idle connection is not polled. If its
//! peer has closed it, that is noticed before the next request is written.

use std::{
    future::{Future as _, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use hyper::{
    Request, Response, Uri,
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::http1,
};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use tokio::{net::TcpStream, time::Instant};
use tower_service::Service as _;

use super::super::RequestFailure;
use crate::{body::OutgoingBody, config::defaults, error_report::chain};

type Wire = http1::Connection<TokioIo<TcpStream>, OutgoingBody>;

/// The TCP connections to one upstream.
#[derive(Debug)]
pub(super) struct HttpPool {
    connector: HttpConnector,
    /// The one used last is at the end.
    idle: Mutex<Vec<(Lane, Instant)>>,
    /// `true` once the upstream has accepted a connection.
    is_reached: AtomicBool,
}

/// One TCP connection: its request sender, and the future that moves its bytes.
struct Lane {
    sender: http1::SendRequest<OutgoingBody>,
    /// `None` once it has ended.
    wire: Option<Pin<Box<Wire>>>,
}

/// The body of an answer, with the TCP connection that it comes on.
pub(super) struct ResponseBody {
    body: Incoming,
    /// `None` once the whole body was read.
    lane: Option<Lane>,
    lanes: Arc<HttpPool>,
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane").field("is_open", &self.wire.is_some()).finish()
    }
}

impl Lane {
    /// Waits until a request can be sent; `false` when the peer has closed the connection.
    async fn is_ready(&mut self) -> bool {
        // Mostly it is ready at once, and needs no waker.
        let at_once = self.poll_ready(&mut nobody());
        match at_once {
            Poll::Ready(is_ready) => is_ready,
            Poll::Pending => poll_fn(|context| self.poll_ready(context)).await,
        }
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        drive(&mut self.wire, context);
        self.sender.poll_ready(context).map(|ready| ready.is_ok())
    }

    /// Sends a request and waits for the head of its answer.
    async fn send(
        &mut self,
        request: Request<OutgoingBody>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let mut answer = pin!(self.sender.send_request(request));
        let wire = &mut self.wire;
        poll_fn(|context| {
            drive(wire, context);
            // The answer can only come from the bytes that were just moved.
            answer.as_mut().poll(&mut nobody())
        })
        .await
    }
}

/// Moves as many bytes on a TCP connection as possible.
fn drive(wire: &mut Option<Pin<Box<Wire>>>, context: &mut Context<'_>) {
    if let Some(moving) = wire
        && moving.as_mut().poll(context).is_ready()
    {
        // The waiter for an answer receives the error through the answer.
        *wire = None;
    }
}

/// Returns a context for futures that are polled again without being woken.
fn nobody() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

impl HttpPool {
    /// Returns a pool without connections.
    ///
    /// TCP keepalive detects a peer that disappears without a word, even in the middle of a long
    /// answer.
    pub(super) fn new() -> Arc<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(defaults::CONNECT_TIMEOUT));
        connector.set_keepalive(Some(defaults::UPSTREAM_TCP_PROBE_AFTER));
        connector.set_keepalive_interval(Some(defaults::UPSTREAM_TCP_PROBE_INTERVAL));
        connector.set_keepalive_retries(Some(defaults::UPSTREAM_TCP_PROBES));
        connector.set_tcp_user_timeout(Some(defaults::UPSTREAM_TCP_TIMEOUT));
        Arc::new(Self { connector, idle: Mutex::default(), is_reached: AtomicBool::new(false) })
    }

    /// Returns whether the upstream has ever accepted a connection.
    pub(super) fn is_reached(&self) -> bool {
        self.is_reached.load(Ordering::Relaxed)
    }

    /// Sends the request that `request` builds to `url`, and waits for the head of the answer.
    /// Dropping the future closes the TCP connection of the request.
    ///
    /// # Errors
    ///
    /// [`RequestFailure::Connect`] when no byte was written, else [`RequestFailure::BrokenOff`].
    pub(super) async fn send(
        self: &Arc<Self>,
        url: &Uri,
        request: impl Fn() -> Request<OutgoingBody>,
    ) -> Result<Response<ResponseBody>, RequestFailure> {
        loop {
            let (mut lane, was_idle) = match self.take() {
                Some(lane) => (lane, true),
                // Boxed: mostly there is an idle one, and no space is needed for this.
                None => (Box::pin(self.connect(url)).await?, false),
            };
            if !lane.is_ready().await && was_idle {
                continue;
            }
            match lane.send(request()).await {
                Ok(answer) => {
                    let lanes = Arc::clone(self);
                    return Ok(answer.map(|body| ResponseBody { body, lane: Some(lane), lanes }));
                }
                // The peer closed it at the moment of its reuse, and nothing was written.
                Err(error) if error.is_canceled() && was_idle => {}
                Err(error) if error.is_canceled() => {
                    return Err(RequestFailure::Connect(chain(&error).into()));
                }
                Err(error) => return Err(RequestFailure::BrokenOff(chain(&error).into())),
            }
        }
    }

    async fn connect(&self, url: &Uri) -> Result<Lane, RequestFailure> {
        let mut connector = self.connector.clone();
        let stream = connector
            .call(url.clone())
            .await
            .map_err(|error| RequestFailure::Connect(chain(&error).into()))?;
        self.is_reached.store(true, Ordering::Relaxed);
        let (sender, wire) = http1::Builder::new()
            .max_buf_size(defaults::HTTP_BUFFER_BYTES_MAX)
            .handshake(stream)
            .await
            .map_err(|error| RequestFailure::Connect(chain(&error).into()))?;
        Ok(Lane { sender, wire: Some(Box::pin(wire)) })
    }

    /// Takes the connection that was used last, unless it has been idle for too long.
    fn take(&self) -> Option<Lane> {
        let mut idle = self.idle();
        let (lane, since) = idle.pop()?;
        if since.elapsed() < defaults::UPSTREAM_IDLE_TIMEOUT {
            return Some(lane);
        }
        // The others have been idle even longer.
        idle.clear();
        None
    }

    fn give_back(&self, lane: Lane) {
        let now = Instant::now();
        let mut idle = self.idle();
        if idle.len() >= defaults::UPSTREAM_IDLE_MAX
            || idle.first().is_some_and(|(_, since)| {
                now.duration_since(*since) >= defaults::UPSTREAM_IDLE_TIMEOUT
            })
        {
            idle.remove(0);
        }
        idle.push((lane, now));
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Lane, Instant)>> {
        // Held for statements on plain data.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut next = Pin::new(&mut self.body).poll_frame(&mut nobody());
        if next.is_pending() {
            // Only bytes that are moved now can bring more of it.
            if let Some(lane) = &mut self.lane {
                drive(&mut lane.wire, context);
            }
            next = Pin::new(&mut self.body).poll_frame(context);
        }
        let is_over = match &next {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => self.body.is_end_stream(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => false,
        };
        if is_over && let Some(lane) = self.lane.take().filter(|lane| lane.wire.is_some()) {
            self.lanes.give_back(lane);
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
