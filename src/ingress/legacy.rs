//! MCP over streamable HTTP, legacy era. POST carries a message or a batch, GET opens the stream of
//! the session, DELETE ends the session. Messages of the modern era are handled by [`modern`].
//!
//! Sessions are lenient by default: a client may send a current id, none, or one from before a
//! restart. The same pool serves all of them.

use std::sync::Arc;

use hyper::{
    HeaderMap, Method, Request, StatusCode,
    body::{Bytes, Incoming},
    header::{HeaderName, HeaderValue},
};

use super::{
    IngressContext, Response,
    error::IngressError,
    http_response, message_dispatch, modern, notification_stream,
    reply::AcceptedForms,
    request_parts::{self, header_text},
    resumable_reply,
    trace_headers::add_trace_headers,
};
use crate::{
    call_record::ClientName,
    capacity_holder::Holder,
    compute_pool::read_in_place,
    config::{SessionMode, defaults},
    protocol::{
        Batch, Era, Message, MessageKind,
        payloads::{SESSION_HEADER, method},
        version,
    },
    session::{ClientRecord, ClientTransport, Session},
    view::View,
};

const SESSION: HeaderName = HeaderName::from_static(SESSION_HEADER);
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Answers a request at the path of `view`, over the connection of `holder`, that is not a POST.
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
            request_parts::version(request.headers())?;
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
    request_parts::check_accepts_events(headers)?;
    let version = request_parts::version(headers)?;
    let (sessions, id) = (context.views.sessions(), header_text(headers, &SESSION));
    let is_ephemeral = id.is_none() && sessions.mode() == SessionMode::Lenient;
    let session = match is_ephemeral {
        // Without an id the client is unknown: the stream carries what all clients receive.
        true => sessions.open(view.scope(), version, "{}", holder, None),
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

/// Answers the messages of a POST to the path of `view`, over the connection of `holder`.
pub(super) async fn post(
    context: Arc<IngressContext>,
    view: &View,
    request: Request<Incoming>,
    holder: Holder,
) -> Result<Response, IngressError> {
    let (head, body) = request.into_parts();
    request_parts::check_content_type(&head.headers)?;
    let version = head.headers.get(&request_parts::VERSION);
    let posted = match PostedBody::parse(request_parts::read_body(holder.account, body).await?)? {
        PostedBody::Single(message) if modern::is_modern(&head.headers, version, &message) => {
            // Boxed, like all rare paths, to keep the future of an ordinary call small.
            let answering = modern::respond(context, view, &head.headers, message, holder);
            return Ok(Box::pin(answering).await);
        }
        PostedBody::Batch(_) if modern::has_modern_headers(&head.headers) => {
            return Err(IngressError::BatchUnsupported(version::MODERN.to_owned()));
        }
        legacy => legacy,
    };
    let version = request_parts::supported_version(version)?;
    let (session, accepts) = negotiate(&context, view, &head.headers, version, &posted, holder)?;
    let forwarded = context.views.forwarded(&head.headers);
    match posted {
        PostedBody::Single(mut message) if message.kind() == MessageKind::Request => {
            add_trace_headers(&mut message, &head.headers);
            let is_initialize = message.method() == Some(method::INITIALIZE);
            let reply = message_dispatch::start_request(
                context, view, message, &session, accepts, forwarded,
            );
            let mut response = reply.into_response().await;
            if is_initialize && let Some(id) = session.id() {
                let id = HeaderValue::try_from(id).expect("our ids are visible ASCII");
                response.headers_mut().insert(SESSION, id);
            }
            Ok(response)
        }
        PostedBody::Single(message) => {
            Box::pin(message_dispatch::deliver(&context, view, &message, &session)).await;
            Ok(http_response::empty(StatusCode::ACCEPTED))
        }
        PostedBody::Batch(batch) => {
            let wants_answer = batch.wants_answer();
            let forwarded = forwarded.as_ref();
            let replies =
                message_dispatch::start_batch(context, view, batch, &session, accepts, forwarded);
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
    version: Option<&str>,
    posted: &PostedBody,
    holder: Holder,
) -> Result<(Arc<Session>, AcceptedForms), IngressError> {
    // Any client may send messages without answers.
    let mut accepts = match posted.wants_answer() {
        true => request_parts::accepted_forms(headers)?.restricted(context),
        false => AcceptedForms::default(),
    };
    let sessions = context.views.sessions();
    let session = match posted.initialize() {
        Some(message) => {
            let name = message_dispatch::client_name(message);
            let client = match sessions.mode() {
                // Its later requests have no name either.
                SessionMode::Off => {
                    sessions.clients().sessionless(holder, ClientName::default(), Era::Legacy)
                }
                SessionMode::Lenient | SessionMode::Strict => {
                    Arc::new(ClientRecord::new(name, Era::Legacy, ClientTransport::Http))
                }
            };
            message_dispatch::open_session(context, view, message, holder, client)
        }
        None => {
            let id = header_text(headers, &SESSION);
            sessions.find(id, || view.scope(), holder)?
        }
    };
    let version = version.or(session.version()).unwrap_or(version::ASSUMED);
    if matches!(posted, PostedBody::Batch(_)) && !version::has_batches(version) {
        return Err(IngressError::BatchUnsupported(version.to_owned()));
    }
    accepts.resumption = session.id().is_some() && version::has_priming(version);
    Ok((session, accepts))
}
