//! The address of an upstream, and the headers of every request to it.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION},
};

use super::super::{Connection, ForwardedHeaders, RequestFailure, RetryAfter};
use crate::{
    capacity_holder::Account,
    config::defaults,
    error_report::chain,
    http_body::{self, BodyReadError, MemoryPressurePolicy, OutgoingBody},
    http_client::{
        BrokenConnection, Connector, HttpPool, HttpSendError, Origin, ResponseBody, is_redirect,
        redirect_target,
    },
    oauth::Authorizer,
    protocol::{
        ByteChunks,
        payloads::{SESSION_HEADER, ServerProfile, VERSION_HEADER},
        version,
    },
    redact::Redactor,
};

const SESSION: HeaderName = HeaderName::from_static(SESSION_HEADER);
const VERSION: HeaderName = HeaderName::from_static(VERSION_HEADER);
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const HTML: HeaderValue = HeaderValue::from_static("text/html");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// The length of the part of an upstream's error page that is read, in bytes.
const ERROR_BODY_BYTES: usize = 4096;

/// The address of an upstream, and the headers of every request to it.
#[derive(Clone, Debug)]
pub(in super::super) struct HttpUpstream {
    pub(super) pool: Arc<HttpPool>,
    pub(super) url: Uri,
    /// The path and query, as they appear in a request.
    target: Uri,
    /// The headers of a POST before the handshake.
    base_headers: HeaderMap,
    /// The headers of a POST after it, with session and version.
    session_headers: OnceLock<HeaderMap>,
    session: OnceLock<HeaderValue>,
    /// A session that was created for a request that needs none.
    pub(super) abandoned_session: OnceLock<HeaderValue>,
    /// The tokens for the upstream, if it may require a login.
    authorizer: Option<Arc<Authorizer>>,
}

impl HttpUpstream {
    /// Returns the upstream at `url`, to which `connector` connects; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// The name of a header that cannot be sent.
    pub(in super::super) fn new(
        url: Uri,
        connector: Arc<Connector>,
        configured: &BTreeMap<String, String>,
    ) -> Result<Self, String> {
        let origin = Origin::of(&url).ok_or_else(|| HOST.to_string())?;
        let mut base_headers = HeaderMap::new();
        for (name, value) in configured {
            let pair = (HeaderName::try_from(name), HeaderValue::try_from(value));
            let (Ok(header), Ok(mut value)) = pair else { return Err(name.clone()) };
            value.set_sensitive(true);
            base_headers.insert(header, value);
        }
        base_headers.insert(ACCEPT, BOTH);
        base_headers.insert(CONTENT_TYPE, JSON);
        // Set once here, or the client computes it for every request.
        if let Some(host) = origin.host_header() {
            base_headers.insert(HOST, host);
        }
        Ok(Self {
            pool: HttpPool::new(connector, origin),
            target: target(&url),
            url,
            base_headers,
            session_headers: OnceLock::new(),
            session: OnceLock::new(),
            abandoned_session: OnceLock::new(),
            authorizer: None,
        })
    }

    /// Returns the upstream with the tokens of `authorizer` in each request.
    pub(in super::super) fn authorized(self, authorizer: Option<Arc<Authorizer>>) -> Self {
        Self { authorizer, ..self }
    }

