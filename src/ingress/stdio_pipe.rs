//! MCP over a pipe: newline-delimited messages of one client both ways, of both eras.
//!
//! Source: MCP, "stdio". All requests of the client run in the task of its pipe, and end with it.
//!
//! A client that closes its end has gone: what it still waits for has [`defaults::PIPE_FAREWELL`] to be
//! answered, and is cancelled then, as at once where the pipe is broken. When the service stops, no
//! more is read, what was read is answered, and a pipe that was attached is told how far it was read.

use std::{collections::VecDeque, future, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use super::{
    IngressContext,
    batch::BatchReplies,
    concurrent::{self, ConcurrentRequests},
    legacy,
    modern::{self, listen::ListenRequest},
    reply::AcceptedForms,
    respond::IngressError,
    write_timeout::WriteTimeout,
};
use crate::{
    budget::{MeteredLine, MeteredLines},
    compute_pool::read_in_place,
    config::defaults,
    era::client_subscription::SubscriptionFilter,
    holder::Holder,
    protocol::{
        Batch, ByteChunks, Era, Message, MessageKind, RpcError,
        client_meta::{ClientMeta, version_of},
        jsonrpc::MessagePart,
        payloads::method,
        rpc_error::INTERNAL_ERROR,
        version,
    },
    session::{self, OutboxReader, Session},
    unsent_messages::UnsentMessages,
    view::View,
};

/// What is said last on a pipe whose service stops: how many messages of the client were taken.
pub const DETACHED: &str = "mcp/detached";

/// How much is read at a time, in bytes: what pipes and sockets hold.
const READ_BYTES: usize = 64 << 10;

/// Why a pipe has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipeEnd {
    /// Its client has gone.
    Gone,
    /// Its client did not take what was sent to it.
    Overtaken,
    /// The service stops.
    Stopped,
}

/// A pipe to a client that is to be served at a view.
#[derive(Debug)]
pub struct ClientPipe<R, W> {
    /// Where the client's messages come from.
    pub reader: R,
    /// What was read of them already; with a bound of [`defaults::BODY_BYTES_MAX`] for a line.
    pub lines: MeteredLines,
    /// Where messages for the client go.
    pub writer: W,
    /// The party that the connection counts for.
    pub holder: Holder,
    /// Tells the client with [`DETACHED`] how many messages were taken, if the service stops.
    pub tells_end: bool,
}

/// Serves the client at the other end of `pipe` what `view` shows.
///
/// # Cancel safety
///
/// Dropped, what runs is cancelled.
pub async fn serve<R, W>(edge: Arc<IngressContext>, view: View, pipe: ClientPipe<R, W>) -> PipeEnd
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let _counted = edge.board.client();
    let ClientPipe { mut reader, lines, writer, holder, tells_end } = pipe;
    let mut writer = WriteTimeout::new(writer, edge.views.config().listen.write_timeout);
    let mut service = Service::new(edge, view, lines, holder);
    let end = service.run(&mut reader, &mut writer).await;
    if end == PipeEnd::Stopped && tells_end {
        let params = format!(r#"{{"read":{}}}"#, service.n_taken);
        service.unsent.push(Message::notification(DETACHED, Some(&params)).bytes().clone());
        if service.unsent.write(&mut writer).await.is_err() {
            return PipeEnd::Gone;
        }
    }
    end
}

/// What has a stream of messages of its own.
enum Source {
    Batch(Box<BatchReplies>),
    Listening(Box<ListenRequest>, CancellationToken),
}

/// A source with what comes of it next; nothing when that was all.
type Turn = BoxFuture<'static, Option<(Source, ByteChunks)>>;

/// What is done for the client of a pipe.
struct Service {
    edge: Arc<IngressContext>,
    view: View,
    /// The party that the pipe counts for.
    holder: Holder,
    /// One that remembers nothing until the client has shaken hands.
    session: Arc<Session>,
    lines: MeteredLines,
    /// How many messages were taken from the pipe.
    n_taken: u64,
    unsent: UnsentMessages,
    running: ConcurrentRequests,
    /// Batches and listeners.
    sources: FuturesUnordered<Turn>,
    /// Requests that do not run yet.
    waiting: VecDeque<Message>,
    /// What cancels the requests that run, by their ids as the client wrote them.
    cancellers: Vec<(Box<str>, CancellationToken)>,
    /// What goes to servers and has no answer, in its order.
    delivering: Option<BoxFuture<'static, ()>>,
    undelivered: VecDeque<Message>,
    /// What servers say that answers no request.
    reader: Option<OutboxReader>,
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(id) = self.session.id() {
            self.edge.views.sessions().end(id);
        }
    }
}

