//! The body of an answer, with the connection that it comes on.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::{
    HttpPool,
    http1_connection::{Http1Connection, noop_context},
    http2_connection::StreamGuard,
};

/// The body of an answer. Dropping it before its end gives up the rest.
#[derive(Debug)]
pub struct ResponseBody {
    body: Incoming,
    /// `None` once the whole body was read.
    carrier: Option<BodyCarrier>,
    /// Owns the tasks of the connection.
    pool: Arc<HttpPool>,
}

/// The connection of one answer.
#[derive(Debug)]
pub(super) enum BodyCarrier {
    /// The answer has an HTTP/1.1 connection for itself.
    Http1(Http1Connection),
    /// The answer has a stream of an HTTP/2 connection.
    Http2(StreamGuard),
}

impl ResponseBody {
    /// Returns a body that returns its connection to `pool` at its end.
    pub(super) fn new(body: Incoming, carrier: BodyCarrier, pool: Arc<HttpPool>) -> Self {
        Self { body, carrier: Some(carrier), pool }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = &mut *self;
        let next = match &mut this.carrier {
            Some(BodyCarrier::Http1(connection)) => {
                let next = Pin::new(&mut this.body).poll_frame(&mut noop_context());
                if next.is_pending() {
                    // Only bytes that are moved now can bring more of it.
                    connection.drive(context);
                    Pin::new(&mut this.body).poll_frame(context)
                } else {
                    next
                }
            }
            Some(BodyCarrier::Http2(_)) | None => Pin::new(&mut this.body).poll_frame(context),
        };
        let is_over = match &next {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => this.body.is_end_stream(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => false,
        };
        if is_over
            && let Some(BodyCarrier::Http1(connection)) = this.carrier.take()
            && connection.is_open()
        {
            this.pool.give_back(connection);
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
