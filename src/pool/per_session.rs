//! Connections of clients: one for each that needs its own.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    desired_state::ClientDemand,
    error::SlotError,
    supervisor::{ServerContext, Supervisor},
};
use crate::connection::{ConnectionOwner, SessionOwner};

/// The connections of a server that keeps state for its client.
#[derive(Debug)]
pub(super) struct PerSessionPool {
    origin: ServerContext,
    clients: Mutex<Clients>,
}

/// By the keys of the owners.
#[derive(Debug, Default)]
struct Clients {
    keepers: HashMap<u64, Arc<Supervisor>>,
    /// What those want who have no keeper yet.
    wants: HashMap<u64, ClientDemand>,
}

impl PerSessionPool {
    /// Returns connections for as many clients as `origin.own` has seats; nothing is connected yet.
    pub(super) fn new(origin: ServerContext) -> Self {
        Self { origin, clients: Mutex::default() }
    }

    /// Returns the keeper of the connection of `owner`, a new one the first time.
    ///
    /// # Errors
    ///
    /// [`SlotError::SessionRequired`] without an owner, [`SlotError::SessionEnded`] when it has gone.
    pub(super) fn of(&self, owner: Option<&SessionOwner>) -> Result<Arc<Supervisor>, SlotError> {
        let server = &self.origin.name;
        let owner = owner.ok_or_else(|| SlotError::SessionRequired(server.clone()))?;
        let mut clients = self.clients();
        if let Some(keeper) = clients.keepers.get(&owner.key) {
            return Ok(Arc::clone(keeper));
        }
        if owner.has_gone() {
            return Err(SlotError::SessionEnded(server.clone()));
        }
        let keeper = Supervisor::new(self.origin.clone(), ConnectionOwner::Owned(owner.clone()));
        if let Some(wants) = clients.wants.remove(&owner.key) {
            keeper.set_demand(|| wants);
        }
        clients.keepers.insert(owner.key, Arc::clone(&keeper));
        Ok(keeper)
    }

    /// Notes what a client wants of its connection, also before it has one. Returns its keeper, which
    /// is to bring that about.
    pub(super) fn set_demand(
        &self,
        owner: Option<&SessionOwner>,
        wants: impl FnOnce() -> ClientDemand,
    ) -> Option<Arc<Supervisor>> {
        let owner = owner.filter(|owner| !owner.has_gone())?;
        let mut clients = self.clients();
        match clients.keepers.get(&owner.key) {
            Some(keeper) => {
                keeper.set_demand(wants);
                Some(Arc::clone(keeper))
            }
            None => {
                match wants() {
                    none if none == ClientDemand::default() => clients.wants.remove(&owner.key),
                    some => clients.wants.insert(owner.key, some),
                };
                None
            }
        }
    }

    /// Returns the keeper of the connection of `owner`, if it has one.
    pub(super) fn known(&self, owner: Option<&SessionOwner>) -> Option<Arc<Supervisor>> {
        self.clients().keepers.get(&owner?.key).cloned()
    }

    /// Returns every keeper.
    pub(super) fn supervisors(&self) -> Vec<Arc<Supervisor>> {
        self.clients().keepers.values().cloned().collect()
    }

    /// Takes the keeper of a client that has gone.
    pub(super) fn remove(&self, owner: &SessionOwner) -> Option<Arc<Supervisor>> {
        let mut clients = self.clients();
        clients.wants.remove(&owner.key);
        clients.keepers.remove(&owner.key)
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        // Held for statements on plain data. Sessions are looked at while it is held, so it is never
        // taken by who holds one of those.
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
