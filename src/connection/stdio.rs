//! The link over the pipes of a stdio server.
//!
//! One task writes, in the order of the queue. Frames that found it full follow after those in it,
//! so a cancellation never overtakes its request: at worst, the request is not sent. One task
//! reads, so that messages keep their order. One waits for the end.

use std::sync::Arc;

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::mpsc,
    task::{self, JoinHandle},
    time,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Connection, ConnectionOwner, RequestFailure, StdioPipe};
use crate::{
    child::{
        ChildExit, ErrorOutput, LaunchedServer, RunningServer, StdioServerKind, escalation,
        launcher::ServerPipes, stderr,
    },
    config::defaults,
    memory_budget::{MeteredLine, MeteredLines},
    protocol::ByteChunks,
};

mod writer;

use writer::{Frame, FrameQueue, OverflowFrames, write};

/// The number of bytes read at a time: the default capacity of a pipe.
const READ_BYTES: usize = 64 << 10;

/// The number of lines that are passed on before other tasks get a turn, so that a client has time
/// to take the last ones.
const LINES_PER_TURN: usize = defaults::NOTIFICATION_QUEUE / 8;

/// The sending end of a link.
#[derive(Debug)]
pub(super) struct StdioLink {
    frames: mpsc::Sender<Frame>,
    overflow: Arc<OverflowFrames>,
    kind: StdioServerKind,
    pub(super) pid: Option<u32>,
    pub(super) stderr_tail: stderr::StderrTail,
}

/// A server that has started and has no connection yet.
pub(super) struct StartedServer {
    launched: LaunchedServer,
    queue: FrameQueue,
    stderr_tail: stderr::StderrTail,
}

impl StdioLink {
    /// Returns a link to a server that has started, and its other end.
    pub(super) fn new(launched: LaunchedServer) -> (Self, StartedServer) {
        let (sender, frames) = mpsc::channel(defaults::WRITE_QUEUE);
        let overflow = Arc::<OverflowFrames>::default();
        let queue = FrameQueue { frames, overflow: Arc::clone(&overflow) };
        let (kind, pid) = (launched.running.kind(), launched.running.pid());
        let stderr_tail = stderr::StderrTail::default();
        let started = StartedServer { launched, queue, stderr_tail: stderr_tail.clone() };
        (Self { frames: sender, overflow, kind, pid, stderr_tail }, started)
    }

    /// Returns the name of the transport for status output.
    pub(super) fn transport(&self) -> &'static str {
        match self.kind {
            StdioServerKind::Process => "stdio",
            StdioServerKind::Unit(_) => "unit",
        }
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
        self.overflow.send(&self.frames, frame);
    }
}

impl StartedServer {
    /// Runs the link until the server has ended.
    pub(super) fn run(self, connection: &Arc<Connection>, tasks: &TaskTracker) {
        let LaunchedServer { running, pipes: ServerPipes { stdin, stdout, stderr } } =
            self.launched;
        let tail = self.stderr_tail;
        let stop_writing = CancellationToken::new();
        let (server, redactor) = (connection.server.clone(), connection.redactor.clone());
        let writing = write(stdin, self.queue, Arc::clone(connection), stop_writing.clone());
        let pipes = PipeTasks {
            stderr: stderr.map(|stderr| {
                tasks.spawn(stderr::read_to_end(stderr, server, redactor, tail.clone()))
            }),
            writer: tasks.spawn(writing),
            reader: tasks.spawn(read(stdout, Arc::clone(connection))),
        };
        tasks.spawn(supervise(running, pipes, tail, stop_writing, Arc::clone(connection)));
    }
}

/// The reason why a link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndCause {
    /// metamcp closes it.
    Closed,
    /// The server has ended.
    Exited,
    /// The server has closed a pipe, but has not ended.
    HungUp(StdioPipe),
}

