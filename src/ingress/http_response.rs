//! The conversion of metamcp's own answers to HTTP responses.

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::{
    StatusCode,
    body::Frame,
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
};
use serde::Serialize;

use super::{Body, Response};
use crate::{
    http_body::OutgoingBody,
    protocol::{
        ByteChunks, Message, RpcError,
        jsonrpc::MessagePart,
        rpc_error::{CAPABILITY_REQUIRED, HEADER_MISMATCH, METHOD_NOT_FOUND, UNSUPPORTED_VERSION},
    },
};

/// Returns a response with `bytes`, which are JSON.
pub(super) fn json_bytes(status: StatusCode, bytes: impl Into<OutgoingBody>) -> Response {
    with_body(status, "application/json", Body::Left(bytes.into()))
}

pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let bytes = serde_json::to_vec(value).expect("our own values have string keys");
    json_bytes(status, Bytes::from(bytes))
}

/// Returns a response without a body.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::Left(Bytes::new().into()));
    *response.status_mut() = status;
    response
}

/// Returns a response with an event stream, whose bytes come in chunks.
pub(super) fn event_stream<P: Into<ByteChunks>>(
    pieces: impl Stream<Item = P> + Send + 'static,
) -> Response {
    let frames = pieces.flat_map(|pieces| stream::iter(OutgoingBody::event(pieces.into())));
    let body = StreamBody::new(frames.map(|frame| Ok(Frame::data(frame)))).boxed_unsync();
    let mut response = with_body(StatusCode::OK, "text/event-stream", Body::Right(body));
    // Tells proxies not to buffer events until the stream ends.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Returns a response with a body of this kind, which no cache keeps.
pub(super) fn with_body(status: StatusCode, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns the status of an answer to a modern client, which reflects the kind of error.
pub(super) fn modern_status(answer: &ByteChunks) -> StatusCode {
    // Names never span two chunks, because chunks are values and the text between them. Nearly all
    // answers are results, and this check copies no large one.
    if !answer.has(br#""error""#) {
        return StatusCode::OK;
    }
    let answer = Message::parse_own(answer.clone().join()).ok();
    let error = answer.as_ref().and_then(|answer| answer.part(MessagePart::Error));
    match error.and_then(RpcError::code_of) {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(HEADER_MISMATCH | CAPABILITY_REQUIRED | UNSUPPORTED_VERSION) => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_http_status_reflects_the_kind_of_error() {
        let error = |code: i64| format!(r#"{{"id":1,"error":{{"code":{code}}},"jsonrpc":"2.0"}}"#);
        for (answer, status) in [
            (error(-32601), 404),
            (error(-32020), 400),
            (error(-32021), 400),
            (error(-32022), 400),
            (error(-32602), 200),
            (error(-32603), 200),
            (error(7), 200),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"error":{"code":-32601}}}"#.to_owned(), 200),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), 200),
        ] {
            assert_eq!(modern_status(&ByteChunks::One(answer.clone().into())), status, "{answer}");
        }
    }
}
