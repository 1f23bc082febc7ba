//! The connections of a server that keeps state for each client.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    Pool,
    desired_state::ClientDemand,
    error::SlotError,
    supervisor::{ServerContext, Supervisor},
};
use crate::connection::{ConnectionOwner, SessionOwner};

/// The connections of one server, one for each client.
#[derive(Debug)]
pub(super) struct PerSessionPool {
    context: ServerContext,
    clients: Mutex<Clients>,
}

/// The supervisors and demands, by the owner's key.
#[derive(Debug, Default)]
struct Clients {
    supervisors: HashMap<u64, Arc<Supervisor>>,
    /// The demands of clients without a supervisor.
    demands: HashMap<u64, ClientDemand>,
}

impl PerSessionPool {
    /// Returns a pool of as many connections as `context.server_admission` has permits. Connects
    /// nothing yet.
    pub(super) fn new(context: ServerContext) -> Self {
        Self { context, clients: Mutex::default() }
    }

    /// Returns the supervisor for `owner`, and creates it on first use.
    ///
    /// # Errors
    ///
    /// [`SlotError::SessionRequired`] without an owner, [`SlotError::SessionEnded`] if it ended.
    pub(super) fn get_or_create(
        &self,
        owner: Option<&SessionOwner>,
    ) -> Result<Arc<Supervisor>, SlotError> {
        let server = &self.context.name;
        let owner = owner.ok_or_else(|| SlotError::SessionRequired(server.clone()))?;
        let mut clients = self.clients();
        if let Some(supervisor) = clients.supervisors.get(&owner.key) {
            return Ok(Arc::clone(supervisor));
        }
        if owner.has_gone() {
            return Err(SlotError::SessionEnded(server.clone()));
        }
        let supervisor =
            Supervisor::new(self.context.clone(), ConnectionOwner::Owned(owner.clone()));
        if let Some(demand) = clients.demands.remove(&owner.key) {
            supervisor.set_demand(|| demand);
        }
        clients.supervisors.insert(owner.key, Arc::clone(&supervisor));
        Ok(supervisor)
    }

    /// Sets a client's demand on its connection, even before it has one. Returns the supervisor,
    /// which the caller must reconcile.
    pub(super) fn set_demand(
        &self,
        owner: Option<&SessionOwner>,
        demand: impl FnOnce() -> ClientDemand,
    ) -> Option<Arc<Supervisor>> {
        let owner = owner.filter(|owner| !owner.has_gone())?;
        let mut clients = self.clients();
        match clients.supervisors.get(&owner.key) {
            Some(supervisor) => {
                supervisor.set_demand(demand);
                Some(Arc::clone(supervisor))
            }
            None => {
                match demand() {
                    none if none == ClientDemand::default() => clients.demands.remove(&owner.key),
                    some => clients.demands.insert(owner.key, some),
                };
                None
            }
        }
    }

    /// Returns the supervisor for `owner`, if there is one.
    pub(super) fn get(&self, owner: Option<&SessionOwner>) -> Option<Arc<Supervisor>> {
        self.clients().supervisors.get(&owner?.key).cloned()
    }

    pub(super) fn supervisors(&self) -> Vec<Arc<Supervisor>> {
        self.clients().supervisors.values().cloned().collect()
    }

    /// Removes the supervisor of a client that has disconnected.
    pub(super) fn remove(&self, owner: &SessionOwner) -> Option<Arc<Supervisor>> {
        let mut clients = self.clients();
        clients.demands.remove(&owner.key);
        clients.supervisors.remove(&owner.key)
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        // Held only for statements on plain data. Session locks are taken while it is held, so a
        // holder of a session lock must never take it.
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client that metamcp cannot distinguish from others. Where each client has its own connection,
/// this one keeps it for one request.
#[derive(Debug)]
pub struct OneShotClient {
    pool: Arc<Pool>,
    owner: SessionOwner,
}

impl OneShotClient {
    /// Returns the one-shot client for `owner`, which must be unique.
    pub fn new(pool: Arc<Pool>, owner: SessionOwner) -> Self {
        Self { pool, owner }
    }

    /// Returns the client as the owner of connections.
    pub fn owner(&self) -> &SessionOwner {
        &self.owner
    }
}

impl Drop for OneShotClient {
    fn drop(&mut self) {
        self.owner.close();
        self.pool.release(&self.owner);
    }
}