impl Service {
    fn new(edge: Arc<IngressContext>, view: View, lines: MeteredLines, holder: Holder) -> Self {
        let session = Session::anonymous(view.scope(), holder);
        Self {
            edge,
            view,
            holder,
            session,
            lines,
            n_taken: 0,
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
        let stop = self.edge.stop.clone();
        // Nothing more is read, for this reason.
        let mut end = None;
        let mut gone_at = None;
        loop {
            while end.is_none() && self.has_room() {
                let Some(line) = self.lines.next_line() else { break };
                self.take(line);
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
                        tracing::debug!(%error, "a client on a pipe takes nothing any more");
                        return PipeEnd::Gone;
                    }
                }
                read = reader.read_buf(buffer), if reads => match read {
                    Ok(1..) => {}
                    Ok(0) | Err(_) => {
                        if let Some(line) = self.lines.last_line() {
                            self.take(line);
                        }
                        end = Some(PipeEnd::Gone);
                        gone_at = Some(Instant::now());
                    }
                },
                // Nothing more is asked for while the client does not read.
                next = self.running.next(), if is_idle && self.running.len() > 0 => {
                    if let Some(next) = next {
                        self.answered(next);
                    }
                }
                Some(turn) = self.sources.next(), if is_idle => {
                    if let Some((source, message)) = turn {
                        self.unsent.push(message);
                        self.sources.push(source.turn());
                    }
                }
                () = delivered(&mut self.delivering) => self.deliver_next(),
                next = OutboxReader::next_of(&mut self.reader), if is_idle => match next {
                    session::OutboxItem::Event(_, message) => self.unsent.push(message),
                    session::OutboxItem::Closed => self.reader = None,
                    session::OutboxItem::Overtaken => {
                        tracing::warn!("a client does not read its pipe: it is cut off");
                        return PipeEnd::Overtaken;
                    }
                },
                () = stop.cancelled(), if end.is_none() => end = Some(PipeEnd::Stopped),
                () = farewell(gone_at) => return PipeEnd::Gone,
            }
        }
    }

    /// Tells whether more may be read. Requests do not count: one too many is refused, so that
    /// cancellations and answers behind it are found.
    fn has_room(&self) -> bool {
        self.undelivered.len() < defaults::PIPE_DELIVERIES_MAX
            && self.unsent.n_bytes() < defaults::UNREAD_BYTES
    }

    /// Tells whether all that was taken is done and said.
    fn is_done(&self) -> bool {
        self.n_running() == 0
            && self.waiting.is_empty()
            && self.delivering.is_none()
            && self.unsent.is_empty()
    }

    fn n_running(&self) -> usize {
        self.running.len() + self.sources.len()
    }

    fn take(&mut self, line: MeteredLine) {
        self.n_taken += 1;
        match line {
            MeteredLine::Whole(bytes) if Batch::is_batch(&bytes) => self.take_batch(&bytes),
            MeteredLine::Whole(bytes) => match read_in_place(bytes.len(), || Message::parse(bytes))
            {
                Ok(message) => self.take_message(message),
                Err(error) => self.refuse(&error.into(), None),
            },
            MeteredLine::Oversized(line) => {
                self.unsent.push(line.refusal(defaults::BODY_BYTES_MAX));
            }
            MeteredLine::Refused(line, exhausted) => {
                self.unsent.push(exhausted.to_rpc().render(line.request_id().as_deref()));
            }
        }
    }

    fn take_message(&mut self, message: Message) {
        match message.shape() {
            MessageKind::Request if self.waiting.len() >= defaults::PIPE_REQUESTS_MAX => {
                let era = if version_of(&message).is_some() { Era::Modern } else { Era::Legacy };
                self.unsent.push(too_many(message.part(MessagePart::Id), era));
            }
            MessageKind::Request => {
                self.waiting.push_back(message);
                self.start_waiting();
            }
            MessageKind::Notification if message.method() == Some(method::CANCELLED) => {
                if let Some(id) = message.part(MessagePart::CancelledId) {
                    self.cancel(id);
                }
            }
            MessageKind::Notification | MessageKind::Response => {
                self.undelivered.push_back(message);
                if self.delivering.is_none() {
                    self.deliver_next();
                }
            }
        }
    }

    fn take_batch(&mut self, bytes: &Bytes) {
        let version = self.session.version().unwrap_or(version::ASSUMED);
        if !version::has_batches(version) {
            return self.refuse(&IngressError::NoBatches(version.to_owned()), None);
        }
        let reading = || Batch::parse(bytes, defaults::BATCH_MESSAGES_MAX);
        let batch = match read_in_place(bytes.len(), reading) {
            Ok(batch) => batch,
            Err(error) => return self.refuse(&error.into(), None),
        };
        if self.n_running() >= defaults::PIPE_REQUESTS_MAX {
            return self.unsent.push(too_many(None, Era::Legacy));
        }
        let (edge, accepts) = (Arc::clone(&self.edge), on_pipe());
        let replies = legacy::several(edge, &self.view, batch, &self.session, accepts);
        self.sources.push(Source::Batch(Box::new(replies)).turn());
    }

    fn refuse(&mut self, error: &IngressError, id: Option<&str>) {
        tracing::debug!(%error, "message on a pipe refused");
        self.unsent.push(error.render(id));
    }

    fn start_waiting(&mut self) {
        while self.n_running() < defaults::PIPE_REQUESTS_MAX
            && let Some(request) = self.waiting.pop_front()
        {
            self.start(request);
        }
    }

    fn start(&mut self, request: Message) {
        let is_handshake = request.method() == Some(method::INITIALIZE);
        let asked = if is_handshake { None } else { version_of(&request) };
        if let Some(asked) = asked {
            let id = request.part(MessagePart::Id).map(str::to_owned);
            if let Err(error) = self.start_modern(request, &asked) {
                self.refuse(&error, id.as_deref());
            }
            return;
        }
        // A pipe is a session: a second handshake changes nothing.
        if is_handshake && self.session.id().is_none() {
            self.session = legacy::open(&self.edge, &self.view, &request, self.holder);
            self.reader = Some(self.session.read(None));
        }
        let session = Arc::clone(&self.session);
        self.run_request(request, &session);
    }

    /// Starts a request of the modern era, which stands for itself.
    fn start_modern(&mut self, request: Message, asked: &str) -> Result<(), IngressError> {
        modern::served(Some(asked))?;
        let introduction = ClientMeta::read(&request)?;
        if request.method() == Some(method::SUBSCRIPTIONS_LISTEN) {
            let filter = SubscriptionFilter::read(&request)?;
            let id = request.part(MessagePart::Id).unwrap_or("null");
            let cancelled = CancellationToken::new();
            self.cancellers.push((id.into(), cancelled.clone()));
            let listening =
                ListenRequest::new(Arc::clone(&self.edge), &self.view, filter, &request);
            self.sources.push(Source::Listening(Box::new(listening), cancelled).turn());
            return Ok(());
        }
        let session = Session::of_request(self.view.scope(), introduction, self.holder);
        self.run_request(request, &session);
        Ok(())
    }

    fn run_request(&mut self, request: Message, session: &Arc<Session>) {
        let edge = Arc::clone(&self.edge);
        let reply = Box::new(legacy::reply(edge, &self.view, request, session, on_pipe()));
        self.cancellers.push((reply.id().into(), reply.canceller()));
        self.running.push(reply);
    }

    fn answered(&mut self, next: concurrent::ConcurrentEvent) {
        match next {
            concurrent::ConcurrentEvent::Aside(message) => self.unsent.push(message),
            concurrent::ConcurrentEvent::Answer { id, message } => {
                self.forget(&id);
                self.unsent.push(message);
            }
        }
    }

    fn forget(&mut self, id: &str) {
        if let Some(at) = self.cancellers.iter().position(|(known, _)| **known == *id) {
            self.cancellers.swap_remove(at);
        }
    }

    /// Cancels a request, whatever era it is of; it has no answer then.
    fn cancel(&mut self, id: &str) {
        let n_waiting = self.waiting.len();
        self.waiting.retain(|request| request.part(MessagePart::Id) != Some(id));
        let mut meant = self.cancellers.iter().filter(|(known, _)| **known == *id);
        match (meant.next(), meant.next()) {
            (Some((_, canceller)), None) => {
                canceller.cancel();
                self.forget(id);
            }
            // It may be in a batch.
            (None, None) if self.waiting.len() < n_waiting || self.session.cancel(id) => {}
            // Better none is cancelled than another one.
            _ => tracing::debug!(
                "cancellation of a request that does not run, or is not the only one"
            ),
        }
    }

    fn deliver_next(&mut self) {
        self.delivering = self.undelivered.pop_front().map(|message| {
            let (edge, view, session) =
                (Arc::clone(&self.edge), self.view.clone(), Arc::clone(&self.session));
            let delivering: BoxFuture<'static, ()> = Box::pin(async move {
                legacy::deliver(&edge, &view, &message, &session).await;
            });
            delivering
        });
    }
}

