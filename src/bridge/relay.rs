//! The relay of messages between a client and a service that may restart unnoticed.
//!
//! ```text
//!         attached                 greeted
//!  Away ───────────▶ Greeting ───────────────▶ Up
//!   ▲  (no handshake yet: ──────────────────▶)  │
//!   └──────────────── lost ─────────────────────┘
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
    protocol::{Batch, Message, MessageKind, jsonrpc::MessagePart, payloads::method},
    unsent_messages::UnsentMessages,
};

mod service;

/// The prefix of the ids of the bridge's own requests, JSON text.
const OWN: &str = "\"metamcp-stdio-";

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
    asked: Vec<Sent>,
    /// The most recent notifications and answers, with their numbers.
    tail: VecDeque<(u64, Bytes)>,
    /// The messages that wait for the service.
    waiting: VecDeque<Waiting>,
    /// The size of all stored messages, in bytes.
    n_kept: usize,
    /// The number of messages sent on this attachment.
    n_sent: u64,
    /// The number of messages that the service has read, as it reported on shutdown.
    n_taken: Option<u64>,
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
    Away,
    /// The handshake was repeated with this id, JSON text.
    Greeting(String),
    Up,
}

#[derive(Debug)]
struct Sent {
    number: u64,
    request: BridgedRequest,
}

#[derive(Debug)]
struct Waiting {
    since: Duration,
    what: What,
}

#[derive(Debug)]
enum What {
    Request(BridgedRequest),
    /// A notification or an answer.
    Other(Bytes),
}

impl What {
    fn n_bytes(&self) -> usize {
        match self {
            Self::Request(request) => request.n_bytes(),
            Self::Other(line) => line.len(),
        }
    }
}