    /// Returns text of the upstream without the tokens that it was sent.
    pub(in super::super) fn without_tokens<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let redact = |authorizer: &Arc<Authorizer>| authorizer.redact(text).into();
        self.authorizer.as_ref().map_or(Cow::Borrowed(text), redact)
    }

    /// Returns the redactor of the tokens that the upstream was sent, if it requires some.
    pub(in super::super) fn token_redactor(&self) -> Option<Redactor> {
        self.authorizer.as_ref().map(|authorizer| authorizer.redactor())
    }

    /// Returns the same upstream with another address for messages.
    pub(super) fn at(&self, url: Uri) -> Self {
        Self { target: target(&url), url, ..self.clone() }
    }

    /// Stores the session that the answer to `initialize` names.
    pub(super) fn pin(&self, answer: &Response<ResponseBody>) {
        // After the handshake, the session must stay the same.
        if self.session_headers.get().is_none()
            && answer.status().is_success()
            && let Some(session) = answer.headers().get(SESSION)
        {
            let _set_before = self.session.set(session.clone());
        }
    }

    /// Returns whether the upstream has created a session.
    pub(super) fn is_pinned(&self) -> bool {
        self.session.get().is_some()
    }

    /// Stores session and protocol version for the headers of all later requests.
    pub(in super::super) fn set_session(&self, profile: &ServerProfile) {
        let mut headers = self.headers().into_owned();
        if let Ok(version) = HeaderValue::try_from(&profile.protocol_version) {
            headers.insert(VERSION, version);
        }
        let _set_before = self.session_headers.set(headers);
    }

    /// Posts a message, with the headers of a client that are `forwarded`.
    pub(super) async fn post(
        &self,
        frame: &ByteChunks,
        forwarded: Option<&ForwardedHeaders>,
    ) -> Result<Response<ResponseBody>, RequestFailure> {
        let mut headers = self.headers();
        if let Some(forwarded) = forwarded {
            forwarded.add_to(headers.to_mut());
        }
        let answer = self.send(Method::POST, &headers, frame).await?;
        self.check(&answer).map(|()| answer)
    }

    /// Posts a request of the modern era, with the headers that repeat parts of it.
    pub(super) async fn post_modern(
        &self,
        frame: &ByteChunks,
        repeated: &[(String, String)],
        forwarded: Option<&ForwardedHeaders>,
    ) -> Result<Response<ResponseBody>, RequestFailure> {
        let mut headers = self.base_headers.clone();
        headers.insert(VERSION, HeaderValue::from_static(version::MODERN));
        for (name, value) in repeated {
            // Encoded values can be sent, and the names were checked when they were read.
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                headers.insert(name, value);
            }
        }
        if let Some(forwarded) = forwarded {
            forwarded.add_to(&mut headers);
        }
        let answer = self.send(Method::POST, &headers, frame).await?;
        self.check(&answer).map(|()| answer)
    }

    /// Stores the session that is named in an answer to a request that needs none.
    pub(super) fn note_abandoned_session(&self, answer: &Response<ResponseBody>) {
        if let Some(session) = answer.headers().get(SESSION) {
            let _only_one = self.abandoned_session.set(session.clone());
        }
    }

    /// Ends a session other than that of the handshake.
    pub(super) async fn delete_session(&self, session: HeaderValue) -> Result<(), RequestFailure> {
        let mut headers = self.base_headers.clone();
        headers.insert(SESSION, session);
        self.send(Method::DELETE, &headers, &Bytes::new().into()).await.map(drop)
    }

    /// Posts a message that has no answer, and waits until it was taken.
    pub(in super::super) async fn notify(&self, frame: Bytes) -> Result<(), RequestFailure> {
        let answer = self.post(&frame.into(), None).await?;
        let status = answer.status();
        finish(answer.into_body()).await;
        match status.is_success() {
            true => Ok(()),
            false => Err(RequestFailure::Status(status, "".into())),
        }
    }

    /// Requests an event stream, after the event `last_id` if that is not empty. The headers of a
    /// client are `forwarded` if the stream answers its request.
    pub(super) async fn listen(
        &self,
        last_id: &[u8],
        forwarded: Option<&ForwardedHeaders>,
    ) -> Result<Response<ResponseBody>, RequestFailure> {
        let mut headers = self.headers().into_owned();
        headers.insert(ACCEPT, EVENTS);
        headers.remove(CONTENT_TYPE);
        if !last_id.is_empty()
            && let Ok(last_id) = HeaderValue::from_bytes(last_id)
        {
            headers.insert(LAST_EVENT_ID, last_id);
        }
        if let Some(forwarded) = forwarded {
            forwarded.add_to(&mut headers);
        }
        self.send(Method::GET, &headers, &Bytes::new().into()).await
    }

    /// Ends the session.
    pub(super) async fn delete(&self) -> Result<(), RequestFailure> {
        self.send(Method::DELETE, &self.headers(), &Bytes::new().into()).await.map(drop)
    }

    fn headers(&self) -> Cow<'_, HeaderMap> {
        if let Some(headers) = self.session_headers.get() {
            return Cow::Borrowed(headers);
        }
        let mut headers = self.base_headers.clone();
        if let Some(session) = self.session.get() {
            headers.insert(SESSION, session.clone());
        }
        Cow::Owned(headers)
    }

    /// Refuses an answer that no MCP server gives: a redirect, or the page of a portal.
    fn check(&self, answer: &Response<ResponseBody>) -> Result<(), RequestFailure> {
        if is_redirect(answer.status()) {
            let target = redirect_target(&self.url, answer.headers().get(LOCATION));
            let origin = target.as_ref().and_then(Origin::of);
            let origin =
                origin.map_or_else(|| "no address".to_owned(), |origin| origin.to_string());
            return Err(RequestFailure::Redirected(answer.status(), origin.into()));
        }
        if answer.status().is_success() && is_of_type(answer, &HTML) {
            return Err(RequestFailure::WebPage(answer.status()));
        }
        Ok(())
    }

    /// Sends a request: all requests to the upstream go through here.
    async fn send(
        &self,
        method: Method,
        headers: &HeaderMap,
        body: &ByteChunks,
    ) -> Result<Response<ResponseBody>, RequestFailure> {
        match &self.authorizer {
            None => Ok(self.attempt(&method, headers, body, None).await?),
            // Boxed: few upstreams require a login.
            Some(authorizer) => {
                Box::pin(self.send_authorized(authorizer, &method, headers, body)).await
            }
        }
    }

    /// Returns the future of the pool itself: one more around it would cost each poll.
    pub(super) fn attempt<'a>(
        &'a self,
        method: &'a Method,
        headers: &'a HeaderMap,
        body: &'a ByteChunks,
        bearer: Option<&'a HeaderValue>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, HttpSendError>> + 'a {
        let request = move || {
            let mut request = Request::new(OutgoingBody::from(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = self.target.clone();
            *request.headers_mut() = headers.clone();
            if let Some(bearer) = bearer {
                request.headers_mut().insert(AUTHORIZATION, bearer.clone());
            }
            request
        };
        self.pool.send(request)
    }
}

/// Returns the part of `url` that goes into the request line.
fn target(url: &Uri) -> Uri {
    url.path_and_query().cloned().map_or_else(|| Uri::from_static("/"), Uri::from)
}

/// Returns an answer, or the wait that it asks for and its body.
pub(super) fn unless_wait(
    answer: Response<ResponseBody>,
) -> Result<Response<ResponseBody>, (RetryAfter, ResponseBody)> {
    match RetryAfter::read(answer.status(), answer.headers(), SystemTime::now) {
        Some(asked) => Err((asked, answer.into_body())),
        None => Ok(answer),
    }
}

/// Returns whether an answer is an event stream.
pub(super) fn is_event_stream(answer: &Response<ResponseBody>) -> bool {
    answer.status().is_success() && is_of_type(answer, &EVENTS)
}

fn is_of_type(answer: &Response<ResponseBody>, wanted: &HeaderValue) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes())
}

