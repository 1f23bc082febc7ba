//! The catalog: the tools, prompts and resources of all servers.
//!
//! Each list is read once per connection and kept until its server announces a change. A list whose
//! server announces no changes is read again after a while, when it is used. Clients are notified
//! only if a list differs from the one that they know.
//!
//! ```text
//!  connections ── a list ──▶ entry ──▶ store ──┬──▶ snapshot ──▶ search, describe
//!                 is read      │         ▲     └──▶ cache ──▶ disk
//!                              ▼         └──────────────────────┘ at the start
//!                       views: merged lists
//! ```
//!
//! The profile and the lists of a server outlive its connection ([`CatalogSnapshot`]) and, on the
//! disk, the process ([`DiskCache`]). So lists and searches work while the server is not running.
//! Its lists are read again when it connects; clients that were shown others are notified.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::{Notify, mpsc};
use tokio_util::task::TaskTracker;

use crate::{
    call::CallError,
    config::{CatalogConfig, Config, SearchConfig},
    connection::{Announcement, ConnectionLimits, SessionOwner},
    embedding::Embedder,
    pool::{Pool, ServerSlot, SlotError},
    protocol::list_page::{ListItem, ListKind},
    reconfigure::{ConfigChange, Reconfigure},
    server_name::ServerName,
    session::SessionRegistry,
};

mod announced_version;
mod cache_format;
mod change_notices;
mod changed_definitions;
mod definition_hash;
mod disk_cache;
mod fetch;
mod list_defects;
mod list_entry;
mod merged;
mod parallel_map;
mod persister;
mod priming;
mod publisher;
mod refresh;
mod resource_routes;
mod server_lists;
mod snapshot;
mod store;
#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use cache_format::rewritten;
use definition_hash::CatalogDigest;
pub use disk_cache::DiskCache;
use fetch::{ConnectAttempts, FetchReason};
pub use list_defects::{CatalogFindings, NameCollision, QuarantinedItem};
use list_entry::{ListEntry, ListRead, ListReadOutcome, UnreadList};
pub use merged::UnreadServer;
use publisher::SnapshotPublisher;
pub use server_lists::KnownSource;
pub use snapshot::{CatalogSnapshot, KnownServer};
use store::CatalogStore;

/// The items of one list of one server.
pub type Listing = Arc<Vec<ListItem>>;

/// The lists of all servers.
#[derive(Debug)]
pub struct Catalog {
    pool: Arc<Pool>,
    sessions: Arc<SessionRegistry>,
    tasks: TaskTracker,
    /// The notices for clients.
    notices: mpsc::Sender<Announcement>,
    entries: Mutex<HashMap<Key, Arc<ListEntry>>>,
    attempts: Arc<ConnectAttempts>,
    findings: Arc<CatalogFindings>,
    /// The profile and lists of each server, connected or not.
    store: Arc<CatalogStore>,
    publisher: Arc<SnapshotPublisher>,
    cache: Arc<DiskCache>,
    /// The owner that lists are read for where each client has its own connection.
    observer: SessionOwner,
    /// Notified when the catalog is used.
    used: Notify,
    /// A client or an operator has searched the catalog.
    is_searched: AtomicBool,
    /// The value of `catalog.prime`.
    is_primed: AtomicBool,
    /// Notified when the configuration declares other servers.
    redeclared: Notify,
}

/// The key of a list; `owner` is set where the server has a connection for each client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    server: ServerName,
    list: ListKind,
    owner: Option<u64>,
}

impl Reconfigure for Catalog {
    fn reconfigure(&self, change: &ConfigChange) {
        self.replaced(&change.diff);
        self.configure(&change.new);
    }
}

impl Catalog {
    /// Returns an empty catalog of the servers in `pool`, cached in `cache`. Its reads run on
    /// `tasks`; notices for `sessions` go to `notices`.
    pub fn new(
        pool: Arc<Pool>,
        sessions: Arc<SessionRegistry>,
        tasks: TaskTracker,
        notices: mpsc::Sender<Announcement>,
        cache: DiskCache,
    ) -> Self {
        let store = Arc::<CatalogStore>::default();
        Self {
            pool,
            sessions,
            publisher: SnapshotPublisher::new(Arc::clone(&store), tasks.clone()),
            tasks,
            notices,
            entries: Mutex::default(),
            attempts: Arc::default(),
            findings: Arc::default(),
            store,
            cache: Arc::new(cache),
            observer: SessionOwner::observer(),
            used: Notify::new(),
            is_searched: AtomicBool::new(false),
            is_primed: AtomicBool::new(false),
            redeclared: Notify::new(),
        }
    }

