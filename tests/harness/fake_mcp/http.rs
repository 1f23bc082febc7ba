//! Streamable HTTP as metatool-ai's MetaMCP 2.4 with TypeScript SDK 1.16 speaks it.
//!
//! Source: measured against metatool-ai/metamcp 2.4.22. Its defects are imitated too: 404 tells
//! every session id, and the answer stream of a cancelled request never ends.

use std::{
    convert::Infallible,
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::sync::CancellationToken;

use crate::{
    body::{Format, Messages, StreamSlot, one_body},
    control::{self, Control},
    fake::Fake,
    message::{Fault, Message},
    options::HttpOptions,
    session::Session,
    state::Pings,
    wire::{Wire, Write},
};

/// How many bytes a request body has at most.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Header of the session, in both directions.
const SESSION: &str = "mcp-session-id";

/// Header of the protocol version.
const VERSION: &str = "mcp-protocol-version";

/// The protocol versions that a request may name.
const VERSIONS: [&str; 3] = ["2024-11-05", "2025-03-26", "2025-06-18"];

/// A whole body or a stream of messages.
pub(crate) type Answer = Response<Either<Full<Bytes>, Messages>>;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) fake: Arc<Fake>,
    pub(crate) control: Control,
    options: HttpOptions,
}

/// Serves until the process is killed.
pub(crate) async fn serve(fake: Arc<Fake>, options: HttpOptions) -> io::Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let mut stdout = io::stdout();
    writeln!(stdout, r#"{{"listening":"http://{address}/mcp"}}"#)?;
    stdout.flush()?;
    let server = Arc::new(Server { fake, control: Control::default(), options });
    loop {
        let (connection, _) = listener.accept().await?;
        let served = server.clone();
        let service = service_fn(move |request| {
            let server = served.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        server.fake.tasks.spawn(async move {
            http1::Builder::new().serve_connection(TokioIo::new(connection), service).await.ok();
        });
    }
}

impl Server {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let path = request.uri().path();
        if let Some(route) = path.strip_prefix("/control/") {
            let route = route.to_owned();
            return control::answer(self, &route, request).await;
        }
        if path != "/mcp" {
            return json_answer(StatusCode::NOT_FOUND, json!({ "error": "Endpoint not found" }));
        }
        if let Some(refusal) = self.missing_header(request.headers()) {
            return refusal;
        }
        match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET => self.get(request.headers()),
            Method::DELETE => self.delete(request.headers()),
            _ => not_allowed(),
        }
    }

    async fn post(&self, request: Request<Incoming>) -> Answer {
        self.control.note_post(request.headers());
        self.fake.count("posts");
        if let Some(status) = self.control.take_status() {
            return json_answer(status, json!({ "error": "status set by the test" }));
        }
        self.control.hang(&self.fake).await;
        let (head, body) = request.into_parts();
        let headers = &head.headers;
        if !header(headers, CONTENT_TYPE.as_str()).starts_with("application/json") {
            let message = "Unsupported Media Type: Content-Type must be application/json";
            return fault(StatusCode::UNSUPPORTED_MEDIA_TYPE, -32000, message);
        }
        if !accepts(headers, "application/json") || !accepts(headers, "text/event-stream") {
            let message = "Not Acceptable: Client must accept both application/json and \
                           text/event-stream";
            return fault(StatusCode::NOT_ACCEPTABLE, -32000, message);
        }
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let messages = match messages(&body) {
            Some(messages) if body.len() <= BODY_BYTES_MAX => messages,
            _ => {
                self.fake.unreadable();
                return fault(StatusCode::BAD_REQUEST, -32700, "Parse error");
            }
        };
        let is_initialize =
            messages.iter().any(|message| message.method.as_deref() == Some("initialize"));
        let session = match self.session(headers, is_initialize, messages.len()) {
            Ok(session) => session,
            Err(refusal) => return *refusal,
        };
        if let [Message { method: Some(method), .. }] = &messages[..]
            && method == "ping"
            && let Some(refusal) = self.spoil_ping().await
        {
            return refusal;
        }
        self.dispatch(&messages, session, body.first() == Some(&b'[')).await
    }

    /// Does to a ping what the test has ordered; nothing is to be answered as always.
    async fn spoil_ping(&self) -> Option<Answer> {
        let pings = self.fake.state().pings;
        let status = match pings {
            Pings::Answer => return None,
            Pings::Never => None,
            Pings::Status(code) => StatusCode::from_u16(code).ok(),
        };
        self.fake.state().seen.note("ping");
        self.fake.changed();
        match status {
            Some(status) => Some(json_answer(status, json!({ "error": "no pings, please" }))),
            None => std::future::pending().await,
        }
    }

    /// Finds or mints the session of a POST.
    fn session(
        &self,
        headers: &HeaderMap,
        is_initialize: bool,
        n_messages: usize,
    ) -> Result<String, Box<Answer>> {
        if is_initialize && n_messages > 1 {
            let message = "Invalid Request: Only one initialization request is allowed";
            return Err(Box::new(fault(StatusCode::BAD_REQUEST, -32600, message)));
        }
        if !headers.contains_key(SESSION) {
            if is_initialize {
                return Ok(self.mint());
            }
            let message = "Bad Request: Server not initialized";
            return Err(Box::new(fault(StatusCode::BAD_REQUEST, -32000, message)));
        }
        let session = header(headers, SESSION);
        if !self.fake.state().sessions.contains_key(session) {
            return Err(Box::new(self.unknown_session(session)));
        }
        if is_initialize {
            let message = "Invalid Request: Server already initialized";
            return Err(Box::new(fault(StatusCode::BAD_REQUEST, -32600, message)));
        }
        let version = header(headers, VERSION);
        if !version.is_empty()
            && !VERSIONS.contains(&version)
            && version != self.fake.options.protocol
        {
            let message = "Bad Request: Unsupported protocol version";
            return Err(Box::new(fault(StatusCode::BAD_REQUEST, -32000, message)));
        }
        Ok(session.to_owned())
    }

    /// Hands the messages over and returns the stream or the body of their answers.
    async fn dispatch(&self, messages: &[Message<'_>], session: String, is_batch: bool) -> Answer {
        let (wire, writes) = Wire::new();
        for message in messages {
            self.fake.receive(message, Some(&session), &wire);
        }
        drop(wire); // Each request has a copy: the stream ends with the last answer.
        let is_request = |message: &Message<'_>| message.id.is_some() && message.method.is_some();
        if !messages.iter().any(is_request) {
            return empty(StatusCode::ACCEPTED, &session);
        }
        let closed = match self.fake.state().sessions.get(&session) {
            Some(session) => session.closed.clone(),
            None => CancellationToken::new(),
        };
        if !self.options.json {
            return self.stream(writes, Format::Events, &session, closed, None);
        }
        let writes = one_body(writes, is_batch).await;
        self.stream(writes, Format::Plain, &session, closed, None)
    }

    fn get(&self, headers: &HeaderMap) -> Answer {
        self.fake.count("gets");
        if self.options.no_get {
            return not_allowed();
        }
        if !accepts(headers, "text/event-stream") {
            let message = "Not Acceptable: Client must accept text/event-stream";
            return fault(StatusCode::NOT_ACCEPTABLE, -32000, message);
        }
        let id = header(headers, SESSION).to_owned();
        let (wire, writes) = Wire::new();
        let closed = {
            let mut state = self.fake.state();
            let Some(session) = state.sessions.get_mut(&id) else {
                let body = Either::Left(Full::from("Session not found"));
                return with_status(Response::new(body), StatusCode::NOT_FOUND);
            };
            if session.listener.is_some() {
                let message = "Conflict: Only one SSE stream is allowed per session";
                return fault(StatusCode::CONFLICT, -32000, message);
            }
            session.listener = Some(wire);
            session.closed.clone()
        };
        self.fake.count("streams");
        let slot = StreamSlot { fake: self.fake.clone(), session: id.clone() };
        self.stream(writes, Format::Events, &id, closed, Some(slot))
    }

    fn delete(&self, headers: &HeaderMap) -> Answer {
        if !headers.contains_key(SESSION) {
            let message = "Bad Request: Mcp-Session-Id header is required";
            return fault(StatusCode::BAD_REQUEST, -32000, message);
        }
        let id = header(headers, SESSION);
        let (removed, n_remaining) = {
            let mut state = self.fake.state();
            (state.sessions.remove(id), state.sessions.len())
        };
        if let Some(session) = removed {
            session.closed.cancel();
        }
        self.fake.count("deletes");
        self.fake.log("delete", "");
        json_answer(
            StatusCode::OK,
            json!({
                "message": "Session cleaned up successfully",
                "sessionId": id,
                "remainingSessions": n_remaining,
            }),
        )
    }

    fn mint(&self) -> String {
        let id = uuid::Uuid::new_v4().to_string();
        let session = Session::default();
        self.fake.state().sessions.insert(id.clone(), session);
        self.fake.count("sessions_minted");
        id
    }

    fn unknown_session(&self, id: &str) -> Answer {
        let sessions: Vec<String> = self.fake.state().sessions.keys().cloned().collect();
        json_answer(
            StatusCode::NOT_FOUND,
            json!({
                "error": "Session not found",
                "message": format!("Transport not found for sessionId {id}"),
                "available_sessions": sessions,
                "timestamp": "2025-01-01T00:00:00.000Z",
            }),
        )
    }

    fn missing_header(&self, headers: &HeaderMap) -> Option<Answer> {
        let required = self.options.require_header.as_ref()?;
        let (name, value) = required.split_once('=').unwrap_or((required, ""));
        if header(headers, name) == value {
            return None;
        }
        let mut answer = json_answer(
            StatusCode::UNAUTHORIZED,
            json!({ "error": "authentication_required", "error_description": "key required" }),
        );
        answer.headers_mut().insert(WWW_AUTHENTICATE, value_of("Bearer realm=\"fake\""));
        Some(answer)
    }

    fn stream(
        &self,
        writes: mpsc::Receiver<Write>,
        format: Format,
        session: &str,
        closed: CancellationToken,
        slot: Option<StreamSlot>,
    ) -> Answer {
        let body = Messages::new(self.fake.clone(), writes, format, closed, slot);
        let mut answer = Response::new(Either::Right(body));
        let headers = answer.headers_mut();
        let media_type = match format {
            Format::Events => "text/event-stream",
            Format::Plain => "application/json",
        };
        headers.insert(CONTENT_TYPE, value_of(media_type));
        headers.insert(CACHE_CONTROL, value_of("no-cache, no-transform"));
        headers.insert(SESSION, value_of(session));
        answer
    }
}

/// Reads a message or a batch.
fn messages(body: &[u8]) -> Option<Vec<Message<'_>>> {
    match body.first() {
        Some(b'[') => serde_json::from_slice(body).ok(),
        _ => serde_json::from_slice(body).ok().map(|message| vec![message]),
    }
}

