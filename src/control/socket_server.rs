//! The connections of operators on the control socket, and the requests on each.
//!
//! Reading and writing are two halves of one task. The requests of a connection run concurrently,
//! and put their output into the queue of the write half. A request waits while the queue is full;
//! if the peer accepts nothing for too long, the connection ends.

use std::{collections::HashMap, io, sync::Arc};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use serde_json::json;
use tokio::{
    io::{AsyncWriteExt as _, Interest},
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use super::{
    Asker, ControlService,
    mcp_attach::{self, AttachParams, AttachedConnection},
    peer_credentials::{PeerCredentials, PeerPolicy},
    read,
};
use crate::{
    accept_loop::{self, Listener as _},
    config::defaults,
    fair_share::EvictablePermit,
    memory_budget::{self, MeteredLine, MeteredLines},
    peer_process::ConnectedClient,
    protocol::{
        Message, MessageKind, RpcError,
        jsonrpc::MessagePart,
        ndjson::OversizedLine,
        payloads::method::CANCELLED,
        rpc_error::{INVALID_REQUEST, NO_ROOM},
    },
    redact,
    telemetry::liveness::LoopPulse,
};

/// The buffer space for a read, in bytes.
const READ_BYTES: usize = 16 << 10;

/// Serves operators on `listener` until the control service stops. Cancel safe: a connection that
/// was not accepted yet stays in the backlog.
pub async fn serve(listener: UnixListener, desk: Arc<ControlService>, pulse: LoopPulse) {
    let door = Arc::new(PeerPolicy::of(&listener));
    let (stop, tasks) = (desk.stop.clone(), desk.tasks.clone());
    let serve = |stream| {
        // In the order of arrival: tasks start in any order, and an early connection could lose its
        // permit to a later one before its first message.
        let permit = door.known(&stream).map(|peer| desk.admit(peer.uid));
        let caller = UnixListener::caller(&stream);
        let (desk, door) = (Arc::clone(&desk), Arc::clone(&door));
        async move { connection(stream, caller, permit, &desk, &door).await }
    };
    accept_loop::accept(listener, defaults::CONTROL_ACCEPTED_MAX, pulse, stop, tasks, serve).await;
}

/// Serves a peer that is admitted and has a `permit`. A stranger gets its permit after the lookup
/// of its groups.
async fn connection(
    stream: UnixStream,
    caller: ConnectedClient,
    permit: Option<Option<EvictablePermit>>,
    desk: &Arc<ControlService>,
    door: &PeerPolicy,
) {
    let group = desk.control_group();
    let peer = match door.admit(&stream, group.as_deref()).await {
        Ok(peer) => peer,
        Err(refusal) => {
            let peer = refusal.peer();
            let (gid, pid) = (peer.map(|peer| peer.gid), peer.and_then(|peer| peer.pid));
            tracing::warn!(peer_gid = gid, peer_pid = pid, error = %refusal, "operator turned away");
            return turn_away(stream, refusal.to_rpc()).await;
        }
    };
    let PeerCredentials { uid, gid, pid, process: _ } = peer;
    tracing::debug!(peer_uid = uid, peer_gid = gid, peer_pid = pid, "operator connected");
    let Some(permit) = permit.unwrap_or_else(|| desk.admit(uid)) else {
        let text = "as many connections as are served have something running";
        let error = RpcError::new(NO_ROOM, "TOO_MANY_CONNECTIONS", text)
            .suggest("Ask again when others are done, or send several requests on one connection.")
            .context(json!({ "max": defaults::CONTROL_CONNECTIONS_MAX }));
        return turn_away(stream, error).await;
    };
    let attached = tokio::select! {
        attached = converse(stream, desk, (peer, caller), &permit) => attached,
        () = permit.evicted() => {
            tracing::debug!(peer_uid = uid, "operator's idle connection makes room for another");
            None
        }
    };
    // An attached MCP client takes no permit from operators.
    drop(permit);
    if let Some(attached) = attached {
        Box::pin(attached.serve(desk, caller.holder)).await;
    }
}

/// Tells a peer why it is not served. The line fits into the buffer of any socket.
async fn turn_away(mut stream: UnixStream, error: RpcError) {
    let line = [&error.complete().render(None)[..], b"\n"].concat();
    let _gone = time::timeout(defaults::HURRY, stream.write_all(&line)).await;
}

/// Serves one operator until either side has nothing more to send, or an MCP client takes the
/// connection over.
async fn converse(
    stream: UnixStream,
    desk: &Arc<ControlService>,
    (peer, caller): (PeerCredentials, ConnectedClient),
    permit: &EvictablePermit,
) -> Option<AttachedConnection> {
    let (reader, mut writer) = stream.into_split();
    let (lines, queue) = mpsc::channel(defaults::CONTROL_LINES_QUEUE);
    let asker = Asker { peer: Some(peer), caller, lines: Some(lines) };
    let mut conversation = Conversation {
        desk,
        permit,
        asker,
        lines: MeteredLines::of(caller.holder.account, defaults::CONTROL_LINE_BYTES_MAX),
        running: FuturesUnordered::new(),
        cancelled: HashMap::new(),
    };
    let mut writing = Box::pin(write(&mut writer, queue, desk));
    let ended = tokio::select! {
        ended = conversation.hear(&reader) => ended,
        () = &mut writing => return None,
    };
    // The write half ends when the last sender of the queue is dropped.
    let Conversation { lines, asker, .. } = conversation;
    drop(asker);
    match ended {
        Ended::Done => {
            writing.await;
            None
        }
        Ended::Gone => None,
        Ended::Attaches(attaching) => {
            writing.await;
            Some(AttachedConnection { attaching, reader, writer, lines })
        }
    }
}

/// The end of a conversation.
enum Ended {
    /// No request runs, and no more requests come.
    Done,
    /// The peer has gone.
    Gone,
    /// An MCP client takes the connection over.
    Attaches(AttachParams),
}

/// The state of one connection.
struct Conversation<'a> {
    desk: &'a Arc<ControlService>,
    permit: &'a EvictablePermit,
    asker: Asker,
    lines: MeteredLines,
    /// The running requests; each returns its id, JSON text, if it has one.
    running: FuturesUnordered<BoxFuture<'a, Option<String>>>,
    /// The tokens that cancel a request, by its id as JSON text.
    cancelled: HashMap<String, CancellationToken>,
}

