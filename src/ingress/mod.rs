//! HTTP from a listener to an answer, and MCP over a pipe.
//!
//! Only this module chooses HTTP status codes for metamcp's answers.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, OnceLock, Weak},
};

use bytes::Bytes;
use http_body_util::{Either, combinators::UnsyncBoxBody};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    bearer_token,
    capacity_holder::Holder,
    config::defaults,
    descriptor_limit,
    fair_share::{EvictablePermit, Evictables, EvictionBounds},
    http_body::OutgoingBody,
    oauth::LoginService,
    status::StatusBoard,
    view::Views,
};

mod authentication;
mod batch;
mod client_connections;
mod concurrent_requests;
mod control_rpc;
mod cors;
mod error;
mod http_response;
mod legacy;
mod legacy_sse;
mod local_wake;
mod login_callback;
mod message_dispatch;
mod metrics_listener;
mod modern;
mod notification_stream;
mod origin;
mod page_updates;
mod progress_heartbeat;
mod reply;
mod reply_events;
mod request_parts;
mod resumable_reply;
mod route;
mod side_messages;
mod status_page;
pub mod stdio_pipe;
mod tls_handshake;
mod token_failures;
mod trace_headers;
mod write_timeout;

pub use client_connections::serve;
pub use control_rpc::{ControlDispatch, RpcReply};
use error::IngressError;
pub use metrics_listener::serve_metrics;
use token_failures::TokenFailures;

/// A message or an event stream.
type Body = Either<OutgoingBody, UnsyncBoxBody<Bytes, Infallible>>;
type Response = hyper::Response<Body>;

/// The state shared by all requests.
#[derive(Debug)]
pub struct IngressContext {
    views: Arc<Views>,
    board: Arc<StatusBoard>,
    /// The token that clients must send.
    token: Arc<bearer_token::CurrentToken>,
    /// The sources that have sent wrong tokens.
    token_failures: Mutex<TokenFailures>,
    /// The logins at servers.
    logins: Arc<LoginService>,
    /// Cancelled when streams without an end of their own must end.
    stop: CancellationToken,
    /// Cancelled when running requests must be answered with an error.
    drain_deadline: CancellationToken,
    /// The connections of clients.
    connections: Arc<Evictables>,
    /// The streams that have no end of their own.
    streams: Arc<Evictables>,
    /// The open pages that follow the service.
    pages: Arc<Evictables>,
    /// The streams of clients that use HTTP with SSE.
    legacy_sse_streams: legacy_sse::LegacySseStreams,
    /// One permit for each answer on a resumable stream.
    resumable: Arc<Semaphore>,
    /// The permits for sent parts of such answers that are kept for a resumption.
    sent: Arc<Semaphore>,
    /// The owner of work that continues without its client.
    tasks: TaskTracker,
    /// The handler of operators' requests.
    control: OnceLock<Weak<dyn ControlDispatch>>,
}

impl IngressContext {
    /// Returns the state of the interface, which requires `token` from clients. `stop` ends
    /// streams, `drain_deadline` ends running requests, and `tasks` owns those whose clients are away.
    pub fn new(
        views: Arc<Views>,
        board: Arc<StatusBoard>,
        token: Arc<bearer_token::CurrentToken>,
        logins: Arc<LoginService>,
        stop: CancellationToken,
        drain_deadline: CancellationToken,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let resumable = Arc::new(Semaphore::new(defaults::RESUMABLE_MAX));
        let connections = Evictables::new(connection_bounds(descriptor_limit::limit()));
        let n_units = defaults::SENT_BYTES_KEPT / defaults::SENT_BYTES_UNIT;
        Arc::new(Self {
            views,
            board,
            token,
            logins,
            token_failures: Mutex::default(),
            stop,
            drain_deadline,
            streams: Evictables::new(stream_bounds(connections.bounds())),
            pages: Evictables::new(EvictionBounds { max: defaults::PAGES_MAX, reserve: 0 }),
            connections,
            legacy_sse_streams: legacy_sse::LegacySseStreams::default(),
            resumable,
            sent: Arc::new(Semaphore::new(n_units)),
            tasks,
            control: OnceLock::new(),
        })
    }

    /// Sets the handler of operators' requests, once, for as long as `control` lives.
    pub fn set_control(&self, control: Weak<dyn ControlDispatch>) {
        let _once = self.control.set(control);
    }

    /// Returns a permit for a stream of `holder`. If all permits are taken, the largest holder
    /// loses one.
    fn stream_permit(&self, holder: Holder) -> Result<EvictablePermit, IngressError> {
        self.streams.admit(holder).ok_or(IngressError::StreamsFull)
    }

    fn control(&self) -> Option<Arc<dyn ControlDispatch>> {
        self.control.get()?.upgrade()
    }
}

/// Returns the bounds of client connections for this limit of open descriptors.
fn connection_bounds(n_descriptors: usize) -> EvictionBounds {
    let n_sockets = n_descriptors / defaults::CLIENT_DESCRIPTORS_PART;
    let kept = n_sockets.div_ceil(defaults::CLIENT_RESERVE_PART + RESERVES) * RESERVES;
    let max = defaults::CLIENT_CONNECTIONS_MAX.min(n_sockets - kept).max(1);
    EvictionBounds { max, reserve: max / defaults::CLIENT_RESERVE_PART }
}

/// The number of reserves beyond the bound: for probation, for small accounts, and for closing.
const RESERVES: usize = 3;

/// Returns the number of connections that are accepted in total.
fn accepted_max(EvictionBounds { max, reserve }: EvictionBounds) -> usize {
    max + RESERVES * reserve.max(1)
}

/// Returns how many of the connections may be streams that have no end of their own.
fn stream_bounds(connections: EvictionBounds) -> EvictionBounds {
    let max = (connections.max / defaults::STREAMS_PART).max(1);
    EvictionBounds { max, reserve: max / defaults::CLIENT_RESERVE_PART }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_on_connections_and_streams_follow_from_the_limit_of_descriptors() {
        for n_descriptors in [64, 256, 1024, 4096, 16_384, 524_288, usize::MAX] {
            let bounds = connection_bounds(n_descriptors);
            let accepted = accepted_max(bounds);
            assert!(accepted <= n_descriptors / 2, "{n_descriptors}: {bounds:?}");
            assert!(stream_bounds(bounds).max * 2 <= bounds.max);
        }
        assert_eq!(connection_bounds(1024).max, 431);
        assert_eq!(connection_bounds(524_288).max, defaults::CLIENT_CONNECTIONS_MAX);
    }
}
