//! The body of an answer, with the connection that it comes on.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use h2::RecvStream;
use hyper::{
    HeaderMap,
    body::{Body, Frame, Incoming, SizeHint},
    header::CONTENT_LENGTH,
};

use super::{
    BrokenConnection, HttpPool,
    http1_connection::{Http1Connection, noop_context},
    http2_connection::StreamGuard,
};

/// The body of an answer. Dropping it before its end gives up the rest.
#[derive(Debug)]
pub struct ResponseBody {
    source: BodySource,
    /// Owns the tasks of the connection.
    pool: Arc<HttpPool>,
}

/// The bytes of a body, and their connection; that is `None` once the whole body was read.
#[derive(Debug)]
enum BodySource {
    /// The answer has an HTTP/1.1 connection for itself.
    Http1(Incoming, Option<Http1Connection>),
    /// The answer has a stream of an HTTP/2 connection.
    Http2(Http2Body, Option<StreamGuard>),
}

/// The body of an answer over HTTP/2.
#[derive(Debug)]
struct Http2Body {
    stream: RecvStream,
    /// The bytes to come, if the answer has declared a length.
    n_left: Option<u64>,
}

impl ResponseBody {
    /// Returns a body that returns its connection to `pool` at its end.
    pub(super) fn http1(body: Incoming, connection: Http1Connection, pool: Arc<HttpPool>) -> Self {
        Self { source: BodySource::Http1(body, Some(connection)), pool }
    }

    /// Returns the body of an answer with `headers`, which returns its stream at its end.
    pub(super) fn http2(
        stream: RecvStream,
        headers: &HeaderMap,
        guard: StreamGuard,
        pool: Arc<HttpPool>,
    ) -> Self {
        let n_left = headers.get(CONTENT_LENGTH);
        let n_left = n_left.and_then(|length| length.to_str().ok()?.parse().ok());
        let body = Http2Body { stream, n_left };
        Self { source: BodySource::Http2(body, Some(guard)), pool }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BrokenConnection;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenConnection>>> {
        let this = &mut *self;
        let next = match &mut this.source {
            BodySource::Http1(body, connection) => {
                let mut next = Pin::new(&mut *body).poll_frame(&mut noop_context());
                if next.is_pending() {
                    // Only bytes that are moved now can bring more of it.
                    if let Some(connection) = connection {
                        connection.drive(context);
                    }
                    next = Pin::new(body).poll_frame(context);
                }
                next.map_err(BrokenConnection::Http1)
            }
            // The end of the stream has reset it.
            BodySource::Http2(_, None) => return Poll::Ready(None),
            BodySource::Http2(body, Some(_)) => {
                body.poll_frame(context).map_err(BrokenConnection::Http2)
            }
        };
        let is_over = match &next {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => this.is_end_stream(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => false,
        };
        if is_over {
            this.give_back();
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            BodySource::Http1(body, _) => body.is_end_stream(),
            BodySource::Http2(body, guard) => guard.is_none() || body.stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            BodySource::Http1(body, _) => body.size_hint(),
            BodySource::Http2(body, _) if body.stream.is_end_stream() => SizeHint::with_exact(0),
            BodySource::Http2(body, _) => {
                body.n_left.map_or_else(SizeHint::new, SizeHint::with_exact)
            }
        }
    }
}

impl ResponseBody {
    /// Makes the connection available to the next request.
    fn give_back(&mut self) {
        match &mut self.source {
            BodySource::Http1(_, connection) => {
                if let Some(connection) = connection.take()
                    && connection.is_open()
                {
                    self.pool.give_back(connection);
                }
            }
            BodySource::Http2(_, guard) => drop(guard.take()),
        }
    }
}

impl Http2Body {
    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let next = self.stream.poll_data(context);
        next.map_ok(|data| {
            self.n_left = self.n_left.map(|left| left.saturating_sub(data.len() as u64));
            // The peer may send as much again. It fails only for bytes that did not come.
            let _released = self.stream.flow_control().release_capacity(data.len());
            Frame::data(data)
        })
    }
}
