//! The store of the known lists of every declared server, and of pending disk work.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::take,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use super::{
    Listing,
    definition_hash::CatalogDigest,
    server_lists::{KnownChange, KnownList, KnownLists},
};
use crate::{
    config::defaults,
    protocol::{list_page::ListKind, payloads::ServerProfile},
    server_name::ServerName,
};

/// The profile and lists of every declared server.
#[derive(Debug, Default)]
pub(super) struct CatalogStore {
    state: Mutex<State>,
    /// Notified when the disk has work to do.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    known: BTreeMap<ServerName, KnownLists>,
    /// Grows with every change that a snapshot shows.
    revision: u64,
    unsaved: BTreeSet<ServerName>,
    /// The servers that confirmed their known lists.
    confirmed: BTreeSet<ServerName>,
    /// The servers that the disk may have a file of.
    unread: BTreeSet<ServerName>,
    /// The earliest time at which a server's file may be written again.
    paused_until: BTreeMap<ServerName, Instant>,
}

/// The pending disk work.
#[derive(Debug, Default)]
pub(super) struct CacheChores {
    /// The servers whose files must be written.
    pub(super) unsaved: BTreeSet<ServerName>,
    /// The servers whose files must be written if they are missing.
    pub(super) confirmed: BTreeSet<ServerName>,
    /// The servers whose files must be read.
    pub(super) unread: BTreeSet<ServerName>,
}

impl CatalogStore {
    /// Records a list and the profile of a server. Returns the list that was known before, if it
    /// may differ.
    pub(super) fn learn(
        &self,
        (server, declared): (&ServerName, CatalogDigest),
        list: ListKind,
        listing: &Listing,
        profile: Option<&ServerProfile>,
    ) -> Option<Listing> {
        let mut state = self.state();
        let known = state.known.entry(server.clone()).or_default();
        if known.declared != Some(declared) {
            *known = KnownLists::of(declared);
        }
        let old = known.reading(list).map(|reading| Arc::clone(&reading.listing));
        match known.learn(list, listing, profile, SystemTime::now()) {
            KnownChange::Changed => state.unsaved.insert(server.clone()),
            // The file may have been removed, or an earlier write may have failed.
            KnownChange::Confirmed | KnownChange::Nothing => state.confirmed.insert(server.clone()),
        };
        self.changed.notify_one();
        state.revision += 1;
        old.filter(|old| !Arc::ptr_eq(old, listing))
    }

    /// Takes over the cached lists of a server, unless something newer is known.
    pub(super) fn restore(&self, server: &ServerName, found: KnownLists) {
        let mut state = self.state();
        if state.known.entry(server.clone()).or_default().restore(found) == KnownChange::Changed {
            state.revision += 1;
        }
    }

    /// Records that the disk may have files of these servers.
    pub(super) fn mark_unread(&self, servers: impl IntoIterator<Item = ServerName>) {
        self.state().unread.extend(servers);
        self.changed.notify_one();
    }

    /// Forgets a server that was removed, or whose declaration changed.
    pub(super) fn forget(&self, server: &ServerName) {
        let mut state = self.state();
        state.unsaved.remove(server);
        state.confirmed.remove(server);
        state.unread.remove(server);
        state.paused_until.remove(server);
        if state.known.remove(server).is_some() {
            state.revision += 1;
        }
    }

    /// Records the digest of a server's file, which stays for [`defaults::CACHE_WRITE_PAUSE`].
    pub(super) fn saved(&self, server: &ServerName, digest: CatalogDigest) {
        let mut state = self.state();
        if let Some(known) = state.known.get_mut(server) {
            known.saved = Some(digest);
            state.paused_until.insert(server.clone(), Instant::now() + defaults::CACHE_WRITE_PAUSE);
        }
    }

    /// Records that the next snapshot differs although no list has changed.
    pub(super) fn touch(&self) {
        self.state().revision += 1;
        self.changed.notify_one();
    }

    /// Waits until there is disk work, or a new snapshot to make. Cancel safe.
    pub(super) async fn changed(&self) {
        let changed = self.changed.notified();
        let rested = self.state().rested();
        match rested {
            Some(rested) => drop(timeout_at(rested, changed).await),
            None => changed.await,
        }
    }

    /// Takes the disk work that is due at `now`, or all of it if `now` is `None`.
    pub(super) fn chores(&self, now: Option<Instant>) -> CacheChores {
        let mut state = self.state();
        let state = &mut *state;
        if let Some(now) = now {
            state.paused_until.retain(|_, until| now < *until);
        }
        let is_left =
            |server: &ServerName| now.is_some() && state.paused_until.contains_key(server);
        let (left, unsaved) = take(&mut state.unsaved).into_iter().partition(is_left);
        state.unsaved = left;
        let (confirmed, unread) = (take(&mut state.confirmed), take(&mut state.unread));
        CacheChores { unsaved, confirmed, unread }
    }

    /// Returns the number of the last change.
    pub(super) fn revision(&self) -> u64 {
        self.state().revision
    }

    /// Returns all servers, and the number of the last change.
    pub(super) fn all(&self) -> (BTreeMap<ServerName, KnownLists>, u64) {
        let state = self.state();
        (state.known.clone(), state.revision)
    }

    pub(super) fn known(&self, server: &ServerName) -> Option<KnownLists> {
        self.state().known.get(server).cloned()
    }

    /// Returns a list of a server as it was last read.
    pub(super) fn reading(&self, server: &ServerName, list: ListKind) -> Option<KnownList> {
        self.state().known.get(server)?.reading(list).cloned()
    }

    /// Returns the items of a list as last read; empty if the server declares that it has none.
    pub(super) fn listing(&self, server: &ServerName, list: ListKind) -> Option<Listing> {
        self.state().known.get(server)?.listing(list)
    }

    pub(super) fn profile(&self, server: &ServerName) -> Option<Arc<ServerProfile>> {
        self.state().known.get(server)?.profile().cloned()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Held for statements on plain data, never across an await.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the earliest time at which an unsaved file may be written again.
    fn rested(&self) -> Option<Instant> {
        self.unsaved.iter().filter_map(|server| self.paused_until.get(server)).min().copied()
    }
}
