//! Leases of connections, and the wait for them.

use std::{future::pending, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{Connections, ServerSlot};
use crate::{
    capacity_holder::Holder,
    connection::{Connection, SessionOwner},
    pool::{SlotError, exclusive::Checkout, supervisor::ConnectionClaim},
};

/// A connection for one request. The next request may get another one.
#[derive(Debug)]
pub struct ConnectionLease {
    /// The connection.
    pub connection: Arc<Connection>,
    /// Keeps the connection in use until the request ends.
    _guard: LeaseGuard,
}

/// The value that keeps a connection in use.
#[derive(Debug)]
enum LeaseGuard {
    /// The connection is shared with other requests.
    Claim { _claim: Option<ConnectionClaim> },
    /// The connection is exclusive.
    Checkout { _checkout: Checkout },
}

impl ServerSlot {
    /// Leases a connection for a request of metamcp itself, like [`ServerSlot::lease_for`]. Cancel
    /// safe: the connection attempt continues for the other waiters.
    ///
    /// # Errors
    ///
    /// Those of [`ServerSlot::lease_for`].
    pub async fn lease(
        &self,
        owner: Option<&SessionOwner>,
        until: Instant,
    ) -> Result<ConnectionLease, SlotError> {
        self.lease_for(Holder::SERVICE, owner, until).await
    }

    /// Leases a connection for a request of `owner`, counted for `holder`, and connects first if
    /// there is none. Concurrent callers that share a connection cause one attempt. Until `until`
    /// it waits for a permit or for a checked-out connection to be returned. It waits for a started
    /// attempt as long as that takes. Cancel safe: the connection attempt continues for the other
    /// waiters.
    ///
    /// # Errors
    ///
    /// [`SlotError`] if there is no connection. A failed attempt fails for every waiter.
    pub async fn lease_for(
        &self,
        holder: Holder,
        owner: Option<&SessionOwner>,
        until: Instant,
    ) -> Result<ConnectionLease, SlotError> {
        let supervisor = match &self.connections {
            Connections::Shared(supervisor) => Arc::clone(supervisor),
            Connections::PerSession(per_session) => per_session.get_or_create(owner)?,
            Connections::Exclusive(exclusive) => {
                let (connection, checkout) = exclusive.check_out(holder, until).await?;
                let _guard = LeaseGuard::Checkout { _checkout: checkout };
                return Ok(ConnectionLease { connection, _guard });
            }
        };
        let (connection, claim) = supervisor.lease(holder, Some(until)).await?;
        Ok(ConnectionLease { connection, _guard: LeaseGuard::Claim { _claim: claim } })
    }

    /// Leases a connection for a request of `owner` if one is available without waiting.
    pub fn ready(&self, owner: Option<&SessionOwner>) -> Option<ConnectionLease> {
        let (connection, claim) = self.supervisor_of(owner)?.claim()?;
        Some(ConnectionLease { connection, _guard: LeaseGuard::Claim { _claim: Some(claim) } })
    }

    /// Returns the connection that a request of `owner` would most likely get, if any.
    pub fn live(&self, owner: Option<&SessionOwner>) -> Option<Arc<Connection>> {
        match &self.connections {
            Connections::Exclusive(exclusive) => exclusive.live(),
            Connections::Shared(_) | Connections::PerSession(_) => {
                self.supervisor_of(owner)?.live()
            }
        }
    }

    /// Returns how long the connection attempt for `owner` has been in progress, if there is one.
    pub fn connecting_for(&self, owner: Option<&SessionOwner>) -> Option<Duration> {
        let supervisors = self.supervisors_for(owner);
        supervisors.iter().filter_map(|supervisor| supervisor.connecting_for()).max()
    }

    /// Waits until an attempt to connect for `owner` has failed and another attempt follows. Never
    /// returns where each request may have its own connection. Cancel safe.
    pub async fn wait_until_absent(&self, owner: Option<&SessionOwner>) {
        match self.supervisor_of(owner) {
            Some(supervisor) => supervisor.wait_until_absent().await,
            None => pending().await,
        }
    }
}
