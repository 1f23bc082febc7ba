//! Accepts operators on the control socket.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Desk, answer};
use crate::{
    acceptor,
    config::defaults,
    protocol::{
        RpcError,
        error::INVALID_REQUEST,
        ndjson::{Line, Lines},
    },
    telemetry::liveness::Pulse,
};

/// Serves operators on `listener` until `stop`.
///
/// # Cancel safety
///
/// Safe: a connection that was not accepted yet stays in the backlog.
pub async fn serve(
    listener: UnixListener,
    desk: Desk,
    pulse: Pulse,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    let stopped = stop.clone();
    let serve = |stream| {
        let (desk, stop) = (desk.clone(), stopped.clone());
        async move {
            tokio::select! {
                () = connection(stream, &desk) => {}
                () = stop.cancelled() => {}
            }
        }
    };
    acceptor::accept(listener, defaults::CONTROL_CONNECTIONS_MAX, pulse, stop, tasks, serve).await;
}

async fn connection(mut stream: UnixStream, desk: &Desk) {
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
                Line::Whole(line) => answer(desk, line).await,
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
