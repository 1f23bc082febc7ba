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
    ControlService, Requester,
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
pub async fn serve(listener: UnixListener, service: Arc<ControlService>, pulse: LoopPulse) {
    let policy = Arc::new(PeerPolicy::of(&listener));
    let (stop, tasks) = (service.stop.clone(), service.tasks.clone());
    let serve = |stream| {
        // In the order of arrival: tasks start in any order, and an early connection could lose its
        // permit to a later one before its first message.
        let permit = policy.known(&stream).map(|peer| service.admit(peer.uid));
        let caller = UnixListener::caller(&stream);
        let (service, policy) = (Arc::clone(&service), Arc::clone(&policy));
        async move { connection(stream, caller, permit, &service, &policy).await }
    };
    accept_loop::accept(listener, defaults::CONTROL_ACCEPTED_MAX, pulse, stop, tasks, serve).await;
}

/// Serves a peer that is admitted and has a `permit`. An unknown peer gets its permit after the
/// lookup of its groups.
async fn connection(
    stream: UnixStream,
    caller: ConnectedClient,
    permit: Option<Option<EvictablePermit>>,
    service: &Arc<ControlService>,
    policy: &PeerPolicy,
) {
    let group = service.control_group();
    let peer = match policy.admit(&stream, group.as_deref()).await {
        Ok(peer) => peer,
        Err(refusal) => {
            let peer = refusal.peer();
            let (gid, pid) = (peer.map(|peer| peer.gid), peer.and_then(|peer| peer.pid));
            tracing::warn!(
                peer_gid = gid,
                peer_pid = pid,
                error = %refusal,
                "refused a connection to the control socket: {refusal}"
            );
            return refuse(stream, refusal.to_rpc()).await;
        }
    };
    let PeerCredentials { uid, gid, pid, process: _ } = peer;
    tracing::debug!(peer_uid = uid, peer_gid = gid, peer_pid = pid, "operator connected");
    let Some(permit) = permit.unwrap_or_else(|| service.admit(uid)) else {
        let text = "all connections for operators are busy";
        let error = RpcError::new(NO_ROOM, "TOO_MANY_CONNECTIONS", text)
            .suggest("Try again later, or send several requests on one connection.")
            .context(json!({ "max": defaults::CONTROL_CONNECTIONS_MAX }));
        return refuse(stream, error).await;
    };
    let attached = tokio::select! {
        attached = serve_operator(stream, service, (peer, caller), &permit) => attached,
        () = permit.evicted() => {
            tracing::debug!(peer_uid = uid, "closing an idle connection of an operator to admit another");
            None
        }
    };
    // An attached MCP client takes no permit from operators.
    drop(permit);
    if let Some(attached) = attached {
        Box::pin(attached.serve(service, caller.holder)).await;
    }
}

/// Tells a peer why it is not served. The line fits into the buffer of any socket.
async fn refuse(mut stream: UnixStream, error: RpcError) {
    let line = [&error.complete().render(None)[..], b"\n"].concat();
    let _gone = time::timeout(defaults::DRAIN_DEADLINE, stream.write_all(&line)).await;
}

/// Serves one operator until either side has nothing more to send, or an MCP client takes the
/// connection over.
async fn serve_operator(
    stream: UnixStream,
    service: &Arc<ControlService>,
    (peer, caller): (PeerCredentials, ConnectedClient),
    permit: &EvictablePermit,
) -> Option<AttachedConnection> {
    let (reader, mut writer) = stream.into_split();
    let (lines, queue) = mpsc::channel(defaults::CONTROL_LINES_QUEUE);
    let requester = Requester { peer: Some(peer), caller, lines: Some(lines) };
    let mut connection = OperatorConnection {
        service,
        permit,
        requester,
        lines: MeteredLines::of(caller.holder.account, defaults::CONTROL_LINE_BYTES_MAX),
        running: FuturesUnordered::new(),
        cancelled: HashMap::new(),
    };
    let mut writing = Box::pin(write(&mut writer, queue, service));
    let ended = tokio::select! {
        ended = connection.run(&reader) => ended,
        () = &mut writing => return None,
    };
    // The write half ends when the last sender of the queue is dropped.
    let OperatorConnection { lines, requester, .. } = connection;
    drop(requester);
    match ended {
        ConnectionEnd::Gone => None,
        ConnectionEnd::Done => {
            writing.await;
            None
        }
        ConnectionEnd::Attached(params) => {
            writing.await;
            Some(AttachedConnection { params, reader, writer, lines })
        }
    }
}

enum ConnectionEnd {
    /// No request runs, and no more requests come.
    Done,
    /// The peer has gone.
    Gone,
    /// An MCP client takes the connection over.
    Attached(AttachParams),
}

/// The state of one connection.
struct OperatorConnection<'a> {
    service: &'a Arc<ControlService>,
    permit: &'a EvictablePermit,
    requester: Requester,
    lines: MeteredLines,
    /// The running requests; each returns its id, JSON text, if it has one.
    running: FuturesUnordered<BoxFuture<'a, Option<String>>>,
    /// The tokens that cancel a request, by its id as JSON text.
    cancelled: HashMap<String, CancellationToken>,
}

