//! What passes between a client and a service that may go away and come back, without the client
//! noticing.
//!
//! ```text
//!         attached                 greeted
//!  Away ───────────▶ Greeting ───────────────▶ Up
//!   ▲  (no handshake yet: ──────────────────▶)  │
//!   └──────────────── lost ─────────────────────┘
//! ```
//!
//! Pure: lines in, lines out; the caller knows the time, as how long it has been since the start.
//!
//! What a session consists of is remembered here: the handshake, the log level, the watched resources.
//! A new attachment gets all that before anything else, and its answers go nowhere. Of what was asked
//! when the service was lost, what it has not read is sent again, as it said itself (`mcp/detached`), or
//! what only reads; of the rest nobody knows whether it was done, and its client is told so.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use bytes::Bytes;

use super::{
    outage_reply,
    request::{BridgedMethod, BridgedRequest},
};
use crate::{
    config::defaults,
    ingress::stdio_pipe::DETACHED,
    protocol::{
        Batch, Message, MessageKind, ObjectMembers,
        client_meta::SUBSCRIPTION_ID,
        jsonrpc::MessagePart,
        payloads::{ListKind, method},
        version,
    },
    unsent_messages::UnsentMessages,
};

/// How the ids of our own requests begin, JSON text.
const OWN: &str = "\"metamcp-stdio-";

