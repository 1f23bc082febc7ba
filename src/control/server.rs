//! Operators on the control socket: their connections, and what runs on each.
//!
//! What is read and what is written are two halves of one task. A request runs beside the others of
//! its connection, and puts what it has to say into the queue of the half that writes; one that does
//! not get rid of it waits, and when the queue is full for too long, the connection ends.

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
    attach::{self, AttachParams, AttachedConnection},
    peer_credentials::{PeerCredentials, PeerPolicy},
    read,
};
use crate::{
    acceptor::{self, Listener as _},
    budget::{self, MeteredLine, MeteredLines},
    config::defaults,
    peer::ConnectedClient,
    protocol::{
        Message, MessageKind, RpcError,
        jsonrpc::MessagePart,
        ndjson::OversizedLine,
        payloads::method::CANCELLED,
        rpc_error::{INVALID_REQUEST, NO_ROOM},
    },
    redact,
    share::EvictablePermit,
    telemetry::liveness::LoopPulse,
};

/// How much is read at a time, in bytes.
const READ_BYTES: usize = 16 << 10;

/// Serves operators on `listener` until the desk stops.
///
/// # Cancel safety
///
/// Safe: a connection that was not accepted yet stays in the backlog.
pub async fn serve(listener: UnixListener, desk: Arc<ControlService>, pulse: LoopPulse) {
    let door = Arc::new(PeerPolicy::of(&listener));
    let (stop, tasks) = (desk.stop.clone(), desk.tasks.clone());
    let serve = |stream| {
        // In the order in which they come: tasks begin in any, and an early one could lose its place
        // to a later one before it has said a word.
        let permit = door.known(&stream).map(|peer| desk.admit(peer.uid));
        let caller = UnixListener::caller(&stream);
        let (desk, door) = (Arc::clone(&desk), Arc::clone(&door));
        async move { connection(stream, caller, permit, &desk, &door).await }
    };
    acceptor::accept(listener, defaults::CONTROL_ACCEPTED_MAX, pulse, stop, tasks, serve).await;
}

/// Serves a peer that may ask and has a `permit`; a stranger gets one only when it is known to be
/// allowed.
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
    // A client of MCP keeps no operator waiting.
    drop(permit);
    if let Some(attached) = attached {
        Box::pin(attached.serve(desk, caller.holder)).await;
    }
}

/// Says why somebody is not served. A line of ours fits into the buffer of any socket.
async fn turn_away(mut stream: UnixStream, error: RpcError) {
    let line = [&error.complete().render(None)[..], b"\n"].concat();
    let _gone = time::timeout(defaults::HURRY, stream.write_all(&line)).await;
}

/// Serves one operator until one of the two has nothing more to say, or the connection is to be
/// something else from now on.
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
    // With the last of who could put something into the queue, the writing ends.
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

/// How a conversation ended.
enum Ended {
    /// Nothing runs any more, and nothing more is asked.
    Done,
    /// Nobody is there for what is left.
    Gone,
    /// A client of MCP takes the connection over.
    Attaches(AttachParams),
}

/// What runs on one connection.
struct Conversation<'a> {
    desk: &'a Arc<ControlService>,
    permit: &'a EvictablePermit,
    asker: Asker,
    lines: MeteredLines,
    /// Each returns the id of its request, JSON text, if it has one.
    running: FuturesUnordered<BoxFuture<'a, Option<String>>>,
    /// What calls off the request of an id, JSON text.
    cancelled: HashMap<String, CancellationToken>,
}

impl Conversation<'_> {
    /// Takes requests until nothing more comes and all are answered.
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
                // What has come before still counts; it is taken on while there is room.
                () = self.desk.stop.cancelled(), if !is_over => is_over = true,
                _ = reader.readable(), if !is_over && !is_full => {
                    match reader.try_read_buf(self.lines.buffer(READ_BYTES)) {
                        Ok(0) => {
                            is_over = true;
                            let last = self.lines.last_line();
                            // Nothing can follow, and so nobody attaches.
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

    /// Takes what an operator has sent; returns what the connection is to be from now on, if that is
    /// something else.
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
        if attach::is_attach(&message) {
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
                let answer = budget::counted(Some(asker.caller.holder.account), answer);
                let answer = answer.unwrap_or_else(|exhausted| {
                    exhausted.to_operator().complete().render(Some(&id))
                });
                say(&asker, answer).await;
            }
            drop(counted);
            Some(id)
        }));
    }

    /// Takes a notification; of all there are, one means something here.
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

/// Waits until the other end is closed altogether. One that only sends nothing more is not.
async fn hang_up(reader: &OwnedReadHalf) {
    loop {
        let ready = reader.ready(Interest::WRITABLE).now_or_never();
        if ready.is_some_and(|ready| ready.is_ok_and(|ready| ready.is_write_closed())) {
            return;
        }
        time::sleep(defaults::CONTROL_HANG_UP_POLL).await;
    }
}

/// Writes what is in `queue`, a line each, until nobody can put anything into it any more, or the
/// other end takes nothing of it for too long.
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
