//! All sessions.

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
use tokio::{
    sync::mpsc,
    time::{self, Instant, MissedTickBehavior},
};
use tokio_util::sync::CancellationToken;

use super::{
    Debounce, Notice, ServerScope, Session, SessionSigner, SessionTicket, cold_start::ColdStart,
    ended_sessions::EndedSessions, held_call_store::HeldCallStore,
};
use crate::{
    budget::{self, ReclaimableMemory},
    config::{self, SessionConfig, SessionMode, defaults},
    connection::{Announcement, SessionOwner, SideMessage},
    name::ServerName,
    pool::{ClientDemand, Pool, ServerSlot},
    protocol::{LoggingLevel, Message, payloads::ListKind},
};

/// What clients are told at the end of its window: each the same only once in it.
type Held = Debounce<(usize, Notice), (Arc<Session>, Bytes)>;

/// The notices that are gathered during a cold start.
type Gathered = ColdStart<(usize, Notice), (Arc<Session>, Notice, Bytes)>;

/// All sessions of clients, by the id that they send.
#[derive(Debug)]
pub struct SessionRegistry {
    pub(super) pool: Arc<Pool>,
    pub(super) seal: SessionSigner,
    rules: ArcSwap<SessionConfig>,
    /// How clients hear of changes.
    news: ArcSwap<config::ToolsConfig>,
    pub(super) since: Instant,
    by_id: RwLock<HashMap<Arc<str>, Arc<Session>>>,
    endings: Mutex<EndedSessions>,
    pub(super) shelf: HeldCallStore,
    pub(super) n_keys: AtomicU64,
    /// How many sessions have set a log level.
    pub(super) n_levels: AtomicUsize,
    /// How many sessions last only as long as a request.
    pub(super) n_passing: AtomicUsize,
}

impl ReclaimableMemory for SessionRegistry {
    fn reclaim(&self) {
        self.read().values().for_each(|session| session.drop_read());
    }
}

impl SessionRegistry {
    /// Returns none yet; their connections are those of `pool`, their ids are signed with `seal`.
    pub fn new(pool: Arc<Pool>, seal: SessionSigner, rules: &SessionConfig) -> Arc<Self> {
        let sessions = Arc::new(Self {
            pool,
            seal,
            rules: ArcSwap::from_pointee(rules.clone()),
            news: ArcSwap::default(),
            since: Instant::now(),
            endings: Mutex::default(),
            shelf: HeldCallStore::default(),
            by_id: RwLock::default(),
            n_keys: AtomicU64::new(0),
            n_levels: AtomicUsize::new(0),
            n_passing: AtomicUsize::new(0),
        });
        let comfort: Weak<Self> = Arc::downgrade(&sessions);
        budget::global().register_reclaimable(comfort);
        sessions
    }

    /// Applies other rules, to sessions that are known as well. The key stays as it is.
    pub fn apply(&self, rules: &SessionConfig) {
        self.rules.store(Arc::new(rules.clone()));
    }

    /// Tells clients from now on of changes as `news` says: after how long, and those that find
    /// tools by search whether at all.
    pub fn set_notice_policy(&self, news: &config::ToolsConfig) {
        self.news.store(Arc::new(news.clone()));
    }

    /// Tells those who see the tools of ours that these are other ones.
    pub fn own_tools_changed(&self) {
        if !self.news.load().list_changed {
            return;
        }
        let message = Message::notification(ListKind::Tools.notice(), None);
        for session in self.read().values().filter(|session| session.scope == ServerScope::Tools) {
            session.say(&Notice::Changed(ListKind::Tools), message.bytes().clone());
        }
    }

    /// Returns which session ids are asked for, and which are taken.
    pub fn mode(&self) -> SessionMode {
        self.rules.load().mode
    }