impl Source {
    /// Goes on to what comes next.
    fn turn(mut self) -> Turn {
        Box::pin(async move {
            let message = match &mut self {
                Self::Batch(replies) => replies.next_for_pipe().await?,
                // Source: MCP 2026-07-28, "Cancellation": who has cancelled waits for nothing.
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

/// Whatever comes goes over the pipe, once.
fn on_pipe() -> AcceptedForms {
    AcceptedForms { events: true, ..AcceptedForms::default() }
}

/// Waits until what is on its way to a server is there; for ever if nothing is.
async fn delivered(delivering: &mut Option<BoxFuture<'static, ()>>) {
    match delivering {
        Some(delivering) => delivering.await,
        None => future::pending().await,
    }
}

/// Waits until a client that went at this moment is not waited for any more.
async fn farewell(gone_at: Option<Instant>) {
    match gone_at {
        Some(gone_at) => time::sleep_until(gone_at + defaults::PIPE_FAREWELL).await,
        None => future::pending().await,
    }
}

fn too_many(id: Option<&str>, era: Era) -> Bytes {
    let text = format!("{} requests of the client wait", defaults::PIPE_REQUESTS_MAX);
    RpcError::new(INTERNAL_ERROR, "CLIENT_TOO_SLOW", text)
        .suggest("Read the answers, and send less at a time.")
        .for_era(era)
        .render(id)
}