/// Waits for a reason to end the link, then ends the server and fails its requests.
async fn supervise(
    mut running: Box<dyn RunningServer>,
    mut pipes: PipeTasks,
    tail: stderr::StderrTail,
    stop_writing: CancellationToken,
    connection: Arc<Connection>,
) {
    let mut cause = tokio::select! {
        () = connection.closing.cancelled() => EndCause::Closed,
        _ = running.wait() => EndCause::Exited,
        // Without this pipe, metamcp can no longer exchange messages with the server.
        _ = &mut pipes.reader => EndCause::HungUp(StdioPipe::Output),
        _ = &mut pipes.writer => EndCause::HungUp(StdioPipe::Input),
    };
    connection.gone.cancel();
    stop_writing.cancel();
    let kind = running.kind();
    // When the server itself has ended, its waiters fail before its descendants are gone too.
    if cause != EndCause::Closed
        && let Ok(exit) = time::timeout(defaults::EXIT_TIMEOUT, running.wait()).await
    {
        cause = EndCause::Exited;
        pipes.settle().await;
        let mut output = tail.output();
        if !output.is_of_start {
            let is_only_instance = matches!(connection.owner, ConnectionOwner::Shared);
            let lines = running.last_lines(is_only_instance).await;
            output.lines.extend(lines.iter().map(|line| connection.quote(line)));
        }
        connection.fail_all(RequestFailure::Exited { kind: kind.clone(), exit, output });
    }
    // A caller waits for the end, unless the server was established and became idle.
    let is_idle = cause == EndCause::Closed
        && connection.profile().is_some()
        && connection.reason().is_none();
    let skip_drain =
        if is_idle { connection.skip_drain.clone() } else { escalation::cancelled_token() };
    let exit = running.terminate(skip_drain).await;
    pipes.settle().await;
    pipes.abort();
    connection.fail_all(report_end(&connection, cause, kind, exit, tail.output()));
    connection.down.cancel();
}

/// Logs the end of a server, and returns the failure of the requests that still wait for it.
fn report_end(
    connection: &Connection,
    cause: EndCause,
    kind: StdioServerKind,
    exit: ChildExit,
    output: ErrorOutput,
) -> RequestFailure {
    let server = &connection.server;
    match cause {
        EndCause::Closed => {
            tracing::info!(
                mcp_server = %server, %exit,
                "server `{server}` is closed: its {kind} {exit}"
            );
            // The connection may have been closed for a reason.
            connection.reason().cloned().unwrap_or(RequestFailure::Closed)
        }
        EndCause::Exited => {
            tracing::warn!(
                mcp_server = %server, %exit,
                "server `{server}` ended by itself: its {kind} {exit}"
            );
            RequestFailure::Exited { kind, exit, output }
        }
        EndCause::HungUp(pipe) => {
            tracing::warn!(
                mcp_server = %server, closed = %pipe, %exit,
                "server `{server}` closed its {pipe}, so metamcp ended it: its {kind} {exit}"
            );
            RequestFailure::HungUp { kind, pipe, exit, output }
        }
    }
}

/// The tasks at the three pipes.
struct PipeTasks {
    stderr: Option<JoinHandle<()>>,
    writer: JoinHandle<()>,
    reader: JoinHandle<()>,
}

impl PipeTasks {
    /// Waits a moment for the rest of the data in the pipes. A process that left the group may hold
    /// them open; it is not waited for.
    async fn settle(&mut self) {
        for task in [&mut self.writer, &mut self.reader].into_iter().chain(&mut self.stderr) {
            if !task.is_finished() {
                let _held = time::timeout(defaults::PIPE_DRAIN_TIMEOUT, task).await;
            }
        }
    }

    fn abort(&self) {
        for task in [&self.writer, &self.reader].into_iter().chain(&self.stderr) {
            task.abort();
        }
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
            let failure = connection.note_oversized(&line);
            (line, failure)
        }
        MeteredLine::Refused(line, exhausted) => (line, RequestFailure::NoMemory(exhausted)),
    };
    if let Some(id) = line.response_id() {
        connection.fail(id, failure);
    }
}