    /// Tells whether nobody has used a session for as long as one is known.
    pub(super) fn is_expired(&self, session: &Session, now: Instant) -> bool {
        let used = Duration::from_millis(session.used_ms.load(Ordering::Relaxed));
        let age = now.duration_since(self.since).saturating_sub(used);
        age >= self.rules.load().timeout && !session.is_in_use()
    }

    pub(super) fn has_ended(&self, ticket: &SessionTicket) -> bool {
        self.endings().has(ticket.number)
    }

    /// Remembers that a session has ended; `false` when that is known.
    pub(super) fn remember_ended(&self, ticket: &SessionTicket) -> bool {
        self.endings().add(ticket.number)
    }

    fn endings(&self) -> MutexGuard<'_, EndedSessions> {
        // Held for statements on plain data.
        self.endings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whether any client has set a log level, so that servers may send more than by themselves.
    pub fn has_levels(&self) -> bool {
        self.n_levels.load(Ordering::Relaxed) > 0
    }

    /// Sets the log level of a client, and the lowest that any has set at its servers.
    ///
    /// # Cancel safety
    ///
    /// Safe: it is set, and the servers are told all the same.
    pub async fn set_level(&self, session: &Session, level: LoggingLevel) {
        {
            // What nobody takes back is not counted: the level of a client that cannot be told from
            // others, or that has left while it asked.
            let by_id = self.read();
            let known = session.id().and_then(|id| by_id.get(id));
            let is_known = known.is_some_and(|known| std::ptr::eq(&raw const **known, session));
            if is_known && session.memory().level.replace(level).is_none() {
                self.n_levels.fetch_add(1, Ordering::Relaxed);
            }
        }
        let slots = self.pool.slots();
        let meant = slots.values().filter(|slot| session.scope.covers(slot.name()));
        let told = meant
            .map(|slot| slot.set_demand(session.owner(), || self.client_demand(slot, session)));
        futures_util::future::join_all(told).await;
    }

    /// Has a resource of a server watched for a client.
    ///
    /// # Errors
    ///
    /// [`WatchRefusal`] when the server does not want to, or when the client watches too many.
    ///
    /// # Cancel safety
    ///
    /// Safe: it is watched all the same.
    pub async fn watch(
        &self,
        session: &Session,
        slot: &ServerSlot,
        uri: &str,
    ) -> Result<(), WatchRefusal> {
        let watched = (slot.name().clone(), uri.to_owned());
        {
            let mut memory = session.memory();
            if memory.watched.len() >= defaults::WATCHED_MAX && !memory.watched.contains(&watched) {
                return Err(WatchRefusal::Full);
            }
            memory.watched.insert(watched.clone());
        }
        let owner = session.owner();
        slot.set_demand(owner, || self.client_demand(slot, session)).await;
        match slot.refusal(owner, uri) {
            None => Ok(()),
            Some(error) => {
                session.memory().watched.remove(&watched);
                slot.set_demand(owner, || self.client_demand(slot, session)).await;
                Err(WatchRefusal::ByServer(error))
            }
        }
    }

    /// Has resources of a server watched for a client, and returns those that are: all that it does
    /// not refuse in time.
    ///
    /// # Cancel safety
    ///
    /// Safe: they are watched all the same.
    pub async fn watch_all(
        &self,
        session: &Session,
        slot: &ServerSlot,
        uris: &[String],
    ) -> Vec<String> {
        let watched = |uri: &String| (slot.name().clone(), uri.clone());
        let mut accepted = Vec::new();
        {
            let mut memory = session.memory();
            for uri in uris {
                if memory.watched.len() < defaults::WATCHED_MAX {
                    memory.watched.insert(watched(uri));
                    accepted.push(uri.clone());
                }
            }
        }
        let owner = session.owner();
        let settling = self.reconcile(session, slot);
        let _goes_on_in_the_background =
            time::timeout(defaults::SUBSCRIBE_PATIENCE, settling).await;
        let n_accepted = accepted.len();
        accepted.retain(|uri| {
            let is_refused = slot.refusal(owner, uri).is_some();
            if is_refused {
                session.memory().watched.remove(&watched(uri));
            }
            !is_refused
        });
        if accepted.len() < n_accepted {
            // Nobody has to wait until what is not watched is not wanted any more.
            slot.set_demand_in_background(owner, || self.client_demand(slot, session));
        }
        accepted
    }

