//! The relay of messages between a client and a service that may restart unnoticed.
//!
//! ```text
//!            attached                handshake repeated
//!  Detached ──────────▶ Handshaking ────────────────────▶ Ready
//!   ▲  │                                                  ▲ │
//!   │  └─────────── attached, no handshake yet ───────────┘ │
//!   └────────────────────── detached ───────────────────────┘
//! ```
//!
//! Pure: lines in, lines out; the caller supplies the time since the start.
//!
//! The relay stores the session: handshake, log level and watched resources. It sends them first on
//! each new attachment and discards the answers. After a loss, it repeats the requests that the
//! service has not read, according to `mcp/detached`, and those that only read. The outcome of the
//! others is unknown, and the client receives an error for each.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use bytes::Bytes;

use super::{
    outage_reply,
    request::{BridgedMethod, BridgedRequest},
    session_memory::SessionMemory,
};
use crate::{
    config::defaults,
    protocol::{Batch, Message, MessageKind, RpcError, jsonrpc::MessagePart, payloads::method},
    unsent_messages::UnsentMessages,
};

mod service_messages;

/// The prefix of the ids of the bridge's own requests, JSON text.
const OWN_ID_PREFIX: &str = "\"metamcp-stdio-";

/// The state of a bridge, and the unsent messages for both sides.
#[derive(Debug, Default)]
pub(super) struct BridgeRelay {
    /// The messages for the client.
    pub(super) to_client: UnsentMessages,
    /// The messages for the service; empty while it is away.
    pub(super) to_service: UnsentMessages,
    link: Link,
    memory: SessionMemory,
    /// The requests that the service has not answered, in the order in which they were sent.
    unanswered: Vec<SentRequest>,
    /// The most recent notifications and answers, with their numbers.
    recent: VecDeque<(u64, Bytes)>,
    /// The messages that wait for the service, with the time since when.
    waiting: VecDeque<(Duration, WaitingMessage)>,
    /// The size of all stored messages, in bytes.
    n_kept: usize,
    /// The number of messages sent on this attachment.
    n_sent: u64,
    /// The number of messages that the service has read, as it reported on shutdown.
    n_read: Option<u64>,
    /// The open requests of servers: the id that the client sees, and the original id as JSON text.
    questions: BTreeMap<u64, String>,
    n_questions: u64,
    n_own: u64,
    /// The reason why the service rejects the bridge.
    refusal: Option<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Link {
    #[default]
    Detached,
    /// The handshake was repeated with this id, JSON text.
    Handshaking(String),
    Ready,
}

#[derive(Debug)]
struct SentRequest {
    number: u64,
    request: BridgedRequest,
}

/// A message that waits for the service.
#[derive(Debug)]
enum WaitingMessage {
    Request(BridgedRequest),
    /// A notification or an answer.
    Other(Bytes),
}

impl WaitingMessage {
    fn n_bytes(&self) -> usize {
        match self {
            Self::Request(request) => request.n_bytes(),
            Self::Other(line) => line.len(),
        }
    }

    /// Returns whether the message expires. An acknowledged subscription never does.
    fn expires(&self) -> bool {
        let Self::Request(BridgedRequest { kind, .. }) = self else { return true };
        !matches!(kind, BridgedMethod::Listen { is_acknowledged: true })
    }
}

impl BridgeRelay {
    pub(super) fn receive_from_client(&mut self, line: Bytes, now: Duration) {
        if Batch::is_batch(&line) {
            return self.receive_batch(line, now);
        }
        let Ok(message) = Message::parse_own(line.clone()) else {
            // The service answers it with an error.
            return self.pass_other(line, now);
        };
        match message.kind() {
            MessageKind::Request => self.ask(BridgedRequest::of(&message), now),
            MessageKind::Response => self.answer(&message, now),
            MessageKind::Notification => match message.method() {
                Some(method::CANCELLED) => self.cancel(&message, now),
                Some(method::INITIALIZED) => {
                    self.memory.initialized = Some(line.clone());
                    self.pass_other(line, now);
                }
                _ => self.pass_other(line, now),
            },
        }
    }

    pub(super) fn attached(&mut self, now: Duration) {
        self.refusal = None;
        self.n_sent = 0;
        self.n_read = None;
        match self.memory.handshake.clone().filter(|_| self.memory.has_session) {
            Some(handshake) => {
                let id = self.resend(&handshake);
                self.link = Link::Handshaking(id);
            }
            None => self.resume(now),
        }
    }

