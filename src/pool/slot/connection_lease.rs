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
    _held: Held,
}

#[derive(Debug)]
enum Held {
    /// Shared with other requests.
    Claim { _claim: Option<ConnectionClaim> },
    /// Exclusive.
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
        let keeper = match &self.connections {
            Connections::Shared(keeper) => Arc::clone(keeper),
            Connections::Owned(owned) => owned.of(owner)?,
            Connections::Exclusive(exclusive) => {
                let (connection, checkout) = exclusive.check_out(holder, until).await?;
                return Ok(ConnectionLease {
                    connection,
                    _held: Held::Checkout { _checkout: checkout },
                });
            }
        };
        let (connection, claim) = keeper.lease(holder, Some(until)).await?;
        Ok(ConnectionLease { connection, _held: Held::Claim { _claim: claim } })
    }

    /// Leases a connection for a request of `owner` if one is available without waiting.
    pub fn ready(&self, owner: Option<&SessionOwner>) -> Option<ConnectionLease> {
        let (connection, claim) = self.standing(owner)?.claim()?;
        Some(ConnectionLease { connection, _held: Held::Claim { _claim: Some(claim) } })
    }

    /// Returns the connection that a request of `owner` would most likely get, if any.
    pub fn live(&self, owner: Option<&SessionOwner>) -> Option<Arc<Connection>> {
        match &self.connections {
            Connections::Exclusive(exclusive) => exclusive.live(),
            Connections::Shared(_) | Connections::Owned(_) => self.standing(owner)?.live(),
        }
    }

    /// Returns how long the connection attempt for `owner` has been in progress, if there is one.
    pub fn connecting_for(&self, owner: Option<&SessionOwner>) -> Option<Duration> {
        match &self.connections {
            Connections::Exclusive(exclusive) => {
                exclusive.supervisors().iter().filter_map(|keeper| keeper.connecting_for()).max()
            }
            Connections::Shared(_) | Connections::Owned(_) => {
                self.standing(owner)?.connecting_for()
            }
        }
    }

    /// Waits until an attempt to connect for `owner` has failed and another attempt follows. Never
    /// returns where each request may have its own connection. Cancel safe.
    pub async fn absent(&self, owner: Option<&SessionOwner>) {
        match self.standing(owner) {
            Some(keeper) => keeper.absent().await,
            None => pending().await,
        }
    }
}