/// The state of a bridge, and what is to be written to either side.
#[derive(Debug, Default)]
pub(super) struct BridgeRelay {
    /// What goes to the client.
    pub(super) to_client: UnsentMessages,
    /// What goes to the service; nothing while it is away.
    pub(super) to_service: UnsentMessages,
    link: Link,
    memory: Memory,
    /// Requests that the service has not answered, in the order in which they were sent.
    asked: Vec<Sent>,
    /// Notifications and answers that were sent last.
    tail: VecDeque<(u64, Bytes)>,
    /// What waits for the service.
    waiting: VecDeque<Waiting>,
    /// How much is kept, in bytes.
    n_kept: usize,
    /// How many messages were sent on this attachment.
    n_sent: u64,
    /// How many of them the service has taken, as it said when it went.
    n_taken: Option<u64>,
    /// The open questions of servers: what the client knows them by, and their ids, JSON text.
    questions: BTreeMap<u64, String>,
    n_questions: u64,
    n_own: u64,
    /// Why the service does not take the bridge back.
    refusal: Option<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Link {
    #[default]
    Away,
    /// The handshake was sent again, with this id, JSON text.
    Greeting(String),
    Up,
}

/// What the client has told the service once.
#[derive(Debug, Default)]
struct Memory {
    handshake: Option<Bytes>,
    /// The answer was passed on.
    is_greeted: bool,
    /// The lists of whose changes the client is told.
    lists: Vec<ListKind>,
    has_batches: bool,
    initialized: Option<Bytes>,
    level: Option<Bytes>,
    watched: BTreeMap<String, Bytes>,
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
    /// Takes a line of the client.
    pub(super) fn client_says(&mut self, line: Bytes, now: Duration) {
        if Batch::is_batch(&line) {
            return self.take_batch(line, now);
        }
        let Ok(message) = Message::parse_own(line.clone()) else {
            // The service says what is wrong with it.
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

    /// Takes a line of the service.
    pub(super) fn service_says(&mut self, line: Bytes, now: Duration) {
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

    /// The service takes messages again.
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

    /// The service is there and does not take the bridge back, for this reason.
    pub(super) fn refused(&mut self, reason: String) {
        self.refusal = Some(reason);
    }

    /// The service has gone.
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
        // Nobody waits for these answers any more.
        for number in std::mem::take(&mut self.questions).into_keys() {
            let params =
                format!(r#"{{"requestId":{number},"reason":"the service was restarted"}}"#);
            let cancelled = Message::notification(method::CANCELLED, Some(&params));
            self.to_client.push(cancelled.bytes().clone());
        }
    }

    /// Returns when something has waited for too long, if anything waits.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let expiring = self.waiting.iter().filter(|waiting| waiting.expires());
        expiring.map(|waiting| waiting.since + defaults::BRIDGE_PATIENCE).min()
    }

    /// Gives up what has waited for too long.
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

    /// Forgets what was asked: its client has gone.
    pub(super) fn abandon(&mut self) {
        self.asked.clear();
        self.waiting.clear();
        self.to_service.clear();
    }

    /// Tells whether a request of the client has no answer yet.
    pub(super) fn has_pending(&self) -> bool {
        let waits = |waiting: &Waiting| matches!(waiting.what, What::Request(_));
        !self.asked.is_empty() || self.waiting.iter().any(waits)
    }

    fn take_batch(&mut self, line: Bytes, now: Duration) {
        match BridgedRequest::of_batch(&line).filter(|_| self.memory.has_batches) {
            Some(request) => self.ask(request, now),
            // Nothing of it is answered, or the service says what is wrong with it.
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
            // It cannot be sent again, and is known to be asked all the same.
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

    /// Passes the client's answer on to the server that asked, unless that is gone.
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
        // It has no answer; if one comes all the same, the client knows what to do.
        self.forget(is_meant);
        self.pass_other(cancelled.bytes().clone(), now);
    }

    /// A server does not want to know any more what it has asked.
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
            // The service stops: the next one is asked again.
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

    /// A listener is told what it hears of; once, as far as the client is concerned. What has happened
    /// while nobody listened, nobody knows.
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

    /// What servers offer may have changed with the service.
    fn tell_changes(&mut self) {
        for list in &self.memory.lists {
            let notice = Message::notification(list.notice(), None);
            self.to_client.push(notice.bytes().clone());
        }
    }

    /// Sends what makes up the session, and all that waits.
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

    /// Sends a request of the client once more, as our own; returns its id, JSON text.
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
    /// A listener hears nothing while there is no service, and that is all.
    fn expires(&self) -> bool {
        !matches!(
            &self.what,
            What::Request(BridgedRequest { kind: BridgedMethod::Listening { is_told: true }, .. })
        )
    }
}

impl Memory {
    /// Notes what the service has agreed to.
    fn note(&mut self, request: BridgedRequest, result: &str) {
        match request.kind {
            BridgedMethod::Handshake => {
                self.is_greeted = true;
                let result = ObjectMembers::read(result).unwrap_or_default();
                let agreed = result.string("protocolVersion");
                self.has_batches = agreed.is_some_and(|version| version::has_batches(&version));
                let all =
                    result.get("capabilities").and_then(ObjectMembers::read).unwrap_or_default();
                let tells = |list: &ListKind| {
                    let own = all.get(list.capability()).and_then(ObjectMembers::read);
                    own.is_some_and(|own| own.get("listChanged") == Some("true"))
                };
                self.lists = [ListKind::Tools, ListKind::Prompts, ListKind::Resources]
                    .into_iter()
                    .filter(tells)
                    .collect();
            }
            BridgedMethod::Level => self.level = request.line,
            BridgedMethod::Watching(uri) => {
                if let Some(line) = request.line
                    && self.watched.len() < defaults::WATCHED_MAX
                {
                    self.watched.insert(uri, line);
                }
            }
            BridgedMethod::Unwatching(uri) => {
                self.watched.remove(&uri);
            }
            BridgedMethod::Listening { .. } | BridgedMethod::Reading | BridgedMethod::Acting => {}
        }
    }
}

/// Returns how many messages a service says that it has taken; where it does not, all of them.
fn n_taken(detached: &Message) -> u64 {
    let text = std::str::from_utf8(detached.bytes()).unwrap_or_default();
    let params =
        ObjectMembers::one(text, "params").and_then(ObjectMembers::read).unwrap_or_default();
    params.get("read").and_then(|number| number.parse().ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
