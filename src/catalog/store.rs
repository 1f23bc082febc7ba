//! What is known of every declared server, and who is to hear that it is another thing now.

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
    digest::CatalogDigest,
    known_lists::{KnownChange, KnownList, KnownLists},
};
use crate::{
    config::defaults,
    name::ServerName,
    protocol::{list_page::ListKind, payloads::ServerProfile},
};

/// What is known of every declared server.
#[derive(Debug, Default)]
pub(super) struct CatalogStore {
    state: Mutex<State>,
    /// Told when something is to be written to the disk, or looked for there.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    known: BTreeMap<ServerName, KnownLists>,
    /// Grows whenever anything changes that a snapshot shows.
    revision: u64,
    unsaved: BTreeSet<ServerName>,
    /// Which have listed again what is known.
    confirmed: BTreeSet<ServerName>,
    /// Of which the disk may know something.
    sought: BTreeSet<ServerName>,
    /// Of which the file is not to be written again before that.
    rests: BTreeMap<ServerName, Instant>,
}

/// What is to be done on the disk.
#[derive(Debug, Default)]
pub(super) struct CacheChores {
    /// These are to be written.
    pub(super) unsaved: BTreeSet<ServerName>,
    /// These are to be written if they are not there.
    pub(super) confirmed: BTreeSet<ServerName>,
    /// These are to be looked for.
    pub(super) sought: BTreeSet<ServerName>,
}

impl CatalogStore {
    /// Takes note of a list that a server has given, and of what it says of itself. Returns the list that
    /// was known before, if it may be another one.
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
            // Its file may have been removed, or could not be written.
            KnownChange::Confirmed | KnownChange::Nothing => state.confirmed.insert(server.clone()),
        };
        self.changed.notify_one();
        state.revision += 1;
        old.filter(|old| !Arc::ptr_eq(old, listing))
    }

    /// Takes what the disk had of a server, as far as nothing newer is known.
    pub(super) fn restore(&self, server: &ServerName, found: KnownLists) {
        let mut state = self.state();
        if state.known.entry(server.clone()).or_default().restore(found) == KnownChange::Changed {
            state.revision += 1;
        }
    }

    /// Notes that the disk may know something of these servers.
    pub(super) fn mark_unread(&self, servers: impl IntoIterator<Item = ServerName>) {
        self.state().sought.extend(servers);
        self.changed.notify_one();
    }

    /// Forgets a server, or what was known of one that is declared another way now.
    pub(super) fn forget(&self, server: &ServerName) {
        let mut state = self.state();
        state.unsaved.remove(server);
        state.confirmed.remove(server);
        state.sought.remove(server);
        state.rests.remove(server);
        if state.known.remove(server).is_some() {
            state.revision += 1;
        }
    }

    /// Notes what is on the disk of a server: it stays so for [`defaults::CACHE_WRITE_PAUSE`].
    pub(super) fn saved(&self, server: &ServerName, digest: CatalogDigest) {
        let mut state = self.state();
        if let Some(known) = state.known.get_mut(server) {
            known.saved = Some(digest);
            state.rests.insert(server.clone(), Instant::now() + defaults::CACHE_WRITE_PAUSE);
        }
    }

    /// Notes that a snapshot of the same is another one.
    pub(super) fn touch(&self) {
        self.state().revision += 1;
        self.changed.notify_one();
    }

    /// Waits until there is something to do on the disk, or another snapshot to be made.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn changed(&self) {
        let changed = self.changed.notified();
        let rested = self.state().rested();
        match rested {
            Some(rested) => drop(timeout_at(rested, changed).await),
            None => changed.await,
        }
    }

    /// Takes what is to be done on the disk; `now`, or where that is none, whatever was done last.
    pub(super) fn chores(&self, now: Option<Instant>) -> CacheChores {
        let mut state = self.state();
        let state = &mut *state;
        if let Some(now) = now {
            state.rests.retain(|_, until| now < *until);
        }
        let is_left = |server: &ServerName| now.is_some() && state.rests.contains_key(server);
        let (left, unsaved) = take(&mut state.unsaved).into_iter().partition(is_left);
        state.unsaved = left;
        let (confirmed, sought) = (take(&mut state.confirmed), take(&mut state.sought));
        CacheChores { unsaved, confirmed, sought }
    }

    /// Returns the number of the last change.
    pub(super) fn revision(&self) -> u64 {
        self.state().revision
    }

    /// Returns everything, and the number of the last change.
    pub(super) fn all(&self) -> (BTreeMap<ServerName, KnownLists>, u64) {
        let state = self.state();
        (state.known.clone(), state.revision)
    }

    /// Returns what is known of one server.
    pub(super) fn known(&self, server: &ServerName) -> Option<KnownLists> {
        self.state().known.get(server).cloned()
    }

    /// Returns a list of a server as it was read last.
    pub(super) fn reading(&self, server: &ServerName, list: ListKind) -> Option<KnownList> {
        self.state().known.get(server)?.reading(list).cloned()
    }

    /// Returns the items of a list as it was read last: none where the server says that it has none.
    pub(super) fn listing(&self, server: &ServerName, list: ListKind) -> Option<Listing> {
        self.state().known.get(server)?.listing(list)
    }

    /// Returns what a server said of itself.
    pub(super) fn profile(&self, server: &ServerName) -> Option<Arc<ServerProfile>> {
        self.state().known.get(server)?.profile().cloned()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Held for statements on plain data, never across an await.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns when the first file may be written again that is to be.
    fn rested(&self) -> Option<Instant> {
        self.unsaved.iter().filter_map(|server| self.rests.get(server)).min().copied()
    }
}
