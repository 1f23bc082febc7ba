//! The errors of the HTTP interface, with their status and their remedy.

use bytes::Bytes;
use hyper::{
    StatusCode,
    header::{ALLOW, CONNECTION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde_json::json;

use super::{
    Response, authentication::BearerError, http_response::json_bytes, origin::OriginRefusal,
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

/// The reason why the headers of a request contradict its body.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeaderMismatch {
    #[error("the header `{0}` is missing")]
    Missing(&'static str),
    #[error("the header `{0}` is repeated, or its value cannot be decoded")]
    Unreadable(&'static str),
    #[error("the header `{header}` is `{sent}`, but the body has `{body}`")]
    Differs { header: &'static str, sent: String, body: String },
    #[error("the header `{header}` does not match the argument `{argument}`")]
    Argument { header: String, argument: String },
}

/// The reason why a request is refused before its content is examined.
#[derive(Debug, thiserror::Error)]
pub(super) enum IngressError {
    #[error(transparent)]
    Forbidden(#[from] OriginRefusal),
    #[error("{denied}")]
    Unauthorized {
        denied: BearerError,
        /// `true` if the whole request was read, so that another one can follow it.
        is_read: bool,
    },
    #[error("too many wrong tokens came from this client's user or host")]
    TooManyWrongTokens { is_read: bool },
    #[error("the path `{0}` does not exist")]
    PathNotFound(String),
    #[error("HTTP with SSE, the transport of protocol version 2024-11-05, is disabled")]
    LegacySseOff,
    #[error("the control interface over HTTP is disabled")]
    ControlRpcOff,
    #[error("the event stream that answers this message is not open")]
    StreamNotOpen,
    #[error(
        "{} requests of this client are waiting for its stream already",
        defaults::LEGACY_SSE_REQUESTS_MAX
    )]
    StreamQueueFull,
    #[error(transparent)]
    ServerNotFound(CallError),
    #[error("all client connections have requests in flight")]
    ConnectionsFull,
    /// No free stream, and no account that holds more streams than this one.
    #[error("all client streams have requests in flight")]
    StreamsFull,
    #[error("the HTTP method is not allowed: this path accepts {0}")]
    MethodNotAllowed(&'static str),
    #[error("the `Content-Type` header is `{0}`, not `application/json`")]
    ContentType(String),
    #[error("the `Accept` header is `{0}`, which allows neither JSON nor an event stream")]
    Accept(String),
    #[error("GET returns an event stream, which the `Accept` header `{0}` does not name")]
    StreamNotAccepted(String),
    #[error("the body is larger than {} bytes", defaults::BODY_BYTES_MAX)]
    BodyTooLarge,
    #[error("the body did not arrive within {} s", defaults::BODY_TIMEOUT.as_secs())]
    BodyTimeout,
    #[error(transparent)]
    MemoryExhausted(MemoryExhausted),
    #[error("the body ended before it was complete")]
    BodyIncomplete,
    #[error(transparent)]
    Message(#[from] ParseError),
    #[error(transparent)]
    Batch(#[from] BatchError),
    #[error("protocol version {0} does not support batches")]
    BatchUnsupported(String),
    #[error("protocol version `{0}` is not supported")]
    UnsupportedVersion(String),
    #[error(transparent)]
    HeaderMismatch(#[from] HeaderMismatch),
    #[error(transparent)]
    ClientMeta(#[from] ClientMetaError),
    #[error(transparent)]
    Filter(#[from] FilterError),
    #[error(
        "`subscriptions/listen` returns an event stream, which the `Accept` header does not allow"
    )]
    ListenNotAccepted,
    /// A response to no request: in the modern era, servers send none.
    #[error(
        "the body is a response, which clients do not send in protocol version {}",
        version::MODERN
    )]
    UnexpectedResponse,
    #[error(transparent)]
    Session(#[from] SessionLookupError),
}

impl IngressError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Forbidden(OriginRefusal::AmbiguousHost) => StatusCode::BAD_REQUEST,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Unauthorized { .. } => StatusCode::UNAUTHORIZED,
            Self::TooManyWrongTokens { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::PathNotFound(_)
            | Self::LegacySseOff
            | Self::ControlRpcOff
            | Self::StreamNotOpen
            | Self::ServerNotFound(_)
            | Self::Session(SessionLookupError::Unknown) => StatusCode::NOT_FOUND,
            Self::StreamQueueFull
            | Self::ConnectionsFull
            | Self::StreamsFull
            | Self::MemoryExhausted(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Accept(_) | Self::StreamNotAccepted(_) | Self::ListenNotAccepted => {
                StatusCode::NOT_ACCEPTABLE
            }
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyIncomplete
            | Self::Message(_)
            | Self::Batch(_)
            | Self::BatchUnsupported(_)
            | Self::UnsupportedVersion(_)
            | Self::HeaderMismatch(_)
            | Self::ClientMeta(_)
            | Self::UnexpectedResponse
            | Self::Session(SessionLookupError::Missing) => StatusCode::BAD_REQUEST,
            // The request was read, and fails like any other.
            Self::Filter(_) => StatusCode::OK,
        }
    }

    // One row for each error: a table, however long.
    pub(super) fn to_rpc(&self) -> RpcError {
        let invalid = |name, hint| (INVALID_REQUEST, name, hint);
        let (code, name, hint) = match self {
            Self::ServerNotFound(error) => return error.to_rpc(),
            Self::MemoryExhausted(exhausted) => return exhausted.to_rpc(),
            Self::Forbidden(OriginRefusal::Host(_)) => invalid(
                "HOST_FORBIDDEN",
                "Use `localhost` or 127.0.0.1, or add the name to `listen.allowed_hosts`.",
            ),
            Self::Forbidden(OriginRefusal::AmbiguousHost) => {
                invalid("HOST_AMBIGUOUS", "Send one `Host` header.")
            }
            Self::Forbidden(OriginRefusal::Origin(_)) => {
                invalid("ORIGIN_FORBIDDEN", "Add the origin to `listen.allowed_origins`.")
            }
            Self::Unauthorized { denied, .. } => invalid(
                match denied {
                    BearerError::Missing => "TOKEN_REQUIRED",
                    BearerError::Wrong => "TOKEN_INVALID",
                },
                "Send the header `Authorization: Bearer TOKEN`: set it in `headers` of the client's configuration. The operator of metamcp has the token.",
            ),
            Self::TooManyWrongTokens { .. } => invalid(
                "TOKENS_WRONG",
                "Ask the operator of metamcp for the token. Try again after the seconds in `Retry-After`.",
            ),
            Self::PathNotFound(_) => invalid(
                "PATH_NOT_FOUND",
                "Use one of the paths for MCP: `/`, `/mcp`, `/direct`, `/meta` or `/servers/NAME`.",
            ),
            Self::LegacySseOff => invalid(
                "PATH_NOT_FOUND",
                "Use streamable HTTP at the path without `/sse`, or set `listen.legacy_sse = true`.",
            ),
            Self::ControlRpcOff => {
                invalid("PATH_NOT_FOUND", "Use the control socket, or set `listen.rpc = true`.")
            }
            Self::StreamNotOpen => invalid(
                "STREAM_NOT_FOUND",
                "Open the event stream again with GET, at a path that ends in `/sse`.",
            ),
            Self::StreamQueueFull => (
                INTERNAL_ERROR,
                "CLIENT_TOO_SLOW",
                "Read the answers from the stream, and send fewer requests at a time.",
            ),
            Self::ConnectionsFull | Self::StreamsFull => (
                INTERNAL_ERROR,
                "SERVICE_FULL",
                "Try again after the seconds in `Retry-After`, when other requests have been answered.",
            ),
            Self::MethodNotAllowed(_) => invalid("HTTP_METHOD", "Send MCP messages with POST."),
            Self::ContentType(_) => {
                invalid("CONTENT_TYPE", "Send `Content-Type: application/json`.")
            }
            Self::Accept(_) | Self::ListenNotAccepted => {
                invalid("ACCEPT", "Send `Accept: application/json, text/event-stream`.")
            }
            Self::StreamNotAccepted(_) => invalid(
                "ACCEPT",
                "Send messages with POST. For the stream, send `Accept: text/event-stream`.",
            ),
            Self::BodyTooLarge => invalid("BODY_TOO_LARGE", "Send less data in one request."),
            Self::BodyTimeout | Self::BodyIncomplete => {
                invalid("BODY_INCOMPLETE", "Send the whole body at once.")
            }
            Self::Message(ParseError::Encoding(_) | ParseError::Json(_))
            | Self::Batch(BatchError::Json(_)) => {
                (PARSE_ERROR, "PARSE_ERROR", "Send one JSON-RPC 2.0 message as UTF-8.")
            }
            Self::Batch(BatchError::TooLong { .. }) => {
                invalid("BATCH_TOO_LONG", "Send the messages in several batches.")
            }
            Self::Batch(BatchError::SameId(_)) => {
                invalid("BATCH_SAME_ID", "Give each request an id of its own.")
            }
            Self::Batch(BatchError::Initialize) => {
                invalid("BATCH_INITIALIZE", "Send `initialize` alone, before the others.")
            }
            Self::Message(ParseError::TooDeep { .. })
            | Self::Batch(BatchError::NoMessage(ParseError::TooDeep { .. })) => {
                invalid("TOO_DEEP", "Use fewer levels, or send the inner part as a string.")
            }
            Self::Batch(BatchError::Empty | BatchError::NoMessage(_)) => {
                invalid("INVALID_REQUEST", "Send JSON-RPC 2.0 messages in the array.")
            }
            Self::BatchUnsupported(_) => {
                invalid("BATCH_UNSUPPORTED", "Send one message per request.")
            }
            Self::Message(_) => {
                invalid("INVALID_REQUEST", "Send one JSON-RPC 2.0 message as UTF-8.")
            }
            Self::Session(SessionLookupError::Missing) => (
                SESSION_REQUIRED,
                "SESSION_REQUIRED",
                "Send the `Mcp-Session-Id` header from the response to `initialize`.",
            ),
            Self::Session(SessionLookupError::Unknown) => {
                (SESSION_NOT_FOUND, "SESSION_NOT_FOUND", "Send `initialize` without a session id.")
            }
            Self::HeaderMismatch(_) => (
                HEADER_MISMATCH,
                "HEADER_MISMATCH",
                "Send the same values in the headers as in the body, encoded where the protocol requires it.",
            ),
            Self::ClientMeta(_) => (
                INVALID_PARAMS,
                "INVALID_META",
                "Send the protocol version and the capabilities of the client in `params._meta` of every request.",
            ),
            Self::Filter(_) => (
                INVALID_PARAMS,
                "INVALID_FILTER",
                "Set each kind of notification to `true` or `false`, and `resourceSubscriptions` to a list of URIs.",
            ),
            Self::UnexpectedResponse => invalid(
                "UNEXPECTED_RESPONSE",
                "Send the request again with the answers in `inputResponses`.",
            ),
            Self::UnsupportedVersion(requested) => {
                let (supported, requested) = (json!(version::SERVED), json!(requested));
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
            Self::Message(ParseError::TooDeep { kind: MessageKind::Request, id }) => id.as_deref(),
            _ => None,
        }
    }

    fn into_response_with(self, error: Bytes) -> Response {
        tracing::debug!(error = %self, status = %self.status(), "request refused: {self}");
        let mut response = json_bytes(self.status(), error);
        let headers = response.headers_mut();
        let mut closes = false;
        match self {
            Self::MethodNotAllowed(methods) => {
                headers.insert(ALLOW, HeaderValue::from_static(methods));
            }
            Self::TooManyWrongTokens { is_read } => {
                headers.insert(RETRY_AFTER, defaults::WRONG_TOKEN_DELAY_MAX.as_secs().into());
                closes = !is_read;
            }
            Self::ConnectionsFull | Self::StreamsFull => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
                closes = true;
            }
            Self::Unauthorized { denied, is_read } => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(denied.challenge()));
                closes = !is_read;
            }
            _ => {}
        }
        if closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Returns the part of a client's text that an error message may repeat.
pub(super) fn quoted_input(words: &str) -> String {
    redact::cut(words, defaults::SUGGESTION_BYTES_MAX).to_owned()
}
