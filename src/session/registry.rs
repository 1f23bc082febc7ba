//! The registry of all sessions.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use foldhash::quality::RandomState;
use tokio::{
    sync::mpsc,
    time::{self, Instant, MissedTickBehavior},
};
use tokio_util::sync::CancellationToken;

use super::{
    ClientRegister, Debounce, Notice, ServerScope, Session, SessionSigner, SessionTicket,
    cold_start::ColdStart, ended_sessions::EndedSessions, held_call_store::HeldCallStore,
};
use crate::{
    config::{self, Config, SessionConfig, SessionMode, defaults},
    connection::{Announcement, SessionOwner, SideMessage},
    memory_budget::{self, ReclaimableMemory},
    pool::Pool,
    protocol::{Message, list_page::ListKind},
    reconfigure::{ConfigChange, Reconfigure},
    server_name::ServerName,
    telemetry::duration_histogram::DurationHistogram,
};

/// The notices to send at the end of their window, each once.
type HeldNotices = Debounce<(usize, Notice), (Arc<Session>, Bytes)>;

/// The notices that are gathered during a cold start.
type GatheredNotices = ColdStart<(usize, Notice), (Arc<Session>, Notice, Bytes)>;

/// Sessions by their ids.
type SessionsById = HashMap<Arc<str>, Arc<Session>, RandomState>;

/// The sessions of clients, by the id that the client sends.
#[derive(Debug)]
pub struct SessionRegistry {
    pub(super) pool: Arc<Pool>,
    pub(super) signer: SessionSigner,
    config: ArcSwap<SessionConfig>,
    /// The policy for change notices: the window, and whether clients that find tools by search get
    /// any.
    notice_policy: ArcSwap<config::ToolsConfig>,
    pub(super) since: Instant,
    by_id: RwLock<SessionsById>,
    ended_sessions: Mutex<EndedSessions>,
    pub(super) held_calls: HeldCallStore,
    pub(super) n_keys: AtomicU64,
    /// The number of sessions that have set a log level.
    pub(super) n_levels: AtomicUsize,
    /// The number of sessions that last only as long as a request.
    pub(super) n_ephemeral: AtomicUsize,
    /// The times from the first to the last use of sessions that have ended.
    durations: DurationHistogram,
    /// The clients without a session.
    pub(super) clients: ClientRegister,
}

impl ReclaimableMemory for SessionRegistry {
    fn reclaim(&self) {
        self.read().values().for_each(|session| session.drop_read());
    }
}

impl Reconfigure for SessionRegistry {
    /// Applies other settings, also to known sessions. The signing key stays the same.
    fn reconfigure(&self, change: &ConfigChange) {
        self.config.store(Arc::new(change.new.listen.session()));
        self.notice_policy.store(Arc::new(change.new.tools.clone()));
        self.reconcile_redeclared();
        self.release(&change.diff.removed);
    }
}

impl SessionRegistry {
    /// Returns an empty registry. Connections come from `pool`, and `signer` signs session ids.
    pub fn new(pool: Arc<Pool>, signer: SessionSigner, config: &Config) -> Arc<Self> {
        let sessions = Arc::new(Self {
            pool,
            signer,
            config: ArcSwap::from_pointee(config.listen.session()),
            notice_policy: ArcSwap::from_pointee(config.tools.clone()),
            since: Instant::now(),
            ended_sessions: Mutex::default(),
            held_calls: HeldCallStore::default(),
            by_id: RwLock::default(),
            n_keys: AtomicU64::new(0),
            n_levels: AtomicUsize::new(0),
            n_ephemeral: AtomicUsize::new(0),
            durations: DurationHistogram::default(),
            clients: ClientRegister::default(),
        });
        let weak: Weak<Self> = Arc::downgrade(&sessions);
        memory_budget::global().register_reclaimable(weak);
        sessions
    }

    /// Notifies the clients that see metamcp's own tools that these have changed.
    pub fn own_tools_changed(&self) {
        if !self.notice_policy.load().list_changed {
            return;
        }
        let message = Message::notification(ListKind::Tools.notice(), None);
        for session in self.read().values().filter(|session| session.scope == ServerScope::Tools) {
            session.send_notice(&Notice::Changed(ListKind::Tools), message.bytes().clone());
        }
    }

