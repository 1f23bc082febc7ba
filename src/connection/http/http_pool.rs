//! The TCP connections to one upstream, kept open between requests.
//!
//! One task, that of the caller, polls both a request and its TCP connection: with a task per
//! connection, each answer would cost two more wake-ups. An idle connection is not polled. If its
//! peer has closed it, that is noticed before the next request is written.

use std::{
    error::Error,
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
use crate::{config::defaults, error_report::chain, http_body::OutgoingBody};

type Driver = http1::Connection<TokioIo<TcpStream>, OutgoingBody>;

/// The TCP connections to one upstream.
#[derive(Debug)]
pub(super) struct HttpPool {
    connector: HttpConnector,
    /// The one used last is at the end.
    idle: Mutex<Vec<(PooledConnection, Instant)>>,
    /// `true` once the upstream has accepted a connection.
    is_reached: AtomicBool,
}

/// One TCP connection: its request sender, and the future that moves its bytes.
struct PooledConnection {
    sender: http1::SendRequest<OutgoingBody>,
    /// `None` once it has ended.
    driver: Option<Pin<Box<Driver>>>,
}

/// The body of an answer, with the TCP connection that it comes on.
pub(super) struct ResponseBody {
    body: Incoming,
    /// `None` once the whole body was read.
    connection: Option<PooledConnection>,
    pool: Arc<HttpPool>,
}

impl std::fmt::Debug for PooledConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PooledConnection").field("is_open", &self.driver.is_some()).finish()
    }
}

impl PooledConnection {
    /// Waits until a request can be sent; `false` when the peer has closed the connection.
    async fn is_ready(&mut self) -> bool {
        // Mostly it is ready at once, and needs no waker.
        let at_once = self.poll_ready(&mut noop_context());
        match at_once {
            Poll::Ready(is_ready) => is_ready,
            Poll::Pending => poll_fn(|context| self.poll_ready(context)).await,
        }
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        drive(&mut self.driver, context);
        self.sender.poll_ready(context).map(|ready| ready.is_ok())
    }

    /// Sends a request and waits for the head of its answer.
    async fn send(
        &mut self,
        request: Request<OutgoingBody>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let mut answer = pin!(self.sender.send_request(request));
        let driver = &mut self.driver;
        poll_fn(|context| {
            drive(driver, context);
            // The answer can only come from the bytes that were just moved.
            answer.as_mut().poll(&mut noop_context())
        })
        .await
    }
}

/// Moves as many bytes on a TCP connection as possible.
fn drive(driver: &mut Option<Pin<Box<Driver>>>, context: &mut Context<'_>) {
    // The waiter for an answer receives the error through the answer.
    driver.take_if(|driver| driver.as_mut().poll(context).is_ready());
}

/// Returns a context for futures that are polled again without being woken.
fn noop_context() -> Context<'static> {
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
            let (mut connection, was_idle) = match self.take() {
                Some(connection) => (connection, true),
                // Boxed: mostly there is an idle one, and no space is needed for this.
                None => (Box::pin(self.connect(url)).await?, false),
            };
            if !connection.is_ready().await && was_idle {
                continue;
            }
            match connection.send(request()).await {
                Ok(answer) => {
                    let (connection, pool) = (Some(connection), Arc::clone(self));
                    return Ok(answer.map(|body| ResponseBody { body, connection, pool }));
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

    async fn connect(&self, url: &Uri) -> Result<PooledConnection, RequestFailure> {
        let mut connector = self.connector.clone();
        let failed = |error: &dyn Error| RequestFailure::Connect(chain(error).into());
        let stream = connector.call(url.clone()).await.map_err(|error| failed(&error))?;
        self.is_reached.store(true, Ordering::Relaxed);
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(defaults::HTTP_BUFFER_BYTES_MAX)
            .handshake(stream)
            .await
            .map_err(|error| failed(&error))?;
        Ok(PooledConnection { sender, driver: Some(Box::pin(driver)) })
    }

    /// Takes the connection that was used last, unless it has been idle for too long.
    fn take(&self) -> Option<PooledConnection> {
        let mut idle = self.idle();
        let (connection, since) = idle.pop()?;
        if since.elapsed() < defaults::UPSTREAM_IDLE_TIMEOUT {
            return Some(connection);
        }
        // The others have been idle even longer.
        idle.clear();
        None
    }

    fn give_back(&self, connection: PooledConnection) {
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

    fn idle(&self) -> MutexGuard<'_, Vec<(PooledConnection, Instant)>> {
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
        let mut next = Pin::new(&mut self.body).poll_frame(&mut noop_context());
        if next.is_pending() {
            // Only bytes that are moved now can bring more of it.
            if let Some(connection) = &mut self.connection {
                drive(&mut connection.driver, context);
            }
            next = Pin::new(&mut self.body).poll_frame(context);
        }
        let is_over = match &next {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => self.body.is_end_stream(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => false,
        };
        if is_over
            && let Some(connection) = self.connection.take()
            && connection.driver.is_some()
        {
            self.pool.give_back(connection);
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
