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
    concurrent_requests::{self, ConcurrentRequests},
    error::IngressError,
    http_response, legacy,
    reply::{AcceptedForms, RequestReply},
    reply_events::ReplyEvents,
};
use crate::{
    capacity_holder::{Account, Holder},
    compute_pool::read_in_place,
    config::defaults,
    fair_share::EvictablePermit,
    protocol::{Message, MessageKind, payloads::method, sse},
    session::{self, OutboxReader, Session},
    view::View,
};

/// The path for messages, in all views.
pub(super) const MESSAGES: &str = "/messages";

/// The query parameter that identifies the stream. The SDKs use the same name.
const STREAM_KEY: &str = "sessionId=";

/// The open streams, by the id that clients send with every message.
#[derive(Debug, Default)]
pub(super) struct LegacyStreams {
    by_id: Mutex<HashMap<Box<str>, Pair>>,
}

/// The stream of a client, as its messages find it.
#[derive(Clone)]
struct Pair {
    view: View,
    requests: mpsc::Sender<Posted>,
    /// A session without state until the client has completed the handshake.
    session: Arc<Session>,
}

/// A request for a stream to run.
struct Posted {
    reply: Box<RequestReply>,
    /// The session that the request has opened.
    opened: Option<Arc<Session>>,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").field("view", &self.view).finish_non_exhaustive()
    }
}

impl LegacyStreams {
    fn open(&self, view: View, holder: Holder) -> (Box<str>, mpsc::Receiver<Posted>) {
        let id: Box<str> = uuid::Uuid::new_v4().simple().to_string().into();
        let (requests, posted) = mpsc::channel(defaults::PAIR_REQUESTS_MAX);
        let session = Session::anonymous(view.scope(), holder);
        self.by_id().insert(id.clone(), Pair { view, requests, session });
        (id, posted)
    }

    fn find(&self, id: &str) -> Option<Pair> {
        self.by_id().get(id).cloned()
    }

    /// Assigns a session to a stream; returns `false` if the stream is closed or has one.
    fn adopt(&self, id: &str, session: &Arc<Session>) -> bool {
        let mut by_id = self.by_id();
        let pair = by_id.get_mut(id).filter(|pair| pair.session.id().is_none());
        if let Some(pair) = pair {
            pair.session = Arc::clone(session);
            return true;
        }
        false
    }

    fn close(&self, id: &str) -> Option<Pair> {
        self.by_id().remove(id)
    }

