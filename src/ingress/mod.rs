//! The HTTP edge: from a listener to an answer.
//!
//! The only place that knows HTTP status codes of our own answers.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock, Weak},
};

use bytes::Bytes;
use http_body_util::{Either, combinators::UnsyncBoxBody};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{body::Outgoing, config::defaults, status::Board, token, view::Views};

mod accept;
mod batch;
mod bearer;
mod beat;
mod events;
mod handshake;
mod mcp;
mod modern;
mod origin;
mod pair;
pub mod pipe;
mod quiet;
mod reply;
mod respond;
mod resume;
mod route;
mod rpc;
mod several;
mod stall;
mod stream;

pub use accept::serve;
pub use rpc::{Answered, Operators};

/// A message, or a stream of events.
type Body = Either<Outgoing, UnsyncBoxBody<Bytes, Infallible>>;
type Response = hyper::Response<Body>;

/// What every request at the edge needs.
#[derive(Debug)]
pub struct Edge {
    views: Arc<Views>,
    board: Arc<Board>,
    /// What clients must bring.
    token: Arc<token::Current>,
    /// Cancelled when streams that would never end are to end.
    stop: CancellationToken,
    /// Cancelled when requests that still run are to be answered with an error.
    hurry: CancellationToken,
    /// The streams of clients that speak HTTP with SSE.
    pairs: pair::Pairs,
    /// For each answer on a stream that can be resumed.
    resumable: Arc<Semaphore>,
    /// For what is kept of such answers although it was sent.
    sent: Arc<Semaphore>,
    /// Owns what goes on without its client.
    tasks: TaskTracker,
    /// Who answers operators.
    operators: OnceLock<Weak<dyn Operators>>,
}

impl Edge {
    /// Returns the edge of the service, which asks clients for `token`. Streams end with `stop`, and requests that run when `hurry`
    /// is cancelled end at once; `tasks` owns those that go on while their client is away.
    pub fn new(
        views: Arc<Views>,
        board: Arc<Board>,
        token: Arc<token::Current>,
        stop: CancellationToken,
        hurry: CancellationToken,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let resumable = Arc::new(Semaphore::new(defaults::RESUMABLE_MAX));
        let n_units = defaults::SENT_BYTES_KEPT / defaults::SENT_BYTES_UNIT;
        Arc::new(Self {
            views,
            board,
            token,
            stop,
            hurry,
            pairs: pair::Pairs::default(),
            resumable,
            sent: Arc::new(Semaphore::new(n_units)),
            tasks,
            operators: OnceLock::new(),
        })
    }

    /// Has operators answered by `operators` as long as those are there; it is set once.
    pub fn let_answer(&self, operators: Weak<dyn Operators>) {
        let _once = self.operators.set(operators);
    }

    fn operators(&self) -> Option<Arc<dyn Operators>> {
        self.operators.get()?.upgrade()
    }
}
