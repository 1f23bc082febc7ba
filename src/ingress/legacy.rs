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
    capacity_holder::{Account, Holder},
    compute_pool::read_in_place,
    config::{SessionMode, defaults},
    http_body::{self, BodyReadError, MemoryPressurePolicy},
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
const EVENT_STREAM: &[u8] = b"text/event-stream";

/// Answers a request at the path of `view`, over the connection of `holder`, that is no POST.
pub(super) fn respond(
    context: Arc<IngressContext>,
    view: &View,
    request: &Request<Incoming>,
    holder: Holder,
) -> Result<Response, IngressError> {
    let sessions = context.views.sessions();
    match *request.method() {
        Method::GET | Method::DELETE if modern::has_modern_headers(request.headers()) => {
            Err(IngressError::MethodNotAllowed("POST"))
        }
        _ if sessions.mode() == SessionMode::Off => Err(IngressError::MethodNotAllowed("POST")),
        Method::GET => open_stream(context, view, request.headers(), holder),
        // Shared connections belong to all clients, so they stay.
        Method::DELETE => {
            version(request.headers())?;
            sessions.delete(header_text(request.headers(), &SESSION))?;
            tracing::debug!("session ended by its client");
            Ok(http_response::empty(StatusCode::NO_CONTENT))
        }
        _ => Err(IngressError::MethodNotAllowed("GET, POST, DELETE")),
    }
}

/// Opens the stream of notifications and requests that servers send unasked.
fn open_stream(
    context: Arc<IngressContext>,
    view: &View,
    headers: &HeaderMap,
    holder: Holder,
) -> Result<Response, IngressError> {
    check_accepts_events(headers)?;
    let version = version(headers)?;
    let (sessions, id) = (context.views.sessions(), header_text(headers, &SESSION));
    let is_ephemeral = id.is_none() && sessions.mode() == SessionMode::Lenient;
    let session = match is_ephemeral {
        // Without an id the client is unknown: the stream carries what all clients receive.
        true => sessions.open(view.scope(), version, "{}", holder),
        false => sessions.find(id, || view.scope(), holder)?,
    };
    let last = header_text(headers, &LAST_EVENT).and_then(|id| id.parse().ok());
    if let Some(rest) = last.and_then(|last| session.resume(last)) {
        return Ok(resumable_reply::send_remainder(context, rest));
    }
    // Older clients take an event without data for a malformed message.
    let negotiated = if is_ephemeral { None } else { session.version() };
    let takes_priming = version.or(negotiated).is_some_and(version::has_priming);
    notification_stream::open(context, &session, last, takes_priming, is_ephemeral)
}

/// The content of a body.
enum PostedBody {
    Single(Message),
    Batch(Batch),
}

impl PostedBody {
    fn parse(body: Bytes) -> Result<Self, IngressError> {
        let is_batch = Batch::is_batch(&body);
        read_in_place(body.len(), || {
            Ok(match is_batch {
                true => Self::Batch(Batch::parse(&body, defaults::BATCH_MESSAGES_MAX)?),
                false => Self::Single(Message::parse(body)?),
            })
        })
    }

    fn wants_answer(&self) -> bool {
        match self {
            Self::Single(message) => message.kind() == MessageKind::Request,
            Self::Batch(batch) => batch.wants_answer(),
        }
    }

    /// Returns the message if it is a handshake. A batch contains none.
    fn initialize(&self) -> Option<&Message> {
        match self {
            Self::Single(message) if message.method() == Some(method::INITIALIZE) => Some(message),
            Self::Single(_) | Self::Batch(_) => None,
        }
    }
}

/// Requires the name of the type: a browser with `*/*` that follows a link would wait forever.
pub(super) fn check_accepts_events(headers: &HeaderMap) -> Result<(), IngressError> {
    let is_named = |value: &HeaderValue| {
        let mut parts = value.as_bytes().windows(EVENT_STREAM.len());
        parts.any(|part| part.eq_ignore_ascii_case(EVENT_STREAM))
    };
    if headers.get_all(ACCEPT).iter().any(is_named) {
        return Ok(());
    }
    let accepted = header_text(headers, &ACCEPT).unwrap_or_default();
    Err(IngressError::StreamNotAccepted(accepted.to_owned()))
}

