//! Connections of clients: one for each that needs its own.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    keeper::{Keeper, Origin},
    slot::SlotError,
};
use crate::connection::{Owner, Party};

/// The connections of a server that keeps state for its client.
#[derive(Debug)]
pub(super) struct Owned {
    origin: Origin,
    max: usize,
    keepers: Mutex<HashMap<u64, Arc<Keeper>>>,
}

impl Owned {
    /// Returns connections for at most `max` clients; nothing is connected yet.
    pub(super) fn new(origin: Origin, max: usize) -> Self {
        Self { origin, max, keepers: Mutex::default() }
    }

    /// Returns the keeper of the connection of `owner`, a new one the first time.
    ///
    /// # Errors
    ///
    /// [`SlotError::SessionRequired`] without an owner, [`SlotError::Busy`] when as many clients
    /// have one as may.
    pub(super) fn of(&self, owner: Option<&Owner>) -> Result<Arc<Keeper>, SlotError> {
        let server = &self.origin.name;
        let owner = owner.ok_or_else(|| SlotError::SessionRequired(server.clone()))?;
        let mut keepers = self.keepers();
        if let Some(keeper) = keepers.get(&owner.key) {
            return Ok(Arc::clone(keeper));
        }
        if keepers.len() >= self.max {
            return Err(SlotError::Busy { server: server.clone(), max: self.max });
        }
        let keeper = Keeper::new(self.origin.clone(), Party::Owned(owner.clone()));
        keepers.insert(owner.key, Arc::clone(&keeper));
        Ok(keeper)
    }

    /// Returns the keeper of the connection of `owner`, if it has one.
    pub(super) fn known(&self, owner: Option<&Owner>) -> Option<Arc<Keeper>> {
        self.keepers().get(&owner?.key).cloned()
    }

    /// Returns every keeper.
    pub(super) fn keepers_now(&self) -> Vec<Arc<Keeper>> {
        self.keepers().values().cloned().collect()
    }

    /// Takes the keeper of a client that has gone.
    pub(super) fn remove(&self, owner: &Owner) -> Option<Arc<Keeper>> {
        self.keepers().remove(&owner.key)
    }

    fn keepers(&self) -> MutexGuard<'_, HashMap<u64, Arc<Keeper>>> {
        // Held for statements on plain data.
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
