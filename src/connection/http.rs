//! A link over streamable HTTP: one POST per message, answered by JSON or by an event stream.
//!
//! The session that the upstream minted for our one `initialize` is stamped on every POST, so
//! the upstream sees one client, however many there are.

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
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use tokio::{sync::mpsc, time};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Connection, Failure, Limits};
use crate::{
    config::defaults,
    protocol::{
        Message, Shape,
        jsonrpc::Part,
        mcp::{Profile, SESSION_HEADER, VERSION_HEADER},
        sse::{Events, Item},
    },
    report::chain,
};

const SESSION: HeaderName = HeaderName::from_static(SESSION_HEADER);
const VERSION: HeaderName = HeaderName::from_static(VERSION_HEADER);

/// How much of an upstream's error page is looked at, in bytes.
const ERROR_BODY_BYTES: usize = 4096;

/// The client that all upstreams share; it keeps idle connections open.
pub(super) type HttpClient = Client<HttpConnector, Full<Bytes>>;

/// The sending end of a link.
#[derive(Debug)]
pub(super) struct Link {
    client: HttpClient,
    url: Uri,
    headers: HeaderMap,
    session: OnceLock<HeaderValue>,
    version: OnceLock<HeaderValue>,
    /// Cancellations, and answers to the server's own requests.
    aside: mpsc::Sender<Bytes>,
    tasks: TaskTracker,
}

/// Returns the client that all upstreams share.
pub(super) fn client() -> HttpClient {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(defaults::CONNECT_TIMEOUT));
    Client::builder(hyper_util::rt::TokioExecutor::new())
        .pool_timer(hyper_util::rt::TokioTimer::new())
        .pool_idle_timeout(defaults::UPSTREAM_IDLE_TIMEOUT)
        .build(connector)
}

impl Link {
    /// Returns a link to `url`, and the queue that [`run`] sends from; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// The name of the header whose value cannot be sent.
    pub(super) fn new(
        client: HttpClient,
        url: Uri,
        configured: &BTreeMap<String, String>,
        tasks: TaskTracker,
    ) -> Result<(Self, mpsc::Receiver<Bytes>), String> {
        let mut headers = HeaderMap::new();
        for (name, value) in configured {
            let pair = (HeaderName::try_from(name), HeaderValue::try_from(value));
            let (Ok(header), Ok(mut value)) = pair else { return Err(name.clone()) };
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (session, version) = (OnceLock::new(), OnceLock::new());
        let (aside, queue) = mpsc::channel(defaults::WRITE_QUEUE);
        Ok((Self { client, url, headers, session, version, aside, tasks }, queue))
    }

    /// Remembers the protocol version for the headers of later messages.
    pub(super) fn settled(&self, profile: &Profile) {
        if let Ok(version) = HeaderValue::try_from(&profile.protocol_version) {
            let _set_before = self.version.set(version);
        }
    }

    /// Posts a request in a task of its own, which outlives whoever asked: an upstream that is
    /// left in the middle of an answer may keep the call in its books for ever.
    pub(super) fn post(
        &self,
        connection: Arc<Connection>,
        id: u64,
        frame: Bytes,
        abandoned: CancellationToken,
        limits: Limits,
    ) {
        self.tasks.spawn(async move {
            let Some(link) = connection.http() else { return };
            let gave_up = async {
                abandoned.cancelled().await;
                // Some upstreams never end the stream of a cancelled request.
                time::sleep(defaults::GOODBYE_TIMEOUT).await;
            };
            let outcome = tokio::select! {
                outcome = time::timeout(limits.total, link.exchange(&connection, id, frame)) => outcome,
                () = gave_up => return,
                () = connection.down() => return,
            };
            // When the time is up, the caller knows by its own clock.
            if let Ok(Err(failure)) = outcome {
                if matches!(failure, Failure::SessionLost(_) | Failure::Connect(_)) {
                    connection.retire(failure.clone());
                }
                connection.fail(id, failure);
            }
        });
    }

    /// Sends a message that has no answer, and waits until it was taken.
    pub(super) async fn notify(&self, frame: Bytes) -> Result<(), Failure> {
        let status = self.send(Method::POST, frame).await?.status();
        if status.is_success() { Ok(()) } else { Err(Failure::Status { status, body: "".into() }) }
    }

    /// Sends a message that has no answer, in the background and in order, if the queue has room:
    /// for what may be lost.
    pub(super) fn try_notify(&self, frame: Bytes) {
        let _full_or_gone = self.aside.try_send(frame);
    }

    /// Ends the session at the upstream, if it minted one.
    pub(super) async fn goodbye(&self) {
        if self.session.get().is_some() {
            let goodbye = self.send(Method::DELETE, Bytes::new());
            let _unheard = time::timeout(defaults::GOODBYE_TIMEOUT, goodbye).await;
        }
    }

    async fn send(&self, method: Method, body: Bytes) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        for (name, value) in [(SESSION, self.session.get()), (VERSION, self.version.get())] {
            if let Some(value) = value {
                request.headers_mut().insert(name, value.clone());
            }
        }
        self.client.request(request).await.map_err(|error| {
            let text: Arc<str> = chain(&error).into();
            if error.is_connect() { Failure::Connect(text) } else { Failure::BrokenOff(text) }
        })
    }

