//! The errors of the HTTP edge, with their status and their remedy.

use bytes::Bytes;
use hyper::{
    StatusCode,
    header::{ALLOW, CONNECTION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde_json::json;

use super::{
    Response, authentication::BearerError, http_response::json_bytes, modern::HeaderMismatch,
    origin::OriginRefusal,
};
use crate::{
    call::CallError,
    config::defaults,
    era::client_subscription::FilterError,
    memory_budget::MemoryExhausted,
    protocol::{
        BatchError, MessageKind, ParseError, RpcError,
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

/// The reason why a request is refused before its content is examined.
#[derive(Debug, thiserror::Error)]
pub(super) enum IngressError {
    /// A wrong host or a foreign page.
    #[error(transparent)]
    Forbidden(#[from] OriginRefusal),
    /// A missing or wrong token.
    #[error("{denied}")]
    Unauthorized {
        /// The kind of failure.
        denied: BearerError,
        /// `true` if the whole request was read, so that another one can follow it.
        is_read: bool,
    },
    /// A wrong token after too many wrong tokens from the same source.
    #[error("too many wrong tokens came from this client's user or host")]
    WrongTokens {
        /// As above.
        is_read: bool,
    },
    /// An unknown path.
    #[error("the path `{0}` does not exist")]
    NotFound(String),
    /// HTTP with SSE, which the operator has not enabled.
    #[error("HTTP with SSE, the transport of protocol version 2024-11-05, is disabled")]
    PairsOff,
    /// The control interface over HTTP, which the operator has not enabled.
    #[error("the control interface over HTTP is disabled")]
    RpcOff,
    /// A message for a stream that is not open.
    #[error("the event stream that answers this message is not open")]
    NoPair,
    /// More requests than the stream of the client can accept.
    #[error(
        "{} requests of this client are waiting for its stream already",
        defaults::PAIR_REQUESTS_MAX
    )]
    PairFull,
    /// A path of a server that is not declared.
    #[error(transparent)]
    NoServer(CallError),
    /// No idle connection that could be evicted for this one.
    #[error("all client connections have requests in flight")]
    Full,
    /// No free stream, and no account that holds more streams than this one.
    #[error("all client streams have requests in flight")]
    StreamsFull,
    /// A method that the path does not accept.
    #[error("the HTTP method is not allowed: this path accepts {0}")]
    Method(&'static str),
    /// A body that is not declared as JSON.
    #[error("the `Content-Type` header is `{0}`, not `application/json`")]
    ContentType(String),
    /// An `Accept` header that matches no form of an answer.
    #[error("the `Accept` header is `{0}`, which allows neither JSON nor an event stream")]
    Accept(String),
    /// A GET request that does not accept an event stream.
    #[error("GET returns an event stream, which the `Accept` header `{0}` does not name")]
    NoStream(String),
    /// A body over the size limit.
    #[error("the body is larger than {} bytes", defaults::BODY_BYTES_MAX)]
    TooLarge,
    /// A body that did not arrive in time.
    #[error("the body did not arrive within {} s", defaults::BODY_TIMEOUT.as_secs())]
    TooSlow,
    /// A body for which there is no memory.
    #[error(transparent)]
    NoMemory(MemoryExhausted),
    /// A body that broke off.
    #[error("the body ended before it was complete")]
    BrokenOff,
    /// A body that is no message.
    #[error(transparent)]
    Message(#[from] ParseError),
    /// A body with an invalid batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A batch in a protocol version without batches.
    #[error("protocol version {0} does not support batches")]
    NoBatches(String),
    /// An unsupported protocol version.
    #[error("protocol version `{0}` is not supported")]
    Version(String),
    /// Headers that contradict the body.
    #[error(transparent)]
    Header(#[from] HeaderMismatch),
    /// A request that lacks the description of its client.
    #[error(transparent)]
    Introduction(#[from] ClientMetaError),
    /// An invalid subscription filter.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A subscription whose client accepts no event stream.
    #[error(
        "`subscriptions/listen` returns an event stream, which the `Accept` header does not allow"
    )]
    NoEvents,
    /// A response to no request: in the modern era, servers send none.
    #[error(
        "the body is a response, which clients do not send in protocol version {}",
        version::MODERN
    )]
    Response,
    /// A request that lacks a valid session.
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

    // One row for each error: a table, however long.
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
                "Send the header `Authorization: Bearer TOKEN`: set it in `headers` of the client's configuration. The operator of metamcp has the token.",
            ),
            Self::WrongTokens { .. } => (
                INVALID_REQUEST,
                "TOKENS_WRONG",
                "Ask the operator of metamcp for the token. Try again after the seconds in `Retry-After`.",
            ),
            Self::NotFound(_) => (
                INVALID_REQUEST,
                "PATH_NOT_FOUND",
                "Use one of the paths for MCP: `/`, `/mcp`, `/direct`, `/meta` or `/servers/NAME`.",
            ),
            Self::PairsOff => (
                INVALID_REQUEST,
                "PATH_NOT_FOUND",
                "Use streamable HTTP at the path without `/sse`, or set `listen.legacy_sse = true`.",
            ),
            Self::RpcOff => (
                INVALID_REQUEST,
                "PATH_NOT_FOUND",
                "Use the control socket, or set `listen.rpc = true`.",
            ),
            Self::NoPair => (
                INVALID_REQUEST,
                "STREAM_NOT_FOUND",
                "Open the event stream again with GET, at a path that ends in `/sse`.",
            ),
            Self::PairFull => (
                INTERNAL_ERROR,
                "CLIENT_TOO_SLOW",
                "Read the answers from the stream, and send fewer requests at a time.",
            ),
            Self::Full | Self::StreamsFull => (
                INTERNAL_ERROR,
                "SERVICE_FULL",
                "Try again after the seconds in `Retry-After`, when other requests have been answered.",
            ),
            Self::Method(_) => (INVALID_REQUEST, "HTTP_METHOD", "Send MCP messages with POST."),
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
            Self::TooLarge => (INVALID_REQUEST, "BODY_TOO_LARGE", "Send less data in one request."),
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
                "Send the `Mcp-Session-Id` header from the response to `initialize`.",
            ),
            Self::Session(SessionLookupError::Unknown) => {
                (SESSION_NOT_FOUND, "SESSION_NOT_FOUND", "Send `initialize` without a session id.")
            }
            Self::Header(_) => (
                HEADER_MISMATCH,
                "HEADER_MISMATCH",
                "Send the same values in the headers as in the body, encoded where the protocol requires it.",
            ),
            Self::Introduction(_) => (
                INVALID_PARAMS,
                "INVALID_META",
                "Send the protocol version and the capabilities of the client in `params._meta` of every request.",
            ),
            Self::Filter(_) => (
                INVALID_PARAMS,
                "INVALID_FILTER",
                "Set each kind of notification to `true` or `false`, and `resourceSubscriptions` to a list of URIs.",
            ),
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
                    .suggest("Send `initialize`, and use the protocol version in its result.")
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

    /// Returns the response for an operator, whose programs expect complete errors.
    pub(super) fn into_complete_response(self) -> Response {
        let error = self.to_rpc().complete();
        let error = error.render(self.request_id());
        self.into_response_with(error)
    }

    /// Returns the response to the request with this id as JSON text, if the id could be read.
    pub(super) fn into_response_to(self, id: Option<&str>) -> Response {
        let error = self.render(id);
        self.into_response_with(error)
    }

    /// Renders the answer to the request with this id as JSON text. Without `id`, uses the id that
    /// the error contains, if any.
    pub(super) fn render(&self, id: Option<&str>) -> Bytes {
        self.to_rpc().render(id.or_else(|| self.request_id()))
    }

    /// Returns the id of the refused request, if it was read.
    fn request_id(&self) -> Option<&str> {
        match self {
            Self::Message(ParseError::TooDeep { shape: MessageKind::Request, id }) => id.as_deref(),
            _ => None,
        }
    }

    fn into_response_with(self, error: Bytes) -> Response {
        tracing::debug!(error = %self, status = %self.status(), "request refused: {self}");
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

/// Returns the part of a client's text that an error message may repeat.
pub(super) fn quoted_input(words: &str) -> String {
    redact::cut(words, defaults::SUGGESTION_BYTES_MAX).to_owned()
}
