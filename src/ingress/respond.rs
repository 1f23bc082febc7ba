//! Every answer of our own as an HTTP response.

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::{
    StatusCode,
    body::Frame,
    header::{
        ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
    },
};
use serde::Serialize;
use serde_json::json;

use super::{Body, Response, bearer::BearerError, modern::HeaderMismatch, origin::OriginRefusal};
use crate::{
    body::OutgoingBody,
    budget::MemoryExhausted,
    call::CallError,
    config::defaults,
    era::client_subscription::FilterError,
    protocol::{
        BatchError, ByteChunks, MessageKind, ParseError, RpcError,
        client_meta::ClientMetaError,
        rpc_error::{
            HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR,
            SESSION_NOT_FOUND, SESSION_REQUIRED, UNSUPPORTED_VERSION,
        },
        version,
    },
    redact,
    session::SessionLookupError,
};

/// Why a request is refused before anybody has looked at what it asks for.
#[derive(Debug, thiserror::Error)]
pub(super) enum IngressError {
    /// The wrong host or a foreign page.
    #[error(transparent)]
    Forbidden(#[from] OriginRefusal),
    /// The token is missing or another one.
    #[error("{denied}")]
    Unauthorized {
        /// Which of the two.
        denied: BearerError,
        /// All of the request was read, so that another one can follow it.
        is_read: bool,
    },
    /// The token is another one, as very many were from where the client is.
    #[error("too many wrong tokens come from where this client is")]
    WrongTokens {
        /// As above.
        is_read: bool,
    },
    /// No such path.
    #[error("there is nothing at `{0}`")]
    NotFound(String),
    /// A path that is served only if the operator wants it.
    #[error("HTTP with SSE, the transport of protocol version 2024-11-05, is switched off")]
    PairsOff,
    /// The operator's interface, which is served only if the operator wants it.
    #[error("the operator's interface over HTTP is switched off")]
    RpcOff,
    /// Messages for a stream that is not open.
    #[error("the stream for these messages is not open, or not any more")]
    NoPair,
    /// The client has so much running that its stream takes on no more.
    #[error("{} requests of the client wait for its stream", defaults::PAIR_REQUESTS_MAX)]
    PairFull,
    /// A path of a server that is not declared.
    #[error(transparent)]
    NoServer(CallError),
    /// All connections have requests in flight.
    #[error("all connections for clients have requests in flight")]
    Full,
    /// All streams are in use, of accounts that hold no more than this one.
    #[error("all streams for clients have requests in flight")]
    StreamsFull,
    /// The path takes other methods.
    #[error("this path takes {0}")]
    Method(&'static str),
    /// The body is not declared as JSON.
    #[error("the body's content type is `{0}`")]
    ContentType(String),
    /// The client takes no answer that we could give.
    #[error("the client accepts `{0}`")]
    Accept(String),
    /// GET is for event streams.
    #[error("GET is answered with an event stream, and the client accepts `{0}`")]
    NoStream(String),
    /// The body is too large.
    #[error("the body is larger than {} bytes", defaults::BODY_BYTES_MAX)]
    TooLarge,
    /// The body did not arrive in time.
    #[error("the body did not arrive within {} s", defaults::BODY_TIMEOUT.as_secs())]
    TooSlow,
    /// There is no memory for the body.
    #[error(transparent)]
    NoMemory(MemoryExhausted),
    /// The body broke off.
    #[error("the body broke off")]
    BrokenOff,
    /// The body is no message.
    #[error(transparent)]
    Message(#[from] ParseError),
    /// The body is an array of which nothing can be done.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The body is a batch, and the client's version has none.
    #[error("a batch, which protocol version {0} does not have")]
    NoBatches(String),
    /// The protocol version is not served.
    #[error("protocol version `{0}` is not served")]
    Version(String),
    /// The headers do not fit the body.
    #[error(transparent)]
    Header(#[from] HeaderMismatch),
    /// The request does not say what it must of its client.
    #[error(transparent)]
    Introduction(#[from] ClientMetaError),
    /// What is to be told to a listener cannot be read.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The client wants to listen, and takes no events.
    #[error(
        "`subscriptions/listen` is answered with an event stream, which the client does not accept"
    )]
    NoEvents,
    /// Nobody has asked, in an era in which nobody does.
    #[error("a response, which protocol version {} does not have", version::MODERN)]
    Response,
    /// The request must belong to a session.
    #[error(transparent)]
    Session(#[from] SessionLookupError),
}

impl IngressError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Forbidden(OriginRefusal::Hosts) => StatusCode::BAD_REQUEST,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Unauthorized { .. } => StatusCode::UNAUTHORIZED,
            Self::WrongTokens { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::NotFound(_)
            | Self::PairsOff
            | Self::RpcOff
            | Self::NoPair
            | Self::NoServer(_)
            | Self::Session(SessionLookupError::Unknown) => StatusCode::NOT_FOUND,
            Self::PairFull | Self::Full | Self::StreamsFull | Self::NoMemory(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Accept(_) | Self::NoStream(_) | Self::NoEvents => StatusCode::NOT_ACCEPTABLE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BrokenOff
            | Self::Message(_)
            | Self::Batch(_)
            | Self::NoBatches(_)
            | Self::Version(_)
            | Self::Header(_)
            | Self::Introduction(_)
            | Self::Response
            | Self::Session(SessionLookupError::Missing) => StatusCode::BAD_REQUEST,
            // The request was read, and fails like any other.
            Self::Filter(_) => StatusCode::OK,
        }
    }

    pub(super) fn to_rpc(&self) -> RpcError {
        let (code, name, hint) = match self {
            Self::NoServer(error) => return error.to_rpc(),
            Self::NoMemory(exhausted) => return exhausted.to_rpc(),
            Self::Forbidden(OriginRefusal::Host(_)) => (
                INVALID_REQUEST,
                "HOST_FORBIDDEN",
                "Use `localhost` or 127.0.0.1, or add the name to `listen.allowed_hosts`.",
            ),
            Self::Forbidden(OriginRefusal::Hosts) => {
                (INVALID_REQUEST, "HOST_AMBIGUOUS", "Send one `Host` header.")
            }
            Self::Forbidden(OriginRefusal::Origin(_)) => {
                (INVALID_REQUEST, "ORIGIN_FORBIDDEN", "Add the origin to `listen.allowed_origins`.")
            }
            Self::Unauthorized { denied, .. } => (
                INVALID_REQUEST,
                match denied {
                    BearerError::Missing => "TOKEN_REQUIRED",
                    BearerError::Wrong => "TOKEN_INVALID",
                },
                "Send `Authorization: Bearer TOKEN` with the token that the operator of metamcp has set, in `headers` of the client's configuration.",
            ),
            Self::WrongTokens { .. } => (
                INVALID_REQUEST,
                "TOKENS_WRONG",
                "Ask the operator of metamcp for the token, and try again in some seconds.",
            ),
            Self::NotFound(_) => (
                INVALID_REQUEST,
                "PATH_NOT_FOUND",
                "MCP is at `/`, `/mcp`, `/direct` and `/servers/NAME`.",
            ),
            Self::PairsOff => (
                INVALID_REQUEST,
                "PATH_NOT_FOUND",
                "Use streamable HTTP at the path without `/sse`, or set `listen.legacy_sse`.",
            ),
            Self::RpcOff => {
                (INVALID_REQUEST, "PATH_NOT_FOUND", "Use the control socket, or set `listen.rpc`.")
            }
            Self::NoPair => (INVALID_REQUEST, "STREAM_NOT_FOUND", "Open the stream again."),
            Self::PairFull => {
                (INTERNAL_ERROR, "CLIENT_TOO_SLOW", "Read the stream, and send less at a time.")
            }
            Self::Full | Self::StreamsFull => {
                (INTERNAL_ERROR, "SERVICE_FULL", "Try again when running requests are answered.")
            }
            Self::Method(_) => (INVALID_REQUEST, "HTTP_METHOD", "Send messages with POST."),
            Self::ContentType(_) => {
                (INVALID_REQUEST, "CONTENT_TYPE", "Send `Content-Type: application/json`.")
            }
            Self::Accept(_) => {
                (INVALID_REQUEST, "ACCEPT", "Send `Accept: application/json, text/event-stream`.")
            }
            Self::NoStream(_) => (
                INVALID_REQUEST,
                "ACCEPT",
                "Send messages with POST. For the stream, send `Accept: text/event-stream`.",
            ),
            Self::TooLarge => (INVALID_REQUEST, "BODY_TOO_LARGE", "Send less at a time."),
            Self::TooSlow | Self::BrokenOff => {
                (INVALID_REQUEST, "BODY_INCOMPLETE", "Send the whole body at once.")
            }
            Self::Message(ParseError::Encoding(_) | ParseError::Json(_))
            | Self::Batch(BatchError::Json(_)) => {
                (PARSE_ERROR, "PARSE_ERROR", "Send one JSON-RPC 2.0 message as UTF-8.")
            }
            Self::Batch(BatchError::TooLong { .. }) => {
                (INVALID_REQUEST, "BATCH_TOO_LONG", "Send the messages in several batches.")
            }
            Self::Batch(BatchError::SameId(_)) => {
                (INVALID_REQUEST, "BATCH_SAME_ID", "Give each request an id of its own.")
            }
            Self::Batch(BatchError::Initialize) => {
                (INVALID_REQUEST, "BATCH_INITIALIZE", "Send `initialize` alone, before the others.")
            }
            Self::Message(ParseError::TooDeep { .. })
            | Self::Batch(BatchError::Nothing(ParseError::TooDeep { .. })) => {
                (INVALID_REQUEST, "TOO_DEEP", "Nest less, or send the inner part as a string.")
            }
            Self::Batch(BatchError::Empty | BatchError::Nothing(_)) => {
                (INVALID_REQUEST, "INVALID_REQUEST", "Send JSON-RPC 2.0 messages in the array.")
            }
            Self::NoBatches(_) => {
                (INVALID_REQUEST, "BATCH_UNSUPPORTED", "Send one message per request.")
            }
            Self::Message(_) => {
                (INVALID_REQUEST, "INVALID_REQUEST", "Send one JSON-RPC 2.0 message as UTF-8.")
            }
            Self::Session(SessionLookupError::Missing) => (
                SESSION_REQUIRED,
                "SESSION_REQUIRED",
                "Send the `Mcp-Session-Id` that `initialize` was answered with.",
            ),
            Self::Session(SessionLookupError::Unknown) => {
                (SESSION_NOT_FOUND, "SESSION_NOT_FOUND", "Send `initialize` without a session id.")
            }
            Self::Header(_) => (
                HEADER_MISMATCH,
                "HEADER_MISMATCH",
                "Repeat in the headers what the body says, encoded where it must be.",
            ),
            Self::Introduction(_) => (
                INVALID_PARAMS,
                "INVALID_META",
                "Say version and capabilities of the client with every request.",
            ),
            Self::Filter(_) => {
                (INVALID_PARAMS, "INVALID_FILTER", "Name each kind of notification with `true`.")
            }
            Self::NoEvents => {
                (INVALID_REQUEST, "ACCEPT", "Send `Accept: application/json, text/event-stream`.")
            }
            Self::Response => (
                INVALID_REQUEST,
                "UNEXPECTED_RESPONSE",
                "Send the request again with the answers in `inputResponses`.",
            ),
            Self::Version(asked) => {
                let (supported, requested) = (json!(version::SERVED), json!(asked));
                let context = json!({ "supported": supported, "requested": requested });
                return RpcError::new(UNSUPPORTED_VERSION, "UNSUPPORTED_VERSION", self.to_string())
                    .suggest("Use `initialize` and the version that it answers with.")
                    .context(context)
                    .detail("supported", supported)
                    .detail("requested", requested);
            }
        };
        RpcError::new(code, name, self.to_string()).suggest(hint)
    }

    pub(super) fn into_response(self) -> Response {
        self.into_response_to(None)
    }

    /// Returns the answer to an operator, whose programs know more of an error.
    pub(super) fn into_complete_response(self) -> Response {
        let error = self.to_rpc().complete();
        let error = error.render(self.request_id());
        self.into_response_with(error)
    }

    /// Returns the answer to the request whose id is the JSON text `id`, where it could be read.
    pub(super) fn into_response_to(self, id: Option<&str>) -> Response {
        let error = self.render(id);
        self.into_response_with(error)
    }

    /// Renders the answer to the request whose id is the JSON text `id`. Without it, the error may
    /// know the request.
    pub(super) fn render(&self, id: Option<&str>) -> Bytes {
        self.to_rpc().render(id.or_else(|| self.request_id()))
    }

    /// Returns the id of the request that was refused, where it was read.
    fn request_id(&self) -> Option<&str> {
        match self {
            Self::Message(ParseError::TooDeep { shape: MessageKind::Request, id }) => id.as_deref(),
            _ => None,
        }
    }

    fn into_response_with(self, error: Bytes) -> Response {
        tracing::debug!(error = %self, status = %self.status(), "request refused");
        let mut response = json_bytes(self.status(), error);
        if let Self::Method(methods) = self {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
        }
        if let Self::WrongTokens { is_read } = self {
            let seconds = HeaderValue::from(defaults::WRONG_TOKEN_PATIENCE.as_secs());
            response.headers_mut().insert(RETRY_AFTER, seconds);
            if !is_read {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
        }
        if let Self::Full | Self::StreamsFull = self {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Self::Unauthorized { denied, is_read } = self {
            let challenge = HeaderValue::from_static(denied.challenge());
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            if !is_read {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
        }
        response
    }
}

/// Returns a client's own words as far as an error repeats them.
pub(super) fn quoted_input(words: &str) -> String {
    redact::cut(words, defaults::SUGGESTION_BYTES_MAX).to_owned()
}

/// Returns `bytes`, which are JSON.
pub(super) fn json_bytes(status: StatusCode, bytes: impl Into<OutgoingBody>) -> Response {
    with_body(status, "application/json", Body::Left(bytes.into()))
}

/// Returns `value` as JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let bytes = serde_json::to_vec(value).expect("our own values have string keys");
    json_bytes(status, Bytes::from(bytes))
}

/// Returns nothing.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::Left(Bytes::new().into()));
    *response.status_mut() = status;
    response
}

/// Returns a stream of events, whose bytes come in pieces.
pub(super) fn event_stream<P: Into<ByteChunks>>(
    pieces: impl Stream<Item = P> + Send + 'static,
) -> Response {
    let frames = pieces.flat_map(|pieces| stream::iter(OutgoingBody::event(pieces.into())));
    let body = StreamBody::new(frames.map(|frame| Ok(Frame::data(frame)))).boxed_unsync();
    let mut response = with_body(StatusCode::OK, "text/event-stream", Body::Right(body));
    // Proxies in between must not hold back the first event until the last has come.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn with_body(status: StatusCode, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
