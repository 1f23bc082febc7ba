//! What all servers offer, as one list: tools, prompts, resources.
//!
//! Each server's list is read once per connection and kept until the server announces a change. It
//! is compared with what clients know then, so that they hear of it only if it is another one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::task::TaskTracker;

use crate::{
    call::CallError,
    config::defaults,
    connection::{Announcement, Limits, Owner},
    name::ServerName,
    pool::{Pool, Slot, SlotError},
    protocol::mcp::{Item, List},
    report::chain,
    session::Sessions,
};

mod changes;
mod entry;
mod findings;
mod patience;
mod records;
mod routes;
mod shown;
mod sieve;
#[cfg(test)]
mod tests;

use entry::Entry;
pub use findings::{Collision, Findings, Quarantined};
use records::Records;

/// One server's list.
pub type Listing = Arc<Vec<Item>>;

/// The lists of all servers.
#[derive(Debug)]
pub struct Catalog {
    pool: Arc<Pool>,
    sessions: Arc<Sessions>,
    tasks: TaskTracker,
    /// What clients are to hear.
    told: mpsc::Sender<Announcement>,
    entries: Mutex<HashMap<Key, Arc<Entry>>>,
    records: Arc<Records>,
    findings: Arc<Findings>,
}

/// Which list: of a client's own connection, where the server has one for each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    server: ServerName,
    list: List,
    owner: Option<u64>,
}

impl Catalog {
    /// Returns an empty catalog of the servers in `pool`; its reads are owned by `tasks`. What
    /// `sessions` are to hear goes to `told`.
    pub fn new(
        pool: Arc<Pool>,
        sessions: Arc<Sessions>,
        tasks: TaskTracker,
        told: mpsc::Sender<Announcement>,
    ) -> Self {
        let (entries, records, findings) = (Mutex::default(), Arc::default(), Arc::default());
        Self { pool, sessions, tasks, told, entries, records, findings }
    }