/// Returns a JSON answer.
pub(crate) fn json_answer(status: StatusCode, body: serde_json::Value) -> Answer {
    let mut answer = Response::new(Either::Left(Full::from(body.to_string())));
    answer.headers_mut().insert(CONTENT_TYPE, value_of("application/json"));
    with_status(answer, status)
}

/// Returns 405.
pub(crate) fn not_allowed() -> Answer {
    let mut answer = fault(StatusCode::METHOD_NOT_ALLOWED, -32000, "Method not allowed.");
    answer.headers_mut().insert(ALLOW, value_of("POST, DELETE"));
    answer
}

fn fault(status: StatusCode, code: i64, message: &str) -> Answer {
    let mut answer =
        Response::new(Either::Left(Full::from(Fault::new(code, message).answer("null"))));
    answer.headers_mut().insert(CONTENT_TYPE, value_of("application/json"));
    with_status(answer, status)
}

fn empty(status: StatusCode, session: &str) -> Answer {
    let mut answer = Response::new(Either::Left(Full::default()));
    answer.headers_mut().insert(SESSION, value_of(session));
    with_status(answer, status)
}

fn with_status(mut answer: Answer, status: StatusCode) -> Answer {
    *answer.status_mut() = status;
    answer
}

/// Returns a header value; ours are all printable.
fn value_of(text: &str) -> hyper::header::HeaderValue {
    text.parse().expect("header values here are printable ASCII")
}

/// Returns a header, or nothing when it is absent or no text.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .any(|value| value.to_str().is_ok_and(|value| value.contains(media_type)))
}
