//! The outcome of the last attempt to connect each server in order to read its lists.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use crate::{pool::ServerSlot, server_name::ServerName};

/// The servers that could not be connected when a client asked for their lists.
#[derive(Debug, Default)]
pub(super) struct ConnectAttempts {
    /// A slot that a reload replaced says nothing about its successor.
    failed: Mutex<HashMap<ServerName, Weak<ServerSlot>>>,
}

impl ConnectAttempts {
    /// Records the outcome of an attempt to connect `slot`.
    pub(super) fn note(&self, slot: &Arc<ServerSlot>, has_failed: bool) {
        let mut failed = self.failed();
        match has_failed {
            true => drop(failed.insert(slot.name().clone(), Arc::downgrade(slot))),
            false => drop(failed.remove(slot.name())),
        }
    }

    /// Returns whether the last attempt to connect `slot` failed.
    pub(super) fn has_failed(&self, slot: &Arc<ServerSlot>) -> bool {
        let failed = self.failed();
        failed.get(slot.name()).is_some_and(|known| known.ptr_eq(&Arc::downgrade(slot)))
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<ServerName, Weak<ServerSlot>>> {
        // Held for single statements on plain data.
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
