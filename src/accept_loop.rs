//! The accept loop, which limits the number of connections.

use std::{future::Future, io, sync::Arc};

use tokio::{
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{self, MissedTickBehavior},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{config::defaults, peer_process::ConnectedClient, telemetry::liveness::LoopPulse};

/// A source of connections.
pub trait Listener {
    /// A connection.
    type Stream: Send + 'static;

    /// Waits for the next connection. Cancel safe: a connection that was not accepted stays in the
    /// backlog.
    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Returns the client of a connection and assigns it a unique number: call this once per
    /// connection. Takes some microseconds, and does not block.
    fn caller(stream: &Self::Stream) -> ConnectedClient;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        self.accept().await.map(|(stream, _peer)| stream)
    }

    fn caller(stream: &TcpStream) -> ConnectedClient {
        ConnectedClient::of_tcp(stream)
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        self.accept().await.map(|(stream, _peer)| stream)
    }

    fn caller(stream: &UnixStream) -> ConnectedClient {
        ConnectedClient::of_unix(stream)
    }
}

/// Serves the connections of `listener` until `stop`, at most `n_permits` at a time; others wait in
/// the backlog. Each is served in a task that `tasks` tracks. Cancel safe: a connection that was
/// not accepted yet stays in the backlog.
pub async fn accept<L: Listener, F: Future<Output = ()> + Send + 'static>(
    listener: L,
    n_permits: usize,
    pulse: LoopPulse,
    stop: CancellationToken,
    tasks: TaskTracker,
    serve: impl Fn(L::Stream) -> F,
) {
    let permits = Arc::new(Semaphore::new(n_permits));
    let mut heartbeat = time::interval(defaults::LIVENESS_INTERVAL);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = heartbeat.tick() => pulse.beat(),
            accepted = accept_one(&listener, &permits) => match accepted {
                Ok((stream, permit)) => {
                    let served = serve(stream);
                    tasks.spawn(async move {
                        served.await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(
                        %error,
                        "cannot accept a connection, metamcp tries again: {error}"
                    );
                    time::sleep(defaults::ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

async fn accept_one<L: Listener>(
    listener: &L,
    permits: &Arc<Semaphore>,
) -> io::Result<(L::Stream, OwnedSemaphorePermit)> {
    // The permit comes first: without one, the connection stays in the backlog.
    let permit = Arc::clone(permits).acquire_owned().await.expect("the semaphore is never closed");
    Ok((listener.next().await?, permit))
}
