//! HTTP with SSE, the transport of protocol version 2024-11-05. A stream to the client begins with
//! the address to which the client POSTs each of its messages.
//!
//! The requests of a client run in the task of its stream and end with it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use futures_util::stream;
use hyper::{Method, Request, StatusCode, body::Incoming};
use tokio::{sync::mpsc, time};

use super::{
    IngressContext, Response,
    concurrent_requests::{ConcurrentEvent, ConcurrentRequests},
    error::IngressError,
    http_response, message_dispatch,
    reply::{AcceptedForms, RequestReply},
    reply_events::ReplyEvents,
    request_parts,
};
use crate::{
    capacity_holder::{Account, Holder},
    compute_pool::read_in_place,
    config::defaults,
    connection::ForwardedHeaders,
    fair_share::EvictablePermit,
    protocol::{Era, Message, MessageKind, payloads::method, sse},
    session::{ClientRecord, ClientTransport, OutboxItem, OutboxReader, Session},
    view::View,
};

/// The path for messages, in all views.
pub(super) const MESSAGES: &str = "/messages";

/// The query parameter that identifies the stream. The SDKs use the same name.
const STREAM_KEY: &str = "sessionId=";

/// The open streams, by the id that clients send with every message.
#[derive(Debug, Default)]
pub(super) struct LegacySseStreams {
    by_id: Mutex<HashMap<Box<str>, StreamHandle>>,
}

/// The part of a client's stream that its messages need.
#[derive(Clone, Debug)]
struct StreamHandle {
    view: View,
    requests: mpsc::Sender<PostedRequest>,
    /// A session without state until the client has completed the handshake.
    session: Arc<Session>,
}

/// A request for a stream to run.
struct PostedRequest {
    reply: Box<RequestReply>,
    /// The session that the request has opened.
    opened: Option<Arc<Session>>,
}

impl LegacySseStreams {
    fn open(&self, view: View, holder: Holder) -> (Box<str>, mpsc::Receiver<PostedRequest>) {
        let id: Box<str> = uuid::Uuid::new_v4().simple().to_string().into();
        let (requests, posted) = mpsc::channel(defaults::LEGACY_SSE_REQUESTS_MAX);
        let session = Session::anonymous(view.scope(), holder);
        self.by_id().insert(id.clone(), StreamHandle { view, requests, session });
        (id, posted)
    }

    fn find(&self, id: &str) -> Option<StreamHandle> {
        self.by_id().get(id).cloned()
    }

    /// Assigns a session to a stream; returns `false` if the stream is closed or has one.
    fn set_session(&self, id: &str, session: &Arc<Session>) -> bool {
        let mut by_id = self.by_id();
        let handle = by_id.get_mut(id).filter(|handle| handle.session.id().is_none());
        handle.map(|handle| handle.session = Arc::clone(session)).is_some()
    }

