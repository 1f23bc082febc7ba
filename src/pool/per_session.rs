//! Connections of clients that each need their own.

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

/// The connections of a server that keeps state for each client.
#[derive(Debug)]
pub(super) struct PerSessionPool {
    origin: ServerContext,
    clients: Mutex<Clients>,
}

/// The supervisors and demands, by the owner's key.
#[derive(Debug, Default)]
struct Clients {
    keepers: HashMap<u64, Arc<Supervisor>>,
    /// The demands of clients without a supervisor.
    wants: HashMap<u64, ClientDemand>,
}

impl PerSessionPool {
    /// Returns a pool with as many connections as `origin.own` has permits. Connects nothing yet.
    pub(super) fn new(origin: ServerContext) -> Self {
        Self { origin, clients: Mutex::default() }
    }

    /// Returns the supervisor for `owner`, and creates it on first use.
    ///
    /// # Errors
    ///
    /// [`SlotError::SessionRequired`] without an owner, [`SlotError::SessionEnded`] if it ended.
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

    /// Sets a client's demand on its connection, even before it has one. Returns the supervisor,
    /// which the caller must reconcile.
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

    /// Returns the supervisor for `owner`, if there is one.
    pub(super) fn known(&self, owner: Option<&SessionOwner>) -> Option<Arc<Supervisor>> {
        self.clients().keepers.get(&owner?.key).cloned()
    }

    /// Returns all supervisors.
    pub(super) fn supervisors(&self) -> Vec<Arc<Supervisor>> {
        self.clients().keepers.values().cloned().collect()
    }

    /// Removes the supervisor of a client that has disconnected.
    pub(super) fn remove(&self, owner: &SessionOwner) -> Option<Arc<Supervisor>> {
        let mut clients = self.clients();
        clients.wants.remove(&owner.key);
        clients.keepers.remove(&owner.key)
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        // Held only for statements on plain data. Session locks are taken while it is held, so a
        // holder of a session lock must never take it.
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