    /// Returns a snapshot of everything known at this moment. Connects no server. Cancel safe.
    pub async fn snapshot(&self) -> Arc<CatalogSnapshot> {
        self.is_searched.store(true, Ordering::Relaxed);
        self.used.notify_one();
        self.publisher.snapshot().await
    }

    /// Returns one server's list. Concurrent callers share one read. Cancel safe: the read
    /// continues for other callers.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server cannot be connected or does not answer with a list.
    pub async fn listing(
        &self,
        slot: &Arc<ServerSlot>,
        list: ListKind,
        owner: Option<&SessionOwner>,
        limits: ConnectionLimits,
    ) -> Result<Listing, Arc<CallError>> {
        loop {
            match self.read(slot, list, owner, limits, FetchReason::Requested).await {
                Ok(listing) => {
                    if self.entry(slot, list, owner).note_announced(slot, &listing) {
                        self.notify_changed(slot, list, owner);
                    }
                    return Ok(listing);
                }
                Err(UnreadList { error, reason: FetchReason::Requested }) => return Err(error),
                // That read did not connect or retry: read again.
                Err(UnreadList { reason: FetchReason::Connected, .. }) => {}
            }
        }
    }

    /// Returns one server's list, or joins the read in progress, whatever its reason.
    async fn read(
        &self,
        slot: &Arc<ServerSlot>,
        list: ListKind,
        owner: Option<&SessionOwner>,
        limits: ConnectionLimits,
        reason: FetchReason,
    ) -> ListReadOutcome {
        let entry = self.entry(slot, list, owner);
        let ready = || entry.current(slot, owner).map(Ok);
        if let Some(ready) = ready() {
            return ready;
        }
        let (slot, reader) = (Arc::clone(slot), Arc::clone(&entry));
        let (name, reading) = (slot.name().clone(), owner.cloned());
        let notes = (Arc::clone(&self.attempts), Arc::clone(&self.findings));
        let (store, notices) = (self.store_for(&slot, owner), self.notices.clone());
        let (tasks, notice) = (self.tasks.clone(), change_notice(&slot, list, owner));
        let flight = entry.reads.join(&self.tasks, ready, || async move {
            let read = reader.read(slot, reading, limits, reason, notes).await;
            let ListRead { listing, is_notice_due, connection } =
                read.map_err(|error| UnreadList { error: Arc::new(error), reason })?;
            if let Some((store, name, declared)) = store
                && let Some(old) =
                    store.learn((&name, declared), list, &listing, connection.profile())
            {
                // The comparison of long lists would block.
                let (new, list) = (Arc::clone(&listing), list.method());
                drop(tasks.spawn_blocking(move || {
                    changed_definitions::log_changes(&name, list, &old, &new);
                }));
            }
            if is_notice_due {
                change_notices::try_send(&notices, notice);
            }
            Ok(listing)
        });
        flight.outcome().await.unwrap_or_else(|| {
            let source = SlotError::Closing(name.clone());
            let error = Arc::new(CallError::NotConnected(name, source));
            Err(UnreadList { error, reason: FetchReason::Requested })
        })
    }

    /// Notifies clients that a list differs from the one that they know.
    fn notify_changed(&self, slot: &ServerSlot, list: ListKind, owner: Option<&SessionOwner>) {
        change_notices::try_send(&self.notices, change_notice(slot, list, owner));
    }

    /// Applies the settings of the tool search and of priming.
    pub fn configure(&self, config: &Config) {
        let SearchConfig { synonyms, embedding, strategy: _ } = &config.search;
        self.publisher.search_with(synonyms);
        let (proxy, directory) = (&config.service.proxy, self.cache.directory());
        self.publisher.embed_with(embedding.as_ref(), proxy, directory);
        let CatalogConfig { prime, cache: _ } = &config.catalog;
        self.is_primed.store(*prime, Ordering::Relaxed);
        self.redeclared.notify_one();
    }

    /// Returns the embedder, if one is configured.
    pub fn embedder(&self) -> Option<Arc<Embedder>> {
        self.publisher.embedder()
    }

    /// Returns the items that clients are not shown.
    pub fn quarantined(&self) -> Vec<QuarantinedItem> {
        self.findings.quarantined_of(|server| self.pool.slot(server.as_str()).is_some())
    }

    /// Records name collisions in a merged list.
    pub fn collided(&self, found: impl IntoIterator<Item = NameCollision>) {
        self.findings.collided(found);
    }

