//! The link over the pipes of a stdio server.
//!
//! One task writes, in the order of the queue. Frames that found it full follow after those in it,
//! so a cancellation never overtakes its request: at worst, the request is not sent. One task
//! reads, so that messages keep their order. One waits for the end.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::mpsc::{self, error::TrySendError},
    task::{self, JoinHandle},
    time,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Connection, ConnectionOwner, RequestFailure, TransportKind};
use crate::{
    child::{LaunchedServer, StdioServerKind, escalation, launcher::ServerPipes, stderr},
    config::defaults,
    memory_budget::{MeteredLine, MeteredLines},
    protocol::{ByteChunks, ndjson::on_one_line},
};

/// The number of bytes read at a time: the default capacity of a pipe.
const READ_BYTES: usize = 64 << 10;

/// Frames up to this size, in bytes, are copied together and written at once.
const BATCH_BYTES: usize = 64 << 10;

/// The number of lines that are passed on before other tasks get a turn, so that a client has time
/// to take the last ones.
const LINES_PER_TURN: usize = defaults::NOTIFICATION_QUEUE / 8;

/// The sending end of a link.
#[derive(Debug)]
pub(super) struct StdioLink {
    frames: mpsc::Sender<Frame>,
    late: Arc<Late>,
    kind: StdioServerKind,
    pid: Option<u32>,
    tail: stderr::StderrTail,
}

/// One line for the server, with the id of the request that it is, if any.
#[derive(Debug)]
struct Frame {
    /// Not copied together: a large request would need twice its memory while it waits.
    message: ByteChunks,
    request: Option<u64>,
}

/// The frames that found the queue full and have a sender that does not wait.
#[derive(Debug, Default)]
struct Late(Mutex<Vec<Frame>>);

/// The frames to be written.
struct Queue {
    frames: mpsc::Receiver<Frame>,
    late: Arc<Late>,
}

/// A server that has started and has no connection yet.
pub(super) struct StartedServer {
    launched: LaunchedServer,
    queue: Queue,
    tail: stderr::StderrTail,
}

impl StdioLink {
    /// Returns a link to a server that has started, and its other end.
    pub(super) fn to(launched: LaunchedServer) -> (Self, StartedServer) {
        let (frames, queue) = mpsc::channel(defaults::WRITE_QUEUE);
        let late = Arc::<Late>::default();
        let queue = Queue { frames: queue, late: Arc::clone(&late) };
        let (kind, pid) = (launched.tenant.kind(), launched.tenant.pid());
        let tail = stderr::StderrTail::default();
        let started = StartedServer { launched, queue, tail: tail.clone() };
        (Self { frames, late, kind, pid, tail }, started)
    }

    /// Returns the name of the transport for status output.
    pub(super) fn transport(&self) -> &'static str {
        match self.kind {
            StdioServerKind::Process => "stdio",
            StdioServerKind::Unit(_) => "unit",
        }
    }

    /// Reserves what the server writes to standard error from now on for operators.
    pub(super) fn seal_errors(&self) {
        self.tail.seal();
    }

    /// Returns the last lines that the server wrote to standard error, for operators.
    pub(super) fn error_lines(&self) -> Vec<String> {
        self.tail.for_operators()
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Queues a frame, waiting for room.
    pub(super) async fn send(
        &self,
        message: ByteChunks,
        request: Option<u64>,
    ) -> Result<(), RequestFailure> {
        let frame = Frame { message, request };
        // The writer is gone, so the server will never read the frame.
        self.frames.send(frame).await.map_err(|_| RequestFailure::Gone)
    }

    /// Queues a frame without waiting: it is lost only if very many wait already.
    pub(super) fn try_send(&self, bytes: Bytes) {
        let frame = Frame { message: bytes.into(), request: None };
        self.late.send(&self.frames, frame);
    }
}

impl Late {
    /// Queues a frame, or keeps it if the queue is full.
    fn send(&self, frames: &mpsc::Sender<Frame>, frame: Frame) {
        // Locked before the queue is tried: the writer looks here after it has emptied the queue,
        // so that no frame stays here while it waits for the next one.
        let mut late = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(TrySendError::Full(frame)) = frames.try_send(frame)
            && late.len() < defaults::ASIDE_QUEUE
        {
            late.push(frame);
        }
    }

