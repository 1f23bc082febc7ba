//! The metrics: at `/metrics` of the address for clients, and on a listener of their own.
//!
//! The listener serves nothing else and asks for no token: its address decides who may read.

use std::{convert::Infallible, net::IpAddr, sync::Arc};

use bytes::Bytes;
use hyper::{Method, Request, StatusCode, body::Incoming, header::ACCEPT, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Body, IngressContext, Response, client_connections::http1_server, error::IngressError,
    http_response, origin, write_timeout::WriteTimeout,
};
use crate::{
    accept_loop,
    config::defaults,
    error_report::chain,
    metrics::{self, MetricsForm},
    telemetry::liveness::LoopPulse,
};

/// The path of the metrics.
pub(super) const PATH: &str = "/metrics";

/// The answer at another path of the listener.
const NOTHING_ELSE: &[u8] = b"This address serves only GET /metrics.\n";

/// Serves the metrics on `listener` until `stop`. Open connections then complete their current
/// answer, in tasks owned by `tasks`. Cancel safe. A connection that was not accepted yet stays in
/// the backlog.
pub async fn serve_metrics(
    listener: TcpListener,
    context: Arc<IngressContext>,
    pulse: LoopPulse,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    let stopped = stop.clone();
    let serve_one = |stream| serve_connection(stream, Arc::clone(&context), stopped.clone());
    let n_permits = defaults::METRICS_CONNECTIONS_MAX;
    accept_loop::accept(listener, n_permits, pulse, stop, tasks, serve_one).await;
}

async fn serve_connection(
    stream: TcpStream,
    context: Arc<IngressContext>,
    stop: CancellationToken,
) {
    let address = stream.local_addr().ok().map(|address| address.ip().to_canonical());
    let stream = WriteTimeout::new(stream, context.views.config().listen.write_timeout);
    let service = service_fn(|request| {
        let context = Arc::clone(&context);
        async move {
            let answered = answer(&context, address, &request).await;
            Ok::<_, Infallible>(answered.unwrap_or_else(IngressError::into_response))
        }
    });
    let serving = http1_server().serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        let error = chain(&error);
        tracing::debug!(error, "connection of a reader of metrics ended early: {error}");
    }
}

async fn answer(
    context: &IngressContext,
    address: Option<IpAddr>,
    request: &Request<Incoming>,
) -> Result<Response, IngressError> {
    // A web page must not read the metrics under a host name of its own.
    origin::check(request.headers(), &context.views.config().listen, address)?;
    if request.uri().path() != PATH {
        let body = Body::Left(Bytes::from_static(NOTHING_ELSE).into());
        return Ok(http_response::with_body(StatusCode::NOT_FOUND, "text/plain", body));
    }
    respond(context, request).await
}

/// Returns all metrics, in the text form that the reader accepts.
pub(super) async fn respond(
    context: &IngressContext,
    request: &Request<Incoming>,
) -> Result<Response, IngressError> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(IngressError::MethodNotAllowed("GET, HEAD"));
    }
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let form = MetricsForm::accepted(accept);
    let (calls, sizes) = (context.views.calls(), context.views.list_sizes());
    let text = metrics::exposition(&context.board, calls, sizes, form).await;
    // Cannot fail: the text is in memory.
    let text = Bytes::from(text.unwrap_or_default());
    Ok(http_response::with_body(StatusCode::OK, form.content_type(), Body::Left(text.into())))
}
