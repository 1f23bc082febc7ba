//! The priming of servers: metamcp connects those with unknown lists before a client asks.
//!
//! The first client after an installation then sees the same lists as every later one. Priming
//! tries each declaration of a server once; the first request for a failed server tries it again.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::{Catalog, definition_hash::CatalogDigest, refresh::DueRefresh, server_lists::LISTS};
use crate::{
    breaker, config::defaults, connection::ConnectionLimits, error_report::chain, pool::ServerSlot,
    server_name::ServerName,
};

impl Catalog {
    pub(super) fn is_primed(&self) -> bool {
        self.is_primed.load(Ordering::Relaxed)
    }

    /// Primes servers until `stop`, at most [`defaults::PRIMED_AT_ONCE`] at a time. `limits`
    /// returns the current limits of a request.
    ///
    /// Priming evicts no connection, and a failure does not count for the breaker. Cancel safe: a
    /// connection attempt in progress continues.
    pub async fn prime(&self, limits: impl Fn() -> ConnectionLimits, stop: CancellationToken) {
        let mut tried = HashMap::<ServerName, CatalogDigest>::new();
        let mut primings = FuturesUnordered::new();
        loop {
            let mut is_crowded = false;
            while primings.len() < defaults::PRIMED_AT_ONCE
                && let Some(slot) = self.unprimed(&tried)
            {
                // A server that is being primed may not hold its permit yet.
                is_crowded = self.pool.n_free() <= primings.len();
                if is_crowded {
                    break;
                }
                tried.insert(slot.name().clone(), Self::declared(&slot));
                primings.push(self.prime_one(slot, limits()));
            }
            tokio::select! {
                () = stop.cancelled() => return,
                Some(()) = primings.next() => {}
                () = self.redeclared.notified() => {
                    tried.retain(|server, _| self.pool.slot(server.as_str()).is_some());
                }
                () = time::sleep(defaults::PRIME_PAUSE), if is_crowded => {}
            }
        }
    }

    /// Returns a server that has an unknown list, is not connected, and is not in `tried` with its
    /// present declaration.
    fn unprimed(&self, tried: &HashMap<ServerName, CatalogDigest>) -> Option<Arc<ServerSlot>> {
        if !self.is_primed() {
            return None;
        }
        let is_unprimed = |slot: &&Arc<ServerSlot>| {
            let (server, owner) = (slot.name(), self.owner(slot));
            LISTS.iter().any(|list| self.store.listing(server, *list).is_none())
                && slot.live(owner).is_none()
                && slot.connecting_for(owner).is_none()
                && slot.gate().snapshot().state == breaker::BreakerState::Normal
                && tried.get(server) != Some(&Self::declared(slot))
        };
        self.pool.slots().values().find(is_unprimed).cloned()
    }

    /// Connects a server that has become usable, and reads its unknown lists. Cancel safe: a
    /// connection attempt in progress continues.
    pub async fn prime_again(&self, server: &ServerName, limits: ConnectionLimits) {
        if let Some(slot) = self.pool.slot(server.as_str()) {
            self.prime_one(slot, limits).await;
        }
    }

    async fn prime_one(&self, slot: Arc<ServerSlot>, limits: ConnectionLimits) {
        let owner = self.owner(&slot);
        // An exclusive server gets a connection for each list.
        let mut held = None;
        if slot.has_fixed_connection() {
            let leased = tokio::select! {
                leased = slot.lease(owner, Instant::now() + limits.silence) => leased,
                () = slot.wait_until_absent(owner) => return,
            };
            if let Err(error) = &leased {
                let (server, reason) = (slot.name(), chain(error));
                tracing::debug!(mcp_server = %server, reason, "server `{server}` not primed: {reason}");
                return;
            }
            held = leased.ok();
        }
        for list in LISTS {
            if self.store.listing(slot.name(), list).is_none() {
                let due = DueRefresh { slot: Arc::clone(&slot), list, owner: owner.cloned() };
                self.read_due(due, limits).await;
            }
        }
        drop(held);
        // No client can use the connection of a server with `sharing = "session"`.
        if slot.is_per_session() || !self.pool.has_room_for_all() {
            slot.close_idle(owner);
        }
    }
}
