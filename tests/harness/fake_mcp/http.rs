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
    era::Era,
    http_response::{self, HttpResponse, accepts, header, rpc_error, whole},
    message::Message,
    mirrored_headers::VERSION,
    open_bodies::{BodyGuard, BodyKind, GET_STREAM},
    options::HttpOptions,
    output::{Output, OutputReceiver, OutputSender},
    response_body::{BodyFormat, single_body},
    resumable_stream,
    server::Server,
    session::Session,
    state::PingMode,
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
    ) -> HttpResponse {
        if request.uri().path() != "/mcp" {
            return http_response::json(
                StatusCode::NOT_FOUND,
                &json!({ "error": "Endpoint not found" }),
            );
        }
        let is_modern = self.fake.options.era == Era::Modern;
        match *request.method() {
            Method::POST => self.post(options, request).await,
            _ if is_modern => http_response::not_allowed("POST"),
            Method::GET => self.get(options, request.headers()),
            Method::DELETE => self.delete(request.headers()),
            _ => http_response::not_allowed(ALLOWED),
        }
    }

    async fn post(&self, options: &HttpOptions, request: Request<Incoming>) -> HttpResponse {
        if let Some(answer) = self.ordered_response(request.headers()).await {
            return answer;
        }
        let (head, body) = request.into_parts();
        let headers = &head.headers;
        if !header(headers, CONTENT_TYPE.as_str()).starts_with("application/json") {
            let message = "Unsupported Media Type: Content-Type must be application/json";
            return rpc_error(StatusCode::UNSUPPORTED_MEDIA_TYPE, -32000, message);
        }
        if !accepts(headers, "application/json") || !accepts(headers, "text/event-stream") {
            let message = "Not Acceptable: Client must accept both application/json and \
                           text/event-stream";
            return rpc_error(StatusCode::NOT_ACCEPTABLE, -32000, message);
        }
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let messages = match messages(&body) {
            Some(messages) if body.len() <= BODY_BYTES_MAX => messages,
            _ => {
                self.fake.count_unreadable();
                return rpc_error(StatusCode::BAD_REQUEST, -32700, "Parse error");
            }
        };
        if let Some(refusal) = self.probe_response(&messages).await {
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
            && let Some(refusal) = self.ping_response().await
        {
            return refusal;
        }
        self.dispatch(options, &messages, session, is_batch).await
    }

    /// Returns the response to a ping that the test has set; `None` means a normal answer.
    async fn ping_response(&self) -> Option<HttpResponse> {
        let pings = self.fake.state().pings;
        let status = match pings {
            PingMode::Answer => return None,
            PingMode::Never => None,
            PingMode::Status(code) => StatusCode::from_u16(code).ok(),
        };
        self.fake.count_method("ping");
        match status {
            Some(status) => {
                Some(http_response::json(status, &json!({ "error": "no pings, please" })))
            }
            None => {
                self.draining.cancelled().await;
                Some(http_response::json(
                    StatusCode::SERVICE_UNAVAILABLE,
                    &json!({ "error": "over" }),
                ))
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
    ) -> Result<String, Box<HttpResponse>> {
        if is_initialize && n_messages > 1 {
            let message = "Invalid Request: Only one initialization request is allowed";
            return Err(Box::new(rpc_error(StatusCode::BAD_REQUEST, -32600, message)));
        }
        if !headers.contains_key(SESSION) {
            if is_initialize {
                let is_resumable = options.event_ids && !options.json;
                return Ok(self.fake.add_session(match is_resumable {
                    true => Session::resumable(),
                    false => Session::default(),
                }));
            }
            let message = "Bad Request: Server not initialized";
            return Err(Box::new(rpc_error(StatusCode::BAD_REQUEST, -32000, message)));
        }
        let session = header(headers, SESSION);
        if !self.fake.state().sessions.contains_key(session) {
            return Err(Box::new(self.unknown_session(session)));
        }
        if is_initialize {
            let message = "Invalid Request: Server already initialized";
            return Err(Box::new(rpc_error(StatusCode::BAD_REQUEST, -32600, message)));
        }
        let version = header(headers, VERSION);
        if !version.is_empty()
            && !VERSIONS.contains(&version)
            && version != self.fake.options.protocol
        {
            let message = "Bad Request: Unsupported protocol version";
            return Err(Box::new(rpc_error(StatusCode::BAD_REQUEST, -32000, message)));
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
    ) -> HttpResponse {
        let is_request = |message: &Message<'_>| message.id.is_some() && message.method.is_some();
        if !messages.iter().any(is_request) {
            let (output, _) = OutputSender::new();
            for message in messages {
                self.fake.receive(message, Some(&session), &output);
            }
            return in_session(whole(StatusCode::ACCEPTED, "", String::new()), &session);
        }
        let Some((guard, output, receiver)) = self.open_post(&session) else {
            return self.unknown_session(&session);
        };
        if let OutputSender::Stored(_) = output {
            output.send(Output::Prime { retry_ms: options.retry }).await;
        }
        for message in messages {
            self.fake.receive(message, Some(&session), &output);
        }
        drop(output); // Each request has a copy: the stream ends with the last answer.
        let (receiver, format) = match receiver {
            OutputReceiver::Queue(receiver) if options.json => {
                let receiver = tokio::select! {
                    receiver = single_body(receiver, is_batch) => receiver,
                    () = guard.cut.cancelled() => OutputSender::new().1,
                };
                (OutputReceiver::Queue(receiver), BodyFormat::Plain)
            }
            receiver => (receiver, BodyFormat::Events),
        };
        in_session(http_response::stream(guard, receiver, format), &session)
    }

    /// Opens the stream of a POST.
    fn open_post(&self, session: &str) -> Option<(BodyGuard, OutputSender, OutputReceiver)> {
        let (name, output, receiver) = {
            let mut state = self.fake.state();
            let session = state.sessions.get_mut(session)?;
            let name = session.next_post();
            if let Some(OutputSender::Stored(_)) = session.listener {
                let output = session.store_stream(&name);
                let receiver = OutputReceiver::Stored(session.streams.get(&name)?.read(Some(0)));
                (name, output, receiver)
            } else {
                let (output, receiver) = OutputSender::new();
                (name, output, OutputReceiver::Queue(receiver))
            }
        };
        Some((self.fake.register_body(session, &name, BodyKind::Post)?, output, receiver))
    }

    fn get(&self, options: &HttpOptions, headers: &HeaderMap) -> HttpResponse {
        self.fake.count("gets");
        let last_event = headers.contains_key(LAST_EVENT).then(|| header(headers, LAST_EVENT));
        self.fake.state().seen.last_event_ids.extend(last_event.map(str::to_owned));
        if options.no_get {
            return http_response::not_allowed(ALLOWED);
        }
        if !accepts(headers, "text/event-stream") {
            let message = "Not Acceptable: Client must accept text/event-stream";
            return rpc_error(StatusCode::NOT_ACCEPTABLE, -32000, message);
        }
        let id = header(headers, SESSION).to_owned();
        let not_found = || whole(StatusCode::NOT_FOUND, HTML, "Session not found".to_owned());
        if !self.fake.state().sessions.contains_key(&id) {
            return not_found();
        }
        let last_event = last_event.filter(|_| options.event_ids);
        let (name, after) = match last_event.map(resumable_stream::split) {
            None => (GET_STREAM, None),
            Some(Some((name, number))) if self.has_stream(&id, name) => (name, Some(number)),
            Some(_) => return rpc_error(StatusCode::BAD_REQUEST, -32000, "Invalid event ID"),
        };
        let Some(guard) = self.fake.register_body(&id, name, BodyKind::Get) else {
            let message = "Conflict: Only one SSE stream is allowed per session";
            return rpc_error(StatusCode::CONFLICT, -32000, message);
        };
        let receiver =
            self.fake.state().sessions.get_mut(&id).map(|session| session.listen(name, after));
        let Some(receiver) = receiver else { return not_found() };
        if after.is_some() {
            self.fake.count("resumes");
        }
        in_session(http_response::stream(guard, receiver, BodyFormat::Events), &id)
    }

    /// Returns whether a session has a stream that can be resumed.
    fn has_stream(&self, session: &str, name: &str) -> bool {
        let state = self.fake.state();
        state.sessions.get(session).is_some_and(|session| session.streams.contains_key(name))
    }

    fn delete(&self, headers: &HeaderMap) -> HttpResponse {
        if !headers.contains_key(SESSION) {
            let message = "Bad Request: Mcp-Session-Id header is required";
            return rpc_error(StatusCode::BAD_REQUEST, -32000, message);
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
        http_response::json(
            StatusCode::OK,
            &json!({
                "message": "Session cleaned up successfully",
                "sessionId": id,
                "remainingSessions": n_remaining,
            }),
        )
    }

    fn unknown_session(&self, id: &str) -> HttpResponse {
        let sessions: Vec<String> = self.fake.state().sessions.keys().cloned().collect();
        http_response::json(
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

/// Adds the session id to a response.
fn in_session(mut answer: HttpResponse, session: &str) -> HttpResponse {
    answer.headers_mut().insert(SESSION, http_response::value_of(session));
    answer
}
