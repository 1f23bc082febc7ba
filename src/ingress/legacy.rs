//! MCP over streamable HTTP, legacy era. POST carries a message or a batch, GET opens the stream of
//! the session, DELETE ends the session. Messages of the modern era are handled by [`modern`].
//!
//! Sessions are lenient by default: a client may send a current id, none, or one from before a
//! restart. The same pool serves all of them.

use std::sync::Arc;

use http_body_util::Limited;
use hyper::{
    HeaderMap, Method, Request, StatusCode,
    body::{Bytes, Incoming},
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use tokio::time;

use super::{
    IngressContext, Response,
    batch::BatchReplies,
    error::{IngressError, quoted_input},
    http_response, modern, notification_stream,
    reply::{AcceptedForms, RequestReply},
    resumable_reply,
};
use crate::{
    body::{self, BodyReadError, MemoryPressurePolicy},
    capacity_holder::{Account, Holder},
    compute_pool::read_in_place,
    config::{SessionMode, defaults},
    protocol::{
        Batch, Message, MessageKind,
        jsonrpc::MessagePart,
        payloads::{SESSION_HEADER, VERSION_HEADER, method},
        version,
    },
    session::Session,
    view::View,
};

const SESSION: HeaderName = HeaderName::from_static(SESSION_HEADER);
pub(super) const VERSION: HeaderName = HeaderName::from_static(VERSION_HEADER);
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const EVENTS: &[u8] = b"text/event-stream";

/// Answers a request at the path of `view`, over the connection of `holder`, that is no POST.
pub(super) fn respond(
    edge: Arc<IngressContext>,
    view: &View,
    request: &Request<Incoming>,
    holder: Holder,
) -> Result<Response, IngressError> {
    let sessions = edge.views.sessions();
    match *request.method() {
        Method::GET | Method::DELETE if modern::has_modern_headers(request.headers()) => {
            Err(IngressError::Method("POST"))
        }
        _ if sessions.mode() == SessionMode::Off => Err(IngressError::Method("POST")),
        Method::GET => listen(edge, view, request.headers(), holder),
        // Shared connections belong to all clients, so they stay.
        Method::DELETE => {
            version(request.headers())?;
            sessions.delete(text(request.headers(), &SESSION))?;
            tracing::debug!("session ended by its client");
            Ok(http_response::empty(StatusCode::NO_CONTENT))
        }
        _ => Err(IngressError::Method("GET, POST, DELETE")),
    }
}

/// Opens the stream of notifications and requests that servers send unasked.
fn listen(
    edge: Arc<IngressContext>,
    view: &View,
    headers: &HeaderMap,
    holder: Holder,
) -> Result<Response, IngressError> {
    check_accepts_events(headers)?;
    let version = version(headers)?;
    let (sessions, id) = (edge.views.sessions(), text(headers, &SESSION));
    let is_passing = id.is_none() && sessions.mode() == SessionMode::Lenient;
    let session = match is_passing {
        // Without an id the client is unknown: the stream carries what all clients receive.
        true => sessions.open(view.scope(), version, "{}", holder),
        false => sessions.find(id, || view.scope(), holder)?,
    };
    let last = text(headers, &LAST_EVENT).and_then(|id| id.parse().ok());
    if let Some(rest) = last.and_then(|last| session.resume(last)) {
        return Ok(resumable_reply::send_remainder(edge, rest));
    }
    // Older clients take an event without data for a malformed message.
    let negotiated = if is_passing { None } else { session.version() };
    let takes_priming = version.or(negotiated).is_some_and(version::has_priming);
    notification_stream::open(edge, &session, last, takes_priming, is_passing)
}

/// The content of a body.
enum Posted {
    One(Message),
    Several(Batch),
}

impl Posted {
    fn parse(body: Bytes) -> Result<Self, IngressError> {
        let is_batch = Batch::is_batch(&body);
        read_in_place(body.len(), || {
            Ok(match is_batch {
                true => Self::Several(Batch::parse(&body, defaults::BATCH_MESSAGES_MAX)?),
                false => Self::One(Message::parse(body)?),
            })
        })
    }

    fn wants_answer(&self) -> bool {
        match self {
            Self::One(message) => message.shape() == MessageKind::Request,
            Self::Several(batch) => batch.wants_answer(),
        }
    }

    /// Returns the message if it is a handshake. A batch contains none.
    fn initialize(&self) -> Option<&Message> {
        match self {
            Self::One(message) => {
                Some(message).filter(|message| message.method() == Some(method::INITIALIZE))
            }
            Self::Several(_) => None,
        }
    }
}

/// Requires the name of the type: a browser with `*/*` that follows a link would wait forever.
pub(super) fn check_accepts_events(headers: &HeaderMap) -> Result<(), IngressError> {
    let is_named = |value: &HeaderValue| {
        value.as_bytes().windows(EVENTS.len()).any(|part| part.eq_ignore_ascii_case(EVENTS))
    };
    if headers.get_all(ACCEPT).iter().any(is_named) {
        return Ok(());
    }
    let accepted = text(headers, &ACCEPT).unwrap_or_default();
    Err(IngressError::NoStream(accepted.to_owned()))
}

/// Opens the session of a client that sends a handshake.
pub(super) fn open(
    edge: &IngressContext,
    view: &View,
    handshake: &Message,
    holder: Holder,
) -> Arc<Session> {
    let asked = handshake.string(MessagePart::ProtocolVersion);
    let capabilities = handshake.part(MessagePart::Capabilities).unwrap_or("{}");
    edge.views.sessions().open(view.scope(), asked.as_deref(), capabilities, holder)
}

/// Answers the messages of a POST to the path of `view`, over the connection of `holder`.
pub(super) async fn post(
    edge: Arc<IngressContext>,
    view: &View,
    request: Request<Incoming>,
    holder: Holder,
) -> Result<Response, IngressError> {
    let (head, body) = request.into_parts();
    check_content_type(&head.headers)?;
    let posted = match Posted::parse(read(holder.account, body).await?)? {
        Posted::One(message) if modern::is_modern(&head.headers, &message) => {
            // Boxed, like all rare paths, to keep the future of an ordinary call small.
            let answering = modern::respond(edge, view, &head.headers, message, holder);
            return Ok(Box::pin(answering).await);
        }
        Posted::Several(_) if modern::has_modern_headers(&head.headers) => {
            return Err(IngressError::NoBatches(version::MODERN.to_owned()));
        }
        legacy => legacy,
    };
    let version = version(&head.headers)?;
    // Any client may send messages without answers.
    let mut accepts = match posted.wants_answer() {
        true => accepts(&head.headers)?.preferring(&edge),
        false => AcceptedForms::default(),
    };
    let sessions = edge.views.sessions();
    let id = text(&head.headers, &SESSION);
    let session = match posted.initialize() {
        Some(message) => open(&edge, view, message, holder),
        None => sessions.find(id, || view.scope(), holder)?,
    };
    let version = version.or(session.version()).unwrap_or(version::ASSUMED);
    if matches!(posted, Posted::Several(_)) && !version::has_batches(version) {
        return Err(IngressError::NoBatches(version.to_owned()));
    }
    accepts.resumption = session.id().is_some() && version::has_priming(version);
    match posted {
        Posted::One(message) if message.shape() == MessageKind::Request => {
            let is_initialize = message.method() == Some(method::INITIALIZE);
            let reply = reply(edge, view, message, &session, accepts);
            let mut response = reply.into_response().await;
            if is_initialize && let Some(id) = session.id() {
                let id = HeaderValue::try_from(id).expect("our ids are visible ASCII");
                response.headers_mut().insert(SESSION, id);
            }
            Ok(response)
        }
        Posted::One(message) => {
            Box::pin(deliver(&edge, view, &message, &session)).await;
            Ok(http_response::empty(StatusCode::ACCEPTED))
        }
        Posted::Several(batch) => {
            let wants_answer = batch.wants_answer();
            let replies = several(edge, view, batch, &session, accepts);
            if wants_answer {
                return Ok(Box::pin(replies.into_response()).await);
            }
            Box::pin(replies.finish()).await;
            Ok(http_response::empty(StatusCode::ACCEPTED))
        }
    }
}

/// Starts a request.
pub(super) fn reply(
    edge: Arc<IngressContext>,
    view: &View,
    message: Message,
    session: &Arc<Session>,
    accepts: AcceptedForms,
) -> RequestReply {
    let id = message.part(MessagePart::Id).unwrap_or("null").to_owned();
    let token = message.part(MessagePart::ProgressToken).map(str::to_owned);
    let running = session.begin(&id);
    let (views, view, asking) = (Arc::clone(&edge.views), view.clone(), Arc::clone(session));
    let outcome = Box::pin(async move { views.handle(&view, &asking, &message).await });
    RequestReply::new(edge, outcome, (id, token.as_deref()), accepts, running)
}

/// Starts all members of a batch. An invalid member is answered by its error at once.
pub(super) fn several(
    edge: Arc<IngressContext>,
    view: &View,
    batch: Batch,
    session: &Arc<Session>,
    accepts: AcceptedForms,
) -> BatchReplies {
    let mut replies = BatchReplies::new(Arc::clone(&edge), accepts);
    for member in batch.into_members() {
        match member {
            Ok(message) if message.shape() == MessageKind::Request => {
                replies.push(reply(Arc::clone(&edge), view, message, session, accepts));
            }
            Ok(message) => {
                let (edge, view, session) = (Arc::clone(&edge), view.clone(), Arc::clone(session));
                replies.push_background(
                    async move { deliver(&edge, &view, &message, &session).await },
                );
            }
            Err(error) => replies.push_answer(IngressError::from(error).render(None)),
        }
    }
    replies
}

/// Handles a message that has no answer: a notification or a response.
pub(super) async fn deliver(
    edge: &IngressContext,
    view: &View,
    message: &Message,
    session: &Session,
) {
    if message.shape() != MessageKind::Response {
        notified(edge, view, message, session).await;
    } else if !session.answer(message).await {
        tracing::debug!("client response ignored: no server request waits for it");
    }
}

async fn notified(edge: &IngressContext, view: &View, message: &Message, session: &Session) {
    if message.method() != Some(method::CANCELLED) {
        edge.views.notify(view, session, message).await;
    } else if let Some(id) = message.part(MessagePart::CancelledId)
        && !session.cancel(id)
    {
        tracing::debug!(
            "cancellation of request {} ignored: no running request, or more than one, has this id",
            quoted_input(id)
        );
    }
}

/// Returns the protocol version that a client names. It must be a supported one.
pub(super) fn version(headers: &HeaderMap) -> Result<Option<&str>, IngressError> {
    let Some(asked) = headers.get(&VERSION) else { return Ok(None) };
    match asked.to_str() {
        Ok(asked) if version::is_legacy(asked) => Ok(Some(asked)),
        _ => Err(IngressError::Version(String::from_utf8_lossy(asked.as_bytes()).into_owned())),
    }
}

/// Reads the body of a request, which counts for `account`.
pub(super) async fn read(account: Account, mut body: Incoming) -> Result<Bytes, IngressError> {
    let whole = body::read_whole(
        &mut body,
        defaults::BODY_BYTES_MAX,
        MemoryPressurePolicy::Refuse(Some(account)),
    );
    match time::timeout(defaults::BODY_TIMEOUT, whole).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(BodyReadError::TooLong)) => {
            skip(body).await;
            Err(IngressError::TooLarge)
        }
        Ok(Err(BodyReadError::NoMemory(exhausted))) => {
            skip(body).await;
            Err(IngressError::NoMemory(exhausted))
        }
        Ok(Err(BodyReadError::Broken(_))) => Err(IngressError::BrokenOff),
        Err(_) => Err(IngressError::TooSlow),
    }
}

