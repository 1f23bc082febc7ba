//! Revision 2026-07-28, with independent requests and no sessions.

use std::sync::Arc;

use hyper::{HeaderMap, StatusCode};

use crate::{
    era::{Era, MODERN, ProbeMode},
    exit,
    fake::Fake,
    http_response::{self, HttpResponse, refuse, rpc_error, value_of, whole},
    message::{Message, RpcError},
    mirrored_headers::VERSION,
    modern_client::ModernClient,
    options::HttpOptions,
    output::{Output, OutputReceiver, OutputSender},
    response_body::{BodyFormat, single_body},
    server::Server,
};

impl Fake {
    /// Receives a message of a modern pipe.
    pub(crate) async fn receive_modern(
        self: &Arc<Self>,
        message: &Message<'_>,
        output: &OutputSender,
    ) {
        let (Some(_), Some(id)) = (&message.method, message.id) else {
            self.receive(message, None, output);
            return;
        };
        match ModernClient::admit(self, message, None) {
            Ok(client) => {
                self.request(message, None, Some(client.into()), output);
            }
            Err(refusal) => {
                self.count_method(message.method.as_deref().unwrap_or_default());
                output.send(Output::Response(refusal.error.answer(id.get()))).await;
            }
        }
        self.changed();
    }
}

impl Server {
    /// Returns whether a POST is modern.
    pub(crate) fn is_modern(&self, headers: &HeaderMap, messages: &[Message<'_>]) -> bool {
        match self.fake.options.era {
            Era::Legacy => false,
            Era::Modern => true,
            Era::Both | Era::Undecided => {
                http_response::header(headers, VERSION) == MODERN
                    || messages.iter().any(Message::is_modern)
            }
        }
    }

    /// Returns the response to a probe that the options set.
    pub(crate) async fn probe_response(&self, messages: &[Message<'_>]) -> Option<HttpResponse> {
        let message = messages.first()?;
        let probe = self.fake.probe_mode(message)?;
        self.fake.count_method("server/discover");
        match probe {
            ProbeMode::Silent => {
                self.draining.cancelled().await;
                Some(rpc_error(StatusCode::SERVICE_UNAVAILABLE, -32000, "over"))
            }
            ProbeMode::Exit => exit(&self.fake, 3),
            ProbeMode::Refuse(_) | ProbeMode::Spoil => {
                let code = if let ProbeMode::Refuse(code) = probe { code } else { -32600 };
                let id = message.id.map_or("null", |id| id.get());
                Some(refuse(StatusCode::BAD_REQUEST, &RpcError::new(code, "No."), id))
            }
        }
    }

    /// Answers a modern POST.
    pub(crate) async fn post_modern(
        &self,
        options: &HttpOptions,
        headers: &HeaderMap,
        messages: &[Message<'_>],
        is_batch: bool,
    ) -> HttpResponse {
        let (message, method, id) = match messages {
            [Message { method: Some(method), id: None, .. }] if !is_batch => {
                self.fake.count_method(method);
                return whole(StatusCode::ACCEPTED, "", String::new());
            }
            [message @ Message { method: Some(method), id: Some(id), .. }] if !is_batch => {
                (message, method, id.get())
            }
            _ => {
                let message = "Invalid Request: one request or notification is expected";
                return rpc_error(StatusCode::BAD_REQUEST, -32600, message);
            }
        };
        let client = match ModernClient::admit(&self.fake, message, Some(headers)) {
            Ok(client) => client,
            Err(refusal) => {
                self.fake.count_method(method);
                return refuse(refusal.status, &refusal.error, id);
            }
        };
        let (output, receiver) = OutputSender::new();
        let call = self.fake.request(message, None, Some(client.into()), &output);
        self.fake.changed();
        drop(output);
        let guard = self.fake.register_call_body(call);
        let (receiver, format) = match options.json && method != "subscriptions/listen" {
            true => {
                let receiver = tokio::select! {
                    receiver = single_body(receiver, false) => receiver,
                    () = guard.cut.cancelled() => OutputSender::new().1,
                };
                (receiver, BodyFormat::Plain)
            }
            false => (receiver, BodyFormat::Events),
        };
        let mut answer = http_response::stream(guard, OutputReceiver::Queue(receiver), format);
        answer.headers_mut().insert("x-accel-buffering", value_of("no"));
        answer
    }
}