    /// Returns the list of every server that has it, in the order of the servers' names.
    ///
    /// A server that fails, or takes longer than [`defaults::LIST_PATIENCE`] or a request may stay
    /// silent, is left out and logged: the tools of the others are worth more than an error. One
    /// that did so the last time is not waited for at all. Clients are told when it comes.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn all(
        &self,
        list: List,
        owner: Option<&Owner>,
        limits: Limits,
    ) -> Vec<(ServerName, Listing)> {
        let slots = self.pool.slots();
        let reads = slots.values().map(|slot| async move {
            Some((slot.name().clone(), self.soon(slot, list, owner, limits).await?))
        });
        futures_util::future::join_all(reads).await.into_iter().flatten().collect()
    }

    /// Returns one server's list if it is there in time.
    async fn soon(
        &self,
        slot: &Arc<Slot>,
        list: List,
        owner: Option<&Owner>,
        limits: Limits,
    ) -> Option<Listing> {
        let entry = self.entry(slot, list, owner);
        let most = defaults::LIST_PATIENCE.min(limits.silence);
        let patience = entry.standing(slot, owner, &self.records).patience(most);
        let listing = self.listing(slot, list, owner, limits);
        let listed = match patience {
            // The shortest of timers takes a millisecond.
            Duration::ZERO => listing.now_or_never(),
            patience => timeout(patience, listing).await.ok(),
        };
        let is_late = listed.is_none();
        let reason = match listed {
            Some(Ok(listing)) => return Some(listing),
            Some(Err(error)) => chain(&*error),
            None => "not there in time".to_owned(),
        };
        if let Some(listing) = entry.missed(slot, owner, is_late && !patience.is_zero()) {
            return Some(listing);
        }
        if slot.live(owner).is_none() {
            if is_late {
                self.records.note(slot, true);
            }
            slot.missed();
        }
        let (server, method) = (slot.name(), list.method());
        // Said once, and not with every list.
        if patience.is_zero() {
            tracing::debug!(mcp_server = %server, mcp_method = method, reason, "list left out again");
        } else {
            tracing::warn!(mcp_server = %server, mcp_method = method, reason, "list left out");
        }
        None
    }

    /// Returns one server's list. However many ask at a time, it is read once.
    ///
    /// # Errors
    ///
    /// [`CallError`] when the server cannot be connected or does not answer with a list.
    ///
    /// # Cancel safety
    ///
    /// Safe: the read goes on for the others.
    pub async fn listing(
        &self,
        slot: &Arc<Slot>,
        list: List,
        owner: Option<&Owner>,
        limits: Limits,
    ) -> Result<Listing, Arc<CallError>> {
        let entry = self.entry(slot, list, owner);
        let ready = || entry.current(slot, owner).map(Ok);
        if let Some(ready) = ready() {
            return ready;
        }
        let (slot, reader) = (Arc::clone(slot), Arc::clone(&entry));
        let (name, reading) = (slot.name().clone(), owner.cloned());
        let (records, told) = (Arc::clone(&self.records), self.told.clone());
        let findings = Arc::clone(&self.findings);
        let news =
            Announcement::of_change(name.clone(), owner.filter(|_| slot.is_owned()).cloned(), list);
        let flight = entry.reads.join(&self.tasks, ready, || async move {
            let (listing, is_news) =
                reader.read(slot, reading, limits, records, findings).await.map_err(Arc::new)?;
            if is_news {
                changes::tell(&told, news);
            }
            Ok(listing)
        });
        flight.outcome().await.unwrap_or_else(|| {
            let source = SlotError::Closing(name.clone());
            Err(Arc::new(CallError::NotConnected { server: name, source }))
        })
    }

    /// Returns the items that clients are not shown.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.findings.quarantined_of(|server| self.pool.slot(server.as_str()).is_some())
    }

    /// Takes note of items that are called the same in a merged list.
    pub fn collided(&self, found: impl IntoIterator<Item = Collision>) {
        self.findings.collided(found);
    }

    /// Returns the items that are called the same in a merged list, as far as lists were read.
    pub fn collisions(&self) -> Vec<Collision> {
        if !self.findings.has_collisions() {
            return Vec::new();
        }
        let entries: Vec<_> = self
            .entries()
            .iter()
            .filter(|(key, _)| self.pool.slot(key.server.as_str()).is_some())
            .map(|(key, entry)| (key.clone(), Arc::clone(entry)))
            .collect();
        let has = |collision: &Collision, server: &ServerName, item: &str| {
            entries.iter().any(|(key, entry)| {
                key.server == *server
                    && key.list.member() == collision.list
                    && entry.last().is_some_and(|last| last.iter().any(|known| known.key == item))
            })
        };
        self.findings.collisions_that(|found| {
            has(found, &found.server, &found.keys.0) && has(found, &found.left_out, &found.keys.1)
        })
    }

    /// Notes that a client was told of a server what may be wrong, so that it is told again when the
    /// lists are there.
    pub fn doubt(&self, slot: &Slot, owner: Option<&Owner>) {
        for list in [List::Tools, List::Prompts, List::Resources] {
            self.entry(slot, list, owner).doubt();
        }
    }

    /// Returns the tools and prompts that were read so far, with their servers.
    pub fn known(&self) -> Vec<(ServerName, String)> {
        let entries = self.entries();
        let named = entries.iter().filter(|(key, _)| {
            key.list.is_named() && self.pool.slot(key.server.as_str()).is_some()
        });
        named
            .flat_map(|(Key { server, .. }, entry)| {
                let items = entry.last().unwrap_or_default();
                items.iter().map(|item| (server.clone(), item.key.clone())).collect::<Vec<_>>()
            })
            .collect()
    }

    fn entry(&self, slot: &Slot, list: List, owner: Option<&Owner>) -> Arc<Entry> {
        let owner = owner.filter(|_| slot.is_owned()).map(|owner| owner.key);
        let key = Key { server: slot.name().clone(), list, owner };
        let mut entries = self.entries();
        if let Some(entry) = entries.get(&key) {
            return Arc::clone(entry);
        }
        // Clients that have gone have left theirs behind.
        entries.retain(|key, entry| key.owner.is_none() || entry.is_of_use());
        let entry = Entry::new(list);
        entries.insert(key, Arc::clone(&entry));
        entry
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Key, Arc<Entry>>> {
        // Held for single statements on plain data.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