    /// Handles a refusal of the running service, for `reason`.
    pub(super) fn refused(&mut self, reason: String) {
        self.refusal = Some(reason);
    }

    pub(super) fn detached(&mut self, now: Duration) {
        self.link = Link::Detached;
        self.to_service.clear();
        let n_read = self.n_read.take();
        let is_unread = |number| n_read.is_some_and(|n_read| number > n_read);
        let mut again: Vec<(u64, WaitingMessage)> = Vec::new();
        for (number, line) in self.recent.drain(..) {
            self.n_kept = self.n_kept.saturating_sub(line.len());
            if is_unread(number) {
                again.push((number, WaitingMessage::Other(line)));
            }
        }
        for SentRequest { number, request } in std::mem::take(&mut self.unanswered) {
            self.n_kept = self.n_kept.saturating_sub(request.n_bytes());
            if request.line.is_some() && (is_unread(number) || request.is_repeatable()) {
                again.push((number, WaitingMessage::Request(request)));
            } else {
                let error = match is_unread(number) {
                    true => outage_reply::service_unavailable(None),
                    false => outage_reply::outcome_unknown(),
                };
                self.to_client.push(request.failure_answer(&error));
            }
        }
        again.sort_by_key(|(number, _)| *number);
        for (_, message) in again.into_iter().rev() {
            self.n_kept += message.n_bytes();
            self.waiting.push_front((now, message));
        }
        // The servers that asked no longer wait for these answers.
        for number in std::mem::take(&mut self.questions).into_keys() {
            let params =
                format!(r#"{{"requestId":{number},"reason":"the service was restarted"}}"#);
            let cancelled = Message::notification(method::CANCELLED, Some(&params));
            self.to_client.push(cancelled.bytes().clone());
        }
    }

    /// Returns the time at which the next waiting message expires.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let expiring = self.waiting.iter().filter(|(_, message)| message.expires());
        expiring.map(|(since, _)| *since + defaults::BRIDGE_TIMEOUT).min()
    }

    /// Drops messages that have waited for too long.
    pub(super) fn tick(&mut self, now: Duration) {
        let error = outage_reply::service_unavailable(self.refusal.as_deref());
        self.drop_waiting(&error, |since| now >= since + defaults::BRIDGE_TIMEOUT);
    }

    /// Answers the messages that wait for a service that hangs with `error`.
    pub(super) fn hung(&mut self, error: &RpcError) {
        self.drop_waiting(error, |_| true);
    }

    /// Drops the messages that wait since such a time, and answers the requests with `error`.
    fn drop_waiting(&mut self, error: &RpcError, is_due: impl Fn(Duration) -> bool) {
        let is_over =
            |(since, message): &(Duration, WaitingMessage)| message.expires() && is_due(*since);
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (over, rest): (Vec<_>, Vec<_>) = waiting.partition(is_over);
        self.waiting = rest.into();
        for (_, message) in over {
            self.n_kept = self.n_kept.saturating_sub(message.n_bytes());
            if let WaitingMessage::Request(request) = message {
                self.to_client.push(request.failure_answer(error));
            }
        }
    }

    /// Drops all requests after the client has disconnected.
    pub(super) fn abandon(&mut self) {
        self.unanswered.clear();
        self.waiting.clear();
        self.to_service.clear();
    }

    /// Returns whether a request of the client has no answer yet.
    pub(super) fn has_pending(&self) -> bool {
        let mut waiting = self.waiting.iter().map(|(_, message)| message);
        let is_request = |message| matches!(message, &WaitingMessage::Request(_));
        !self.unanswered.is_empty() || waiting.any(is_request)
    }

    fn receive_batch(&mut self, line: Bytes, now: Duration) {
        match BridgedRequest::of_batch(&line).filter(|_| self.memory.has_batches) {
            Some(request) => self.ask(request, now),
            // It contains no requests, or the service answers it with an error.
            None => self.pass_other(line, now),
        }
    }

    fn ask(&mut self, request: BridgedRequest, now: Duration) {
        if let (BridgedMethod::Initialize, false) = (&request.kind, self.memory.has_session) {
            self.memory.handshake.clone_from(&request.line);
        }
        if self.link == Link::Ready {
            return self.send(request);
        }
        if self.has_room(request.n_bytes()) {
            self.n_kept += request.n_bytes();
            self.waiting.push_back((now, WaitingMessage::Request(request)));
        } else {
            let error = outage_reply::queue_full(self.refusal.as_deref());
            self.to_client.push(request.failure_answer(&error));
        }
    }