    /// Returns the session mode.
    pub fn mode(&self) -> SessionMode {
        self.config.load().mode
    }

    /// Returns whether a session has been idle for the session timeout.
    pub(super) fn is_expired(&self, session: &Session, now: Instant) -> bool {
        let used = Duration::from_millis(session.used_ms.load(Ordering::Relaxed));
        let age = now.duration_since(self.since).saturating_sub(used);
        age >= self.config.load().timeout && !session.is_in_use()
    }

    pub(super) fn has_ended(&self, ticket: &SessionTicket) -> bool {
        self.ended_sessions().has(ticket.number)
    }

    /// Records that a session has ended. Returns `false` if that is known.
    pub(super) fn remember_ended(&self, ticket: &SessionTicket) -> bool {
        self.ended_sessions().add(ticket.number)
    }

    fn ended_sessions(&self) -> MutexGuard<'_, EndedSessions> {
        // Held only for statements on plain data.
        self.ended_sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the durations of sessions that have ended.
    pub fn durations(&self) -> &DurationHistogram {
        &self.durations
    }

    /// Returns the number of subscriptions of clients to resources.
    pub fn n_subscriptions(&self) -> usize {
        self.read().values().map(|session| session.memory().watched.len()).sum()
    }

    /// Closes the resources of a session that has been removed.
    pub(super) fn close_session(&self, session: &Arc<Session>) {
        session.outbox.close();
        if let Some(client) = session.client_record() {
            self.durations.observe(client.seen_for());
        }
        if let Some(owner) = session.owner() {
            // First, so that no running request connects after the release.
            owner.close();
            self.pool.release(owner);
        }
        let (had_level, watched) = {
            let memory = session.memory();
            (memory.level.is_some(), memory.watched.clone())
        };
        if had_level {
            self.n_levels.fetch_sub(1, Ordering::Relaxed);
        }
        if had_level || !watched.is_empty() {
            for slot in self.pool.slots().values() {
                let is_meant = (had_level && session.scope.covers(slot.name()))
                    || watched.iter().any(|(server, _)| server == slot.name());
                if is_meant && !slot.is_per_session() {
                    slot.set_demand_in_background(None, || self.shared_demand(slot));
                }
            }
        }
    }

    /// Returns whether a client listens to `server` on `owner`'s connection or the shared one.
    pub fn has_listener(&self, server: &ServerName, owner: Option<&SessionOwner>) -> bool {
        let is_meant = |session: &Session| match owner {
            Some(_) => session.owner() == owner,
            None => session.scope.covers(server),
        };
        self.read().values().any(|session| is_meant(session) && session.outbox.was_opened())
    }

    /// Delivers server messages without a request, and ends unused sessions and abandoned calls,
    /// until `stop`. Each client gets a notice of a changed list or updated resource once per
    /// window. During a cold start, clients with merged lists get one when the first servers are
    /// connected and one when all are.
    ///
    /// # Cancel safety
    ///
    /// If dropped halfway, the queued announcements are lost.
    pub async fn run(
        self: Arc<Self>,
        mut announcements: mpsc::Receiver<Announcement>,
        stop: CancellationToken,
    ) {
        // Frequent enough that a session in use until now is not expired.
        let (least, most) = defaults::SESSION_SWEEP;
        let mut sweep = time::interval((self.config.load().timeout / 4).clamp(least, most));
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut held = HeldNotices::new(self.notice_policy.load().list_changed_debounce);
        let mut cold = GatheredNotices::default();
        let mut next_observation = None;
        loop {
            let next_end = held.next_end().into_iter().chain(next_observation).min();
            tokio::select! {
                () = stop.cancelled() => {
                    // A shutdown does not wait for the servers of held calls.
                    self.held_calls.clear();
                    return;
                }
                never = self.held_calls.run_expiry() => match never {},
                Some(announcement) = announcements.recv() => self.announce(announcement, &mut held),
                () = sleep_until(next_end.map(|end| self.since + end)) => {
                    let now = self.since.elapsed();
                    cold.observe(self.pool.is_starting(), now);
                    for (session, notice, message) in cold.take(now) {
                        session.send_notice(&notice, message);
                    }
                    while let Some((key, (session, message))) = held.take(now) {
                        let is_merged_list = matches!(key.1, Notice::Changed(_))
                            && !matches!(session.scope, ServerScope::One(_));
                        let due = (session, key.1.clone(), message);
                        let due = match is_merged_list {
                            true => cold.hold_or_send(key, due, now),
                            false => Some(due),
                        };
                        if let Some((session, notice, message)) = due {
                            session.send_notice(&notice, message);
                        }
                    }
                    next_observation = cold.next_observation(now);
                }
                _ = sweep.tick() => self.sweep(Instant::now()),
            }
        }
    }

