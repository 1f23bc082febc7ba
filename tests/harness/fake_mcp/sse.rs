//! HTTP+SSE of protocol 2024-11-05, as the TypeScript and Python SDKs still serve it.
//!
//! `GET /sse` opens a session: the stream begins with the URL for POSTs and carries every message.
//! A POST is answered with 202. The session ends with its stream.

use http_body_util::BodyExt;
use hyper::{Method, Request, StatusCode, body::Incoming};

use crate::{
    http_response::{self, HttpResponse, accepts, not_allowed, whole},
    message::Message,
    open_bodies::{BodyKind, GET_STREAM},
    options::SseOptions,
    output::{Output, OutputReceiver, OutputSender},
    response_body::BodyFormat,
    server::Server,
    session::Session,
    state::PingMode,
};

const TEXT: &str = "text/plain";

impl Server {
    pub(crate) async fn answer_sse(
        &self,
        options: &SseOptions,
        request: Request<Incoming>,
    ) -> HttpResponse {
        match (request.uri().path(), request.method()) {
            ("/sse", &Method::GET) => self.open_session(options, &request).await,
            ("/sse", _) => not_allowed("GET"),
            ("/messages", &Method::POST) => self.post_message(request).await,
            ("/messages", _) => not_allowed("POST"),
            _ => whole(StatusCode::NOT_FOUND, TEXT, "Not found".to_owned()),
        }
    }

    async fn open_session(
        &self,
        options: &SseOptions,
        request: &Request<Incoming>,
    ) -> HttpResponse {
        self.fake.count("gets");
        if !accepts(request.headers(), "text/event-stream") {
            let text = "Not Acceptable: Client must accept text/event-stream".to_owned();
            return whole(StatusCode::NOT_ACCEPTABLE, TEXT, text);
        }
        let (output, receiver) = OutputSender::new();
        let id = self.fake.add_session(Session::listening(output.clone()));
        let origin = options.endpoint_origin.as_deref().unwrap_or_default();
        let endpoint = format!("{origin}/messages?sessionId={id}");
        output.send(Output::Endpoint(endpoint)).await;
        match self.fake.register_body(&id, GET_STREAM, BodyKind::Session) {
            Some(guard) => {
                http_response::stream(guard, OutputReceiver::Queue(receiver), BodyFormat::Events)
            }
            // The session was dropped meanwhile.
            None => self.no_session(),
        }
    }

    async fn post_message(&self, request: Request<Incoming>) -> HttpResponse {
        if let Some(answer) = self.ordered_response(request.headers()).await {
            return answer;
        }
        let query = request.uri().query().unwrap_or_default();
        let session = query.split('&').find_map(|pair| pair.strip_prefix("sessionId="));
        let session = session.unwrap_or_default().to_owned();
        let body = request.into_body().collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        let listener = self.fake.state().sessions.get(&session).map(|found| found.listener.clone());
        let Some(Some(output)) = listener else { return self.no_session() };
        let Ok(message) = serde_json::from_slice::<Message<'_>>(&body) else {
            self.fake.count_unreadable();
            return whole(StatusCode::BAD_REQUEST, TEXT, "Could not parse message".to_owned());
        };
        let pings = self.fake.state().pings;
        if let (Some("ping"), PingMode::Status(code)) = (message.method.as_deref(), pings) {
            self.fake.count_method("ping");
            let status = StatusCode::from_u16(code).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            return whole(status, TEXT, "no pings, please".to_owned());
        }
        self.fake.receive(&message, Some(&session), &output);
        whole(StatusCode::ACCEPTED, TEXT, "Accepted".to_owned())
    }

    fn no_session(&self) -> HttpResponse {
        self.fake.count("unknown_sessions");
        whole(StatusCode::NOT_FOUND, TEXT, "Session not found".to_owned())
    }
}
