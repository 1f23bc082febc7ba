//! The task that keeps the disk cache and the snapshot current. It writes one file at a time, each
//! server's at most once per [`defaults::CACHE_WRITE_PAUSE`], off the event loops.

use std::sync::Arc;

use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::{
    Catalog,
    disk_cache::DiskCache,
    parallel_map,
    store::{CacheChores, CatalogStore},
};
use crate::{
    config::{defaults, diff::ServerDiff},
    protocol::list_page::ListKind,
    search::Thesaurus,
    server_name::ServerName,
};

impl Catalog {
    /// Reads the cached lists of the declared servers. Waits at most
    /// [`defaults::CACHE_READ_PATIENCE`] for the disk. Cancel safe: lists that are being read are
    /// still taken over.
    pub async fn restore(&self) {
        let store = Arc::clone(&self.store);
        // An index follows soon. Without cached lists, nothing needs the thesaurus yet.
        if store.has_files() {
            drop(self.tasks.spawn_blocking(Thesaurus::embedded));
        }
        drop(self.tasks.spawn_blocking(move || store.tidy()));
        self.shelf.mark_unread(self.pool.slots().keys().cloned());
        let reading = self.tend(Some(Instant::now()));
        if time::timeout(defaults::CACHE_READ_PATIENCE, reading).await.is_err() {
            tracing::warn!("cached lists are late: serving without them");
        }
        self.publisher.renew();
    }

    /// Writes changes to the disk and renews the snapshot, until `stop`; then runs
    /// [`Catalog::save`] at once.
    ///
    /// # Cancel safety
    ///
    /// The last changes may be missing on the disk.
    pub async fn run_persister(&self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return self.save().await,
                () = self.shelf.changed() => {}
            }
            self.publisher.renew();
            // The lists of one server arrive one after the other.
            let _or_stopped = time::timeout(defaults::CACHE_WRITE_WINDOW, stop.cancelled()).await;
            self.tend(Some(Instant::now())).await;
            self.publisher.renew();
        }
    }

    /// Writes all unsaved changes to the disk.
    ///
    /// # Cancel safety
    ///
    /// As for [`Catalog::run_persister`].
    pub async fn save(&self) {
        self.tend(None).await;
        self.publisher.renew();
    }

    /// Forgets servers that were removed or whose declaration changed, and schedules a read of the
    /// cache for the servers that were added or changed.
    pub(super) fn redeclare(&self, diff: &ServerDiff) {
        for server in &diff.removed {
            self.shelf.forget(server);
        }
        for server in &diff.changed {
            let declared = self.pool.slot(server.as_str()).map(|slot| Self::declared(&slot));
            let known = self.shelf.known(server).and_then(|known| known.declared);
            if known != declared {
                self.shelf.forget(server);
            }
        }
        self.shelf.mark_unread(diff.added.iter().chain(&diff.changed).cloned());
    }

    /// Does the disk work that [`CatalogStore::chores`] returns.
    async fn tend(&self, now: Option<Instant>) {
        let CacheChores { unsaved, confirmed, sought } = self.shelf.chores(now);
        let sought: Vec<_> = sought
            .into_iter()
            .filter(|server| self.shelf.listing(server, ListKind::Tools).is_none())
            .filter_map(|server| {
                let declared = Self::declared(&*self.pool.slot(server.as_str())?);
                Some((server, declared))
            })
            .collect();
        if unsaved.is_empty() && confirmed.is_empty() && sought.is_empty() {
            return;
        }
        let (store, shelf) = (Arc::clone(&self.store), Arc::clone(&self.shelf));
        let doing = self.tasks.spawn_blocking(move || {
            let found =
                parallel_map::map(&sought, |(server, declared)| store.read(server, *declared));
            for ((server, _), found) in sought.iter().zip(found) {
                if let Some(found) = found {
                    shelf.restore(server, found);
                }
            }
            let lost = confirmed.into_iter().filter(|server| store.is_missing(server));
            for server in lost.chain(unsaved) {
                save(&store, &shelf, &server);
            }
        });
        if let Err(error) = doing.await {
            tracing::error!(%error, "disk cache not kept");
        }
    }
}

fn save(store: &DiskCache, shelf: &CatalogStore, server: &ServerName) {
    // A reload may have removed it meanwhile.
    let Some(known) = shelf.known(server) else { return };
    if let Some(digest) = store.write(server, &known) {
        shelf.saved(server, digest);
    }
}
