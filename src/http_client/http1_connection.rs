//! One HTTP/1.1 connection, which carries one request at a time.
//!
//! One task, that of the caller, polls both a request and its connection: with a task per
//! connection, each answer would cost two more wake-ups. An idle connection is not polled. If its
//! peer has closed it, that is noticed before the next request is written.

use std::{
    fmt,
    future::{Future as _, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use hyper::{Request, Response, body::Incoming, client::conn::http1};

use super::http_stream::{HttpStream, TlsAlert};
use crate::{config::defaults, http_body::OutgoingBody};

type Driver = http1::Connection<HttpStream, OutgoingBody>;

/// One HTTP/1.1 connection: its request sender, and the future that moves its bytes.
pub(super) struct Http1Connection {
    sender: http1::SendRequest<OutgoingBody>,
    /// `None` once it has ended.
    driver: Option<Pin<Box<Driver>>>,
    pub(super) alert: Option<TlsAlert>,
}

impl fmt::Debug for Http1Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http1Connection").field("is_open", &self.is_open()).finish_non_exhaustive()
    }
}

impl Http1Connection {
    /// Returns a connection on `stream`; nothing is sent yet.
    pub(super) async fn start(stream: HttpStream) -> Result<Self, hyper::Error> {
        let alert = stream.alert();
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(defaults::HTTP_BUFFER_BYTES_MAX)
            .handshake(stream)
            .await?;
        Ok(Self { sender, driver: Some(Box::pin(driver)), alert })
    }

    /// Returns whether the peer has not closed the connection, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        self.driver.is_some()
    }

    /// Waits until a request can be sent; `false` when the peer has closed the connection.
    pub(super) async fn is_ready(&mut self) -> bool {
        // Mostly it is ready at once, and needs no waker.
        let at_once = self.poll_ready(&mut noop_context());
        match at_once {
            Poll::Ready(is_ready) => is_ready,
            Poll::Pending => poll_fn(|context| self.poll_ready(context)).await,
        }
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        self.drive(context);
        self.sender.poll_ready(context).map(|ready| ready.is_ok())
    }

    /// Sends the request that `request` builds, and waits for the head of its answer. The future
    /// has no space for the request, which hyper takes at once.
    pub(super) async fn send(
        &mut self,
        request: impl FnOnce() -> Request<OutgoingBody>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let mut answer = pin!(self.sender.send_request(request()));
        let driver = &mut self.driver;
        poll_fn(|context| {
            drive(driver, context);
            // The answer can only come from the bytes that were just moved.
            answer.as_mut().poll(&mut noop_context())
        })
        .await
    }

    /// Moves as many bytes as possible.
    pub(super) fn drive(&mut self, context: &mut Context<'_>) {
        drive(&mut self.driver, context);
    }
}

fn drive(driver: &mut Option<Pin<Box<Driver>>>, context: &mut Context<'_>) {
    // The waiter for an answer receives the error through the answer.
    driver.take_if(|driver| driver.as_mut().poll(context).is_ready());
}

/// Returns a context for futures that are polled again without being woken.
pub(super) fn noop_context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}
