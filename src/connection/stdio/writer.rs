//! The writer of a link: the queue of frames, and the batches in which they are written.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::mpsc::{self, error::TrySendError},
};
use tokio_util::sync::CancellationToken;

use super::super::{Connection, RequestFailure};
use crate::{
    config::defaults,
    protocol::{ByteChunks, ndjson::on_one_line},
};

/// Frames up to this size, in bytes, are copied together and written at once.
const BATCH_BYTES: usize = 64 << 10;

/// One line for the server, with the id of the request that it is, if any.
#[derive(Debug)]
pub(super) struct Frame {
    /// Not copied together: a large request would need twice its memory while it waits.
    pub(super) message: ByteChunks,
    pub(super) request: Option<u64>,
}

/// The frames that found the queue full and have a sender that does not wait.
#[derive(Debug, Default)]
pub(super) struct OverflowFrames(Mutex<Vec<Frame>>);

/// The frames to be written.
pub(super) struct FrameQueue {
    pub(super) frames: mpsc::Receiver<Frame>,
    pub(super) overflow: Arc<OverflowFrames>,
}

impl OverflowFrames {
    /// Queues a frame, or keeps it if the queue is full.
    pub(super) fn send(&self, frames: &mpsc::Sender<Frame>, frame: Frame) {
        // Locked before the queue is tried: the writer looks here after it has emptied the queue,
        // so that no frame stays here while it waits for the next one.
        let mut overflow = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(TrySendError::Full(frame)) = frames.try_send(frame)
            && overflow.len() < defaults::SIDE_MESSAGE_QUEUE
        {
            overflow.push(frame);
        }
    }

    fn take(&self) -> Vec<Frame> {
        mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes queued frames until `stop` is cancelled, then closes the server's input.
///
/// Requests without a written byte fail as not executed.
pub(super) async fn write(
    mut stdin: impl AsyncWrite + Unpin,
    FrameQueue { mut frames, overflow }: FrameQueue,
    connection: Arc<Connection>,
    stop: CancellationToken,
) {
    let mut batch = Batch::default();
    loop {
        let first = tokio::select! {
            () = stop.cancelled() => break,
            frame = frames.recv() => frame,
        };
        let Some(first) = first else { break };
        batch.push(first, &connection);
        while batch.n_bytes < BATCH_BYTES
            && let Ok(frame) = frames.try_recv()
        {
            batch.push(frame, &connection);
        }
        for frame in overflow.take() {
            batch.push(frame, &connection);
        }
        tokio::select! {
            is_written = batch.write(&mut stdin) => if !is_written { break },
            () = stop.cancelled() => break,
        }
    }
    drop(stdin);
    // First, or requests that are sent again would use this connection once more.
    connection.gone.cancel();
    for request in batch.unwritten() {
        connection.fail(request, RequestFailure::Gone);
    }
    frames.close();
    while let Some(frame) = frames.recv().await {
        if let Some(request) = frame.request {
            connection.fail(request, RequestFailure::Gone);
        }
    }
}

/// Frames that are written together.
#[derive(Default)]
struct Batch {
    /// Small messages, copied together.
    bytes: BytesMut,
    /// The data before `bytes`: large messages, and the data before those.
    before: VecDeque<Bytes>,
    /// The total number of bytes, and the number of written ones.
    n_bytes: usize,
    n_written: usize,
    /// The offset at which each request begins.
    requests: Vec<(usize, u64)>,
}

impl Batch {
    fn push(&mut self, frame: Frame, connection: &Connection) {
        if let Some(request) = frame.request {
            // Its caller no longer waits, so it is not sent at all.
            if !connection.is_waiting(request) {
                connection.forget(request);
                return;
            }
            self.requests.push((self.n_bytes, request));
        }
        self.n_bytes += frame.message.len() + 1;
        for piece in frame.message {
            let piece = on_one_line(piece);
            if piece.len() < defaults::MEMORY_COUNTED_MIN {
                self.bytes.extend_from_slice(&piece);
            } else {
                self.before.push_back(self.bytes.split().freeze());
                self.before.push_back(piece);
            }
        }
        self.bytes.extend_from_slice(b"\n");
    }

    /// Writes everything and empties the batch; `false` when the pipe is broken. Cancel safe: the
    /// batch records what was written.
    async fn write(&mut self, stdin: &mut (impl AsyncWrite + Unpin)) -> bool {
        while let Some(piece) = self.before.front_mut() {
            if piece.is_empty() {
                self.before.pop_front();
                continue;
            }
            match stdin.write(piece).await {
                Ok(0) | Err(_) => return false,
                Ok(n_bytes) => {
                    self.n_written += n_bytes;
                    piece.advance(n_bytes);
                }
            }
        }
        while self.n_written < self.n_bytes {
            let start = self.bytes.len() - (self.n_bytes - self.n_written);
            match stdin.write(&self.bytes[start..]).await {
                Ok(0) | Err(_) => return false,
                Ok(n_bytes) => self.n_written += n_bytes,
            }
        }
        // The memory that large messages needed must not be kept.
        if self.bytes.capacity() > 2 * BATCH_BYTES {
            self.bytes = BytesMut::new();
        }
        self.bytes.clear();
        (self.n_bytes, self.n_written) = (0, 0);
        self.requests.clear();
        true
    }

    /// Returns the requests without a written byte.
    fn unwritten(&self) -> impl Iterator<Item = u64> {
        let n_written = self.n_written;
        self.requests.iter().filter(move |(start, _)| *start >= n_written).map(|(_, id)| *id)
    }
}
