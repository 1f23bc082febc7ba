//! The catalog: the tools, prompts and resources of all servers.
//!
//! Each list is read once per connection and kept until its server announces a change. A list whose
//! server announces no changes is read again after a while, when it is used. Clients are notified
//! only if a list differs from the one that they know.
//!
//! ```text
//!  connections ── a list ──▶ entry ──▶ shelf ──┬──▶ snapshot ──▶ search, describe
//!                 is read      │         ▲     └──▶ store ──▶ disk
//!                              ▼         └──────────────────────┘ at the start
//!                       views: merged lists
//! ```
//!
//! The profile and the lists of a server outlive its connection ([`CatalogSnapshot`]) and, on the
//! disk, the process ([`DiskCache`]). So lists and searches work while the server is not running. Its lists
//! are read again when it connects; clients that were shown others are notified.

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
    config::SearchConfig,
    connection::{Announcement, ConnectionLimits, SessionOwner},
    embedding::Embedder,
    pool::{Pool, ServerSlot, SlotError},
    protocol::list_page::{ListItem, ListKind},
    server_name::ServerName,
    session::SessionRegistry,
};

mod announced_version;
mod cache_format;
mod change_notices;
mod changed_definitions;
mod connect_attempts;
mod digest;
mod disk_cache;
mod fetch;
mod inactive_servers;
mod item_quarantine;
mod list_defects;
mod list_entry;
mod list_timeout;
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
use connect_attempts::ConnectAttempts;
use digest::CatalogDigest;
pub use disk_cache::DiskCache;
use fetch::FetchReason;
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
    told: mpsc::Sender<Announcement>,
    entries: Mutex<HashMap<Key, Arc<ListEntry>>>,
    records: Arc<ConnectAttempts>,
    findings: Arc<CatalogFindings>,
    /// The profile and lists of each server, connected or not.
    shelf: Arc<CatalogStore>,
    publisher: Arc<SnapshotPublisher>,
    store: Arc<DiskCache>,
    /// The owner that lists are read for where each client has its own connection.
    onlooker: SessionOwner,
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

impl Catalog {
    /// Returns an empty catalog of the servers in `pool`, cached in `store`. Its reads run on
    /// `tasks`; notices for `sessions` go to `told`.
    pub fn new(
        pool: Arc<Pool>,
        sessions: Arc<SessionRegistry>,
        tasks: TaskTracker,
        told: mpsc::Sender<Announcement>,
        store: DiskCache,
    ) -> Self {
        let (entries, records, findings) = (Mutex::default(), Arc::default(), Arc::default());
        let (shelf, store) = (Arc::<CatalogStore>::default(), Arc::new(store));
        let publisher = SnapshotPublisher::new(Arc::clone(&shelf), tasks.clone());
        let onlooker = SessionOwner::observer();
        Self {
            pool,
            sessions,
            tasks,
            told,
            entries,
            records,
            findings,
            shelf,
            publisher,
            store,
            onlooker,
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
            match self.read(slot, list, owner, limits, FetchReason::Asked).await {
                Ok(listing) => {
                    if self.entry(slot, list, owner).note_announced(slot, &listing) {
                        self.tell_changed(slot, list, owner);
                    }
                    return Ok(listing);
                }
                Err(UnreadList { error, reason: FetchReason::Asked }) => return Err(error),
                // That read did not connect or retry: read again.
                Err(UnreadList { reason: FetchReason::There, .. }) => {}
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
        let notes = (Arc::clone(&self.records), Arc::clone(&self.findings));
        let (shelf, told) = (self.shelf_for(&slot, owner), self.told.clone());
        let tasks = self.tasks.clone();
        let news = news(&slot, list, owner);
        let flight = entry.reads.join(&self.tasks, ready, || async move {
            let read = reader.read(slot, reading, limits, reason, notes).await;
            let ListRead { listing, is_news, connection } =
                read.map_err(|error| UnreadList { error: Arc::new(error), reason })?;
            if let Some((shelf, name, declared)) = shelf {
                let old = shelf.learn((&name, declared), list, &listing, connection.profile());
                if let Some(old) = old {
                    // The comparison of long lists would block.
                    let (new, list) = (Arc::clone(&listing), list.method());
                    drop(tasks.spawn_blocking(move || {
                        changed_definitions::log_changes(&name, list, &old, &new);
                    }));
                }
            }
            if is_news {
                change_notices::try_send(&told, news);
            }
            Ok(listing)
        });
        flight.outcome().await.unwrap_or_else(|| {
            let source = SlotError::Closing(name.clone());
            let error = Arc::new(CallError::NotConnected { server: name, source });
            Err(UnreadList { error, reason: FetchReason::Asked })
        })
    }

    /// Notifies clients that a list differs from the one that they know.
    fn tell_changed(&self, slot: &ServerSlot, list: ListKind, owner: Option<&SessionOwner>) {
        change_notices::try_send(&self.told, news(slot, list, owner));
    }

    /// Sets the synonyms and the embedding endpoint of the tool search.
    pub fn search_with(&self, declared: &SearchConfig) {
        self.publisher.search_with(&declared.synonyms);
        self.publisher.embed_with(declared.embedding.as_ref(), self.store.directory());
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
                key.server == *server
                    && key.list.member() == collision.list
                    && self
                        .last(key, entry)
                        .is_some_and(|last| last.iter().any(|known| known.key == item))
            })
        };
        self.findings.current_collisions(|found| {
            has(found, &found.server, &found.keys.0) && has(found, &found.left_out, &found.keys.1)
        })
    }

    /// Records that a client was told something about a server that may be wrong, so that it is
    /// notified once the lists are read.
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
                add(server, self.shelf.listing(server, list).unwrap_or_default());
            }
        }
        known.retain(|(server, _)| self.pool.slot(server.as_str()).is_some());
        known.into_iter().collect()
    }

    /// Returns where to record a list of `slot` that is read for `owner`; `None` if it says
    /// something about one client only.
    fn shelf_for(
        &self,
        slot: &Arc<ServerSlot>,
        owner: Option<&SessionOwner>,
    ) -> Option<(Arc<CatalogStore>, ServerName, CatalogDigest)> {
        let is_everybodys = !slot.is_per_session() || owner == Some(&self.onlooker);
        let is_declared =
            || self.pool.slot(slot.name().as_str()).is_some_and(|now| Arc::ptr_eq(&now, slot));
        let noted = || (Arc::clone(&self.shelf), slot.name().clone(), Self::declared(slot));
        (is_everybodys && is_declared()).then(noted)
    }

    /// Returns a list as it was last read, on a connection or from the disk.
    fn last(&self, key: &Key, entry: &ListEntry) -> Option<Listing> {
        entry.last().or_else(|| self.shelf.listing(&key.server, key.list))
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
fn news(slot: &ServerSlot, list: ListKind, owner: Option<&SessionOwner>) -> Announcement {
    let owner = owner.filter(|_| slot.is_per_session()).cloned();
    Announcement::of_change(slot.name().clone(), owner, list)
}
