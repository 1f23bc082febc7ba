//! The task that keeps the disk cache and the snapshot current. It writes one file at a time, each
//! server's at most once per [`defaults::CACHE_WRITE_PAUSE`], off the event loops.

use std::sync::Arc;

use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::{Catalog, Listing, definition_hash::CatalogDigest, parallel_map, store::CacheChores};
use crate::{
    config::{ServerConfig, defaults},
    protocol::list_page::ListKind,
    reconfigure::ServerDiff,
    search::Thesaurus,
    server_name::ServerName,
};

impl Catalog {
    /// Reads the cached lists of the declared servers. Waits at most
    /// [`defaults::CACHE_READ_TIMEOUT`] for the disk. Cancel safe: lists that are being read are
    /// still taken over.
    pub async fn restore(&self) {
        let cache = Arc::clone(&self.cache);
        // An index follows soon. Without cached lists, nothing needs the thesaurus yet.
        if cache.has_files() {
            drop(self.tasks.spawn_blocking(Thesaurus::embedded));
        }
        drop(self.tasks.spawn_blocking(move || cache.tidy()));
        self.store.mark_unread(self.pool.slots().keys().cloned());
        let reading = self.do_chores(Some(Instant::now()));
        if time::timeout(defaults::CACHE_READ_TIMEOUT, reading).await.is_err() {
            tracing::warn!(
                "reading the cached lists takes too long: the service starts without them"
            );
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
                () = self.store.changed() => {}
            }
            self.publisher.renew();
            // The lists of one server arrive one after the other.
            let _or_stopped = time::timeout(defaults::CACHE_WRITE_WINDOW, stop.cancelled()).await;
            self.do_chores(Some(Instant::now())).await;
            self.publisher.renew();
        }
    }

    /// Writes all unsaved changes to the disk.
    ///
    /// # Cancel safety
    ///
    /// As for [`Catalog::run_persister`].
    pub async fn save(&self) {
        self.do_chores(None).await;
        self.publisher.renew();
    }

    /// Forgets servers that were removed or whose declaration changed, and schedules a read of the
    /// cache for the servers that were added or changed.
    pub(super) fn redeclare(&self, diff: &ServerDiff) {
        for server in &diff.removed {
            self.store.forget(server);
        }
        for server in &diff.changed {
            let declared = self.pool.slot(server.as_str()).map(|slot| Self::declared(&slot));
            let known = self.store.known(server).and_then(|known| known.declared);
            if known != declared {
                self.store.forget(server);
            }
        }
        self.store.mark_unread(diff.added.iter().chain(&diff.changed).cloned());
    }

    /// Does the disk work that [`CatalogStore::chores`] returns.
    async fn do_chores(&self, now: Option<Instant>) {
        let CacheChores { unsaved, confirmed, unread } = self.store.chores(now);
        let unread: Vec<_> = unread
            .into_iter()
            .filter(|server| self.store.listing(server, ListKind::Tools).is_none())
            .filter_map(|server| {
                let declared = Self::declared(&*self.pool.slot(server.as_str())?);
                Some((server, declared))
            })
            .collect();
        if unsaved.is_empty() && confirmed.is_empty() && unread.is_empty() {
            return;
        }
        let (cache, store) = (Arc::clone(&self.cache), Arc::clone(&self.store));
        let doing = self.tasks.spawn_blocking(move || {
            let found =
                parallel_map::map(&unread, |(server, declared)| cache.read(server, *declared));
            for ((server, _), found) in unread.iter().zip(found) {
                if let Some(found) = found {
                    store.restore(server, found);
                }
            }
            let lost = confirmed.into_iter().filter(|server| cache.is_missing(server));
            for server in lost.chain(unsaved) {
                // A reload may have removed it meanwhile.
                let Some(known) = store.known(&server) else { continue };
                if let Some(digest) = cache.write(&server, &known) {
                    store.saved(&server, digest);
                }
            }
        });
        if let Err(error) = doing.await {
            tracing::error!(%error, "disk cache not updated: {error}");
        }
    }

    /// Returns the tools that servers had in an earlier run, from the disk: for each server in
    /// `declared` that has any, its position and its tools. Returns nothing if the disk takes
    /// longer than [`defaults::CACHE_READ_TIMEOUT`]. Cancel safe: nothing is kept.
    pub async fn remembered(
        &self,
        declared: Vec<(ServerName, Arc<ServerConfig>)>,
    ) -> Vec<(usize, Listing)> {
        if declared.is_empty() || self.cache.directory().is_none() {
            return Vec::new();
        }
        let cache = Arc::clone(&self.cache);
        let reading = self.tasks.spawn_blocking(move || {
            let read = |(at, (name, server)): (usize, (ServerName, Arc<ServerConfig>))| {
                let known = cache.read(&name, CatalogDigest::of_declaration(&server))?;
                Some((at, known.listing(ListKind::Tools)?))
            };
            declared.into_iter().enumerate().filter_map(read).collect()
        });
        match time::timeout(defaults::CACHE_READ_TIMEOUT, reading).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::error!(%error, "cannot read the cached tools of servers that may be added: {error}");
                Vec::new()
            }
            Err(_) => {
                tracing::warn!(
                    "reading the cached tools of servers that may be added takes too long: metamcp continues without them"
                );
                Vec::new()
            }
        }
    }
}
