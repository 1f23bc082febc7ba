//! Where an upstream is, and what every request to it carries.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::Incoming,
    header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue},
};
use hyper_util::client::legacy::{Client, connect::HttpConnector};

use super::super::{Connection, Failure};
use crate::{
    config::defaults,
    protocol::mcp::{Profile, SESSION_HEADER, VERSION_HEADER},
    report::chain,
};

const SESSION: HeaderName = HeaderName::from_static(SESSION_HEADER);
const VERSION: HeaderName = HeaderName::from_static(VERSION_HEADER);
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// How much of an upstream's error page is looked at, in bytes.
const ERROR_BODY_BYTES: usize = 4096;

/// The client that all upstreams share; it keeps idle connections open.
pub(in super::super) type HttpClient = Client<HttpConnector, Full<Bytes>>;

/// Returns the client that all upstreams share.
///
/// A peer that is gone without a word is noticed by TCP itself, in the middle of a long answer too.
pub(in super::super) fn client() -> HttpClient {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(defaults::CONNECT_TIMEOUT));
    connector.set_keepalive(Some(defaults::UPSTREAM_TCP_PROBE_AFTER));
    connector.set_keepalive_interval(Some(defaults::UPSTREAM_TCP_PROBE_INTERVAL));
    connector.set_keepalive_retries(Some(defaults::UPSTREAM_TCP_PROBES));
    connector.set_tcp_user_timeout(Some(defaults::UPSTREAM_TCP_TIMEOUT));
    Client::builder(hyper_util::rt::TokioExecutor::new())
        .pool_timer(hyper_util::rt::TokioTimer::new())
        .pool_idle_timeout(defaults::UPSTREAM_IDLE_TIMEOUT)
        .build(connector)
}

/// Where an upstream is, and what every request to it carries.
#[derive(Clone, Debug)]
pub(in super::super) struct Upstream {
    client: HttpClient,
    url: Uri,
    /// The headers of a POST before the handshake.
    bare: HeaderMap,
    /// Those of one after it, with session and version.
    stamped: OnceLock<HeaderMap>,
    session: OnceLock<HeaderValue>,
}

impl Upstream {
    /// Returns the upstream at `url`; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// The name of the header whose value cannot be sent.
    pub(in super::super) fn new(
        client: HttpClient,
        url: Uri,
        configured: &BTreeMap<String, String>,
    ) -> Result<Self, String> {
        let mut bare = HeaderMap::new();
        for (name, value) in configured {
            let pair = (HeaderName::try_from(name), HeaderValue::try_from(value));
            let (Ok(header), Ok(mut value)) = pair else { return Err(name.clone()) };
            value.set_sensitive(true);
            bare.insert(header, value);
        }
        bare.insert(ACCEPT, BOTH);
        bare.insert(CONTENT_TYPE, JSON);
        // Made once here, or the client makes it for every request.
        if let Some(host) = host(&url) {
            bare.insert(HOST, host);
        }
        Ok(Self { client, url, bare, stamped: OnceLock::new(), session: OnceLock::new() })
    }

    /// Returns the same upstream with messages going to another path of it.
    pub(super) fn at(&self, url: Uri) -> Self {
        Self { url, ..self.clone() }
    }

    /// Returns its address.
    pub(super) fn url(&self) -> &Uri {
        &self.url
    }

    /// Keeps the session that the answer to `initialize` names.
    pub(super) fn pin(&self, answer: &Response<Incoming>) {
        // What comes after the handshake must be the same, or is of no use.
        if self.stamped.get().is_none()
            && answer.status().is_success()
            && let Some(session) = answer.headers().get(SESSION)
        {
            let _set_before = self.session.set(session.clone());
        }
    }

    /// Tells whether the upstream has minted a session.
    pub(super) fn is_pinned(&self) -> bool {
        self.session.get().is_some()
    }

