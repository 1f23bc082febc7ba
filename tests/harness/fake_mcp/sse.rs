//! HTTP+SSE of protocol 2024-11-05, as the TypeScript and Python SDKs still serve it.
//!
//! `GET /sse` opens a session: the stream begins with the URL for POSTs and carries every message.
//! A POST is answered with 202. The session ends with its stream.

use http_body_util::BodyExt;
use hyper::{Method, Request, StatusCode, body::Incoming};

use crate::{
    answer::{self, Answer, accepts, not_allowed, whole},
    body::Format,
    carrier::{GET_STREAM, Kind},
    message::Message,
    options::SseOptions,
    server::Server,
    session::Session,
    state::Pings,
    wire::{Wire, Write, Writes},
};

const TEXT: &str = "text/plain";

impl Server {
    pub(crate) async fn answer_sse(
        &self,
        options: &SseOptions,
        request: Request<Incoming>,
    ) -> Answer {
        match (request.uri().path(), request.method()) {
            ("/sse", &Method::GET) => self.open_session(options, &request).await,
            ("/sse", _) => not_allowed("GET"),
            ("/messages", &Method::POST) => self.post_message(request).await,
            ("/messages", _) => not_allowed("POST"),
            _ => whole(StatusCode::NOT_FOUND, TEXT, "Not found".to_owned()),
        }
    }

    async fn open_session(&self, options: &SseOptions, request: &Request<Incoming>) -> Answer {
        self.fake.count("gets");
        if !accepts(request.headers(), "text/event-stream") {
            let text = "Not Acceptable: Client must accept text/event-stream".to_owned();
            return whole(StatusCode::NOT_ACCEPTABLE, TEXT, text);
        }
        let (wire, writes) = Wire::new();
        let id = self.fake.mint(Session::listening(wire.clone()));
        let origin = options.endpoint_origin.as_deref().unwrap_or_default();
        let endpoint = format!("{origin}/messages?sessionId={id}");
        wire.send(Write::Endpoint(endpoint)).await;
        match self.fake.carry(&id, GET_STREAM, Kind::Session) {
            Some(slot) => answer::stream(slot, Writes::Queue(writes), Format::Events),
            // The session was dropped meanwhile.
            None => self.no_session(),
        }
    }

    async fn post_message(&self, request: Request<Incoming>) -> Answer {
        if let Some(answer) = self.spoil_post(request.headers()).await {
            return answer;
        }
        let query = request.uri().query().unwrap_or_default();
        let session = query.split('&').find_map(|pair| pair.strip_prefix("sessionId="));
        let session = session.unwrap_or_default().to_owned();
        let body = request.into_body().collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        let listener = self.fake.state().sessions.get(&session).map(|found| found.listener.clone());
        let Some(Some(wire)) = listener else { return self.no_session() };
        let Ok(message) = serde_json::from_slice::<Message<'_>>(&body) else {
            self.fake.unreadable();
            return whole(StatusCode::BAD_REQUEST, TEXT, "Could not parse message".to_owned());
        };
        let pings = self.fake.state().pings;
        if let (Some("ping"), Pings::Status(code)) = (message.method.as_deref(), pings) {
            self.fake.note("ping");
            let status = StatusCode::from_u16(code).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            return whole(status, TEXT, "no pings, please".to_owned());
        }
        self.fake.receive(&message, Some(&session), &wire);
        whole(StatusCode::ACCEPTED, TEXT, "Accepted".to_owned())
    }

    fn no_session(&self) -> Answer {
        self.fake.count("unknown_sessions");
        whole(StatusCode::NOT_FOUND, TEXT, "Session not found".to_owned())
    }
}
