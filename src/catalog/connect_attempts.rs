//! Whether the last attempt to connect each server came to something, as far as lists were read.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use crate::{name::ServerName, pool::ServerSlot};

/// The servers that could not be connected when their lists were asked for.
#[derive(Debug, Default)]
pub(super) struct ConnectAttempts {
    /// A slot that a reload has replaced says nothing about its successor.
    failed: Mutex<HashMap<ServerName, Weak<ServerSlot>>>,
}

impl ConnectAttempts {
    /// Notes how an attempt to connect `slot` ended.
    pub(super) fn note(&self, slot: &Arc<ServerSlot>, has_failed: bool) {
        let mut failed = self.failed();
        match has_failed {
            true => drop(failed.insert(slot.name().clone(), Arc::downgrade(slot))),
            false => drop(failed.remove(slot.name())),
        }
    }

    /// Tells whether the last attempt to connect `slot` failed.
    pub(super) fn has_failed(&self, slot: &Arc<ServerSlot>) -> bool {
        let failed = self.failed();
        failed.get(slot.name()).is_some_and(|known| known.ptr_eq(&Arc::downgrade(slot)))
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<ServerName, Weak<ServerSlot>>> {
        // Held for single statements on plain data.
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