/// Reads the rest of a rejected body: a client that still writes when the connection closes never
/// sees the answer.
async fn skip(body: Incoming) {
    let mut rest = Limited::new(body, defaults::BODY_BYTES_SKIPPED);
    let _all = body::discard(&mut rest, defaults::BODY_TIMEOUT).await;
}

/// Requires JSON: a page of another site can send plain text without a preflight, but not JSON.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), IngressError> {
    let declared = text(headers, &CONTENT_TYPE).unwrap_or_default();
    let kind = declared.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(IngressError::ContentType(declared.to_owned()))
    }
}

/// The required `Accept` value. Source: MCP 2025-11-25, "Sending Messages to the Server".
const BOTH: &str = "application/json, text/event-stream";

pub(super) fn accepts(headers: &HeaderMap) -> Result<AcceptedForms, IngressError> {
    let mut accepts = AcceptedForms::default();
    let values = || headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut is_empty = true;
    for value in values() {
        is_empty &= value.is_empty();
        // Nearly all clients send exactly this value.
        if value == BOTH {
            accepts = AcceptedForms::both();
            continue;
        }
        for range in value.split(',') {
            let kind = range.split(';').next().unwrap_or_default().trim();
            let is = |known: &str| kind.eq_ignore_ascii_case(known);
            if is("*/*") {
                accepts = AcceptedForms::both();
            }
            accepts.json |= is("application/json") || is("application/*");
            accepts.events |= is("text/event-stream") || is("text/*");
        }
    }
    if is_empty {
        accepts = AcceptedForms::both();
    }
    if accepts.json || accepts.events {
        Ok(accepts)
    } else {
        Err(IngressError::Accept(values().collect::<Vec<_>>().join(", ")))
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn a_body_must_be_declared_as_json() {
        assert!(
            check_content_type(&headers(CONTENT_TYPE, "application/json; charset=utf-8")).is_ok()
        );
        for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""] {
            assert!(check_content_type(&headers(CONTENT_TYPE, kind)).is_err(), "{kind}");
        }
    }

    #[test]
    fn a_version_is_one_that_is_served_or_absent() {
        assert_eq!(version(&HeaderMap::new()).ok(), Some(None));
        assert_eq!(version(&headers(VERSION, "2025-06-18")).ok(), Some(Some("2025-06-18")));
        for value in [&b"2027-01-01"[..], b"", b"2025-06-18 ", b"\xff"] {
            let value = HeaderValue::from_bytes(value).expect("a header");
            assert!(version(&HeaderMap::from_iter([(VERSION, value)])).is_err());
        }
    }

    #[test]
    fn an_answer_is_given_in_a_form_that_the_client_takes() {
        let accept =
            |value| accepts(&headers(ACCEPT, value)).map(|found| (found.json, found.events)).ok();
        assert_eq!(accept("application/json, text/event-stream"), Some((true, true)));
        assert_eq!(accept("*/*"), Some((true, true)));
        assert_eq!(accept("application/json;q=0.9"), Some((true, false)));
        assert_eq!(accept("text/event-stream"), Some((false, true)));
        assert_eq!(accept("Application/JSON, TEXT/event-stream"), Some((true, true)));
        assert_eq!(accept("text/html"), None);
        assert!(accepts(&HeaderMap::new()).is_ok());
    }
}
