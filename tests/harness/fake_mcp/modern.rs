//! Revision 2026-07-28, with independent requests and no sessions.

use std::sync::Arc;

use hyper::{HeaderMap, StatusCode};

use crate::{
    answer::{self, Answer, fault, refuse, value_of, whole},
    body::{Format, one_body},
    caller::Caller,
    era::{Era, MODERN, Probe},
    exit,
    fake::Fake,
    headers::VERSION,
    message::{Fault, Message},
    options::HttpOptions,
    server::Server,
    wire::{Wire, Write, Writes},
};

impl Fake {
    /// Receives a message of a modern pipe.
    pub(crate) async fn receive_modern(self: &Arc<Self>, message: &Message<'_>, wire: &Wire) {
        let (Some(_), Some(id)) = (&message.method, message.id) else {
            self.receive(message, None, wire);
            return;
        };
        match Caller::admit(self, message, None) {
            Ok(caller) => {
                self.request(message, None, Some(caller.into()), wire);
            }
            Err(refusal) => {
                self.note(message.method.as_deref().unwrap_or_default());
                wire.send(Write::Answer(refusal.fault.answer(id.get()))).await;
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
                answer::header(headers, VERSION) == MODERN
                    || messages.iter().any(Message::is_modern)
            }
        }
    }

    /// Treats a probe as the options say.
    pub(crate) async fn spoil_probe(&self, messages: &[Message<'_>]) -> Option<Answer> {
        let message = messages.first()?;
        let probe = self.fake.spoils(message)?;
        self.fake.note("server/discover");
        match probe {
            Probe::Silent => {
                self.draining.cancelled().await;
                Some(fault(StatusCode::SERVICE_UNAVAILABLE, -32000, "over"))
            }
            Probe::Exit => exit(&self.fake, 3),
            Probe::Refuse(_) | Probe::Spoil => {
                let code = if let Probe::Refuse(code) = probe { code } else { -32600 };
                let id = message.id.map_or("null", |id| id.get());
                Some(refuse(StatusCode::BAD_REQUEST, &Fault::new(code, "No."), id))
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
    ) -> Answer {
        let (message, method, id) = match messages {
            [Message { method: Some(method), id: None, .. }] if !is_batch => {
                self.fake.note(method);
                return whole(StatusCode::ACCEPTED, "", String::new());
            }
            [message @ Message { method: Some(method), id: Some(id), .. }] if !is_batch => {
                (message, method, id.get())
            }
            _ => {
                let message = "Invalid Request: one request or notification is expected";
                return fault(StatusCode::BAD_REQUEST, -32600, message);
            }
        };
        let caller = match Caller::admit(&self.fake, message, Some(headers)) {
            Ok(caller) => caller,
            Err(refusal) => {
                self.fake.note(method);
                return refuse(refusal.status, &refusal.fault, id);
            }
        };
        let (wire, writes) = Wire::new();
        let call = self.fake.request(message, None, Some(caller.into()), &wire);
        self.fake.changed();
        drop(wire);
        let slot = self.fake.carry_call(call);
        let (writes, format) = match options.json && method != "subscriptions/listen" {
            true => {
                let writes = tokio::select! {
                    writes = one_body(writes, false) => writes,
                    () = slot.cut.cancelled() => Wire::new().1,
                };
                (writes, Format::Plain)
            }
            false => (writes, Format::Events),
        };
        let mut answer = answer::stream(slot, Writes::Queue(writes), format);
        answer.headers_mut().insert("x-accel-buffering", value_of("no"));
        answer
    }
}
