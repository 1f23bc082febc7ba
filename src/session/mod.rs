//! What is remembered of a client between its requests.
//!
//! ```text
//!  initialize ──▶ Session ── level, watched resources ──▶ what its servers are told (pool::Wants)
//!                    │────── requests that run ─────────▶ found by its cancellations
//!                    │────── questions of servers ──────▶ found by its answers
//!                    │────── answers on streams ────────▶ found by an event id when one broke
//!                    └────── outbox ────────────────────▶ its GET stream
//! ```
//!
//! An id of ours is a [`SessionTicket`]: it is signed, and says what a restart loses and a session begins
//! with. Unless sessions are strict (ruling 6), any other is taken, too, and a client without one is
//! served all the same. What is not in the ticket, the level, the watched resources, the events for a
//! stream, ends with the process.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use tokio::time::Instant;

use crate::{
    config::defaults,
    connection::{ServerRequest, SessionOwner},
    era::ClientEra,
    holder::{AccountMember, Holder},
    name::ServerName,
    pool::ClientDemand,
    protocol::{
        Era, LoggingLevel, Message, apps, capability,
        client_meta::ClientMeta,
        jsonrpc::MessagePart,
        payloads::{ListKind, method},
        task,
    },
};

mod answer_backlog;
mod cold_start;
mod debounce;
mod ended_sessions;
mod ephemeral;
mod held_call_store;
mod held_calls;
mod lookup;
mod outbox;
mod registry;
mod resumable_stream;
mod running_requests;
mod scope;
mod server_removal;
pub mod signing_key;
mod ticket;

pub use debounce::Debounce;
pub use ephemeral::EphemeralSession;
pub use held_call_store::ResumeOutcome;
pub use lookup::SessionLookupError;
use outbox::SessionOutbox;
pub use outbox::{EventId, OutboxItem, OutboxReader};
pub use registry::{SessionRegistry, WatchRefusal, sleep_until};
pub use resumable_stream::{ResumableStream, StreamRemainder};
pub use running_requests::RunningRequest;
use scope::SessionScope;
pub use signing_key::state_directory;
pub use ticket::{SessionSigner, SessionTicket};

/// Which servers a session is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerScope {
    /// All of them.
    Every,
    /// The tools of all of them, found by search: the client has no list of theirs.
    Tools,
    /// This one.
    One(ServerName),
}

/// One client's session.
#[derive(Debug)]
pub struct Session {
    kind: SessionScope,
    scope: ServerScope,
    /// The party that requests of the client count for.
    holder: Holder,
    memory: Mutex<Memory>,
    outbox: SessionOutbox,
    /// When it was used last, in milliseconds since the registry was made.
    used_ms: AtomicU64,
}

#[derive(Debug, Default)]
struct Memory {
    level: Option<LoggingLevel>,
    watched: BTreeSet<(ServerName, String)>,
    running: Vec<running_requests::RunningEntry>,
    asked: HashMap<u64, Asked>,
    /// The streams of answers that the client can resume.
    resumable: Vec<Arc<resumable_stream::ResumableShared>>,
    n_numbers: u64,
}

/// Something that is said once, however often it comes within a moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Notice {
    /// The lists that this one stands for have changed.
    Changed(ListKind),
    /// A watched resource of a server was updated.
    Updated(ServerName, String),
}

/// A server's question that the client has not answered yet.
#[derive(Debug)]
struct Asked {
    question: ServerRequest,
    /// The running request on whose stream it was put; none for the GET stream.
    request: Option<u64>,
}

impl ServerScope {
    fn covers(&self, server: &ServerName) -> bool {
        match self {
            Self::Every | Self::Tools => true,
            Self::One(one) => one == server,
        }
    }

    /// Tells whether the client is told when `list` has changed.
    fn has(&self, list: ListKind) -> bool {
        match self {
            Self::Every | Self::One(_) => true,
            Self::Tools => list == ListKind::Tools,
        }
    }
}

impl Session {
    /// Returns a session that `opener` has opened, and that is a member of its own of the same account
    /// if it is remembered.
    fn new(kind: SessionScope, scope: ServerScope, opener: Holder) -> Self {
        let member = kind.owner().map_or(opener.member, |owner| AccountMember::Session(owner.key));
        Self {
            kind,
            scope,
            holder: opener.member(member),
            memory: Mutex::default(),
            outbox: SessionOutbox::default(),
            used_ms: AtomicU64::new(0),
        }
    }

    /// Returns the session of a client that cannot be told from others: nothing is remembered. Its
    /// requests count for `holder`.
    pub fn anonymous(scope: ServerScope, holder: Holder) -> Arc<Self> {
        Arc::new(Self::new(SessionScope::Anonymous, scope, holder))
    }