    /// Posts a request and hands everything that comes back to the connection.
    async fn exchange(
        &self,
        connection: &Arc<Connection>,
        id: u64,
        frame: Bytes,
    ) -> Result<(), Failure> {
        let response = self.send(Method::POST, frame).await?;
        let status = response.status();
        if status.is_success()
            && let Some(session) = response.headers().get(SESSION)
        {
            // Only `initialize` is answered with one; what comes later must be the same.
            let _set_before = self.session.set(session.clone());
        }
        let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| {
            let kind = kind.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
            kind.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
        });
        if status.is_success() && is_stream {
            return self.stream(connection, id, response.into_body()).await;
        }
        let body = Limited::new(response.into_body(), defaults::MESSAGE_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| match error.downcast::<http_body_util::LengthLimitError>() {
                Ok(_) => Failure::Oversized { length: defaults::MESSAGE_BYTES_MAX },
                Err(error) => Failure::BrokenOff(chain(&*error).into()),
            })?
            .to_bytes();
        match Message::parse(body.clone()) {
            // An answer to this very request is one, whatever the status.
            Ok(message)
                if message.shape() == Shape::Response && message.integer(Part::Id) == Some(id) =>
            {
                connection.receive(message, Some(id));
                Ok(())
            }
            _ if self.is_session_lost(status, &body) => Err(Failure::SessionLost(status)),
            _ => Err(Failure::Status { status, body: excerpt(connection, &body) }),
        }
    }

    async fn stream(
        &self,
        connection: &Arc<Connection>,
        id: u64,
        mut body: Incoming,
    ) -> Result<(), Failure> {
        let mut events = Events::new(defaults::MESSAGE_BYTES_MAX);
        loop {
            // Nothing that matters comes after the answer: the end is waited for, so that the TCP
            // connection can be used again, but some upstreams never end a stream.
            let frame = if connection.is_waiting(id) {
                body.frame().await
            } else {
                time::timeout(defaults::STREAM_END, body.frame()).await.unwrap_or_default()
            };
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| Failure::BrokenOff(chain(&error).into()))?;
            let Ok(chunk) = frame.into_data() else { continue };
            events.push(chunk);
            while let Some(item) = events.next_item() {
                match item {
                    Item::Event(event) if event.data.is_empty() || !event.is_message() => {}
                    Item::Event(event) => {
                        let length = event.data.len();
                        match Message::parse(event.data) {
                            Ok(message) => connection.receive(message, Some(id)),
                            Err(error) => connection.noise(&error.to_string(), length),
                        }
                    }
                    Item::Oversized(found) => {
                        return Err(Failure::Oversized { length: found.length });
                    }
                }
            }
            // Known before its end has come, which may be never.
            if let Some(length) = events.skipped() {
                return Err(Failure::Oversized { length });
            }
        }
        if connection.is_waiting(id) {
            return Err(Failure::BrokenOff("the stream ended without an answer".into()));
        }
        Ok(())
    }

    /// Tells whether the upstream says that it does not know our session.
    ///
    /// 404 is what the protocol says; 400 with such words is what some upstreams answer after a
    /// restart. Nothing else is a reason to make a new one. Source: seed 003, and the sessions of its upstream.
    fn is_session_lost(&self, status: StatusCode, body: &[u8]) -> bool {
        if self.session.get().is_none() {
            return false;
        }
        match status {
            StatusCode::NOT_FOUND => true,
            StatusCode::BAD_REQUEST => {
                let text = beginning(body).to_ascii_lowercase();
                text.contains("session") || text.contains("not initialized")
            }
            _ => false,
        }
    }
}

/// Runs the link until the connection is to be closed, and says goodbye to the upstream.
pub(super) async fn run(connection: Arc<Connection>, mut aside: mpsc::Receiver<Bytes>) {
    let Some(link) = connection.http() else { return };
    let send_aside = async {
        while let Some(frame) = aside.recv().await {
            let _lost = time::timeout(defaults::GOODBYE_TIMEOUT, link.notify(frame)).await;
        }
    };
    tokio::select! {
        () = connection.closing.cancelled() => {}
        () = send_aside => {}
    }
    connection.gone.cancel();
    link.goodbye().await;
    connection.lose(Failure::Closed);
    connection.down.cancel();
}

impl Connection {
    fn http(&self) -> Option<&Link> {
        match &self.link {
            super::Link::Http(link) => Some(link),
            super::Link::Stdio(_) => None,
        }
    }
}

/// Returns as much of an error page as is looked at.
fn beginning(body: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&body[..body.len().min(ERROR_BODY_BYTES)])
}

/// Returns the beginning of an error page, unless it looks like a list of secrets.
///
/// The upstream of seed 003 answers an unknown session with the ids of all live ones.
fn excerpt(connection: &Connection, body: &[u8]) -> Arc<str> {
    let text = beginning(body);
    if text.contains("session") { "".into() } else { connection.quote(&text).into() }
}
