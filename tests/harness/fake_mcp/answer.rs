//! Helpers for HTTP answers and request headers.

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    Response, StatusCode,
    header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde_json::Value;

use crate::{
    body::{Format, Messages},
    carrier::Slot,
    message::Fault,
    wire::Writes,
};

/// A whole body or a stream of messages.
pub(crate) type Answer = Response<Either<Full<Bytes>, Messages>>;

/// Returns a JSON answer.
pub(crate) fn json(status: StatusCode, body: &Value) -> Answer {
    whole(status, "application/json", body.to_string())
}

/// Returns a JSON-RPC error without id.
pub(crate) fn fault(status: StatusCode, code: i64, message: &str) -> Answer {
    whole(status, "application/json", Fault::new(code, message).answer("null"))
}

/// Returns the JSON-RPC error for a request.
pub(crate) fn refuse(status: StatusCode, fault: &Fault, id: &str) -> Answer {
    whole(status, "application/json", fault.answer(id))
}

/// Returns status 405 with the allowed methods.
pub(crate) fn not_allowed(allowed: &str) -> Answer {
    let mut answer = fault(StatusCode::METHOD_NOT_ALLOWED, -32000, "Method not allowed.");
    answer.headers_mut().insert(ALLOW, value_of(allowed));
    answer
}

/// Returns an answer with a complete body.
pub(crate) fn whole(status: StatusCode, media_type: &str, body: String) -> Answer {
    let mut answer = Response::new(Either::Left(Full::from(body)));
    *answer.status_mut() = status;
    if !media_type.is_empty() {
        answer.headers_mut().insert(CONTENT_TYPE, value_of(media_type));
    }
    answer
}

/// Returns an answer that streams `writes`.
pub(crate) fn stream(slot: Slot, writes: Writes, format: Format) -> Answer {
    let mut answer = Response::new(Either::Right(Messages::new(slot, writes, format)));
    let headers = answer.headers_mut();
    let media_type = match format {
        Format::Events => "text/event-stream",
        Format::Plain => "application/json",
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