    fn by_id(&self) -> MutexGuard<'_, HashMap<Box<str>, StreamHandle>> {
        // Held only for statements on plain data.
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the stream of a client at the path of `view`.
pub(super) fn open(
    context: Arc<IngressContext>,
    view: View,
    request: &Request<Incoming>,
    holder: Holder,
) -> Result<Response, IngressError> {
    if !context.views.config().listen.legacy_sse {
        return Err(IngressError::LegacySseOff);
    }
    if request.method() != Method::GET {
        return Err(IngressError::MethodNotAllowed("GET"));
    }
    request_parts::check_accepts_events(request.headers())?;
    request_parts::version(request.headers())?;
    let permit = Arc::new(context.stream_permit(holder)?);
    let (id, posted) = context.legacy_sse_streams.open(view, holder);
    let address = format!("{MESSAGES}?{STREAM_KEY}{id}");
    let first = vec![sse::encode_endpoint(&address)];
    let output = StreamOutput {
        context,
        permit,
        id,
        posted,
        is_closing: false,
        is_drained: false,
        running: ConcurrentRequests::default(),
        reader: None,
        events: ReplyEvents::with_first(first),
    };
    Ok(http_response::event_stream(stream::unfold(output, |mut output| async move {
        output.next().await.map(|piece| (piece, output))
    })))
}

/// Receives a message for an open stream.
pub(super) async fn receive(
    context: Arc<IngressContext>,
    request: Request<Incoming>,
    account: Account,
) -> Result<Response, IngressError> {
    if request.method() != Method::POST {
        return Err(IngressError::MethodNotAllowed("POST"));
    }
    let (head, body) = request.into_parts();
    let mut parameters = head.uri.query().unwrap_or_default().split('&');
    let id = parameters.find_map(|found| found.strip_prefix(STREAM_KEY)).unwrap_or_default();
    context.legacy_sse_streams.find(id).ok_or(IngressError::StreamNotOpen)?;
    request_parts::check_content_type(&head.headers)?;
    request_parts::version(&head.headers)?;
    let body = request_parts::read_body(account, body).await?;
    let message = read_in_place(body.len(), || Message::parse(body))?;
    // The stream may have closed while the body was read.
    let handle = context.legacy_sse_streams.find(id).ok_or(IngressError::StreamNotOpen)?;
    if message.kind() == MessageKind::Request {
        let forwarded = context.views.forwarded(&head.headers);
        enqueue(context, id, handle, message, forwarded).await?;
    } else {
        message_dispatch::deliver(&context, &handle.view, &message, &handle.session).await;
    }
    Ok(http_response::empty(StatusCode::ACCEPTED))
}

/// Passes a request to the stream that must answer it.
async fn enqueue(
    context: Arc<IngressContext>,
    id: &str,
    handle: StreamHandle,
    message: Message,
    forwarded: Option<Arc<ForwardedHeaders>>,
) -> Result<(), IngressError> {
    let reserving = time::timeout(defaults::OVERRUN_TIMEOUT, handle.requests.reserve());
    let permit = match reserving.await {
        Ok(Ok(permit)) => permit,
        Ok(Err(_)) => return Err(IngressError::StreamNotOpen),
        Err(_) => return Err(IngressError::StreamQueueFull),
    };
    let mut opened = None;
    // A stream has one session: a second handshake changes nothing.
    if message.method() == Some(method::INITIALIZE) && handle.session.id().is_none() {
        // The account is that of the stream, not that of the connection that sent the POST.
        let name = message_dispatch::client_name(&message);
        let client = ClientRecord::new(name, Era::Legacy, ClientTransport::LegacySse);
        let session = message_dispatch::open_session(
            &context,
            &handle.view,
            &message,
            handle.session.holder(),
            Arc::new(client),
        );
        if !context.legacy_sse_streams.set_session(id, &session) {
            end_session(&context, &session);
            return Err(IngressError::StreamNotOpen);
        }
        opened = Some(session);
    }
    let session = opened.as_ref().unwrap_or(&handle.session);
    let accepts = AcceptedForms::events_only();
    let view = &handle.view;
    let reply =
        message_dispatch::start_request(context, view, message, session, accepts, forwarded);
    permit.send(PostedRequest { reply: Box::new(reply), opened });
    Ok(())
}

fn end_session(context: &IngressContext, session: &Session) {
    if let Some(id) = session.id() {
        context.views.sessions().end(id);
    }
}

/// The stream to one client.
struct StreamOutput {
    context: Arc<IngressContext>,
    permit: Arc<EvictablePermit>,
    id: Box<str>,
    posted: mpsc::Receiver<PostedRequest>,
    /// `true` during shutdown: running requests finish, and no others are accepted.
    is_closing: bool,
    /// `true` once all accepted requests run or are answered.
    is_drained: bool,
    running: ConcurrentRequests,
    /// The messages of servers that answer no request.
    reader: Option<OutboxReader>,
    events: ReplyEvents,
}

impl Drop for StreamOutput {
    fn drop(&mut self) {
        let handle = self.context.legacy_sse_streams.by_id().remove(&self.id);
        if let Some(handle) = handle {
            end_session(&self.context, &handle.session);
        }
    }
}

impl StreamOutput {
    /// Returns the next output for the client; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.events.piece() {
                return Some(piece);
            }
            let n_running = self.running.len();
            self.permit.set_running(n_running > 0);
            if self.is_drained && n_running == 0 {
                return None;
            }
            let has_room = n_running < defaults::LEGACY_SSE_REQUESTS_MAX && !self.is_drained;
            let silent_until = self.events.next_keepalive(&self.context);
            tokio::select! {
                next = self.running.next(), if n_running > 0 => match next {
                    Some(ConcurrentEvent::Message(message) | ConcurrentEvent::Answer { message, .. }) => {
                        self.events.begin(message);
                    }
                    // The client has cancelled all requests.
                    None => {}
                },
                posted = self.posted.recv(), if has_room => match posted {
                    Some(posted) => self.accept(posted),
                    None => self.is_drained = true,
                },
                next = OutboxReader::next_of(&mut self.reader) => match next {
                    OutboxItem::Event(_, message) => self.events.begin(message.into()),
                    OutboxItem::Closed => return None,
                    OutboxItem::Overflow => {
                        tracing::warn!("stream closed: the client does not read its messages as fast as they arrive");
                        return None;
                    }
                },
                () = self.permit.evicted(), if n_running == 0 => return None,
                () = self.context.stop.cancelled(), if !self.is_closing => {
                    self.is_closing = true;
                    self.posted.close();
                }
                () = time::sleep_until(silent_until) => return Some(self.events.keep_alive()),
            }
        }
    }

    fn accept(&mut self, posted: PostedRequest) {
        if let Some(session) = posted.opened {
            self.reader = Some(session.read(None));
        }
        self.running.push(posted.reply);
    }
}
