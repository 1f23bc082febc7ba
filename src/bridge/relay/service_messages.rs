//! The messages of the service on their way to the client.

use std::time::Duration;

use bytes::Bytes;

use super::{BridgeRelay, Link, OWN_ID_PREFIX, SentRequest};
use crate::{
    bridge::request::BridgedMethod,
    config::defaults,
    ingress::stdio_pipe::DETACHED,
    protocol::{
        Batch, Message, MessageKind, client_meta::SUBSCRIPTION_ID, jsonrpc::MessagePart,
        list_page::ListKind, payloads::method,
    },
};

impl BridgeRelay {
    pub(in crate::bridge) fn receive_from_service(&mut self, line: Bytes, now: Duration) {
        if Batch::is_batch(&line) {
            let answers = Batch::parse(&line, defaults::BATCH_MESSAGES_MAX);
            let answers = answers.into_iter().flat_map(Batch::into_members).flatten();
            for answer in answers {
                let id = answer.part(MessagePart::Id).unwrap_or_default();
                self.forget(|request| request.is_batch && request.has(id));
            }
            return self.to_client.push(line);
        }
        let Ok(message) = Message::parse_own(line.clone()) else {
            return self.to_client.push(line);
        };
        match message.kind() {
            MessageKind::Request => {
                self.n_questions += 1;
                let id = message.part(MessagePart::Id).unwrap_or("null").to_owned();
                self.questions.insert(self.n_questions, id);
                self.to_client
                    .push(message.edit([(MessagePart::Id, &self.n_questions.to_string())]));
            }
            MessageKind::Response => self.answered(&message, line, now),
            MessageKind::Notification => match message.method() {
                Some(DETACHED) => self.n_read = Some(n_read(&message)),
                Some(method::CANCELLED) => self.question_cancelled(&message),
                Some(method::SUBSCRIPTIONS_ACKNOWLEDGED) => self.acknowledged(&message, line),
                _ => self.to_client.push(line),
            },
        }
    }

    /// Handles the cancellation of a server's own request.
    fn question_cancelled(&mut self, cancelled: &Message) {
        let id = cancelled.part(MessagePart::CancelledId).unwrap_or_default();
        let original =
            self.questions.iter().find(|(_, original)| *original == id).map(|(own_id, _)| *own_id);
        if let Some(own_id) = original {
            self.questions.remove(&own_id);
            self.to_client.push(cancelled.edit([(MessagePart::CancelledId, &own_id.to_string())]));
        }
    }

    fn answered(&mut self, answer: &Message, line: Bytes, now: Duration) {
        let id = answer.part(MessagePart::Id).unwrap_or_default();
        if id.starts_with(OWN_ID_PREFIX) {
            if self.link == Link::Handshaking(id.to_owned()) {
                self.resume(now);
                self.announce_changes();
            }
            return;
        }
        let is_meant = |sent: &SentRequest| !sent.request.is_batch && sent.request.has(id);
        let Some(at) = self.unanswered.iter().position(is_meant) else {
            return self.to_client.push(line);
        };
        let result = answer.part(MessagePart::Result);
        let sent = &mut self.unanswered[at];
        if let (BridgedMethod::Listen { .. }, Some(_)) = (&sent.request.kind, result) {
            // The service is stopping; the subscription is repeated at the next one.
            return;
        }
        let request = self.unanswered.remove(at).request;
        self.n_kept = self.n_kept.saturating_sub(request.n_bytes());
        if let Some(result) = result {
            self.memory.note(request, result);
        } else if let BridgedMethod::Initialize = request.kind {
            self.memory.handshake = None;
        }
        self.to_client.push(line);
    }

    /// Passes on the acknowledgement of a subscription once. Later, reports all lists as changed,
    /// since changes may have been missed.
    fn acknowledged(&mut self, message: &Message, line: Bytes) {
        let params = message.param_members();
        let meta = params.object("_meta");
        let id = meta.get(SUBSCRIPTION_ID).unwrap_or_default();
        let meant = self.unanswered.iter_mut().find(|sent| sent.request.has(id));
        let Some(SentRequest { request, .. }) = meant else { return self.to_client.push(line) };
        let BridgedMethod::Listen { is_acknowledged } = &mut request.kind else {
            return self.to_client.push(line);
        };
        if !std::mem::replace(is_acknowledged, true) {
            return self.to_client.push(line);
        }
        let filter = params.object("notifications");
        for (member, list) in [
            ("toolsListChanged", ListKind::Tools),
            ("promptsListChanged", ListKind::Prompts),
            ("resourcesListChanged", ListKind::Resources),
        ] {
            if filter.get(member) == Some("true") {
                let params = format!(r#"{{"_meta":{{"{SUBSCRIPTION_ID}":{id}}}}}"#);
                let notice = Message::notification(list.notice(), Some(&params));
                self.to_client.push(notice.bytes().clone());
            }
        }
    }
}

/// Returns the number of messages that a service reports as read, or the maximum without a report.
fn n_read(detached: &Message) -> u64 {
    let params = detached.param_members();
    params.get("read").and_then(|number| number.parse().ok()).unwrap_or(u64::MAX)
}