    /// Returns the name collisions in the merged lists that were read.
    pub fn collisions(&self) -> Vec<NameCollision> {
        if !self.findings.has_collisions() {
            return Vec::new();
        }
        let entries: Vec<_> = self
            .entries()
            .iter()
            .filter(|(key, _)| self.pool.slot(key.server.as_str()).is_some())
            .map(|(key, entry)| (key.clone(), Arc::clone(entry)))
            .collect();
        let has = |collision: &NameCollision, server: &ServerName, item: &str| {
            entries.iter().any(|(key, entry)| {
                let last = || entry.last().or_else(|| self.store.listing(server, key.list));
                key.server == *server
                    && key.list.member() == collision.list
                    && last().is_some_and(|last| last.iter().any(|known| known.key == item))
            })
        };
        self.findings.current_collisions(|found| {
            has(found, &found.server, &found.keys.0) && has(found, &found.left_out, &found.keys.1)
        })
    }

    /// Records that a client may know wrong lists of a server, so that it is notified once they are
    /// read.
    pub fn mark_stale(&self, slot: &ServerSlot, owner: Option<&SessionOwner>) {
        for list in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
            self.entry(slot, list, owner).mark_stale();
        }
    }

    /// Returns the known tools and prompts, with their servers.
    pub fn known(&self) -> Vec<(ServerName, String)> {
        let mut known = BTreeSet::new();
        let mut add = |server: &ServerName, listing: Listing| {
            known.extend(listing.iter().map(|item| (server.clone(), item.key.clone())));
        };
        for (key, entry) in self.entries().iter().filter(|(key, _)| key.list.is_named()) {
            add(&key.server, entry.last().unwrap_or_default());
        }
        for server in self.pool.slots().keys() {
            for list in [ListKind::Tools, ListKind::Prompts] {
                add(server, self.store.listing(server, list).unwrap_or_default());
            }
        }
        known.retain(|(server, _)| self.pool.slot(server.as_str()).is_some());
        known.into_iter().collect()
    }

    /// Returns the number of known tools, and the bytes of their definitions.
    pub fn tool_sizes(&self) -> (usize, usize) {
        let known = self.pool.slots();
        let listings = known.keys().filter_map(|server| {
            let key = Key { server: server.clone(), list: ListKind::Tools, owner: None };
            let read = self.entries().get(&key).and_then(|entry| entry.last());
            read.or_else(|| self.store.listing(server, ListKind::Tools))
        });
        listings.fold((0, 0), |(n, bytes), listing| {
            let more: usize = listing.iter().map(|item| item.json().len()).sum();
            (n + listing.len(), bytes + more)
        })
    }

    /// Returns the store for a list of `slot` that is read for `owner`; `None` if it belongs to one
    /// client only.
    fn store_for(
        &self,
        slot: &Arc<ServerSlot>,
        owner: Option<&SessionOwner>,
    ) -> Option<(Arc<CatalogStore>, ServerName, CatalogDigest)> {
        let is_shared = !slot.is_per_session() || owner == Some(&self.observer);
        let is_declared =
            || self.pool.slot(slot.name().as_str()).is_some_and(|now| Arc::ptr_eq(&now, slot));
        let noted = || (Arc::clone(&self.store), slot.name().clone(), Self::declared(slot));
        (is_shared && is_declared()).then(noted)
    }

    fn key(&self, slot: &ServerSlot, list: ListKind, owner: Option<&SessionOwner>) -> Key {
        let owner = owner.filter(|_| slot.is_per_session()).map(|owner| owner.key);
        Key { server: slot.name().clone(), list, owner }
    }

    fn entry(
        &self,
        slot: &ServerSlot,
        list: ListKind,
        owner: Option<&SessionOwner>,
    ) -> Arc<ListEntry> {
        let key = self.key(slot, list, owner);
        let mut entries = self.entries();
        if let Some(entry) = entries.get(&key) {
            return Arc::clone(entry);
        }
        // Removes the entries of clients that have gone.
        entries.retain(|key, entry| key.owner.is_none() || entry.is_current());
        let entry = ListEntry::new(list, owner.filter(|_| slot.is_per_session()).cloned());
        entries.insert(key, Arc::clone(&entry));
        entry
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Key, Arc<ListEntry>>> {
        // Held for single statements on plain data.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the notice that a list of `slot` has changed, for all clients that see it.
fn change_notice(slot: &ServerSlot, list: ListKind, owner: Option<&SessionOwner>) -> Announcement {
    let owner = owner.filter(|_| slot.is_per_session()).cloned();
    Announcement::of_change(slot.name().clone(), owner, list)
}
