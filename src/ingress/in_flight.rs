//! Which of a client's requests run, so that its cancellation finds them.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

/// Requests that run, by client and id.
///
/// A client is known by its session id. Without one a request can be cancelled as long as no
/// other client without one uses the same id at that moment: better not to cancel than to cancel
/// the request of somebody else.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    next: AtomicU64,
    running: Mutex<HashMap<Key, Vec<(u64, CancellationToken)>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    session: Option<Box<str>>,
    /// As JSON text: `1` and `"1"` are two ids.
    id: Box<str>,
}

/// A request that runs; dropping it ends the entry.
#[derive(Debug)]
pub(super) struct Registration {
    edge: std::sync::Arc<super::Edge>,
    key: Key,
    number: u64,
    pub(super) cancelled: CancellationToken,
}

impl Registration {
    /// Registers the request `id` of the client with that session.
    pub(super) fn new(edge: std::sync::Arc<super::Edge>, session: Option<&str>, id: &str) -> Self {
        let key = Key { session: session.map(Into::into), id: id.into() };
        let number = edge.in_flight.next.fetch_add(1, Ordering::Relaxed);
        let cancelled = CancellationToken::new();
        let entry = (number, cancelled.clone());
        edge.in_flight.running().entry(key.clone()).or_default().push(entry);
        Self { edge, key, number, cancelled }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut running = self.edge.in_flight.running();
        if let Some(same_id) = running.get_mut(&self.key) {
            same_id.retain(|(number, _)| *number != self.number);
            if same_id.is_empty() {
                running.remove(&self.key);
            }
        }
    }
}

impl InFlight {
    /// Cancels the request `id` of the client with that session; `false` when it is not known
    /// which request is meant.
    pub(super) fn cancel(&self, session: Option<&str>, id: &str) -> bool {
        let key = Key { session: session.map(Into::into), id: id.into() };
        let running = self.running();
        match running.get(&key).map(Vec::as_slice) {
            Some([(_, cancelled)]) => {
                cancelled.cancel();
                true
            }
            _ => false,
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Key, Vec<(u64, CancellationToken)>>> {
        // Held for single statements on plain data.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
