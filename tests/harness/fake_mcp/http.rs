//! Streamable HTTP as metatool-ai's MetaMCP 2.4 with TypeScript SDK 1.16 implements it.
//!
//! Source: measured with metatool-ai/metamcp 2.4.22. Its defects are reproduced too: a 404 lists
//! every session id, and the answer stream of a cancelled request never ends.

use http_body_util::BodyExt;
use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderMap},
};
use serde_json::json;

use crate::{
    answer::{self, Answer, accepts, fault, header, whole},
    body::{Format, one_body},
    carrier::{GET_STREAM, Kind, Slot},
    era::Era,
    headers::VERSION,
    message::Message,
    options::HttpOptions,
    server::Server,
    session::Session,
    state::Pings,
    stream,
    wire::{Wire, Write, Writes},
};

/// The maximum size of a request body, in bytes.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The session header, in both directions.
const SESSION: &str = "mcp-session-id";

/// The protocol versions that are accepted in requests.
const VERSIONS: [&str; 3] = ["2024-11-05", "2025-03-26", "2025-06-18"];

/// The media type of default error pages.
const HTML: &str = "text/html; charset=utf-8";

/// The methods of the endpoint besides GET.
const ALLOWED: &str = "POST, DELETE";

/// The header with the last event that a client received.
const LAST_EVENT: &str = "last-event-id";

impl Server {
    pub(crate) async fn answer_http(
        &self,
        options: &HttpOptions,
        request: Request<Incoming>,
    ) -> Answer {
        if request.uri().path() != "/mcp" {
            return answer::json(StatusCode::NOT_FOUND, &json!({ "error": "Endpoint not found" }));
        }
        let is_modern = self.fake.options.era == Era::Modern;
        match *request.method() {
            Method::POST => self.post(options, request).await,
            _ if is_modern => answer::not_allowed("POST"),
            Method::GET => self.get(options, request.headers()),
            Method::DELETE => self.delete(request.headers()),
            _ => answer::not_allowed(ALLOWED),
        }
    }

    async fn post(&self, options: &HttpOptions, request: Request<Incoming>) -> Answer {
        if let Some(answer) = self.spoil_post(request.headers()).await {
            return answer;
        }
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
        if let Some(refusal) = self.spoil_probe(&messages).await {
            return refusal;
        }
        let is_batch = body.first() == Some(&b'[');
        if self.is_modern(headers, &messages) {
            return self.post_modern(options, headers, &messages, is_batch).await;
        }
        let is_initialize =
            messages.iter().any(|message| message.method.as_deref() == Some("initialize"));
        let session = match self.session(options, headers, is_initialize, messages.len()) {
            Ok(session) => session,
            Err(refusal) => return *refusal,
        };
        if let [Message { method: Some(method), .. }] = &messages[..]
            && method == "ping"
            && let Some(refusal) = self.spoil_ping().await
        {
            return refusal;
        }
        self.dispatch(options, &messages, session, is_batch).await
    }