    /// Remembers session and protocol version for the headers of all that follows.
    pub(super) fn settled(&self, profile: &Profile) {
        let mut stamped = self.headers();
        if let Ok(version) = HeaderValue::try_from(&profile.protocol_version) {
            stamped.insert(VERSION, version);
        }
        let _set_before = self.stamped.set(stamped);
    }

    /// Posts a message.
    pub(super) async fn post(&self, frame: Bytes) -> Result<Response<Incoming>, Failure> {
        self.send(Method::POST, self.headers(), frame).await
    }

    /// Posts a message that has no answer, and waits until it was taken.
    pub(super) async fn notify(&self, frame: Bytes) -> Result<(), Failure> {
        let status = self.post(frame).await?.status();
        if status.is_success() { Ok(()) } else { Err(Failure::Status { status, body: "".into() }) }
    }

    /// Asks for an event stream, for the one that goes on after the event `last_id` if there is one.
    pub(super) async fn listen(&self, last_id: &[u8]) -> Result<Response<Incoming>, Failure> {
        let mut headers = self.headers();
        headers.insert(ACCEPT, EVENTS);
        headers.remove(CONTENT_TYPE);
        if !last_id.is_empty()
            && let Ok(last_id) = HeaderValue::from_bytes(last_id)
        {
            headers.insert(LAST_EVENT_ID, last_id);
        }
        self.send(Method::GET, headers, Bytes::new()).await
    }

    /// Ends the session.
    pub(super) async fn delete(&self) -> Result<(), Failure> {
        self.send(Method::DELETE, self.headers(), Bytes::new()).await.map(drop)
    }

    fn headers(&self) -> HeaderMap {
        if let Some(stamped) = self.stamped.get() {
            return stamped.clone();
        }
        let mut headers = self.bare.clone();
        if let Some(session) = self.session.get() {
            headers.insert(SESSION, session.clone());
        }
        headers
    }

    async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = headers;
        self.client.request(request).await.map_err(|error| {
            let text: Arc<str> = chain(&error).into();
            if error.is_connect() { Failure::Connect(text) } else { Failure::BrokenOff(text) }
        })
    }
}

/// Returns the `Host` header for `url`.
fn host(url: &Uri) -> Option<HeaderValue> {
    let host = url.host()?;
    let host = match url.port_u16() {
        Some(port) if port != 80 => format!("{host}:{port}"),
        _ => host.to_owned(),
    };
    HeaderValue::try_from(host).ok()
}

/// Tells whether an answer is an event stream.
pub(super) fn is_event_stream(answer: &Response<Incoming>) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    answer.status().is_success() && kind.trim_ascii().eq_ignore_ascii_case(EVENTS.as_bytes())
}

/// Reads a body that is no stream.
pub(super) async fn whole(body: Incoming) -> Result<Bytes, Failure> {
    let body = Limited::new(body, defaults::MESSAGE_BYTES_MAX).collect().await;
    body.map(|body| body.to_bytes()).map_err(|error| {
        match error.downcast::<http_body_util::LengthLimitError>() {
            Ok(_) => Failure::Oversized { length: defaults::MESSAGE_BYTES_MAX },
            Err(error) => Failure::BrokenOff(chain(&*error).into()),
        }
    })
}

/// Tells whether an answer says that the upstream does not know the session of the request.
///
/// 404 is what the protocol says; 400 with such words is what some upstreams answer after a
/// restart. Nothing else is a reason to make a new one. Source: seed 003, and the sessions of its
/// upstream.
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

/// Returns the failure that an answer is which has no message in it.
///
/// The beginning of the page is shown, unless it looks like a list of secrets: the upstream of
/// seed 003 answers an unknown session with the ids of all live ones.
pub(super) fn no_message(connection: &Connection, status: StatusCode, body: &[u8]) -> Failure {
    let text = beginning(body);
    let body = if text.contains("session") { String::new() } else { connection.quote(&text) };
    Failure::Status { status, body: body.into() }
}

/// Returns as much of an error page as is looked at.
fn beginning(body: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&body[..body.len().min(ERROR_BODY_BYTES)])
}
