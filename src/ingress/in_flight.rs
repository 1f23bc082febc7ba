//! Which of a client's requests run, so that its cancellation finds them.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

use super::Edge;

/// Requests that run, by client and id.
///
/// A client is known by its session id. Without one nobody can tell whose request an id means,
/// and better none is cancelled than that of somebody else; such a client closes its stream.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    next: AtomicU64,
    running: Mutex<Running>,
}

/// A client that uses an id twice at a time has two entries under it.
type Running = HashMap<Key, Vec<(u64, CancellationToken)>>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    session: Box<str>,
    /// As JSON text: `1` and `"1"` are two ids.
    id: Box<str>,
}

/// A request that runs; dropping it ends the entry.
#[derive(Debug)]
pub(super) struct Registration {
    edge: Arc<Edge>,
    key: Option<Key>,
    number: u64,
    pub(super) cancelled: CancellationToken,
}

impl Registration {
    /// Registers the request `id` of the client with that session.
    pub(super) fn new(edge: Arc<Edge>, session: Option<&str>, id: &str) -> Self {
        let key = session.map(|session| Key { session: session.into(), id: id.into() });
        let number = edge.in_flight.next.fetch_add(1, Ordering::Relaxed);
        let cancelled = CancellationToken::new();
        if let Some(key) = &key {
            let entry = (number, cancelled.clone());
            edge.in_flight.running().entry(key.clone()).or_default().push(entry);
        }
        Self { edge, key, number, cancelled }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Some(key) = &self.key else { return };
        let mut running = self.edge.in_flight.running();
        if let Some(same_id) = running.get_mut(key) {
            same_id.retain(|(number, _)| *number != self.number);
            if same_id.is_empty() {
                running.remove(key);
            }
        }
    }
}

impl InFlight {
    /// Cancels the request `id` of the client with that session; `false` when it is not known
    /// which request is meant.
    pub(super) fn cancel(&self, session: Option<&str>, id: &str) -> bool {
        let Some(session) = session else { return false };
        let key = Key { session: session.into(), id: id.into() };
        match self.running().get(&key).map(Vec::as_slice) {
            Some([(_, cancelled)]) => {
                cancelled.cancel();
                true
            }
            _ => false,
        }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        // Held for single statements on plain data.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
