//! Accepts clients and gives each its task.

use std::{sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{self, MissedTickBehavior},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Edge, route};
use crate::{config::defaults, telemetry::liveness::Pulse};

/// How long accepting pauses when the system has no descriptor or memory to spare.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves clients on `listener` until `stop`; connections that are open then finish their current
/// answer, in tasks that `tasks` owns.
///
/// # Cancel safety
///
/// Safe: a connection that was not accepted yet stays in the backlog.
pub async fn serve(
    listener: TcpListener,
    edge: Arc<Edge>,
    pulse: Pulse,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    let seats = Arc::new(Semaphore::new(defaults::CLIENT_CONNECTIONS_MAX));
    let mut heartbeat = time::interval(defaults::PULSE);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = heartbeat.tick() => pulse.beat(),
            accepted = accept(&listener, &seats) => match accepted {
                Ok((stream, seat)) => {
                    tasks.spawn(connection(stream, seat, Arc::clone(&edge), stop.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept clients for a moment");
                    time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

async fn accept(
    listener: &TcpListener,
    seats: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, OwnedSemaphorePermit)> {
    // A seat first: who finds none waits in the backlog.
    let seat = Arc::clone(seats).acquire_owned().await.expect("the semaphore is never closed");
    let (stream, _peer) = listener.accept().await?;
    Ok((stream, seat))
}

async fn connection(
    stream: TcpStream,
    seat: OwnedSemaphorePermit,
    edge: Arc<Edge>,
    stop: CancellationToken,
) {
    let _counted = edge.board.client();
    // Answers are small and written at once: waiting for more would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "client went away");
    }
    let service = service_fn(move |request| {
        let edge = Arc::clone(&edge);
        async move { Ok::<_, std::convert::Infallible>(route::respond(edge, request).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(defaults::HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "client connection ended early");
    }
    drop(seat);
}
