//! The accept loop for clients, with a task for each connection.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt as _;
use hyper::{
    body::{Frame, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    time,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Body, IngressContext, accepted_max,
    local_wake::LocalWake,
    route,
    tls_handshake::{AcceptError, ClientStream, shake_hands},
    write_timeout::WriteTimeout,
};
use crate::{
    accept_loop::{self, Listener as _},
    capacity_holder::AccountMember,
    config::defaults,
    error_report::chain,
    fair_share::{EvictablePermit, EvictableUse},
    peer_process::ConnectedClient,
    telemetry::liveness::LoopPulse,
    tls,
};

/// Serves clients on `listener` until `stop`, over TLS if `tls` has a certificate. Open connections
/// then complete their current answer, in tasks owned by `tasks`. Cancel safe. A connection that
/// was not accepted yet stays in the backlog.
pub async fn serve(
    listener: TcpListener,
    context: Arc<IngressContext>,
    tls: Arc<tls::CurrentTls>,
    pulse: LoopPulse,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    let stopped = stop.clone();
    let serve_one = |stream| {
        let (context, tls) = (Arc::clone(&context), Arc::clone(&tls));
        let caller = TcpListener::caller(&stream);
        // Permits are granted here in the order of arrival, which the tasks may not preserve.
        let permit =
            context.connections.admit_on_probation(caller.holder.member(AccountMember::Whole));
        let permit = permit.map(Arc::new);
        LocalWake::new(serve_connection(stream, caller, permit, context, tls, stopped.clone()))
    };
    let n_accepted = accepted_max(context.connections.bounds());
    accept_loop::accept(listener, n_accepted, pulse, stop, tasks, serve_one).await;
}

/// Returns the settings of HTTP/1.1 for all clients.
pub(super) fn http1_server() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(defaults::HEADER_TIMEOUT)
        .max_buf_size(defaults::HTTP_BUFFER_BYTES_MAX);
    builder
}

async fn serve_connection(
    stream: TcpStream,
    caller: ConnectedClient,
    permit: Option<Arc<EvictablePermit>>,
    context: Arc<IngressContext>,
    tls: Arc<tls::CurrentTls>,
    stop: CancellationToken,
) {
    let Some(permit) = permit else { return refuse(stream, tls.get().is_some()).await };
    let _counted = context.board.client();
    // Answers are small and written at once; Nagle's algorithm would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "client disconnected before its first request: {error}");
    }
    let address = stream.local_addr().ok().map(|address| address.ip().to_canonical());
    let write_timeout = context.views.config().listen.write_timeout;
    let stream = match tls.get() {
        None => Some(ClientStream::Left(WriteTimeout::new(stream, write_timeout))),
        // Boxed, so that connections without TLS do not reserve the space.
        Some(identity) => {
            Box::pin(accept_tls(stream, &identity, write_timeout, &permit, &stop)).await
        }
    };
    let Some(stream) = stream else { return };
    let first_request = CancellationToken::new();
    let service = service_fn(|request| {
        first_request.cancel();
        let (context, permit) = (Arc::clone(&context), Arc::clone(&permit));
        let in_use = permit.run();
        route::respond(context, permit, caller, address, request).map(move |response| {
            Ok::<_, Infallible>(response.map(|body| InUseBody { body, _use: in_use }))
        })
    });
    let serving = http1_server().serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let served = tokio::select! {
        biased;
        served = serving.as_mut() => served,
        () = shutdown_after_first_request(&stop, &first_request) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
        () = wait_for_eviction(&permit) => {
            serving.as_mut().graceful_shutdown();
            match finish_request(&permit, serving).await {
                Some(served) => served,
                None => return tracing::debug!("client connection closed: another client needs the capacity, or no valid request arrived in time"),
            }
        }
    };
    if let Err(error) = served {
        tracing::debug!(error = chain(&error), "client connection ended early: {}", chain(&error));
    }
}

/// Performs the TLS handshake. Returns `None` if it fails, or if the connection must close first.
async fn accept_tls(
    stream: TcpStream,
    identity: &tls::TlsIdentity,
    write_timeout: Duration,
    permit: &EvictablePermit,
    stop: &CancellationToken,
) -> Option<ClientStream> {
    let accepted = tokio::select! {
        accepted = shake_hands(stream, identity, write_timeout) => accepted,
        // No request has arrived yet.
        () = stop.cancelled() => return None,
        () = wait_for_eviction(permit) => return None,
    };
    let log = |error: &AcceptError| {
        let cause = chain(error);
        tracing::debug!(
            error = cause,
            "client connection closed before its first request: {cause}"
        );
    };
    accepted.inspect_err(log).ok()
}

/// The body of an answer, which counts as in use until hyper has taken all of it.
struct InUseBody {
    body: Body,
    _use: EvictableUse,
}

impl hyper::body::Body for InUseBody {
    type Data = Bytes;
    type Error = <Body as hyper::body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Waits for the shutdown of the service, and then for the first request of the client. A client
/// whose connection closes before its first request would report a failure.
async fn shutdown_after_first_request(stop: &CancellationToken, first_request: &CancellationToken) {
    stop.cancelled().await;
    let _may_time_out =
        time::timeout(defaults::FIRST_REQUEST_TIMEOUT, first_request.cancelled()).await;
}

/// Waits until a connection must close: it was evicted, or proved nothing within its time limit.
async fn wait_for_eviction(permit: &EvictablePermit) {
    let mut over = std::pin::pin!(time::sleep(defaults::PROOF_TIMEOUT));
    let mut evicted = std::pin::pin!(permit.evicted());
    // Polled by hand: each request polls this, and after one valid request the timer is irrelevant.
    std::future::poll_fn(|context| match evicted.as_mut().poll(context) {
        Poll::Pending if !permit.is_trusted() => over.as_mut().poll(context),
        polled => polled,
    })
    .await;
}

/// Lets a connection that must close finish its request and write the answer. Returns `None` if the
/// connection does not end by itself.
async fn finish_request<T>(
    permit: &EvictablePermit,
    serving: impl Future<Output = T>,
) -> Option<T> {
    tokio::pin!(serving);
    // Between requests, only the rest of an answer is left to write.
    while permit.is_trusted() {
        match time::timeout(defaults::EVICTION_TIMEOUT, &mut serving).await {
            Ok(served) => return Some(served),
            Err(_) if permit.is_running() => {}
            Err(_) => return None,
        }
    }
    None
}

/// Answers a client for which there is no capacity: it may retry.
async fn refuse(mut stream: TcpStream, has_tls: bool) {
    tracing::debug!("client refused with status 503: all connections have requests in flight");
    if !has_tls {
        let _gone =
            time::timeout(defaults::EVICTION_TIMEOUT, stream.write_all(FULL_RESPONSE)).await;
    }
}

/// The response that is sent without reading the request. Source: RFC 9110, section 15.6.4.
const FULL_RESPONSE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