    fn take(&self) -> Vec<Frame> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl StartedServer {
    /// Runs the link until the server has ended.
    pub(super) fn run(self, connection: &Arc<Connection>, tasks: &TaskTracker) {
        let LaunchedServer { mut tenant, pipes: ServerPipes { stdin, stdout, stderr } } =
            self.launched;
        let tail = self.tail;
        let hang_up = CancellationToken::new();
        let (server, redactor) = (connection.server.clone(), connection.redactor.clone());
        let mut ends = Ends {
            complaints: stderr.map(|stderr| {
                tasks.spawn(stderr::read_to_end(stderr, server, redactor, tail.clone()))
            }),
            writer: tasks.spawn(write(stdin, self.queue, Arc::clone(connection), hang_up.clone())),
            reader: tasks.spawn(read(stdout, Arc::clone(connection))),
        };
        let connection = Arc::clone(connection);
        let kind = tenant.kind();
        tasks.spawn(async move {
            let mut cause = tokio::select! {
                () = connection.closing.cancelled() => Cause::Asked,
                _ = tenant.wait() => Cause::Ended,
                // Without this pipe, metamcp can no longer exchange messages with the server.
                _ = &mut ends.reader => Cause::HungUp(TransportKind::Output),
                _ = &mut ends.writer => Cause::HungUp(TransportKind::Input),
            };
            connection.gone.cancel();
            hang_up.cancel();
            // When the server itself has ended, its waiters fail before its descendants are gone
            // too.
            if cause != Cause::Asked
                && let Ok(exit) = time::timeout(defaults::END_PATIENCE, tenant.wait()).await
            {
                cause = Cause::Ended;
                ends.settle().await;
                let mut output = tail.output();
                if !output.is_of_start {
                    let is_alone = matches!(connection.party, ConnectionOwner::Shared);
                    let told = tenant.last_words(is_alone).await;
                    output.lines.extend(told.iter().map(|line| connection.quote(line)));
                }
                connection.fail_all(RequestFailure::Exited { kind: kind.clone(), exit, output });
            }
            // A caller waits for the end, unless the server was established and became idle.
            let is_idle = cause == Cause::Asked
                && connection.profile().is_some()
                && connection.reason().is_none();
            let hurry = if is_idle { connection.leaving.clone() } else { escalation::cancelled_token() };
            let exit = tenant.see_off(hurry).await;
            ends.settle().await;
            ends.abort();
            let (server, output) = (&connection.server, tail.output());
            connection.fail_all(match cause {
                Cause::Asked => {
                    tracing::info!(mcp_server = %server, %exit, "server closed");
                    // The connection may have been closed for a reason.
                    connection.reason().cloned().unwrap_or(RequestFailure::Closed)
                }
                Cause::Ended => {
                    tracing::warn!(mcp_server = %server, %exit, "server ended by itself");
                    RequestFailure::Exited { kind, exit, output }
                }
                Cause::HungUp(pipe) => {
                    tracing::warn!(mcp_server = %server, closed = %pipe, %exit, "server hung up and was ended");
                    RequestFailure::HungUp { kind, pipe, exit, output }
                }
            });
            connection.down.cancel();
        });
    }
}

/// The reason why a link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// metamcp closes it.
    Asked,
    /// The server has ended.
    Ended,
    /// The server has closed a pipe, but has not ended.
    HungUp(TransportKind),
}

/// The tasks at the three pipes.
struct Ends {
    complaints: Option<JoinHandle<()>>,
    writer: JoinHandle<()>,
    reader: JoinHandle<()>,
}

impl Ends {
    /// Waits a moment for the rest of the data in the pipes. A process that left the group may hold
    /// them open; it is not waited for.
    async fn settle(&mut self) {
        for end in [&mut self.writer, &mut self.reader].into_iter().chain(&mut self.complaints) {
            if !end.is_finished() {
                let _held = time::timeout(defaults::LAST_WORDS, end).await;
            }
        }
    }

    fn abort(&self) {
        for end in [&self.writer, &self.reader].into_iter().chain(&self.complaints) {
            end.abort();
        }
    }
}

/// Writes queued frames until `hang_up` is cancelled, then closes the server's input.
///
/// Requests without a written byte fail as not executed.
async fn write(
    mut stdin: impl AsyncWrite + Unpin,
    Queue { mut frames, late }: Queue,
    connection: Arc<Connection>,
    hang_up: CancellationToken,
) {
    let mut batch = Batch::default();
    loop {
        let first = tokio::select! {
            () = hang_up.cancelled() => break,
            frame = frames.recv() => frame,
        };
        let Some(first) = first else { break };
        batch.push(first, &connection);
        while batch.n_bytes < BATCH_BYTES
            && let Ok(frame) = frames.try_recv()
        {
            batch.push(frame, &connection);
        }
        for frame in late.take() {
            batch.push(frame, &connection);
        }
        tokio::select! {
            is_written = batch.write(&mut stdin) => if !is_written { break },
            () = hang_up.cancelled() => break,
        }
    }
    drop(stdin);
    // First, or requests that are sent again would come here once more.
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
            // No caller waits for it any more, so it is not sent at all.
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

/// Reads messages until the pipe ends.
async fn read(mut stdout: impl AsyncRead + Unpin, connection: Arc<Connection>) {
    let mut lines = MeteredLines::new(defaults::MESSAGE_BYTES_MAX);
    loop {
        let buffer = lines.buffer(READ_BYTES);
        let has_ended = matches!(stdout.read_buf(buffer).await, Ok(0) | Err(_));
        let mut n_taken = 0;
        while let Some(line) = lines.next_line() {
            take(line, &connection);
            n_taken += 1;
            // Clients that read get a turn before a burst exceeds the room in an inbox.
            if n_taken % LINES_PER_TURN == 0 {
                task::yield_now().await;
            }
        }
        if has_ended {
            // A server may end without a newline after its last line.
            if let Some(line) = lines.last_line() {
                take(line, &connection);
            }
            return;
        }
    }
}

fn take(line: MeteredLine, connection: &Arc<Connection>) {
    let (line, failure) = match line {
        MeteredLine::Whole(line) => return connection.receive_message(line, None),
        MeteredLine::Oversized(line) => {
            connection.note_non_message("longer than a message may be", line.length);
            let length = line.length;
            (line, RequestFailure::Oversized { length })
        }
        MeteredLine::Refused(line, exhausted) => (line, RequestFailure::NoMemory(exhausted)),
    };
    if let Some(id) = line.response_id() {
        connection.fail(id, failure);
    }
}