/// Opens the session of a client that sends a handshake.
pub(super) fn open_session(
    context: &IngressContext,
    view: &View,
    handshake: &Message,
    holder: Holder,
) -> Arc<Session> {
    let requested = handshake.string(MessagePart::ProtocolVersion);
    let capabilities = handshake.part(MessagePart::Capabilities).unwrap_or("{}");
    context.views.sessions().open(view.scope(), requested.as_deref(), capabilities, holder)
}

/// Answers the messages of a POST to the path of `view`, over the connection of `holder`.
pub(super) async fn post(
    context: Arc<IngressContext>,
    view: &View,
    request: Request<Incoming>,
    holder: Holder,
) -> Result<Response, IngressError> {
    let (head, body) = request.into_parts();
    check_content_type(&head.headers)?;
    let posted = match PostedBody::parse(read_body(holder.account, body).await?)? {
        PostedBody::Single(message) if modern::is_modern(&head.headers, &message) => {
            // Boxed, like all rare paths, to keep the future of an ordinary call small.
            let answering = modern::respond(context, view, &head.headers, message, holder);
            return Ok(Box::pin(answering).await);
        }
        PostedBody::Batch(_) if modern::has_modern_headers(&head.headers) => {
            return Err(IngressError::BatchUnsupported(version::MODERN.to_owned()));
        }
        legacy => legacy,
    };
    let (session, accepts) = negotiate(&context, view, &head.headers, &posted, holder)?;
    match posted {
        PostedBody::Single(message) if message.kind() == MessageKind::Request => {
            let is_initialize = message.method() == Some(method::INITIALIZE);
            let reply = start_request(context, view, message, &session, accepts);
            let mut response = reply.into_response().await;
            if is_initialize && let Some(id) = session.id() {
                let id = HeaderValue::try_from(id).expect("our ids are visible ASCII");
                response.headers_mut().insert(SESSION, id);
            }
            Ok(response)
        }
        PostedBody::Single(message) => {
            Box::pin(deliver(&context, view, &message, &session)).await;
            Ok(http_response::empty(StatusCode::ACCEPTED))
        }
        PostedBody::Batch(batch) => {
            let wants_answer = batch.wants_answer();
            let replies = start_batch(context, view, batch, &session, accepts);
            if wants_answer {
                return Ok(Box::pin(replies.into_response()).await);
            }
            Box::pin(replies.finish()).await;
            Ok(http_response::empty(StatusCode::ACCEPTED))
        }
    }
}

/// Returns the session of the client that sends `posted`, and the forms of an answer to it.
fn negotiate(
    context: &IngressContext,
    view: &View,
    headers: &HeaderMap,
    posted: &PostedBody,
    holder: Holder,
) -> Result<(Arc<Session>, AcceptedForms), IngressError> {
    let version = version(headers)?;
    // Any client may send messages without answers.
    let mut accepts = match posted.wants_answer() {
        true => accepted_forms(headers)?.restricted(context),
        false => AcceptedForms::default(),
    };
    let session = match posted.initialize() {
        Some(message) => open_session(context, view, message, holder),
        None => {
            let id = header_text(headers, &SESSION);
            context.views.sessions().find(id, || view.scope(), holder)?
        }
    };
    let version = version.or(session.version()).unwrap_or(version::ASSUMED);
    if matches!(posted, PostedBody::Batch(_)) && !version::has_batches(version) {
        return Err(IngressError::BatchUnsupported(version.to_owned()));
    }
    accepts.resumption = session.id().is_some() && version::has_priming(version);
    Ok((session, accepts))
}

/// Starts a request.
pub(super) fn start_request(
    context: Arc<IngressContext>,
    view: &View,
    message: Message,
    session: &Arc<Session>,
    accepts: AcceptedForms,
) -> RequestReply {
    let id = message.part(MessagePart::Id).unwrap_or("null").to_owned();
    let token = message.part(MessagePart::ProgressToken).map(str::to_owned);
    let running = session.begin(&id);
    let (views, view, owner) = (Arc::clone(&context.views), view.clone(), Arc::clone(session));
    let outcome = Box::pin(async move { views.handle(&view, &owner, &message).await });
    RequestReply::new(context, outcome, (id, token.as_deref()), accepts, running)
}