/// Reads a body that is not a stream, and counts it for `account`. Without memory for it, the
/// upstream waits for a while. The reader holds `holds` bytes besides it.
pub(super) async fn read_whole(
    body: &mut ResponseBody,
    account: Option<Account>,
    holds: usize,
) -> Result<Bytes, RequestFailure> {
    let length_max = defaults::MESSAGE_BYTES_MAX;
    let read =
        http_body::read_whole(body, length_max, MemoryPressurePolicy::Wait { account, holds });
    read.await.map_err(|error| match error {
        BodyReadError::NoMemory(exhausted) => RequestFailure::NoMemory(exhausted),
        BodyReadError::TooLong => RequestFailure::Oversized(length_max),
        BodyReadError::Broken(error) => RequestFailure::BrokenOff(chain(&error).into()),
    })
}

/// Reads a body to its end and returns its beginning.
pub(super) async fn drain(mut body: ResponseBody) -> Result<Vec<u8>, BrokenConnection> {
    let mut beginning = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(chunk) = frame?.into_data() {
            let n_wanted = ERROR_BODY_BYTES - beginning.len();
            beginning.extend_from_slice(&chunk[..chunk.len().min(n_wanted)]);
        }
    }
    Ok(beginning)
}

/// Reads an unneeded body to its end, so that its TCP connection can be reused.
pub(super) async fn finish(mut body: ResponseBody) {
    http_body::discard(&mut body, defaults::STREAM_END).await;
}

/// Returns whether an answer says that the upstream does not know the session of the request.
///
/// The specification requires 404. After a restart, some upstreams answer 400 with such a text. No
/// other answer justifies a new session.
pub(super) fn is_session_lost(status: StatusCode, body: &[u8]) -> bool {
    match status {
        StatusCode::NOT_FOUND => true,
        StatusCode::BAD_REQUEST => {
            let text = beginning(body).to_ascii_lowercase();
            text.contains("session") || text.contains("not initialized")
        }
        _ => false,
    }
}

/// Returns the failure for an answer without a message in it.
///
/// It shows the beginning of the page, unless that mentions sessions: some upstreams answer an
/// unknown session with the ids of all live ones.
pub(super) fn no_message(
    connection: &Connection,
    status: StatusCode,
    body: &[u8],
) -> RequestFailure {
    let text = beginning(body);
    let body = if text.contains("session") { String::new() } else { connection.quote(&text) };
    RequestFailure::Status(status, body.into())
}

/// Returns the part of an error page that is read.
fn beginning(body: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&body[..body.len().min(ERROR_BODY_BYTES)])
}
