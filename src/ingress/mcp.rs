//! MCP over streamable HTTP, legacy era: POST carries one message, GET and DELETE are about the
//! session.
//!
//! Sessions are lenient (ruling 6): a client may bring our id, none, or one from before a
//! restart; all of them are served from the same pool.

use std::sync::Arc;

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::{
    HeaderMap, Method, Request, StatusCode,
    body::{Bytes, Incoming},
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use tokio::time;

use super::{
    Edge, Response,
    in_flight::Registration,
    reply::{Accepts, Reply},
    respond::{self, EdgeError},
};
use crate::{
    config::defaults,
    protocol::{
        Message, Shape,
        jsonrpc::Part,
        mcp::{SESSION_HEADER, VERSION_HEADER, method},
        version,
    },
    view::View,
};

const SESSION: HeaderName = HeaderName::from_static(SESSION_HEADER);
const VERSION: HeaderName = HeaderName::from_static(VERSION_HEADER);

/// Answers a request at the path of `view`.
pub(super) async fn respond(
    edge: Arc<Edge>,
    view: &View,
    request: Request<Incoming>,
) -> Result<Response, EdgeError> {
    match *request.method() {
        Method::POST => post(edge, view, request).await,
        // Ours has no other effect than the client's: the connections are everybody's.
        Method::DELETE => Ok(respond::empty(StatusCode::NO_CONTENT)),
        // There is no stream for messages of the server's own accord yet.
        _ => Err(EdgeError::Method("POST, DELETE")),
    }
}

async fn post(
    edge: Arc<Edge>,
    view: &View,
    request: Request<Incoming>,
) -> Result<Response, EdgeError> {
    let (head, body) = request.into_parts();
    check_content_type(&head.headers)?;
    let accepts = accepts(&head.headers)?;
    if let Some(asked) = text(&head.headers, &VERSION)
        && !version::is_legacy(asked)
    {
        return Err(EdgeError::Version(asked.to_owned()));
    }
    let message = Message::parse(read(body).await?)?;
    let session = text(&head.headers, &SESSION);
    match message.shape() {
        Shape::Request => Ok(answer(edge, view, message, session, accepts).await),
        Shape::Notification => {
            notified(&edge, view, &message, session).await;
            Ok(respond::empty(StatusCode::ACCEPTED))
        }
        // We ask clients nothing, so nothing waits for their answers.
        Shape::Response => Ok(respond::empty(StatusCode::ACCEPTED)),
    }
}

async fn answer(
    edge: Arc<Edge>,
    view: &View,
    message: Message,
    session: Option<&str>,
    accepts: Accepts,
) -> Response {
    let is_initialize = message.method() == Some(method::INITIALIZE);
    let id = message.part(Part::Id).unwrap_or("null");
    let registration = Registration::new(Arc::clone(&edge), session, id);
    let hurry = edge.hurry.clone();
    let (views, view) = (Arc::clone(&edge.views), view.clone());
    let id = id.to_owned();
    let outcome = Box::pin(async move { views.handle(&view, message).await });
    let mut response = Reply::new(outcome, id, registration, hurry).into_response(accepts).await;
    if is_initialize {
        let minted = uuid::Uuid::new_v4().simple().to_string();
        let minted = HeaderValue::try_from(minted).expect("hexadecimal digits are visible ASCII");
        response.headers_mut().insert(SESSION, minted);
    }
    response
}

async fn notified(edge: &Edge, view: &View, message: &Message, session: Option<&str>) {
    if message.method() != Some(method::CANCELLED) {
        edge.views.notify(view, message).await;
    } else if let Some(id) = message.part(Part::CancelledId)
        && !edge.in_flight.cancel(session, id)
    {
        tracing::debug!("cancellation of a request that does not run, or is not the only one");
    }
}

async fn read(body: Incoming) -> Result<Bytes, EdgeError> {
    let whole = Limited::new(body, defaults::BODY_BYTES_MAX).collect();
    match time::timeout(defaults::BODY_TIMEOUT, whole).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(EdgeError::TooLarge),
        Ok(Err(_)) => Err(EdgeError::BrokenOff),
        Err(_) => Err(EdgeError::TooSlow),
    }
}

/// A page of another site can send plain text without asking first, but not JSON.
fn check_content_type(headers: &HeaderMap) -> Result<(), EdgeError> {
    let declared = text(headers, &CONTENT_TYPE).unwrap_or_default();
    let kind = declared.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(EdgeError::ContentType(declared.to_owned()))
    }
}

fn accepts(headers: &HeaderMap) -> Result<Accepts, EdgeError> {
    let mut accepts = Accepts::default();
    let mut all = String::new();
    for value in headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()) {
        all.push_str(value);
        for range in value.split(',') {
            match range.split(';').next().unwrap_or_default().trim() {
                "*/*" => accepts = Accepts { json: true, events: true },
                "application/*" | "application/json" => accepts.json = true,
                "text/*" | "text/event-stream" => accepts.events = true,
                _ => {}
            }
        }
    }
    if all.is_empty() {
        accepts = Accepts { json: true, events: true };
    }
    if accepts.json || accepts.events { Ok(accepts) } else { Err(EdgeError::Accept(all)) }
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
    fn an_answer_is_given_in_a_form_that_the_client_takes() {
        let accept =
            |value| accepts(&headers(ACCEPT, value)).map(|found| (found.json, found.events)).ok();
        assert_eq!(accept("application/json, text/event-stream"), Some((true, true)));
        assert_eq!(accept("*/*"), Some((true, true)));
        assert_eq!(accept("application/json;q=0.9"), Some((true, false)));
        assert_eq!(accept("text/event-stream"), Some((false, true)));
        assert_eq!(accept("text/html"), None);
        assert!(accepts(&HeaderMap::new()).is_ok());
    }
}