impl Conversation<'_> {
    /// Handles requests until no more come and all are answered.
    async fn hear(&mut self, reader: &OwnedReadHalf) -> Ended {
        let mut is_over = false;
        let mut idle_since = Instant::now();
        loop {
            while self.running.len() < defaults::CONTROL_REQUESTS_MAX
                && let Some(line) = self.lines.next_line()
            {
                if let Some(attaching) = self.take(line) {
                    return Ended::Attaches(attaching);
                }
            }
            if is_over && self.running.is_empty() {
                return Ended::Done;
            }
            let is_full = self.running.len() >= defaults::CONTROL_REQUESTS_MAX;
            self.permit.set_running(!self.running.is_empty());
            if !self.running.is_empty() {
                idle_since = Instant::now();
            }
            tokio::select! {
                biased;
                Some(id) = self.running.next() => {
                    if let Some(id) = id {
                        self.cancelled.remove(&id);
                    }
                    idle_since = Instant::now();
                }
                // Requests that came before still count, and are started while there is room.
                () = self.desk.stop.cancelled(), if !is_over => is_over = true,
                _ = reader.readable(), if !is_over && !is_full => {
                    match reader.try_read_buf(self.lines.buffer(READ_BYTES)) {
                        Ok(0) => {
                            is_over = true;
                            let last = self.lines.last_line();
                            // No line can follow, so that nothing can be attached.
                            let _nobody = last.map(|line| self.take(line));
                        }
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(_) => return Ended::Gone,
                    }
                }
                () = hang_up(reader), if is_over || is_full => return Ended::Gone,
                () = time::sleep_until(idle_since + defaults::CONTROL_IDLE_TIMEOUT),
                    if self.running.is_empty() => return Ended::Done,
            }
        }
    }

    /// Handles a line from an operator. Returns parameters if an MCP client takes the connection
    /// over.
    fn take(&mut self, line: MeteredLine) -> Option<AttachParams> {
        let message = match line {
            MeteredLine::Whole(line) => match read(line) {
                Ok(message) => message,
                Err(error) => {
                    self.refuse(*error, None);
                    return None;
                }
            },
            MeteredLine::Oversized(line) => {
                self.refuse(too_long(&line), None);
                return None;
            }
            MeteredLine::Refused(line, exhausted) => {
                self.refuse(exhausted.to_operator(), line.request_id().as_deref());
                return None;
            }
        };
        if mcp_attach::is_attach(&message) {
            let attaching = AttachParams::read(&message, self.desk, self.running.is_empty());
            return attaching
                .map_err(|error| self.refuse(*error, message.part(MessagePart::Id)))
                .ok();
        }
        self.take_message(message);
        None
    }

    fn take_message(&mut self, message: Message) {
        let Some(id) =
            message.part(MessagePart::Id).filter(|_| message.shape() == MessageKind::Request)
        else {
            return self.note(&message);
        };
        if self.cancelled.contains_key(id) {
            let text = format!(
                "a request with the id {} runs",
                redact::cut(id, defaults::SUGGESTION_BYTES_MAX)
            );
            let error = RpcError::new(INVALID_REQUEST, "SAME_ID", text)
                .suggest("Give each request an id of its own, as long as it runs.");
            let id = id.to_owned();
            return self.refuse(error, Some(&id));
        }
        let (id, token) = (id.to_owned(), CancellationToken::new());
        self.cancelled.insert(id.clone(), token.clone());
        let (desk, asker) = (Arc::clone(self.desk), self.asker.clone());
        let counted = desk.board.operator();
        self.running.push(Box::pin(async move {
            let answer = tokio::select! {
                biased;
                () = token.cancelled() => None,
                answer = desk.answer(&message, &asker) => Some(answer),
            };
            if let Some(answer) = answer {
                let answer = memory_budget::counted(Some(asker.caller.holder.account), answer);
                let answer = answer.unwrap_or_else(|exhausted| {
                    exhausted.to_operator().complete().render(Some(&id))
                });
                say(&asker, answer).await;
            }
            drop(counted);
            Some(id)
        }));
    }

    /// Handles a notification; only a cancellation has a meaning here.
    fn note(&mut self, message: &Message) {
        if message.method() != Some(CANCELLED) {
            return;
        }
        let id = message.part(MessagePart::CancelledId);
        if let Some(token) = id.and_then(|id| self.cancelled.get(id)) {
            token.cancel();
        }
    }

    fn refuse(&mut self, error: RpcError, id: Option<&str>) {
        let (answer, asker) = (error.complete().render(id), self.asker.clone());
        self.running.push(Box::pin(async move {
            say(&asker, answer).await;
            None
        }));
    }
}