    /// Applies the test's order to a ping; `None` means a normal answer.
    async fn spoil_ping(&self) -> Option<Answer> {
        let pings = self.fake.state().pings;
        let status = match pings {
            Pings::Answer => return None,
            Pings::Never => None,
            Pings::Status(code) => StatusCode::from_u16(code).ok(),
        };
        self.fake.note("ping");
        match status {
            Some(status) => Some(answer::json(status, &json!({ "error": "no pings, please" }))),
            None => {
                self.draining.cancelled().await;
                Some(answer::json(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": "over" })))
            }
        }
    }

    /// Finds the session of a POST or creates one.
    fn session(
        &self,
        options: &HttpOptions,
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
                let is_resumable = options.event_ids && !options.json;
                return Ok(self.fake.mint(match is_resumable {
                    true => Session::resumable(),
                    false => Session::default(),
                }));
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

    /// Passes the messages on and returns the stream or the body of their answers.
    async fn dispatch(
        &self,
        options: &HttpOptions,
        messages: &[Message<'_>],
        session: String,
        is_batch: bool,
    ) -> Answer {
        let is_request = |message: &Message<'_>| message.id.is_some() && message.method.is_some();
        if !messages.iter().any(is_request) {
            let (wire, _) = Wire::new();
            for message in messages {
                self.fake.receive(message, Some(&session), &wire);
            }
            return in_session(whole(StatusCode::ACCEPTED, "", String::new()), &session);
        }
        let Some((slot, wire, writes)) = self.open_post(&session) else {
            return self.unknown_session(&session);
        };
        if let Wire::Kept(_) = wire {
            wire.send(Write::Prime { retry_ms: options.retry }).await;
        }
        for message in messages {
            self.fake.receive(message, Some(&session), &wire);
        }
        drop(wire); // Each request has a copy: the stream ends with the last answer.
        let (writes, format) = match writes {
            Writes::Queue(writes) if options.json => {
                let writes = tokio::select! {
                    writes = one_body(writes, is_batch) => writes,
                    () = slot.cut.cancelled() => Wire::new().1,
                };
                (Writes::Queue(writes), Format::Plain)
            }
            writes => (writes, Format::Events),
        };
        in_session(answer::stream(slot, writes, format), &session)
    }

    /// Opens the stream of a POST.
    fn open_post(&self, session: &str) -> Option<(Slot, Wire, Writes)> {
        let (name, wire, writes) = {
            let mut state = self.fake.state();
            let session = state.sessions.get_mut(session)?;
            let name = session.next_post();
            if let Some(Wire::Kept(_)) = session.listener {
                let wire = session.keep(&name);
                let writes = Writes::Kept(session.streams.get(&name)?.read(Some(0)));
                (name, wire, writes)
            } else {
                let (wire, writes) = Wire::new();
                (name, wire, Writes::Queue(writes))
            }
        };
        Some((self.fake.carry(session, &name, Kind::Post)?, wire, writes))
    }

    fn get(&self, options: &HttpOptions, headers: &HeaderMap) -> Answer {
        self.fake.count("gets");
        let last_event = headers.contains_key(LAST_EVENT).then(|| header(headers, LAST_EVENT));
        self.fake.state().seen.last_event_ids.extend(last_event.map(str::to_owned));
        if options.no_get {
            return answer::not_allowed(ALLOWED);
        }
        if !accepts(headers, "text/event-stream") {
            let message = "Not Acceptable: Client must accept text/event-stream";
            return fault(StatusCode::NOT_ACCEPTABLE, -32000, message);
        }
        let id = header(headers, SESSION).to_owned();
        let not_found = || whole(StatusCode::NOT_FOUND, HTML, "Session not found".to_owned());
        if !self.fake.state().sessions.contains_key(&id) {
            return not_found();
        }
        let last_event = last_event.filter(|_| options.event_ids);
        let (name, after) = match last_event.map(stream::split) {
            None => (GET_STREAM, None),
            Some(Some((name, number))) if self.has_stream(&id, name) => (name, Some(number)),
            Some(_) => return fault(StatusCode::BAD_REQUEST, -32000, "Invalid event ID"),
        };
        let Some(slot) = self.fake.carry(&id, name, Kind::Get) else {
            let message = "Conflict: Only one SSE stream is allowed per session";
            return fault(StatusCode::CONFLICT, -32000, message);
        };
        let writes =
            self.fake.state().sessions.get_mut(&id).map(|session| session.listen(name, after));
        let Some(writes) = writes else { return not_found() };
        if after.is_some() {
            self.fake.count("resumes");
        }
        in_session(answer::stream(slot, writes, Format::Events), &id)
    }

    /// Returns whether a session has a stream that can be resumed.
    fn has_stream(&self, session: &str, name: &str) -> bool {
        let state = self.fake.state();
        state.sessions.get(session).is_some_and(|session| session.streams.contains_key(name))
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
        answer::json(
            StatusCode::OK,
            &json!({
                "message": "Session cleaned up successfully",
                "sessionId": id,
                "remainingSessions": n_remaining,
            }),
        )
    }

    fn unknown_session(&self, id: &str) -> Answer {
        let sessions: Vec<String> = self.fake.state().sessions.keys().cloned().collect();
        answer::json(
            StatusCode::NOT_FOUND,
            &json!({
                "error": "Session not found",
                "message": format!("Transport not found for sessionId {id}"),
                "available_sessions": sessions,
                "timestamp": "2025-01-01T00:00:00.000Z",
            }),
        )
    }
}

/// Reads a message or a batch.
fn messages(body: &[u8]) -> Option<Vec<Message<'_>>> {
    match body.first() {
        Some(b'[') => serde_json::from_slice(body).ok(),
        _ => serde_json::from_slice(body).ok().map(|message| vec![message]),
    }
}

/// Names the session in an answer.
fn in_session(mut answer: Answer, session: &str) -> Answer {
    answer.headers_mut().insert(SESSION, answer::value_of(session));
    answer
}