    fn send(&mut self, mut request: BridgedRequest) {
        let Some(line) = request.line.clone() else { return };
        self.n_sent += 1;
        self.to_service.push(line);
        if self.n_kept + request.n_bytes() > defaults::BRIDGE_BYTES_MAX {
            // The request cannot be repeated, but still counts as unanswered.
            request.line = None;
        }
        self.n_kept += request.n_bytes();
        self.unanswered.push(SentRequest { number: self.n_sent, request });
    }

    fn pass_other(&mut self, line: Bytes, now: Duration) {
        if self.link == Link::Ready {
            return self.send_other(line);
        }
        if self.has_room(line.len()) {
            self.n_kept += line.len();
            self.waiting.push_back((now, WaitingMessage::Other(line)));
        }
    }

    fn send_other(&mut self, line: Bytes) {
        self.n_sent += 1;
        self.to_service.push(line.clone());
        self.n_kept += line.len();
        self.recent.push_back((self.n_sent, line));
        while self.recent.len() > defaults::BRIDGE_TAIL_MAX
            || (self.n_kept > defaults::BRIDGE_BYTES_MAX && !self.recent.is_empty())
        {
            let dropped = self.recent.pop_front().map(|(_, line)| line.len());
            self.n_kept = self.n_kept.saturating_sub(dropped.unwrap_or_default());
        }
    }

    fn has_room(&self, n_bytes: usize) -> bool {
        self.waiting.len() < defaults::BRIDGE_LINES_MAX
            && self.n_kept + n_bytes <= defaults::BRIDGE_BYTES_MAX
    }

    /// Passes the client's answer to the server that asked, if the question is still open.
    fn answer(&mut self, answer: &Message, now: Duration) {
        let question = answer.integer(MessagePart::Id).and_then(|id| self.questions.remove(&id));
        if let Some(id) = question {
            self.pass_other(answer.edit([(MessagePart::Id, &id)]), now);
        }
    }

    fn cancel(&mut self, cancelled: &Message, now: Duration) {
        let Some(id) = cancelled.part(MessagePart::CancelledId) else { return };
        let is_meant = |request: &BridgedRequest| !request.is_batch && request.has(id);
        let waiting = self.waiting.iter().position(|(_, message)| match message {
            WaitingMessage::Request(request) => is_meant(request),
            WaitingMessage::Other(_) => false,
        });
        if let Some((_, removed)) = waiting.and_then(|at| self.waiting.remove(at)) {
            self.n_kept = self.n_kept.saturating_sub(removed.n_bytes());
            return;
        }
        // No answer is expected; if one arrives nevertheless, clients ignore it.
        self.forget(is_meant);
        self.pass_other(cancelled.bytes().clone(), now);
    }

    /// Reports all lists as changed: the restarted service may offer others.
    fn announce_changes(&mut self) {
        for list in &self.memory.lists {
            let notice = Message::notification(list.notice(), None);
            self.to_client.push(notice.bytes().clone());
        }
    }

    /// Sends the state of the session and all waiting messages.
    fn resume(&mut self, now: Duration) {
        self.tick(now);
        if let Link::Handshaking(_) = self.link {
            if let Some(initialized) = self.memory.initialized.clone() {
                self.n_sent += 1;
                self.to_service.push(initialized);
            }
            let level = self.memory.level.clone();
            let watched: Vec<Bytes> = self.memory.watched.values().cloned().collect();
            for line in level.into_iter().chain(watched) {
                let _answer_is_discarded = self.resend(&line);
            }
        }
        self.link = Link::Ready;
        for (_, message) in std::mem::take(&mut self.waiting) {
            self.n_kept = self.n_kept.saturating_sub(message.n_bytes());
            match message {
                WaitingMessage::Request(request) => self.send(request),
                WaitingMessage::Other(line) => self.send_other(line),
            }
        }
    }

    /// Repeats a request of the client as the bridge's own; returns its id, JSON text.
    fn resend(&mut self, line: &Bytes) -> String {
        self.n_own += 1;
        let id = format!("{OWN_ID_PREFIX}{}\"", self.n_own);
        if let Ok(message) = Message::parse_own(line.clone()) {
            self.n_sent += 1;
            self.to_service.push(message.edit([(MessagePart::Id, &id)]));
        }
        id
    }

    fn forget(&mut self, is_meant: impl Fn(&BridgedRequest) -> bool) {
        if let Some(at) = self.unanswered.iter().position(|sent| is_meant(&sent.request)) {
            let request = self.unanswered.remove(at).request;
            self.n_kept = self.n_kept.saturating_sub(request.n_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