    /// Returns the session of one request of the modern era, in which nothing is remembered, and
    /// which counts for `holder`.
    pub fn of_request(scope: ServerScope, introduction: ClientMeta, holder: Holder) -> Arc<Self> {
        Arc::new(Self::new(
            SessionScope::Request { introduction, told: OnceLock::new() },
            scope,
            holder,
        ))
    }

    /// Returns the session of a client that sends the id `a`.
    #[cfg(test)]
    fn of_test() -> Arc<Self> {
        let owner = SessionOwner::new(1, "{}");
        let kind = SessionScope::Known { id: "a".into(), version: None, owner };
        Arc::new(Self::new(kind, ServerScope::Every, Holder::unknown()))
    }

    /// Tells whether the client speaks the modern era.
    pub fn is_modern(&self) -> bool {
        self.introduction().is_some()
    }

    /// Returns the era that the client speaks.
    pub fn era(&self) -> Era {
        if self.is_modern() { Era::Modern } else { Era::Legacy }
    }

    /// Returns what a client of the modern era has said with its request.
    pub fn introduction(&self) -> Option<&ClientMeta> {
        self.kind.introduction()
    }

    /// Has a server tell what this request of the modern era wants to know for as long as it lasts.
    pub fn hold(&self, told: EphemeralSession) {
        if let SessionScope::Request { told: held, .. } = &self.kind {
            // A request goes to one server.
            let _once = held.set(told);
        }
    }

    /// Returns the client as its servers are told about it.
    pub fn client(&self) -> ClientEra {
        match &self.kind {
            SessionScope::Request { introduction, .. } => ClientEra::Modern(introduction.clone()),
            SessionScope::Known { owner, .. } => ClientEra::Legacy {
                capabilities: Arc::clone(&owner.capabilities),
                level: self.memory().level,
            },
            SessionScope::Anonymous | SessionScope::Passing => {
                ClientEra::Legacy { capabilities: "{}".into(), level: None }
            }
        }
    }

    /// Returns the party that requests of the client count for.
    pub fn holder(&self) -> Holder {
        self.holder
    }

    /// Returns the id that the client sends.
    pub fn id(&self) -> Option<&str> {
        self.kind.id()
    }

