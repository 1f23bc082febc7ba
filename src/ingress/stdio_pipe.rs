//! MCP over a pipe: newline-delimited messages from and to one client, in both eras.
//!
//! Source: MCP, "stdio". All requests of the client run in the task of its pipe and end with it.
//!
//! When a client closes its end, its requests have [`defaults::PIPE_CLOSE_TIMEOUT`] to finish and
//! are then cancelled; a broken pipe cancels them at once. During shutdown, metamcp stops reading
//! and answers the messages that it has read. It reports their number to an attached pipe.

use std::{collections::VecDeque, io, sync::Arc};

use bytes::BytesMut;
use futures_util::{
    StreamExt as _,
    future::{BoxFuture, OptionFuture},
    stream::FuturesUnordered,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    IngressContext, batch::BatchReplies, concurrent_requests::ConcurrentRequests,
    modern::subscription_stream::ListenRequest, write_timeout::WriteTimeout,
};
use crate::{
    capacity_holder::Holder,
    config::defaults,
    memory_budget::MeteredLines,
    protocol::{ByteChunks, Message},
    session::{ClientRecord, OutboxItem, OutboxReader, Session, sleep_until},
    unsent_messages::UnsentMessages,
    view::View,
};

mod messages;

/// The last message on a pipe during shutdown, with the number of messages that were read.
pub const DETACHED: &str = "mcp/detached";

/// The number of bytes per read: the capacity of pipes and sockets.
const READ_BYTES: usize = 64 << 10;

/// The reason why a pipe has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipeEnd {
    /// The client has disconnected.
    Disconnected,
    /// The client did not read its messages.
    Overflow,
    /// The service is shutting down.
    Stopped,
}

/// A pipe to a client, to be served with a view.
#[derive(Debug)]
pub struct ClientPipe<R, W> {
    /// The stream of messages from the client.
    pub reader: R,
    /// The lines already read; a line is limited to [`defaults::BODY_BYTES_MAX`].
    pub lines: MeteredLines,
    /// The stream of messages to the client.
    pub writer: W,
    /// The party that the connection counts for.
    pub holder: Holder,
    /// `true` if [`DETACHED`] must report the number of read messages on shutdown.
    pub reports_end: bool,
}

/// Serves `view` to the client at the other end of `pipe`. Not cancel safe. Running requests are
/// cancelled.
pub async fn serve<R, W>(
    context: Arc<IngressContext>,
    view: View,
    pipe: ClientPipe<R, W>,
) -> PipeEnd
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let _counted = context.board.client();
    let ClientPipe { mut reader, lines, writer, holder, reports_end } = pipe;
    let mut writer = WriteTimeout::new(writer, context.views.config().listen.write_timeout);
    let mut service = PipeService::new(context, view, lines, holder);
    let end = service.run(&mut reader, &mut writer).await;
    if end == PipeEnd::Stopped && reports_end {
        let params = format!(r#"{{"read":{}}}"#, service.n_read);
        service.unsent.push(Message::notification(DETACHED, Some(&params)).bytes().clone());
        if service.unsent.write(&mut writer).await.is_err() {
            return PipeEnd::Disconnected;
        }
    }
    end
}

/// A request or batch with its own sequence of messages.
enum MessageSource {
    Batch(Box<BatchReplies>),
    Listening(Box<ListenRequest>, CancellationToken),
}

/// A source together with its next message, or `None` at its end.
type Turn = BoxFuture<'static, Option<(MessageSource, ByteChunks)>>;

/// The state of a client's pipe.
struct PipeService {
    context: Arc<IngressContext>,
    view: View,
    /// The party that the pipe counts for.
    holder: Holder,
    /// The client as operators see it, once it has given its name.
    client: Option<Arc<ClientRecord>>,
    /// A session without state until the client has completed the handshake.
    session: Arc<Session>,
    lines: MeteredLines,
    /// The number of messages read from the pipe.
    n_read: u64,
    unsent: UnsentMessages,
    running: ConcurrentRequests,
    /// The batches and subscriptions.
    sources: FuturesUnordered<Turn>,
    /// The requests that have not started yet.
    waiting: VecDeque<Message>,
    /// The tokens that cancel running requests, by id in the client's spelling.
    cancellers: Vec<(Box<str>, CancellationToken)>,
    /// The message without an answer that is being delivered; later ones wait their turn.
    delivering: Option<BoxFuture<'static, ()>>,
    undelivered: VecDeque<Message>,
    /// The messages of servers that answer no request.
    reader: Option<OutboxReader>,
}

impl Drop for PipeService {
    fn drop(&mut self) {
        if let Some(id) = self.session.id() {
            self.context.views.sessions().end(id);
        }
    }
}

