//! The HTTP edge: from a listener to an answer.
//!
//! The only place that knows HTTP status codes of our own answers.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use tokio_util::sync::CancellationToken;

use crate::{status::Board, view::Views};

mod accept;
mod batch;
mod beat;
mod events;
mod handshake;
mod mcp;
mod modern;
mod origin;
mod pair;
mod quiet;
mod reply;
mod respond;
mod route;
mod several;
mod stall;
mod stream;

pub use accept::serve;

type Body = UnsyncBoxBody<Bytes, Infallible>;
type Response = hyper::Response<Body>;

/// What every request at the edge needs.
#[derive(Debug)]
pub struct Edge {
    views: Arc<Views>,
    board: Arc<Board>,
    /// Cancelled when streams that would never end are to end.
    stop: CancellationToken,
    /// Cancelled when requests that still run are to be answered with an error.
    hurry: CancellationToken,
    /// The streams of clients that speak HTTP with SSE.
    pairs: pair::Pairs,
}

impl Edge {
    /// Returns the edge of the service. Streams end with `stop`, and requests that run when `hurry`
    /// is cancelled end at once.
    pub fn new(
        views: Arc<Views>,
        board: Arc<Board>,
        stop: CancellationToken,
        hurry: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self { views, board, stop, hurry, pairs: pair::Pairs::default() })
    }
}
