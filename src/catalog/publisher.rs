//! Makes another snapshot when something has changed: away from the loops of the runtime, one at a
//! time, and whoever asks meanwhile waits for the same.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::{
    shelf::Shelf,
    snapshot::{Snapshot, Vocabulary},
};
use crate::{
    config::defaults,
    single_flight::{Flight, SingleFlight},
};

/// Who makes snapshots, and the last one.
#[derive(Debug)]
pub(super) struct Publisher {
    shelf: Arc<Shelf>,
    tasks: TaskTracker,
    current: ArcSwap<Snapshot>,
    vocabulary: ArcSwap<Vocabulary>,
    builds: Arc<SingleFlight<()>>,
}

impl Publisher {
    /// Returns one with an empty snapshot.
    pub(super) fn new(shelf: Arc<Shelf>, tasks: TaskTracker) -> Arc<Self> {
        let vocabulary = Arc::new(Vocabulary::of(&[]));
        let current = ArcSwap::from_pointee(Snapshot::empty(&vocabulary));
        let (vocabulary, builds) = (ArcSwap::new(vocabulary), SingleFlight::new());
        Arc::new(Self { shelf, tasks, current, vocabulary, builds })
    }

    /// Returns a snapshot of everything that is known at this moment, or the last one where making
    /// it takes too long.
    ///
    /// # Cancel safety
    ///
    /// Safe: it is made for the others.
    pub(super) async fn snapshot(self: &Arc<Self>) -> Arc<Snapshot> {
        let wanted = self.shelf.revision();
        let made = async {
            // One that is under way may have begun before the last change.
            while self.current.load().revision < wanted {
                if self.build().outcome().await.is_none() {
                    return;
                }
            }
        };
        if timeout(defaults::SNAPSHOT_PATIENCE, made).await.is_err() {
            tracing::warn!("snapshot of the catalog is late: the last one is used");
        }
        self.current.load_full()
    }

    /// Has tools found by groups of words that mean the same here, too.
    pub(super) fn search_with(&self, synonyms: &[Vec<String>]) {
        if !self.vocabulary.load().is_of(synonyms) {
            self.vocabulary.store(Arc::new(Vocabulary::of(synonyms)));
            self.shelf.touch();
        }
    }

    /// Begins to make a snapshot of what is known, unless one is being made.
    pub(super) fn renew(self: &Arc<Self>) {
        if self.current.load().revision < self.shelf.revision() {
            drop(self.build());
        }
    }

    fn build(self: &Arc<Self>) -> Flight<()> {
        let this = Arc::clone(self);
        self.builds.join(
            &self.tasks,
            || None,
            || async move {
                let (known, revision) = this.shelf.all();
                let (last, vocabulary) = (this.current.load_full(), this.vocabulary.load_full());
                let next = move || last.next(&known, &vocabulary, revision);
                let making = this.tasks.spawn_blocking(next);
                match making.await {
                    Ok(next) => this.current.store(Arc::new(next)),
                    Err(error) => tracing::error!(%error, "snapshot of the catalog not made"),
                }
            },
        )
    }
}