    /// Ends that.
    ///
    /// # Cancel safety
    ///
    /// Safe: it is ended all the same.
    pub async fn unwatch(&self, session: &Session, slot: &ServerSlot, uri: &str) {
        session.memory().watched.remove(&(slot.name().clone(), uri.to_owned()));
        slot.set_demand(session.owner(), || self.client_demand(slot, session)).await;
    }

    /// Tells servers that were declared anew what their clients want.
    pub fn reconcile_redeclared(&self) {
        for slot in self.pool.slots().values() {
            if slot.is_per_session() {
                let sessions: Vec<_> = self.read().values().cloned().collect();
                for session in sessions.iter().filter(|found| found.scope.covers(slot.name())) {
                    slot.set_demand_in_background(session.owner(), || session.wants(slot.name()));
                }
            } else {
                slot.set_demand_in_background(None, || self.wanted_of(slot));
            }
        }
    }

    /// Returns what the clients of the connection that `session` has to the server want of it.
    pub(super) fn client_demand(&self, slot: &ServerSlot, session: &Session) -> ClientDemand {
        if slot.is_per_session() {
            return session.wants(slot.name());
        }
        self.wanted_of(slot)
    }

    /// Returns what all clients want of a server that they share.
    fn wanted_of(&self, slot: &ServerSlot) -> ClientDemand {
        let mut all = ClientDemand::default();
        for session in self.read().values().filter(|session| session.scope.covers(slot.name())) {
            let wants = session.wants(slot.name());
            all.level = all.level.into_iter().chain(wants.level).min();
            all.uris.extend(wants.uris);
        }
        all
    }