impl OperatorConnection<'_> {
    /// Handles requests until no more come and all are answered.
    async fn run(&mut self, reader: &OwnedReadHalf) -> ConnectionEnd {
        let mut is_over = false;
        let mut idle_since = Instant::now();
        loop {
            while self.running.len() < defaults::CONTROL_REQUESTS_MAX
                && let Some(line) = self.lines.next_line()
            {
                if let Some(params) = self.handle_line(line) {
                    return ConnectionEnd::Attached(params);
                }
            }
            if is_over && self.running.is_empty() {
                return ConnectionEnd::Done;
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
                () = self.service.stop.cancelled(), if !is_over => is_over = true,
                _ = reader.readable(), if !is_over && !is_full => {
                    match reader.try_read_buf(self.lines.buffer(READ_BYTES)) {
                        Ok(0) => {
                            is_over = true;
                            // No line can follow, so that nothing can be attached.
                            let last = self.lines.last_line();
                            let _not_attached = last.map(|line| self.handle_line(line));
                        }
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(_) => return ConnectionEnd::Gone,
                    }
                }
                () = hang_up(reader), if is_over || is_full => return ConnectionEnd::Gone,
                () = time::sleep_until(idle_since + defaults::CONTROL_IDLE_TIMEOUT),
                    if self.running.is_empty() => return ConnectionEnd::Done,
            }
        }
    }

    /// Handles a line from an operator. Returns parameters if an MCP client takes the connection
    /// over.
    fn handle_line(&mut self, line: MeteredLine) -> Option<AttachParams> {
        let message = match line {
            MeteredLine::Whole(line) => read(line).map_err(|error| (*error, None)),
            MeteredLine::Oversized(line) => Err((too_long(&line), None)),
            MeteredLine::Refused(line, exhausted) => {
                Err((exhausted.to_operator(), line.request_id()))
            }
        };
        match message {
            Ok(message) if mcp_attach::is_attach(&message) => {
                let params = AttachParams::read(&message, self.service, self.running.is_empty());
                params.map_err(|error| self.refuse(*error, message.part(MessagePart::Id))).ok()
            }
            Ok(message) => {
                self.handle_message(message);
                None
            }
            Err((error, id)) => {
                self.refuse(error, id.as_deref());
                None
            }
        }
    }

    fn handle_message(&mut self, message: Message) {
        let id = message.part(MessagePart::Id);
        let Some(id) = id.filter(|_| message.kind() == MessageKind::Request) else {
            return self.handle_notification(&message);
        };
        let (id, token) = (id.to_owned(), CancellationToken::new());
        if self.cancelled.contains_key(&id) {
            let shown = redact::cut(&id, defaults::SUGGESTION_BYTES_MAX);
            let text = format!("a request with the id {shown} is still running");
            let error = RpcError::new(INVALID_REQUEST, "SAME_ID", text)
                .suggest("Give each running request an id of its own.");
            return self.refuse(error, Some(&id));
        }
        self.cancelled.insert(id.clone(), token.clone());
        let (service, requester) = (Arc::clone(self.service), self.requester.clone());
        let counted = service.parts.board.operator();
        self.running.push(Box::pin(async move {
            let answer = tokio::select! {
                biased;
                () = token.cancelled() => None,
                answer = service.answer(&message, &requester) => Some(answer),
            };
            if let Some(answer) = answer {
                let account = requester.caller.holder.account;
                let answer = memory_budget::counted(Some(account), answer);
                let answer = answer.unwrap_or_else(|exhausted| {
                    exhausted.to_operator().complete().render(Some(&id))
                });
                send(&requester, answer).await;
            }
            drop(counted);
            Some(id)
        }));
    }

    /// Handles a notification; only a cancellation has a meaning here.
    fn handle_notification(&mut self, message: &Message) {
        if message.method() != Some(CANCELLED) {
            return;
        }
        let id = message.part(MessagePart::CancelledId);
        if let Some(token) = id.and_then(|id| self.cancelled.get(id)) {
            token.cancel();
        }
    }

    fn refuse(&mut self, error: RpcError, id: Option<&str>) {
        let (answer, requester) = (error.complete().render(id), self.requester.clone());
        self.running.push(Box::pin(async move {
            send(&requester, answer).await;
            None
        }));
    }
}

async fn send(requester: &Requester, line: Bytes) {
    if let Some(lines) = &requester.lines {
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
    service: &ControlService,
) {
    while let Some(line) = queue.recv().await {
        let timeout = service.parts.operators.config().listen.write_timeout;
        for mut rest in [&line[..], b"\n"] {
            while !rest.is_empty() {
                match time::timeout(timeout, writer.write(rest)).await {
                    Ok(Ok(n_bytes)) if n_bytes > 0 => rest = &rest[n_bytes..],
                    Ok(_) => return,
                    Err(_) => {
                        return tracing::debug!(
                            "closing the connection of an operator that reads no answers"
                        );
                    }
                }
            }
        }
    }
}