impl PipeService {
    fn new(context: Arc<IngressContext>, view: View, lines: MeteredLines, holder: Holder) -> Self {
        let session = Session::anonymous(view.scope(), holder);
        Self {
            context,
            view,
            holder,
            client: None,
            session,
            lines,
            n_read: 0,
            unsent: UnsentMessages::default(),
            running: ConcurrentRequests::default(),
            sources: FuturesUnordered::new(),
            waiting: VecDeque::new(),
            cancellers: Vec::new(),
            delivering: None,
            undelivered: VecDeque::new(),
            reader: None,
        }
    }

    async fn run<R, W>(&mut self, reader: &mut R, writer: &mut W) -> PipeEnd
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let stop = self.context.stop.clone();
        // The reason to stop reading, if any.
        let mut end = None;
        let mut close_at = None;
        loop {
            while end.is_none() && self.has_room() {
                let Some(line) = self.lines.next_line() else { break };
                self.handle_line(line);
            }
            self.start_waiting();
            if let Some(end) = end.filter(|_| self.is_done()) {
                return end;
            }
            let is_idle = self.unsent.is_empty();
            let reads = end.is_none() && self.has_room();
            let buffer = self.lines.buffer(if reads { READ_BYTES } else { 0 });
            tokio::select! {
                written = self.unsent.write(writer), if !is_idle => {
                    if let Err(error) = written {
                        tracing::debug!(%error, "client on a pipe disconnected: writing to it failed: {error}");
                        return PipeEnd::Disconnected;
                    }
                }
                read = read_unless_stopped(&stop, reader, buffer), if reads => match read {
                    None => end = Some(PipeEnd::Stopped),
                    Some(Ok(1..)) => {}
                    Some(_) => {
                        self.lines.last_line().into_iter().for_each(|line| self.handle_line(line));
                        end = Some(PipeEnd::Disconnected);
                        close_at = Some(Instant::now() + defaults::PIPE_CLOSE_TIMEOUT);
                    }
                },
                // Output is requested only while the client reads.
                next = self.running.next(), if is_idle && self.running.len() > 0 => {
                    next.into_iter().for_each(|event| self.handle_event(event));
                }
                Some(turn) = self.sources.next(), if is_idle => {
                    if let Some((source, message)) = turn {
                        self.unsent.push(message);
                        self.sources.push(source.turn());
                    }
                }
                Some(()) = OptionFuture::from(self.delivering.as_mut()) => self.deliver_next(),
                next = OutboxReader::next_of(&mut self.reader), if is_idle => match next {
                    OutboxItem::Event(_, message) => self.unsent.push(message),
                    OutboxItem::Closed => self.reader = None,
                    OutboxItem::Overflow => {
                        tracing::warn!("client on a pipe disconnected: the client does not read its messages as fast as they arrive");
                        return PipeEnd::Overflow;
                    }
                },
                () = stop.cancelled(), if end.is_none() => end = Some(PipeEnd::Stopped),
                () = sleep_until(close_at) => return PipeEnd::Disconnected,
            }
        }
    }

    /// Returns whether more may be read. Requests do not count: surplus ones are refused, so that
    /// cancellations and answers behind them are still found.
    fn has_room(&self) -> bool {
        self.undelivered.len() < defaults::PIPE_DELIVERIES_MAX
            && self.unsent.n_bytes() < defaults::UNREAD_BYTES
    }

    /// Returns whether all messages are processed and all output is written.
    fn is_done(&self) -> bool {
        self.n_running() == 0
            && self.waiting.is_empty()
            && self.delivering.is_none()
            && self.unsent.is_empty()
    }

    fn n_running(&self) -> usize {
        self.running.len() + self.sources.len()
    }
}

impl MessageSource {
    /// Advances to the next message.
    fn turn(mut self) -> Turn {
        Box::pin(async move {
            let message = match &mut self {
                Self::Batch(replies) => replies.next_for_pipe().await?,
                // Source: MCP 2026-07-28, "Cancellation": a cancelled request gets no answer.
                Self::Listening(listening, cancelled) => tokio::select! {
                    biased;
                    () = cancelled.cancelled() => return None,
                    message = listening.next() => message?.into(),
                },
            };
            Some((self, message))
        })
    }
}

/// Reads bytes; `None` after the request to stop, which leaves all later lines to the successor.
/// Cancel safe.
async fn read_unless_stopped<R: AsyncRead + Unpin>(
    stop: &CancellationToken,
    reader: &mut R,
    buffer: &mut BytesMut,
) -> Option<io::Result<usize>> {
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        read = reader.read_buf(buffer) => Some(read),
    }
}