    /// Returns the protocol version that was negotiated with the client, if its id says so.
    pub fn version(&self) -> Option<&'static str> {
        self.kind.version()
    }

    /// Returns the client as the owner of connections, if it can be told from others.
    pub fn owner(&self) -> Option<&SessionOwner> {
        self.kind.owner()
    }

    /// Puts a server's question to the client: returns the message for the stream of its running
    /// request `number`, with an id of ours.
    ///
    /// A question that the client has not declared to understand is refused, as is one too many.
    pub fn ask(&self, question: ServerRequest, request: Option<u64>) -> Option<Bytes> {
        if !self.can_be_asked(question.message()) {
            question.refuse();
            return None;
        }
        let mut memory = self.memory();
        if memory.asked.len() >= defaults::QUESTIONS_MAX {
            drop(memory); // Before the question, whose end is told to the server.
            return None;
        }
        memory.n_numbers += 1;
        let id = memory.n_numbers;
        let message = question.message().edit([(MessagePart::Id, &id.to_string())]);
        memory.asked.insert(id, Asked { question, request });
        Some(message)
    }

    /// Returns what the client is to be told when `server` takes a question back on its connection
    /// `generation`. Servers choose their ids without knowing of each other, and so do the processes
    /// of one server.
    pub fn recall(
        &self,
        server: &ServerName,
        generation: u64,
        cancelled: &Message,
    ) -> Option<Bytes> {
        let id = cancelled.part(MessagePart::CancelledId)?;
        let (ours, asked) = {
            let mut memory = self.memory();
            let is_meant = |asked: &Asked| {
                let question = &asked.question;
                question.server() == server
                    && question.generation() == generation
                    && question.id() == id
            };
            let ours = *memory.asked.iter().find(|(_, asked)| is_meant(asked))?.0;
            (ours, memory.asked.remove(&ours)?)
        };
        asked.question.forget();
        Some(cancelled.edit([(MessagePart::CancelledId, &ours.to_string())]))
    }

    /// Passes a client's answer on to the server that asked; `false` when nobody did.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, the answer is lost.
    pub async fn answer(&self, answer: &Message) -> bool {
        let id = answer.integer(MessagePart::Id);
        let asked = id.and_then(|id| self.memory().asked.remove(&id));
        match asked {
            Some(asked) => {
                asked.question.answer(answer).await;
                true
            }
            None => false,
        }
    }

    /// Tells whether the client has said that it can be asked this.
    pub fn can_be_asked(&self, question: &Message) -> bool {
        let Some(declared) = self.kind.capabilities() else { return false };
        capability::covers(declared, question)
    }

    /// Tells whether the client wants to see a log message that belongs to one of its requests.
    /// Without a level of its own it sees what the server sends by itself, but not what another
    /// client has made it send: `is_lowered`.
    /// In the modern era it sees nothing without a level.
    pub fn wants_log(&self, message: &Message, is_lowered: bool) -> bool {
        if let Some(introduction) = self.introduction() {
            return introduction.level.is_some_and(|lowest| LoggingLevel::of(message) >= lowest);
        }
        let own = self.memory().level;
        let lowest =
            own.unwrap_or(if is_lowered { LoggingLevel::Info } else { LoggingLevel::Debug });
        LoggingLevel::of(message) >= lowest
    }

    /// Opens the stream of messages that belong to no request, after the event `last`. A stream that
    /// is open already ends.
    pub fn read(self: &Arc<Self>, last: Option<EventId>) -> OutboxReader {
        OutboxReader::new(Arc::clone(self), last)
    }

    /// Puts down what a server has sent to nobody in particular, if it is for this client. What is
    /// said once for all that comes within a moment is returned instead, for [`Session::say`].
    fn hear(
        &self,
        server: &ServerName,
        generation: u64,
        message: &Message,
        is_own: bool,
    ) -> Option<Notice> {
        if !is_own && !self.scope.covers(server) {
            return None;
        }
        let method = message.method().unwrap_or_default();
        if let Some(list) = ListKind::of_notice(method).first() {
            return self.scope.has(*list).then_some(Notice::Changed(*list));
        }
        let is_for_us = match method {
            method::RESOURCE_UPDATED => {
                let updated = message.string(MessagePart::Uri);
                return updated
                    .map(|uri| Notice::Updated(server.clone(), uri))
                    .filter(|notice| self.is_wanted(notice));
            }
            method::LOG_MESSAGE => {
                // What one client's call writes is not shown to others who have not asked for logs.
                let level = self.memory().level;
                level
                    .or(is_own.then_some(LoggingLevel::Debug))
                    .is_some_and(|lowest| LoggingLevel::of(message) >= lowest)
            }
            method::CANCELLED => {
                if let Some(recalled) = self.recall(server, generation, message) {
                    self.outbox.push(recalled);
                }
                false
            }
            // Whoever knows the id of a task may fetch its result.
            news if task::NEWS.contains(&news) => is_own,
            _ => is_own || matches!(self.scope, ServerScope::One(_)),
        };
        if is_for_us {
            self.outbox.push(message.bytes().clone());
        }
        None
    }

    /// Says what was held back, if the client still wants it.
    fn say(&self, notice: &Notice, message: Bytes) {
        if self.is_wanted(notice) {
            self.outbox.push(self.as_listed(notice).unwrap_or(message));
        }
    }

    /// Returns the notice of a page as the client sees that in its list, where this is of all servers.
    fn as_listed(&self, notice: &Notice) -> Option<Bytes> {
        let Notice::Updated(server, uri) = notice else { return None };
        let listed =
            apps::exposed(server.as_str(), uri).filter(|_| self.scope == ServerScope::Every)?;
        let params = serde_json::json!({ "uri": listed }).to_string();
        Some(Message::notification(method::RESOURCE_UPDATED, Some(&params)).bytes().clone())
    }

    fn is_wanted(&self, notice: &Notice) -> bool {
        match notice {
            Notice::Changed(_) => true,
            Notice::Updated(server, uri) => {
                self.memory().watched.contains(&(server.clone(), uri.clone()))
            }
        }
    }

    /// Tells whether the client ever opened a stream: what it was not told of it may still read.
    fn has_listened(&self) -> bool {
        self.outbox.was_opened()
    }

    /// Puts a question down that came without any request of the client.
    fn hear_question(&self, question: ServerRequest) {
        // Nobody is there who could be asked: the question is refused by its end.
        if self.outbox.is_read()
            && let Some(message) = self.ask(question, None)
        {
            self.outbox.push(message);
        }
    }

    fn wants(&self, server: &ServerName) -> ClientDemand {
        let memory = self.memory();
        let watched = memory.watched.iter().filter(|(watched, _)| watched == server);
        ClientDemand { level: memory.level, uris: watched.map(|(_, uri)| uri.clone()).collect() }
    }

    fn is_in_use(&self) -> bool {
        if self.kind.is_ephemeral() || self.outbox.is_read() {
            return true;
        }
        let memory = self.memory();
        // The client may come back for the rest of an answer, and finds it by its session.
        !memory.running.is_empty() || !memory.resumable.is_empty()
    }

    fn touch(&self, now: Instant, since: Instant) {
        let used = u64::try_from(now.duration_since(since).as_millis()).unwrap_or(u64::MAX);
        self.used_ms.store(used, Ordering::Relaxed);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Held for statements on plain data.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
