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
use crate::{http_body::OutgoingBody, protocol::ByteChunks};

/// Returns a response with `bytes`, which are JSON.
pub(super) fn json_bytes(status: StatusCode, bytes: impl Into<OutgoingBody>) -> Response {
    with_body(status, "application/json", Body::Left(bytes.into()))
}

/// Returns a response with `value` as JSON.
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

fn with_body(status: StatusCode, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