impl BridgeRelay {
    /// Handles a line from the client.
    pub(super) fn client_says(&mut self, line: Bytes, now: Duration) {
        if Batch::is_batch(&line) {
            return self.take_batch(line, now);
        }
        let Ok(message) = Message::parse_own(line.clone()) else {
            // The service answers it with an error.
            return self.pass_other(line, now);
        };
        match message.shape() {
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

    /// Handles a new attachment to the service.
    pub(super) fn attached(&mut self, now: Duration) {
        self.refusal = None;
        self.n_sent = 0;
        self.n_taken = None;
        match self.memory.handshake.clone().filter(|_| self.memory.is_greeted) {
            Some(handshake) => {
                let id = self.say_again(&handshake);
                self.link = Link::Greeting(id);
            }
            None => self.go_up(now),
        }
    }

    /// Handles a refusal of the running service, for `reason`.
    pub(super) fn refused(&mut self, reason: String) {
        self.refusal = Some(reason);
    }

    /// Handles the loss of the service.
    pub(super) fn lost(&mut self, now: Duration) {
        self.link = Link::Away;
        self.to_service.clear();
        let n_taken = self.n_taken.take();
        let is_unread = |number| n_taken.is_some_and(|n_taken| number > n_taken);
        let mut again: Vec<(u64, What)> = Vec::new();
        for (number, line) in self.tail.drain(..) {
            self.n_kept = self.n_kept.saturating_sub(line.len());
            if is_unread(number) {
                again.push((number, What::Other(line)));
            }
        }
        for Sent { number, request } in std::mem::take(&mut self.asked) {
            self.n_kept = self.n_kept.saturating_sub(request.n_bytes());
            if request.line.is_some() && (is_unread(number) || request.is_harmless()) {
                again.push((number, What::Request(request)));
            } else {
                let error = match is_unread(number) {
                    true => outage_reply::service_unavailable(None),
                    false => outage_reply::unknown(),
                };
                self.to_client.push(request.failed(&error));
            }
        }
        again.sort_by_key(|(number, _)| *number);
        for (_, what) in again.into_iter().rev() {
            self.n_kept += what.n_bytes();
            self.waiting.push_front(Waiting { since: now, what });
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
        let expiring = self.waiting.iter().filter(|waiting| waiting.expires());
        expiring.map(|waiting| waiting.since + defaults::BRIDGE_PATIENCE).min()
    }

    /// Drops messages that have waited for too long.
    pub(super) fn tick(&mut self, now: Duration) {
        let (over, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|waiting| {
                waiting.expires() && now >= waiting.since + defaults::BRIDGE_PATIENCE
            });
        self.waiting = rest.into();
        for Waiting { what, .. } in over {
            self.n_kept = self.n_kept.saturating_sub(what.n_bytes());
            if let What::Request(request) = what {
                self.to_client.push(
                    request.failed(&outage_reply::service_unavailable(self.refusal.as_deref())),
                );
            }
        }
    }

    /// Drops all requests after the client has disconnected.
    pub(super) fn abandon(&mut self) {
        self.asked.clear();
        self.waiting.clear();
        self.to_service.clear();
    }

    /// Returns whether a request of the client has no answer yet.
    pub(super) fn has_pending(&self) -> bool {
        let waits = |waiting: &Waiting| matches!(waiting.what, What::Request(_));
        !self.asked.is_empty() || self.waiting.iter().any(waits)
    }

    fn take_batch(&mut self, line: Bytes, now: Duration) {
        match BridgedRequest::of_batch(&line).filter(|_| self.memory.has_batches) {
            Some(request) => self.ask(request, now),
            // It contains no requests, or the service answers it with an error.
            None => self.pass_other(line, now),
        }
    }

    fn ask(&mut self, request: BridgedRequest, now: Duration) {
        if let (BridgedMethod::Handshake, false) = (&request.kind, self.memory.is_greeted) {
            self.memory.handshake.clone_from(&request.line);
        }
        if self.link == Link::Up {
            return self.send(request);
        }
        if self.has_room(request.n_bytes()) {
            self.n_kept += request.n_bytes();
            self.waiting.push_back(Waiting { since: now, what: What::Request(request) });
        } else {
            self.to_client.push(request.failed(&outage_reply::full(self.refusal.as_deref())));
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
        self.asked.push(Sent { number: self.n_sent, request });
    }

    fn pass_other(&mut self, line: Bytes, now: Duration) {
        if self.link == Link::Up {
            return self.send_other(line);
        }
        if self.has_room(line.len()) {
            self.n_kept += line.len();
            self.waiting.push_back(Waiting { since: now, what: What::Other(line) });
        }
    }

    fn send_other(&mut self, line: Bytes) {
        self.n_sent += 1;
        self.to_service.push(line.clone());
        self.n_kept += line.len();
        self.tail.push_back((self.n_sent, line));
        while self.tail.len() > defaults::BRIDGE_TAIL_MAX
            || (self.n_kept > defaults::BRIDGE_BYTES_MAX && !self.tail.is_empty())
        {
            let dropped = self.tail.pop_front().map(|(_, line)| line.len());
            self.n_kept = self.n_kept.saturating_sub(dropped.unwrap_or_default());
        }
    }

    fn has_room(&self, n_bytes: usize) -> bool {
        self.waiting.len() < defaults::BRIDGE_LINES_MAX
            && self.n_kept + n_bytes <= defaults::BRIDGE_BYTES_MAX
    }

    /// Passes the client's answer to the server that asked, if the question is still open.
    fn answer(&mut self, answer: &Message, now: Duration) {
        let asked = answer.integer(MessagePart::Id).and_then(|id| self.questions.remove(&id));
        if let Some(id) = asked {
            self.pass_other(answer.edit([(MessagePart::Id, &id)]), now);
        }
    }

    fn cancel(&mut self, cancelled: &Message, now: Duration) {
        let Some(id) = cancelled.part(MessagePart::CancelledId) else { return };
        let is_meant = |request: &BridgedRequest| !request.is_batch() && request.has(id);
        let meant = self.waiting.iter().position(
            |waiting| matches!(&waiting.what, What::Request(request) if is_meant(request)),
        );
        if let Some(at) = meant {
            let removed = self.waiting.remove(at).map(|waiting| waiting.what.n_bytes());
            self.n_kept = self.n_kept.saturating_sub(removed.unwrap_or_default());
            return;
        }
        // No answer is expected; if one arrives nevertheless, clients ignore it.
        self.forget(is_meant);
        self.pass_other(cancelled.bytes().clone(), now);
    }

    /// Reports all lists as changed: the restarted service may offer others.
    fn tell_changes(&mut self) {
        for list in &self.memory.lists {
            let notice = Message::notification(list.notice(), None);
            self.to_client.push(notice.bytes().clone());
        }
    }

    /// Sends the state of the session and all waiting messages.
    fn go_up(&mut self, now: Duration) {
        self.tick(now);
        if let Link::Greeting(_) = self.link {
            if let Some(initialized) = self.memory.initialized.clone() {
                self.n_sent += 1;
                self.to_service.push(initialized);
            }
            let level = self.memory.level.clone();
            let watched: Vec<Bytes> = self.memory.watched.values().cloned().collect();
            for line in level.into_iter().chain(watched) {
                let _answered_to_nobody = self.say_again(&line);
            }
        }
        self.link = Link::Up;
        for Waiting { what, .. } in std::mem::take(&mut self.waiting) {
            self.n_kept = self.n_kept.saturating_sub(what.n_bytes());
            match what {
                What::Request(request) => self.send(request),
                What::Other(line) => self.send_other(line),
            }
        }
    }

    /// Repeats a request of the client as the bridge's own; returns its id, JSON text.
    fn say_again(&mut self, line: &Bytes) -> String {
        self.n_own += 1;
        let id = format!("{OWN}{}\"", self.n_own);
        if let Ok(message) = Message::parse_own(line.clone()) {
            self.n_sent += 1;
            self.to_service.push(message.edit([(MessagePart::Id, &id)]));
        }
        id
    }

    fn forget(&mut self, is_meant: impl Fn(&BridgedRequest) -> bool) {
        if let Some(at) = self.asked.iter().position(|sent| is_meant(&sent.request)) {
            let request = self.asked.remove(at).request;
            self.n_kept = self.n_kept.saturating_sub(request.n_bytes());
        }
    }
}

impl Waiting {
    /// Returns whether the message expires. An acknowledged subscription never does.
    fn expires(&self) -> bool {
        !matches!(
            &self.what,
            What::Request(BridgedRequest { kind: BridgedMethod::Listening { is_told: true }, .. })
        )
    }
}

#[cfg(test)]
mod tests;
