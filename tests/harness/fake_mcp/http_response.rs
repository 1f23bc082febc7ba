//! HTTP responses, and helpers for request headers.

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    Response, StatusCode,
    header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde_json::Value;

use crate::{
    message::RpcError,
    open_bodies::BodyGuard,
    output::OutputReceiver,
    response_body::{BodyFormat, ResponseBody},
};

/// An HTTP response with a complete body or a stream of messages.
pub(crate) type HttpResponse = Response<Either<Full<Bytes>, ResponseBody>>;

/// Returns a JSON response.
pub(crate) fn json(status: StatusCode, body: &Value) -> HttpResponse {
    whole(status, "application/json", body.to_string())
}

/// Returns a JSON-RPC error without id.
pub(crate) fn rpc_error(status: StatusCode, code: i64, message: &str) -> HttpResponse {
    whole(status, "application/json", RpcError::new(code, message).answer("null"))
}

/// Returns the JSON-RPC error for a request.
pub(crate) fn refuse(status: StatusCode, error: &RpcError, id: &str) -> HttpResponse {
    whole(status, "application/json", error.answer(id))
}

/// Returns status 405 with the allowed methods.
pub(crate) fn not_allowed(allowed: &str) -> HttpResponse {
    let mut answer = rpc_error(StatusCode::METHOD_NOT_ALLOWED, -32000, "Method not allowed.");
    answer.headers_mut().insert(ALLOW, value_of(allowed));
    answer
}

/// Returns a response with a complete body.
pub(crate) fn whole(status: StatusCode, media_type: &str, body: String) -> HttpResponse {
    let mut answer = Response::new(Either::Left(Full::from(body)));
    *answer.status_mut() = status;
    if !media_type.is_empty() {
        answer.headers_mut().insert(CONTENT_TYPE, value_of(media_type));
    }
    answer
}

/// Returns a response that streams the output from `receiver`.
pub(crate) fn stream(
    guard: BodyGuard,
    receiver: OutputReceiver,
    format: BodyFormat,
) -> HttpResponse {
    let mut answer = Response::new(Either::Right(ResponseBody::new(guard, receiver, format)));
    let headers = answer.headers_mut();
    let media_type = match format {
        BodyFormat::Events => "text/event-stream",
        BodyFormat::Plain => "application/json",
    };
    headers.insert(CONTENT_TYPE, value_of(media_type));
    headers.insert(CACHE_CONTROL, value_of("no-cache, no-transform"));
    answer
}

/// Returns a header value from printable text.
pub(crate) fn value_of(text: &str) -> HeaderValue {
    text.parse().expect("header values here are printable ASCII")
}

/// Returns a header; empty if it is absent or not text.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns whether the client accepts a media type.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .any(|value| value.to_str().is_ok_and(|value| value.contains(media_type)))
}