    fn announce(&self, announcement: Announcement, held: &mut HeldNotices) {
        let notice_policy = self.notice_policy.load();
        held.set_window(notice_policy.list_changed_debounce);
        let Announcement { server, generation, owner, message } = announcement;
        let mut deliver = |session: &Arc<Session>, message: &Message, is_own| {
            let notice = session.receive(&server, generation, message, is_own);
            let is_wanted = notice_policy.list_changed || session.scope != ServerScope::Tools;
            if let Some(notice) = notice.filter(|_| is_wanted) {
                // A held notice keeps its session alive, so that its address stays unique.
                let address = Arc::as_ptr(session).addr();
                let value = (Arc::clone(session), message.bytes().clone());
                held.hold((address, notice), value, self.since.elapsed());
            }
        };
        let Some(owner) = owner else {
            // A question on a shared connection has no client to answer it.
            if let SideMessage::Notification(message) = message {
                self.read().values().for_each(|session| deliver(session, &message, false));
            }
            return;
        };
        let owned = self.read().values().find(|found| found.owner() == Some(&owner)).cloned();
        let Some(session) = owned else { return };
        match message {
            SideMessage::Notification(message) => deliver(&session, &message, true),
            SideMessage::Question(question) => session.receive_question(question),
        }
    }

    /// Ends the sessions that have been idle for the session timeout.
    fn sweep(&self, now: Instant) {
        let expire = |_: &Arc<str>, session: &mut Arc<Session>| {
            if session.is_in_use() {
                session.touch(now, self.since);
            }
            self.is_expired(session, now)
        };
        let expired: Vec<_> = self.write().extract_if(expire).collect();
        if !expired.is_empty() {
            let n_sessions = expired.len();
            tracing::debug!(
                n_sessions,
                "{n_sessions} sessions expired: their clients sent no request within `listen.session_timeout`"
            );
        }
        for (id, session) in expired {
            if let Some(ticket) = self.ticket(&id) {
                self.remember_ended(&ticket);
            }
            self.close_session(&session);
        }
    }

    /// Releases the state that clients have for `servers`, which are no longer declared. On a
    /// removed path, no client can answer a question or get messages.
    ///
    /// In the merged view, clients can still answer while the server finishes its running requests.
    /// A session's stream stays open, because its server may be declared again.
    fn release(&self, servers: &[ServerName]) {
        if servers.is_empty() {
            return;
        }
        self.held_calls.withdraw(servers);
        let is_of_removed = |session: &&Arc<Session>| match &session.scope {
            ServerScope::Every | ServerScope::Tools => false,
            ServerScope::One(server) => servers.contains(server),
        };
        let sessions: Vec<_> = self.read().values().filter(is_of_removed).cloned().collect();
        for session in sessions {
            let pending: Vec<_> = session.memory().questions.drain().collect();
            // Without the lock, because this notifies the servers.
            pending.into_iter().for_each(|(_, pending)| pending.question.withdraw());
            if session.is_ephemeral() {
                session.outbox.close();
            }
        }
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, SessionsById> {
        // Held only for statements on plain data, like `write`.
        self.by_id.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, SessionsById> {
        self.by_id.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sleeps until `moment`, or forever if it is `None`. Cancel safe.
pub async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Returns the least recently used session, apart from `except` and those in use.
pub(super) fn oldest(by_id: &SessionsById, except: &Arc<Session>) -> Option<Arc<str>> {
    let idle =
        by_id.iter().filter(|(_, session)| !Arc::ptr_eq(session, except) && !session.is_in_use());
    idle.min_by_key(|(_, session)| session.used_ms.load(Ordering::Relaxed))
        .map(|(id, _)| id.clone())
}
