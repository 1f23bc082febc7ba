//! The HTTP edge: from a listener to an answer.
//!
//! The only place that knows HTTP status codes of our own answers.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use tokio_util::sync::CancellationToken;

use crate::{status::Board, view::Views};

mod accept;
mod in_flight;
mod mcp;
mod origin;
mod reply;
mod respond;
mod route;

pub use accept::serve;
use in_flight::InFlight;

type Body = UnsyncBoxBody<Bytes, Infallible>;
type Response = hyper::Response<Body>;

/// What every request at the edge needs.
#[derive(Debug)]
pub struct Edge {
    views: Arc<Views>,
    board: Arc<Board>,
    in_flight: InFlight,
    /// Cancelled when requests that still run are to be answered with an error.
    hurry: CancellationToken,
}

impl Edge {
    /// Returns the edge of the service. Requests that run when `hurry` is cancelled end at once.
    pub fn new(views: Arc<Views>, board: Arc<Board>, hurry: CancellationToken) -> Arc<Self> {
        Arc::new(Self { views, board, in_flight: InFlight::default(), hurry })
    }
}
