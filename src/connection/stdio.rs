//! A link over the pipes of a child process.
//!
//! One task writes, in the order of the queue, so that a cancellation never overtakes its
//! request. One reads, so that the order of a server's messages is kept. One waits for the end.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{ChildStdin, ChildStdout},
    sync::mpsc,
    time::{self, Duration},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Connection, Failure};
use crate::{
    child::{Child, Program, SpawnError, process::Pipes, stderr},
    config::defaults,
    protocol::{
        Message,
        ndjson::{Line, Lines, on_one_line},
    },
};

/// How much is read at a time: what a pipe holds by default, in bytes.
const READ_BYTES: usize = 64 << 10;

/// Frames up to this size are copied together and written at once, in bytes.
const BATCH_BYTES: usize = 64 << 10;

/// How long the rest of standard error is waited for when a child has ended.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The sending end of a link.
#[derive(Debug)]
pub(super) struct Link {
    frames: mpsc::Sender<Bytes>,
    pid: u32,
}

/// A child that has started and is not wired to a connection yet.
pub(super) struct Started {
    child: Child,
    pipes: Pipes,
    queue: mpsc::Receiver<Bytes>,
}

impl Link {
    /// Starts `program`.
    pub(super) fn start(program: &Program) -> Result<(Self, Started), SpawnError> {
        let (child, pipes) = Child::spawn(program)?;
        let (frames, queue) = mpsc::channel(defaults::WRITE_QUEUE);
        Ok((Self { frames, pid: child.pid() }, Started { child, pipes, queue }))
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Queues a frame, waiting for room.
    pub(super) async fn send(&self, frame: Bytes) -> Result<(), Failure> {
        self.frames.send(on_one_line(frame)).await.map_err(|_| Failure::Closed)
    }

    /// Queues a frame if there is room: for what may be lost.
    pub(super) fn try_send(&self, frame: Bytes) {
        let _full_or_gone = self.frames.try_send(on_one_line(frame));
    }
}

impl Started {
    /// Runs the link until the child has ended, whoever ends it.
    pub(super) fn run(
        self,
        connection: &Arc<Connection>,
        secrets: Vec<String>,
        tasks: &TaskTracker,
    ) {
        let Pipes { stdin, stdout, stderr } = self.pipes;
        let tail = stderr::Tail::default();
        let hang_up = CancellationToken::new();
        let mut complaints =
            tasks.spawn(stderr::drain(stderr, connection.server.clone(), secrets, tail.clone()));
        let mut writer = tasks.spawn(write(stdin, self.queue, hang_up.clone()));
        let mut reader = tasks.spawn(read(stdout, Arc::clone(connection)));
        let connection = Arc::clone(connection);
        let mut child = self.child;
        tasks.spawn(async move {
            let was_asked = tokio::select! {
                () = connection.closing.cancelled() => true,
                _ = child.wait() => false,
                // Its output or input ended: whatever it does now, we cannot hear or tell.
                _ = &mut reader => false,
                _ = &mut writer => false,
            };
            connection.gone.cancel();
            hang_up.cancel();
            let exit = child.see_off().await;
            // With the whole group gone the pipes end; a process that left the group may hold
            // them open, and is not waited for.
            if !reader.is_finished() {
                let _held = time::timeout(LAST_WORDS, &mut reader).await;
            }
            if !complaints.is_finished() {
                let _held = time::timeout(LAST_WORDS, &mut complaints).await;
            }
            reader.abort();
            complaints.abort();
            if was_asked {
                tracing::info!(mcp_server = %connection.server, %exit, "server closed");
                connection.lose(Failure::Closed);
            } else {
                tracing::warn!(mcp_server = %connection.server, %exit, "server ended by itself");
                connection.lose(Failure::Exited { exit, stderr: tail.lines() });
            }
        });
    }
}

/// Writes queued frames until told to hang up, then closes the child's input by dropping it.
async fn write(
    mut stdin: ChildStdin,
    mut queue: mpsc::Receiver<Bytes>,
    hang_up: CancellationToken,
) {
    let mut frames = Vec::with_capacity(defaults::WRITE_QUEUE);
    let mut batch = BytesMut::new();
    loop {
        tokio::select! {
            () = hang_up.cancelled() => return,
            n_frames = queue.recv_many(&mut frames, defaults::WRITE_QUEUE) => {
                if n_frames == 0 {
                    return;
                }
            }
        }
        for frame in frames.drain(..) {
            batch.extend_from_slice(&frame);
            batch.extend_from_slice(b"\n");
            if batch.len() >= BATCH_BYTES && !put(&mut stdin, &mut batch, &hang_up).await {
                return;
            }
        }
        if !put(&mut stdin, &mut batch, &hang_up).await {
            return;
        }
    }
}

/// Writes the batch; `false` when the pipe is broken or the wait for it was called off.
async fn put(stdin: &mut ChildStdin, batch: &mut BytesMut, hang_up: &CancellationToken) -> bool {
    let written = tokio::select! {
        written = stdin.write_all(batch) => written.is_ok(),
        () = hang_up.cancelled() => false,
    };
    batch.clear();
    written
}

/// Reads messages until the pipe ends.
async fn read(mut stdout: ChildStdout, connection: Arc<Connection>) {
    let mut lines = Lines::new(defaults::MESSAGE_BYTES_MAX);
    loop {
        let buffer = lines.buffer();
        if buffer.capacity() - buffer.len() < READ_BYTES / 4 {
            buffer.reserve(READ_BYTES);
        }
        match stdout.read_buf(buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        while let Some(line) = lines.next_line() {
            match line {
                Line::Whole(line) => {
                    let length = line.len();
                    match Message::parse(line) {
                        Ok(message) => connection.receive(message, None),
                        Err(error) => connection.noise(&error.to_string(), length),
                    }
                }
                Line::Oversized(line) => {
                    connection.noise("longer than a message may be", line.length);
                    // Only an id that we wait for can be meant; the rest of the line is gone.
                    for id in line.id_candidates() {
                        connection.fail(id, Failure::Oversized { length: line.length });
                    }
                }
            }
        }
    }
}