    fn by_id(&self) -> MutexGuard<'_, HashMap<Box<str>, Pair>> {
        // Held only for statements on plain data.
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the stream of a client at the path of `view`.
pub(super) fn open(
    edge: Arc<IngressContext>,
    view: View,
    request: &Request<Incoming>,
    holder: Holder,
) -> Result<Response, IngressError> {
    if !edge.views.config().listen.legacy_sse {
        return Err(IngressError::PairsOff);
    }
    if request.method() != Method::GET {
        return Err(IngressError::Method("GET"));
    }
    legacy::check_accepts_events(request.headers())?;
    legacy::version(request.headers())?;
    let permit = Arc::new(edge.stream_permit(holder)?);
    let (id, posted) = edge.pairs.open(view, holder);
    let address = format!("{MESSAGES}?{STREAM_KEY}{id}");
    let first = vec![sse::encode_endpoint(&address)];
    let down = Down {
        edge,
        permit,
        id,
        posted,
        is_closing: false,
        is_drained: false,
        running: ConcurrentRequests::default(),
        reader: None,
        events: ReplyEvents::with_first(first),
    };
    Ok(http_response::event_stream(stream::unfold(down, |mut down| async move {
        down.next().await.map(|piece| (piece, down))
    })))
}

/// Receives a message for an open stream.
pub(super) async fn send(
    edge: Arc<IngressContext>,
    request: Request<Incoming>,
    account: Account,
) -> Result<Response, IngressError> {
    if request.method() != Method::POST {
        return Err(IngressError::Method("POST"));
    }
    let (head, body) = request.into_parts();
    let id = head.uri.query().unwrap_or_default().split('&');
    let id = id.into_iter().find_map(|pair| pair.strip_prefix(STREAM_KEY)).unwrap_or_default();
    edge.pairs.find(id).ok_or(IngressError::NoPair)?;
    legacy::check_content_type(&head.headers)?;
    legacy::version(&head.headers)?;
    let body = legacy::read(account, body).await?;
    let message = read_in_place(body.len(), || Message::parse(body))?;
    // The stream may have closed while the body was read.
    let pair = edge.pairs.find(id).ok_or(IngressError::NoPair)?;
    if message.shape() == MessageKind::Request {
        start(edge, id, pair, message).await?;
    } else {
        legacy::deliver(&edge, &pair.view, &message, &pair.session).await;
    }
    Ok(http_response::empty(StatusCode::ACCEPTED))
}

/// Passes a request to the stream that must answer it.
async fn start(
    edge: Arc<IngressContext>,
    id: &str,
    pair: Pair,
    message: Message,
) -> Result<(), IngressError> {
    let reserving = time::timeout(defaults::OVERRUN_PATIENCE, pair.requests.reserve());
    let place = match reserving.await {
        Ok(Ok(place)) => place,
        Ok(Err(_)) => return Err(IngressError::NoPair),
        Err(_) => return Err(IngressError::PairFull),
    };
    let mut opened = None;
    // A stream has one session: a second handshake changes nothing.
    if message.method() == Some(method::INITIALIZE) && pair.session.id().is_none() {
        // The account is that of the stream, not that of the connection that sent the POST.
        let session = legacy::open(&edge, &pair.view, &message, pair.session.holder());
        if !edge.pairs.adopt(id, &session) {
            end(&edge, &session);
            return Err(IngressError::NoPair);
        }
        opened = Some(session);
    }
    let session = opened.as_ref().unwrap_or(&pair.session);
    let accepts = AcceptedForms { events: true, ..AcceptedForms::default() };
    let reply = legacy::reply(edge, &pair.view, message, session, accepts);
    place.send(Posted { reply: Box::new(reply), opened });
    Ok(())
}

fn end(edge: &IngressContext, session: &Session) {
    if let Some(id) = session.id() {
        edge.views.sessions().end(id);
    }
}

/// The stream to one client.
struct Down {
    edge: Arc<IngressContext>,
    permit: Arc<EvictablePermit>,
    id: Box<str>,
    posted: mpsc::Receiver<Posted>,
    /// `true` during shutdown: running requests finish, and no others are accepted.
    is_closing: bool,
    /// `true` once all accepted requests run or are answered.
    is_drained: bool,
    running: ConcurrentRequests,
    /// The messages of servers that answer no request.
    reader: Option<OutboxReader>,
    events: ReplyEvents,
}

impl Drop for Down {
    fn drop(&mut self) {
        if let Some(pair) = self.edge.pairs.close(&self.id) {
            end(&self.edge, &pair.session);
        }
    }
}

impl Down {
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
            let has_room = n_running < defaults::PAIR_REQUESTS_MAX && !self.is_drained;
            let silent_until = self.events.next_keepalive(&self.edge);
            tokio::select! {
                next = self.running.next(), if n_running > 0 => match next {
                    Some(concurrent_requests::ConcurrentEvent::Aside(message) | concurrent_requests::ConcurrentEvent::Answer { message, .. }) => {
                        self.events.begin(message);
                    }
                    // The client has cancelled all requests.
                    None => {}
                },
                posted = self.posted.recv(), if has_room => match posted {
                    Some(posted) => self.take_on(posted),
                    None => self.is_drained = true,
                },
                next = OutboxReader::next_of(&mut self.reader) => match next {
                    session::OutboxItem::Event(_, message) => {
                        self.events.begin(message.into());
                    }
                    session::OutboxItem::Closed => return None,
                    session::OutboxItem::Overtaken => {
                        tracing::warn!("stream closed: the client does not read its messages as fast as they arrive");
                        return None;
                    }
                },
                () = self.permit.evicted(), if n_running == 0 => return None,
                () = self.edge.stop.cancelled(), if !self.is_closing => {
                    self.is_closing = true;
                    self.posted.close();
                }
                () = time::sleep_until(silent_until) => return Some(self.events.sign()),
            }
        }
    }

    fn take_on(&mut self, posted: Posted) {
        if let Some(session) = posted.opened {
            self.reader = Some(session.read(None));
        }
        self.running.push(posted.reply);
    }
}