    /// Closes what belonged to a session that is no longer known.
    pub(super) fn ended(&self, session: &Arc<Session>) {
        session.outbox.close();
        if let Some(owner) = session.owner() {
            // First, so that no request which still runs makes a connection after that.
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
                    slot.set_demand_in_background(None, || self.wanted_of(slot));
                }
            }
        }
    }

    /// Tells whether a client would hear what `server` says on the connection of `owner`, or of all.
    pub fn has_listener(&self, server: &ServerName, owner: Option<&SessionOwner>) -> bool {
        let is_meant = |session: &Session| match owner {
            Some(_) => session.owner() == owner,
            None => session.scope.covers(server),
        };
        self.read().values().any(|session| is_meant(session) && session.has_listened())
    }

    /// Hands on what servers say to nobody in particular, and ends sessions that nobody uses and calls
    /// that nobody comes back for, until `stop`. Of changed lists and updated resources each client
    /// hears once in the window that is declared; of merged lists, while servers are connected for the
    /// first time, when the first are there and when all are.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, what is in the queue is lost.
    pub async fn run(
        self: Arc<Self>,
        mut announcements: mpsc::Receiver<Announcement>,
        stop: CancellationToken,
    ) {
        // Often enough for a session not to be over that was in use until now.
        let (least, most) = defaults::SESSION_SWEEP;
        let mut sweep = time::interval((self.rules.load().timeout / 4).clamp(least, most));
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut held = Held::new(self.news.load().list_changed_debounce);
        let mut cold = Gathered::default();
        let mut next_look = None;
        loop {
            tokio::select! {
                () = stop.cancelled() => {
                    // Their servers are not waited for when the service stops.
                    self.shelf.clear();
                    return;
                }
                never = self.shelf.run_expiry() => match never {},
                Some(announcement) = announcements.recv() => self.announce(announcement, &mut held),
                () = sleep_until(self.since, held.next_end().into_iter().chain(next_look).min()) => {
                    let now = self.since.elapsed();
                    cold.observe(self.pool.is_starting(), now);
                    for (session, notice, message) in cold.take(now) {
                        session.say(&notice, message);
                    }
                    while let Some((key, (session, message))) = held.take(now) {
                        let said = (session, key.1.clone(), message);
                        let is_merged = !matches!(said.0.scope, ServerScope::One(_));
                        let passed = match key.1 {
                            Notice::Changed(_) if is_merged => cold.hold_or_send(key, said, now),
                            Notice::Changed(_) | Notice::Updated(..) => Some(said),
                        };
                        if let Some((session, notice, message)) = passed {
                            session.say(&notice, message);
                        }
                    }
                    next_look = cold.next_observation(now);
                }
                _ = sweep.tick() => self.sweep(Instant::now()),
            }
        }
    }

    fn announce(&self, announcement: Announcement, held: &mut Held) {
        let news = self.news.load();
        held.set_window(news.list_changed_debounce);
        let Announcement { server, generation, owner, aside } = announcement;
        let mut tell = |session: &Arc<Session>, message: &Message, is_own| {
            let notice = session.hear(&server, generation, message, is_own);
            let is_told = news.list_changed || session.scope != ServerScope::Tools;
            if let Some(notice) = notice.filter(|_| is_told) {
                // What is held keeps the session, so that its place is no other's.
                let place = Arc::as_ptr(session).addr();
                let said = (Arc::clone(session), message.bytes().clone());
                held.hold((place, notice), said, self.since.elapsed());
            }
        };
        let Some(owner) = owner else {
            // On a connection that is everybody's, nobody is asked.
            if let SideMessage::Notification(message) = aside {
                self.read().values().for_each(|session| tell(session, &message, false));
            }
            return;
        };
        let owned = self.read().values().find(|found| found.owner() == Some(&owner)).cloned();
        let Some(session) = owned else { return };
        match aside {
            SideMessage::Notification(message) => tell(&session, &message, true),
            SideMessage::Question(question) => session.hear_question(question),
        }
    }

    /// Ends the sessions that nobody has used for their time.
    fn sweep(&self, now: Instant) {
        let mut ended = Vec::new();
        self.write().retain(|id, session| {
            if session.is_in_use() {
                session.touch(now, self.since);
            }
            let is_over = self.is_expired(session, now);
            if is_over {
                ended.push((Arc::clone(id), Arc::clone(session)));
            }
            !is_over
        });
        if !ended.is_empty() {
            tracing::debug!(n_sessions = ended.len(), "sessions that nobody uses are ended");
        }
        for (id, session) in ended {
            if let Some(ticket) = self.ticket(&id) {
                self.remember_ended(&ticket);
            }
            self.ended(&session);
        }
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, HashMap<Arc<str>, Arc<Session>>> {
        // Held for statements on plain data, as is `write`.
        self.by_id.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, HashMap<Arc<str>, Arc<Session>>> {
        self.by_id.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a resource is not watched.
#[derive(Debug)]
pub enum WatchRefusal {
    /// The server does not want to: its error object, as JSON text.
    ByServer(String),
    /// The client watches as many as it may.
    Full,
}

/// Waits until it is so long after `since`; for ever where that is never.
///
/// # Cancel safety
///
/// Safe.
pub async fn sleep_until(since: Instant, moment: Option<Duration>) {
    match moment {
        Some(moment) => time::sleep_until(since + moment).await,
        None => std::future::pending().await,
    }
}

/// Returns the session that was used longest ago, apart from `except` and those in use.
pub(super) fn oldest(
    by_id: &HashMap<Arc<str>, Arc<Session>>,
    except: &Arc<Session>,
) -> Option<Arc<str>> {
    let idle =
        by_id.iter().filter(|(_, session)| !Arc::ptr_eq(session, except) && !session.is_in_use());
    idle.min_by_key(|(_, session)| session.used_ms.load(Ordering::Relaxed))
        .map(|(id, _)| id.clone())
}
