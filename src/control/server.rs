//! Accepts operators on the control socket.

use std::sync::Arc;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    time::{self, Duration, MissedTickBehavior},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::answer;
use crate::{
    config::defaults,
    protocol::{
        RpcError,
        error::INVALID_REQUEST,
        ndjson::{Line, Lines},
    },
    status::Board,
    telemetry::liveness::Pulse,
};

/// How long accepting pauses when the system has no descriptor or memory to spare.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves operators on `listener` until `stop`.
///
/// # Cancel safety
///
/// Safe: a connection that was not accepted yet stays in the backlog.
pub async fn serve(
    listener: UnixListener,
    board: Arc<Board>,
    pulse: Pulse,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    let seats = Arc::new(Semaphore::new(defaults::CONTROL_CONNECTIONS_MAX));
    let mut heartbeat = time::interval(defaults::PULSE);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let accept = async || {
        let seat = Arc::clone(&seats).acquire_owned().await.expect("the semaphore is never closed");
        listener.accept().await.map(|(stream, _peer)| (stream, seat))
    };
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = heartbeat.tick() => pulse.beat(),
            accepted = accept() => match accepted {
                Ok((stream, seat)) => {
                    let (board, stop) = (Arc::clone(&board), stop.clone());
                    tasks.spawn(async move {
                        tokio::select! {
                            () = connection(stream, &board) => {}
                            () = stop.cancelled() => {}
                        }
                        drop(seat);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept operators for a moment");
                    time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

async fn connection(mut stream: UnixStream, board: &Board) {
    if let Ok(peer) = stream.peer_cred() {
        tracing::debug!(peer_uid = peer.uid(), peer_pid = peer.pid(), "operator connected");
    }
    let mut lines = Lines::new(defaults::CONTROL_LINE_BYTES_MAX);
    loop {
        lines.buffer().reserve(4096);
        match stream.read_buf(lines.buffer()).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        while let Some(line) = lines.next_line() {
            let answer = match line {
                Line::Whole(line) => answer(board, line),
                Line::Oversized(line) => {
                    let text = format!(
                        "a line of {} bytes is longer than {}",
                        line.length,
                        defaults::CONTROL_LINE_BYTES_MAX
                    );
                    Some(RpcError::new(INVALID_REQUEST, "LINE_TOO_LONG", text).render(None))
                }
            };
            if let Some(answer) = answer {
                let line = [&answer[..], b"\n"].concat();
                if stream.write_all(&line).await.is_err() {
                    return;
                }
            }
        }
    }
}