async fn say(asker: &Asker, line: Bytes) {
    if let Some(lines) = &asker.lines {
        let _reader_gone = lines.send(line).await;
    }
}

fn too_long(line: &OversizedLine) -> RpcError {
    let (length, max) = (line.length, defaults::CONTROL_LINE_BYTES_MAX);
    let text = format!("a line of {length} bytes is longer than {max}");
    RpcError::new(INVALID_REQUEST, "LINE_TOO_LONG", text)
        .suggest("Send less at a time, each message on a line of its own.")
        .context(json!({ "bytes": length, "max": max }))
}

/// Waits until the peer has closed both directions. A peer that only stops sending has not.
async fn hang_up(reader: &OwnedReadHalf) {
    loop {
        let ready = reader.ready(Interest::WRITABLE).now_or_never();
        if ready.is_some_and(|ready| ready.is_ok_and(|ready| ready.is_write_closed())) {
            return;
        }
        time::sleep(defaults::CONTROL_HANG_UP_POLL).await;
    }
}

/// Writes each line of `queue` until all senders are dropped, or the peer accepts nothing for too
/// long.
async fn write(
    writer: &mut OwnedWriteHalf,
    mut queue: mpsc::Receiver<Bytes>,
    desk: &ControlService,
) {
    while let Some(line) = queue.recv().await {
        let patience = desk.views.config().listen.write_timeout;
        for mut rest in [&line[..], b"\n"] {
            while !rest.is_empty() {
                match time::timeout(patience, writer.write(rest)).await {
                    Ok(Ok(n_bytes)) if n_bytes > 0 => rest = &rest[n_bytes..],
                    Ok(_) => return,
                    Err(_) => return tracing::debug!("operator takes no answers"),
                }
            }
        }
    }
}
