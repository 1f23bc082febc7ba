//! The address of an upstream, and the headers of every request to it.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue},
};

use super::{
    super::{Connection, RequestFailure},
    http_pool::{HttpPool, ResponseBody},
};
use crate::{
    capacity_holder::Account,
    config::defaults,
    error_report::chain,
    http_body::{self, BodyReadError, MemoryPressurePolicy, OutgoingBody},
    protocol::{
        ByteChunks,
        payloads::{SESSION_HEADER, ServerProfile, VERSION_HEADER},
        version,
    },
};

const SESSION: HeaderName = HeaderName::from_static(SESSION_HEADER);
const VERSION: HeaderName = HeaderName::from_static(VERSION_HEADER);
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
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
}

impl HttpUpstream {
    /// Returns the upstream at `url`; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// The name of a header that cannot be sent.
    pub(in super::super) fn new(
        url: Uri,
        configured: &BTreeMap<String, String>,
    ) -> Result<Self, String> {
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
        if let Some(host) = host(&url) {
            base_headers.insert(HOST, host);
        }
        Ok(Self {
            pool: HttpPool::new(),
            target: target(&url),
            url,
            base_headers,
            session_headers: OnceLock::new(),
            session: OnceLock::new(),
            abandoned_session: OnceLock::new(),
        })
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

    /// Posts a message.
    pub(super) async fn post(
        &self,
        frame: ByteChunks,
    ) -> Result<Response<ResponseBody>, RequestFailure> {
        self.send(Method::POST, self.headers(), frame).await
    }

    /// Posts a request of the modern era, with the headers that repeat parts of it.
    pub(super) async fn post_modern(
        &self,
        frame: ByteChunks,
        repeated: &[(String, String)],
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
        self.send(Method::POST, Cow::Owned(headers), frame).await
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
        self.send(Method::DELETE, Cow::Owned(headers), Bytes::new().into()).await.map(drop)
    }

    /// Posts a message that has no answer, and waits until it was taken.
    pub(in super::super) async fn notify(&self, frame: Bytes) -> Result<(), RequestFailure> {
        let answer = self.post(frame.into()).await?;
        let status = answer.status();
        finish(answer.into_body()).await;
        match status.is_success() {
            true => Ok(()),
            false => Err(RequestFailure::Status(status, "".into())),
        }
    }

    /// Requests an event stream, after the event `last_id` if that is not empty.
    pub(super) async fn listen(
        &self,
        last_id: &[u8],
    ) -> Result<Response<ResponseBody>, RequestFailure> {
        let mut headers = self.headers().into_owned();
        headers.insert(ACCEPT, EVENTS);
        headers.remove(CONTENT_TYPE);
        if !last_id.is_empty()
            && let Ok(last_id) = HeaderValue::from_bytes(last_id)
        {
            headers.insert(LAST_EVENT_ID, last_id);
        }
        self.send(Method::GET, Cow::Owned(headers), Bytes::new().into()).await
    }

    /// Ends the session.
    pub(super) async fn delete(&self) -> Result<(), RequestFailure> {
        self.send(Method::DELETE, self.headers(), Bytes::new().into()).await.map(drop)
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

    async fn send(
        &self,
        method: Method,
        headers: Cow<'_, HeaderMap>,
        body: ByteChunks,
    ) -> Result<Response<ResponseBody>, RequestFailure> {
        let request = || {
            let mut request = Request::new(OutgoingBody::from(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = self.target.clone();
            *request.headers_mut() = HeaderMap::clone(&headers);
            request
        };
        self.pool.send(&self.url, request).await
    }
}

/// Returns the part of `url` that goes into the request line.
fn target(url: &Uri) -> Uri {
    url.path_and_query().cloned().map_or_else(|| Uri::from_static("/"), Uri::from)
}

fn host(url: &Uri) -> Option<HeaderValue> {
    let host = url.host()?;
    let host = match url.port_u16() {
        Some(port) if port != 80 => format!("{host}:{port}"),
        _ => host.to_owned(),
    };
    HeaderValue::try_from(host).ok()
}

/// Returns whether an answer is an event stream.
pub(super) fn is_event_stream(answer: &Response<ResponseBody>) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    answer.status().is_success() && kind.trim_ascii().eq_ignore_ascii_case(EVENTS.as_bytes())
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
pub(super) async fn drain(mut body: ResponseBody) -> Result<Vec<u8>, hyper::Error> {
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
