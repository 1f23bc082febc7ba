//! The state that metamcp keeps for a client between its requests.
//!
//! ```text
//!  initialize ──▶ Session ── level, watched resources ──▶ pool::ClientDemand of its servers
//!                    │────── running requests ──────────▶ found by its cancellations
//!                    │────── questions of servers ──────▶ found by its answers
//!                    │────── answers on streams ────────▶ found by an event id after a break
//!                    └────── outbox ────────────────────▶ its GET stream
//! ```
//!
//! An id that metamcp issues is a signed [`SessionTicket`] with the state that must survive a
//! restart. Unless sessions are strict, metamcp accepts other ids too, and serves clients without
//! one. The state outside the ticket ends with the process: the level, the watched resources and
//! the events for a stream.

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
    call_record::{CallView, Caller, PeerProtocol},
    capacity_holder::{AccountMember, Holder},
    era::ClientEra,
    pool::{ClientDemand, OneShotClient},
    protocol::{
        Era, LoggingLevel, Message, client_meta::ClientMeta, jsonrpc::MessagePart,
        list_page::ListKind, mcp_apps, payloads::method, task,
    },
    server_name::ServerName,
};

mod answer_backlog;
mod client_census;
mod client_record;
mod cold_start;
mod debouncer;
mod ended_sessions;
mod ephemeral;
mod event_log;
mod held_call_store;
mod held_calls;
mod lookup;
mod outbox;
mod registry;
mod resumable_stream;
mod running_requests;
mod server_questions;
mod session_id;
mod session_kind;
pub mod signing_key;
mod subscription_demand;

pub use client_census::{ClientCensus, ClientRegister, ClientSummary};
pub use client_record::{ClientRecord, ClientTransport};
pub use debouncer::Debounce;
pub use ephemeral::EphemeralSession;
pub use event_log::EventId;
pub use held_call_store::{HoldOutcome, ResumeOutcome};
pub use lookup::SessionLookupError;
use outbox::SessionOutbox;
pub use outbox::{OutboxItem, OutboxReader};
pub use registry::{SessionRegistry, sleep_until};
pub use resumable_stream::{ResumableStream, StreamRemainder};
pub use running_requests::RunningRequest;
use server_questions::PendingServerRequest;
pub use session_id::{SessionSigner, SessionTicket};
use session_kind::SessionKind;
pub use signing_key::state_directory;
pub use subscription_demand::WatchRefusal;

/// The servers that a session covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerScope {
    /// All servers.
    Every,
    /// The tools of all servers, found by search. The client has no list of them.
    Tools,
    /// This server.
    One(ServerName),
}

/// One client's session.
#[derive(Debug)]
pub struct Session {
    kind: SessionKind,
    scope: ServerScope,
    /// The holder that requests of the client count for.
    holder: Holder,
    /// The client as operators see it. Operators and metamcp itself have no record.
    client: Option<Arc<ClientRecord>>,
    memory: Mutex<Memory>,
    outbox: SessionOutbox,
    /// The time of the last use, in milliseconds since the registry was made.
    used_ms: AtomicU64,
}

#[derive(Debug, Default)]
struct Memory {
    level: Option<LoggingLevel>,
    watched: BTreeSet<(ServerName, String)>,
    running: Vec<running_requests::RunningEntry>,
    questions: HashMap<u64, PendingServerRequest>,
    /// The answer streams that the client can resume.
    resumable: Vec<Arc<resumable_stream::ResumableShared>>,
    n_numbers: u64,
}

/// A notice that is sent once, even if it occurs several times within the window.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Notice {
    /// The lists of this kind have changed.
    Changed(ListKind),
    /// A server has updated a watched resource.
    Updated(ServerName, String),
}

impl ServerScope {
    fn covers(&self, server: &ServerName) -> bool {
        match self {
            Self::Every | Self::Tools => true,
            Self::One(one) => one == server,
        }
    }

