//! The publisher of snapshots. It makes one at a time, off the event loops; concurrent callers wait
//! for the same one.

use std::{path::Path, sync::Arc};

use arc_swap::ArcSwap;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::{
    snapshot::{CatalogSnapshot, SnapshotVectors, SynonymTable},
    store::CatalogStore,
};
use crate::{
    config::{ProxyConfig, defaults, search::EmbeddingConfig, secret::credentials_directory},
    embedding::{Embedder, EmbeddingText},
    error_report::chain,
    single_flight::{FlightWaiter, SingleFlight},
};

/// The publisher, with the last snapshot.
#[derive(Debug)]
pub(super) struct SnapshotPublisher {
    store: Arc<CatalogStore>,
    tasks: TaskTracker,
    current: ArcSwap<CatalogSnapshot>,
    vocabulary: ArcSwap<SynonymTable>,
    embedded: ArcSwap<Embedded>,
    /// The outcome of a build: `false` if it failed.
    builds: Arc<SingleFlight<bool>>,
}

impl SnapshotPublisher {
    /// Returns a publisher with an empty snapshot.
    pub(super) fn new(store: Arc<CatalogStore>, tasks: TaskTracker) -> Arc<Self> {
        let vocabulary = Arc::new(SynonymTable::of(&[]));
        let current = ArcSwap::from_pointee(CatalogSnapshot::empty(&vocabulary));
        let (vocabulary, builds) = (ArcSwap::new(vocabulary), SingleFlight::new());
        let embedded = ArcSwap::default();
        Arc::new(Self { store, tasks, current, vocabulary, embedded, builds })
    }

    /// Returns a snapshot of everything known at this moment, or the last one if the build takes
    /// too long. The first build is waited for longer, since nothing precedes it. Cancel safe: the
    /// build continues for other callers.
    pub(super) async fn snapshot(self: &Arc<Self>) -> Arc<CatalogSnapshot> {
        let wanted = self.store.revision();
        let made = async {
            // The build in progress may have begun before the last change.
            while self.current.load().revision < wanted {
                // After a panic, callers do not retry before their timeout.
                if self.build().outcome().await != Some(true) {
                    return;
                }
            }
        };
        let wait = match self.current.load().generation {
            0 => defaults::FIRST_SNAPSHOT_TIMEOUT,
            _ => defaults::SNAPSHOT_TIMEOUT,
        };
        if timeout(wait, made).await.is_err() {
            tracing::warn!(
                "the new catalog snapshot takes too long: metamcp uses the previous one"
            );
        }
        let current = self.current.load_full();
        if current.vectors != self.embedded.load().version() {
            // New vectors are not worth a wait.
            drop(self.build());
        }
        current
    }

    /// Adds declared groups of synonyms to the search.
    pub(super) fn search_with(&self, synonyms: &[Vec<String>]) {
        if !self.vocabulary.load().has_groups(synonyms) {
            self.vocabulary.store(Arc::new(SynonymTable::of(synonyms)));
            self.store.touch();
        }
    }

    /// Sets the embedding endpoint, or none, and the proxy on the way to it.
    pub(super) fn embed_with(
        &self,
        declared: Option<&EmbeddingConfig>,
        proxy: &ProxyConfig,
        directory: Option<&Path>,
    ) {
        let last = self.embedded.load();
        if (last.declared.as_ref(), &last.proxy) == (declared, proxy) {
            return;
        }
        let credentials = credentials_directory();
        let made = declared
            .map(|declared| Embedder::new(declared, credentials.as_deref(), directory, proxy))
            .transpose();
        let embedder = made.unwrap_or_else(|error| {
            let (code, hint, error) = (error.code(), error.hint(), chain(&error));
            tracing::error!(
                code,
                error,
                hint,
                "cannot use the embedding model, so searches run without it: {error}"
            );
            None
        });
        let (declared, proxy, epoch) = (declared.cloned(), proxy.clone(), last.epoch + 1);
        self.embedded.store(Arc::new(Embedded { declared, proxy, embedder, epoch }));
    }

    pub(super) fn embedder(&self) -> Option<Arc<Embedder>> {
        self.embedded.load().embedder.clone()
    }

    /// Starts the build of a snapshot if something has changed, unless one is in progress.
    pub(super) fn renew(self: &Arc<Self>) {
        if self.current.load().revision < self.store.revision() {
            drop(self.build());
        }
    }

    fn build(self: &Arc<Self>) -> FlightWaiter<bool> {
        let this = Arc::clone(self);
        self.builds.join(
            &self.tasks,
            || None,
            || async move {
                let (known, revision) = this.store.all();
                let (last, vocabulary) = (this.current.load_full(), this.vocabulary.load_full());
                let embedded = this.embedded.load_full();
                let next = move || last.next(&known, &vocabulary, &*embedded, revision);
                let making = this.tasks.spawn_blocking(next);
                match making.await {
                    Ok(next) => this.current.store(Arc::new(next)),
                    Err(error) => {
                        tracing::error!(%error, "cannot make a catalog snapshot: {error}");
                        return false;
                    }
                }
                true
            },
        )
    }
}

/// The current source of vectors.
#[derive(Debug, Default)]
struct Embedded {
    declared: Option<EmbeddingConfig>,
    proxy: ProxyConfig,
    embedder: Option<Arc<Embedder>>,
    /// The number of earlier configurations.
    epoch: u64,
}

impl SnapshotVectors for Embedded {
    fn version(&self) -> u64 {
        let changes = |embedder: &Arc<Embedder>| *embedder.changes().borrow();
        // No embedder reaches 2^32 changes.
        self.embedder.as_ref().map_or(0, |found| (self.epoch << 32) + changes(found))
    }

    fn of(&self, texts: Vec<EmbeddingText>) -> Vec<Option<Arc<[f32]>>> {
        let Some(embedder) = &self.embedder else { return Vec::new() };
        let vectors = embedder.vectors(&texts);
        if vectors.iter().any(Option::is_none) {
            embedder.learn(texts);
        }
        vectors
    }
}