/// Starts all members of a batch. An invalid member is answered by its error at once.
pub(super) fn start_batch(
    context: Arc<IngressContext>,
    view: &View,
    batch: Batch,
    session: &Arc<Session>,
    accepts: AcceptedForms,
) -> BatchReplies {
    let mut replies = BatchReplies::new(Arc::clone(&context), accepts);
    for member in batch.into_members() {
        match member {
            Ok(message) if message.kind() == MessageKind::Request => {
                replies.push(start_request(Arc::clone(&context), view, message, session, accepts));
            }
            Ok(message) => {
                let (context, view, session) =
                    (Arc::clone(&context), view.clone(), Arc::clone(session));
                replies.push_background(async move {
                    deliver(&context, &view, &message, &session).await;
                });
            }
            Err(error) => replies.push_answer(IngressError::from(error).render(None)),
        }
    }
    replies
}

/// Handles a message that has no answer: a notification or a response.
pub(super) async fn deliver(
    context: &IngressContext,
    view: &View,
    message: &Message,
    session: &Session,
) {
    if message.kind() == MessageKind::Response {
        if !session.answer(message).await {
            tracing::debug!("client response ignored: no server request waits for it");
        }
    } else if message.method() != Some(method::CANCELLED) {
        context.views.notify(view, session, message).await;
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
    let Some(requested) = headers.get(&VERSION) else { return Ok(None) };
    let known = requested.to_str().ok().filter(|requested| version::is_legacy(requested));
    known.map(Some).ok_or_else(|| {
        IngressError::UnsupportedVersion(String::from_utf8_lossy(requested.as_bytes()).into_owned())
    })
}

/// Reads the body of a request, which counts for `account`.
pub(super) async fn read_body(account: Account, mut body: Incoming) -> Result<Bytes, IngressError> {
    let whole = http_body::read_whole(
        &mut body,
        defaults::BODY_BYTES_MAX,
        MemoryPressurePolicy::Refuse(Some(account)),
    );
    let error = match time::timeout(defaults::BODY_TIMEOUT, whole).await {
        Ok(Ok(body)) => return Ok(body),
        Ok(Err(BodyReadError::Broken(_))) => return Err(IngressError::BodyIncomplete),
        Err(_) => return Err(IngressError::BodyTimeout),
        Ok(Err(BodyReadError::TooLong)) => IngressError::BodyTooLarge,
        Ok(Err(BodyReadError::NoMemory(exhausted))) => IngressError::MemoryExhausted(exhausted),
    };
    // A client that still writes when the connection closes never sees the answer.
    let mut rest = Limited::new(body, defaults::BODY_BYTES_SKIPPED);
    let _all = http_body::discard(&mut rest, defaults::BODY_TIMEOUT).await;
    Err(error)
}

/// Requires JSON: a page of another site can send plain text without a preflight, but not JSON.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), IngressError> {
    let declared = header_text(headers, &CONTENT_TYPE).unwrap_or_default();
    let kind = declared.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(IngressError::ContentType(declared.to_owned()))
    }
}

/// The required `Accept` value. Source: MCP 2025-11-25, "Sending Messages to the Server".
const BOTH: &str = "application/json, text/event-stream";

pub(super) fn accepted_forms(headers: &HeaderMap) -> Result<AcceptedForms, IngressError> {
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

fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
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
    fn a_request_names_a_supported_version_or_none() {
        assert_eq!(version(&HeaderMap::new()).ok(), Some(None));
        assert_eq!(version(&headers(VERSION, "2025-06-18")).ok(), Some(Some("2025-06-18")));
        for value in [&b"2027-01-01"[..], b"", b"2025-06-18 ", b"\xff"] {
            let value = HeaderValue::from_bytes(value).expect("a header");
            assert!(version(&HeaderMap::from_iter([(VERSION, value)])).is_err());
        }
    }

    #[test]
    fn the_accept_header_selects_the_forms_of_an_answer() {
        let accept = |value| {
            accepted_forms(&headers(ACCEPT, value)).map(|found| (found.json, found.events)).ok()
        };
        assert_eq!(accept("application/json, text/event-stream"), Some((true, true)));
        assert_eq!(accept("*/*"), Some((true, true)));
        assert_eq!(accept("application/json;q=0.9"), Some((true, false)));
        assert_eq!(accept("text/event-stream"), Some((false, true)));
        assert_eq!(accept("Application/JSON, TEXT/event-stream"), Some((true, true)));
        assert_eq!(accept("text/html"), None);
        assert!(accepted_forms(&HeaderMap::new()).is_ok());
    }
}