    /// Returns whether the client gets notices about changes of `list`.
    fn has(&self, list: ListKind) -> bool {
        match self {
            Self::Every | Self::One(_) => true,
            Self::Tools => list == ListKind::Tools,
        }
    }
}

impl Session {
    /// Returns a session that `opener` has opened. A session that is remembered counts as its own
    /// member of the same account.
    fn new(kind: SessionKind, scope: ServerScope, opener: Holder) -> Self {
        let member = match &kind {
            SessionKind::Known { owner, .. } => AccountMember::Session(owner.key),
            _ => opener.member,
        };
        Self {
            kind,
            scope,
            holder: opener.member(member),
            client: None,
            memory: Mutex::default(),
            outbox: SessionOutbox::default(),
            used_ms: AtomicU64::new(0),
        }
    }

    /// Returns the session with the record of its client.
    #[must_use]
    fn of_client(self, client: Option<Arc<ClientRecord>>) -> Self {
        Self { client, ..self }
    }

    /// Returns the session of a client that metamcp cannot recognise: nothing is remembered. Its
    /// requests count for `holder`.
    pub fn anonymous(scope: ServerScope, holder: Holder) -> Arc<Self> {
        Arc::new(Self::new(SessionKind::Anonymous, scope, holder))
    }

    /// Returns the session of a client without capabilities that makes several requests and then
    /// ends. They count for `holder`. The connections of the client end with the session.
    pub fn one_shot(scope: ServerScope, client: OneShotClient, holder: Holder) -> Arc<Self> {
        Arc::new(Self::new(SessionKind::OneShot(client), scope, holder))
    }

    /// Returns the session of one modern-era request of `client`, which counts for `holder`. Nothing
    /// is remembered.
    pub fn of_request(
        scope: ServerScope,
        client_meta: ClientMeta,
        holder: Holder,
        client: Arc<ClientRecord>,
    ) -> Arc<Self> {
        let kind = SessionKind::Request { client_meta, ephemeral: OnceLock::new() };
        Arc::new(Self::new(kind, scope, holder).of_client(Some(client)))
    }

    /// Records that the client calls `server`, or reads from it.
    pub fn note_use(&self, server: &ServerName) {
        if let Some(client) = &self.client {
            client.note_use(server);
        }
    }

    /// Returns the client as the records of its calls name it.
    pub fn caller(&self) -> Caller {
        if matches!(self.kind, SessionKind::OneShot(_)) {
            return Caller::operator(self.holder);
        }
        let name = self.client.as_ref().map(|client| Arc::clone(client.name())).unwrap_or_default();
        let view = match &self.scope {
            ServerScope::Every => CallView::Direct,
            ServerScope::Tools => CallView::Meta,
            ServerScope::One(server) => CallView::Server(server.clone()),
        };
        let transport = self.client.as_ref().map(|client| client.transport().network());
        let protocol = PeerProtocol::new(transport, self.version());
        Caller { name, holder: self.holder, view, protocol }
    }

    fn client_record(&self) -> Option<&Arc<ClientRecord>> {
        self.client.as_ref()
    }

    /// Returns whether the client speaks the modern era.
    pub fn is_modern(&self) -> bool {
        self.client_meta().is_some()
    }

    /// Returns the era that the client speaks.
    pub fn era(&self) -> Era {
        if self.is_modern() { Era::Modern } else { Era::Legacy }
    }

    /// Keeps a server's messages for this modern-era request coming as long as it lasts.
    pub fn set_ephemeral(&self, ephemeral: EphemeralSession) {
        if let SessionKind::Request { ephemeral: unset, .. } = &self.kind {
            // A request goes to one server.
            let _once = unset.set(ephemeral);
        }
    }

