//! Accepts clients and gives each its task.

use std::sync::Arc;

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    time,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Edge,
    handshake::{Wire, shake_hands},
    quiet::Quiet,
    route,
    stall::Stall,
};
use crate::{acceptor, config::defaults, report::chain, telemetry::liveness::Pulse, tls};

/// Serves clients on `listener` until `stop`, through TLS where `tls` has a certificate; connections
/// that are open then finish their current answer, in tasks that `tasks` owns.
///
/// # Cancel safety
///
/// Safe: a connection that was not accepted yet stays in the backlog.
pub async fn serve(
    listener: TcpListener,
    edge: Arc<Edge>,
    tls: Arc<tls::Current>,
    pulse: Pulse,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    let stopped = stop.clone();
    let serve = |stream| {
        let (edge, tls) = (Arc::clone(&edge), Arc::clone(&tls));
        Quiet::new(connection(stream, edge, tls, stopped.clone()))
    };
    acceptor::accept(listener, defaults::CLIENT_CONNECTIONS_MAX, pulse, stop, tasks, serve).await;
}

async fn connection(
    stream: TcpStream,
    edge: Arc<Edge>,
    tls: Arc<tls::Current>,
    stop: CancellationToken,
) {
    let _counted = edge.board.client();
    // Answers are small and written at once: waiting for more would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "client went away");
    }
    let address = stream.local_addr().ok().map(|address| address.ip().to_canonical());
    let write_timeout = edge.views.config().listen.write_timeout;
    let stream = match tls.get() {
        None => Wire::Left(Stall::new(stream, write_timeout)),
        Some(identity) => {
            // Boxed: connections without it need not have the room.
            let shaking = Box::pin(shake_hands(stream, &identity, write_timeout));
            let shaken = tokio::select! {
                shaken = shaking => shaken,
                // Nothing was asked yet.
                () = stop.cancelled() => return,
            };
            match shaken {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::debug!(error = chain(&error), "client not let in");
                    return;
                }
            }
        }
    };
    let asked = CancellationToken::new();
    let service = service_fn(|request| {
        asked.cancel();
        let edge = Arc::clone(&edge);
        async move { Ok::<_, std::convert::Infallible>(route::respond(edge, address, request).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(defaults::HEADER_TIMEOUT)
        .max_buf_size(defaults::HTTP_BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = stopped_and_asked(&stop, &asked) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(error = chain(&error), "client connection ended early");
    }
}

/// Waits for the stop of the service, and then for the first request of a client, which has connected
/// to have one answered: without it, closing its connection would be taken for a failure.
async fn stopped_and_asked(stop: &CancellationToken, asked: &CancellationToken) {
    stop.cancelled().await;
    let _it_may_not_ask = time::timeout(defaults::FIRST_REQUEST_PATIENCE, asked.cancelled()).await;
}
