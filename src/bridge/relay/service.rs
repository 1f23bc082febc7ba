//! The messages of the service on their way to the client.

use std::time::Duration;

use bytes::Bytes;

use super::{BridgeRelay, Link, OWN, Sent};
use crate::{
    bridge::request::BridgedMethod,
    config::defaults,
    ingress::stdio_pipe::DETACHED,
    protocol::{
        Batch, Message, MessageKind, ObjectMembers, client_meta::SUBSCRIPTION_ID,
        jsonrpc::MessagePart, list_page::ListKind, payloads::method,
    },
};

impl BridgeRelay {
    /// Handles a line from the service.
    pub(in crate::bridge) fn service_says(&mut self, line: Bytes, now: Duration) {
        if Batch::is_batch(&line) {
            let answers = Batch::parse(&line, defaults::BATCH_MESSAGES_MAX);
            let answers = answers.into_iter().flat_map(Batch::into_members).flatten();
            for answer in answers {
                let id = answer.part(MessagePart::Id).unwrap_or_default();
                self.forget(|request| request.is_batch() && request.has(id));
            }
            return self.to_client.push(line);
        }
        let Ok(message) = Message::parse_own(line.clone()) else {
            return self.to_client.push(line);
        };
        match message.shape() {
            MessageKind::Request => {
                self.n_questions += 1;
                let id = message.part(MessagePart::Id).unwrap_or("null").to_owned();
                self.questions.insert(self.n_questions, id);
                self.to_client
                    .push(message.edit([(MessagePart::Id, &self.n_questions.to_string())]));
            }
            MessageKind::Response => self.answered(&message, line, now),
            MessageKind::Notification => match message.method() {
                Some(DETACHED) => self.n_taken = Some(n_taken(&message)),
                Some(method::CANCELLED) => self.recalled(&message),
                Some(method::SUBSCRIPTIONS_ACKNOWLEDGED) => self.acknowledged(&message, line),
                _ => self.to_client.push(line),
            },
        }
    }

    /// Handles the cancellation of a server's own request.
    fn recalled(&mut self, cancelled: &Message) {
        let id = cancelled.part(MessagePart::CancelledId).unwrap_or_default();
        let asked = self.questions.iter().find(|(_, asked)| *asked == id).map(|(ours, _)| *ours);
        if let Some(ours) = asked {
            self.questions.remove(&ours);
            self.to_client.push(cancelled.edit([(MessagePart::CancelledId, &ours.to_string())]));
        }
    }

    fn answered(&mut self, answer: &Message, line: Bytes, now: Duration) {
        let id = answer.part(MessagePart::Id).unwrap_or_default();
        if id.starts_with(OWN) {
            if self.link == Link::Greeting(id.to_owned()) {
                self.go_up(now);
                self.tell_changes();
            }
            return;
        }
        let is_meant = |sent: &Sent| !sent.request.is_batch() && sent.request.has(id);
        let Some(at) = self.asked.iter().position(is_meant) else {
            return self.to_client.push(line);
        };
        let result = answer.part(MessagePart::Result);
        let sent = &mut self.asked[at];
        if let (BridgedMethod::Listening { .. }, Some(_)) = (&sent.request.kind, result) {
            // The service is stopping; the subscription is repeated at the next one.
            return;
        }
        let request = self.asked.remove(at).request;
        self.n_kept = self.n_kept.saturating_sub(request.n_bytes());
        if let Some(result) = result {
            self.memory.note(request, result);
        } else if let BridgedMethod::Handshake = request.kind {
            self.memory.handshake = None;
        }
        self.to_client.push(line);
    }

    /// Passes on the acknowledgement of a subscription once. Later, reports all lists as changed,
    /// since changes may have been missed.
    fn acknowledged(&mut self, message: &Message, line: Bytes) {
        let text = std::str::from_utf8(message.bytes()).unwrap_or_default();
        let params =
            ObjectMembers::one(text, "params").and_then(ObjectMembers::read).unwrap_or_default();
        let meta = params.get("_meta").and_then(ObjectMembers::read).unwrap_or_default();
        let id = meta.get(SUBSCRIPTION_ID).unwrap_or_default();
        let meant = self.asked.iter_mut().find(|sent| sent.request.has(id));
        let Some(Sent { request, .. }) = meant else { return self.to_client.push(line) };
        let BridgedMethod::Listening { is_told } = &mut request.kind else {
            return self.to_client.push(line);
        };
        if !std::mem::replace(is_told, true) {
            return self.to_client.push(line);
        }
        let heard = params.get("notifications").and_then(ObjectMembers::read).unwrap_or_default();
        for (member, list) in [
            ("toolsListChanged", ListKind::Tools),
            ("promptsListChanged", ListKind::Prompts),
            ("resourcesListChanged", ListKind::Resources),
        ] {
            if heard.get(member) == Some("true") {
                let params = format!(r#"{{"_meta":{{"{SUBSCRIPTION_ID}":{id}}}}}"#);
                let notice = Message::notification(list.notice(), Some(&params));
                self.to_client.push(notice.bytes().clone());
            }
        }
    }
}

/// Returns the number of messages that a service reports as read, or the maximum without a report.
fn n_taken(detached: &Message) -> u64 {
    let text = std::str::from_utf8(detached.bytes()).unwrap_or_default();
    let params =
        ObjectMembers::one(text, "params").and_then(ObjectMembers::read).unwrap_or_default();
    params.get("read").and_then(|number| number.parse().ok()).unwrap_or(u64::MAX)
}