    /// Returns the client as metamcp presents it to servers.
    pub fn client(&self) -> ClientEra {
        match &self.kind {
            SessionKind::Request { client_meta, .. } => ClientEra::Modern(client_meta.clone()),
            SessionKind::Known { owner, .. } => ClientEra::Legacy {
                capabilities: Arc::clone(&owner.capabilities),
                level: self.memory().level,
            },
            SessionKind::Anonymous | SessionKind::OneShot(_) | SessionKind::Ephemeral => {
                ClientEra::Legacy { capabilities: "{}".into(), level: None }
            }
        }
    }

    /// Returns the holder that requests of the client count for.
    pub fn holder(&self) -> Holder {
        self.holder
    }

    /// Returns whether the client wants a log message that belongs to one of its requests. A legacy
    /// client without a level gets the server's default messages, but not those below `info` that
    /// another client's level causes (`is_lowered`). A modern client without a level gets none.
    pub fn wants_log(&self, message: &Message, is_lowered: bool) -> bool {
        if let Some(client_meta) = self.client_meta() {
            return client_meta.level.is_some_and(|lowest| LoggingLevel::of(message) >= lowest);
        }
        let own = self.memory().level;
        let default = if is_lowered { LoggingLevel::Info } else { LoggingLevel::Debug };
        LoggingLevel::of(message) >= own.unwrap_or(default)
    }

    /// Opens the stream of messages that belong to no request, after the event `last`. Ends a
    /// stream that is open already.
    pub fn read(self: &Arc<Self>, last: Option<EventId>) -> OutboxReader {
        OutboxReader::new(Arc::clone(self), last)
    }

    /// Stores a server's message without a request, if it is for this client. Returns a notice that
    /// is sent once per window instead, for [`Session::send_notice`].
    fn receive(
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
        let is_for_client = match method {
            method::RESOURCE_UPDATED => {
                let notice = Notice::Updated(server.clone(), message.string(MessagePart::Uri)?);
                return Some(notice).filter(|notice| self.is_wanted(notice));
            }
            method::LOG_MESSAGE => {
                // Logs that one client's call causes are hidden from other clients without a level.
                let level = self.memory().level.or(is_own.then_some(LoggingLevel::Debug));
                level.is_some_and(|lowest| LoggingLevel::of(message) >= lowest)
            }
            method::CANCELLED => {
                self.outbox.push(self.cancel_question(server, generation, message)?);
                return None;
            }
            // A client that knows a task's id may fetch its result.
            other if task::NOTIFICATIONS.contains(&other) => is_own,
            _ => is_own || matches!(self.scope, ServerScope::One(_)),
        };
        if is_for_client {
            self.outbox.push(message.bytes().clone());
        }
        None
    }

    /// Sends a held notice, if the client still wants it.
    fn send_notice(&self, notice: &Notice, message: Bytes) {
        if self.is_wanted(notice) {
            self.outbox.push(self.with_listed_uri(notice).unwrap_or(message));
        }
    }

    /// Returns the notice of an updated page with the URI from the client's list of all servers.
    fn with_listed_uri(&self, notice: &Notice) -> Option<Bytes> {
        let Notice::Updated(server, uri) = notice else { return None };
        let listed =
            mcp_apps::exposed(server.as_str(), uri).filter(|_| self.scope == ServerScope::Every)?;
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

    fn demand_on(&self, server: &ServerName) -> ClientDemand {
        let memory = self.memory();
        let watched = memory.watched.iter().filter(|(watched, _)| watched == server);
        ClientDemand { level: memory.level, uris: watched.map(|(_, uri)| uri.clone()).collect() }
    }

    fn is_in_use(&self) -> bool {
        if self.is_ephemeral() || self.outbox.is_read() {
            return true;
        }
        let memory = self.memory();
        // The client may come back for the rest of an answer, which it finds by its session.
        !memory.running.is_empty() || !memory.resumable.is_empty()
    }

    fn touch(&self, now: Instant, since: Instant) {
        let used = u64::try_from(now.duration_since(since).as_millis()).unwrap_or(u64::MAX);
        self.used_ms.store(used, Ordering::Relaxed);
        if let Some(client) = &self.client {
            client.note_request(now);
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Held only for statements on plain data.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
