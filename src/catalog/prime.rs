//! What servers list is read before anybody asks: servers of which something is not known are connected
//! for that, a few at a time, and while there is room for them.
//!
//! So the first client after an installation is shown what it will be shown later. Each is tried once:
//! who asks for one that could not be connected has it tried again.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::{Catalog, digest::Digest, known::LISTS, refresh::Due};
use crate::{
    breaker,
    config::{self, defaults},
    connection::Limits,
    name::ServerName,
    pool::Slot,
    report::chain,
};

impl Catalog {
    /// Reads lists ahead as is declared.
    pub fn prime_as(&self, declared: &config::Catalog) {
        self.is_primed.store(declared.prime, Ordering::Relaxed);
        self.redeclared.notify_one();
    }

    /// Tells whether lists are read before anybody asks for them.
    pub(super) fn is_primed(&self) -> bool {
        self.is_primed.load(Ordering::Relaxed)
    }

    /// Connects servers of which not all lists are known and has these read, until `stop`. `limits` are
    /// those of a request at that moment.
    ///
    /// Nobody makes room for them, and their breakers do not count it.
    ///
    /// # Cancel safety
    ///
    /// Safe: what is being connected is connected all the same.
    pub async fn prime(&self, limits: impl Fn() -> Limits, stop: CancellationToken) {
        let mut tried = HashMap::<ServerName, Digest>::new();
        let mut primings = FuturesUnordered::new();
        loop {
            let mut is_crowded = false;
            while primings.len() < defaults::PRIMED_AT_ONCE
                && let Some(slot) = self.unprimed(&tried)
            {
                // Those that are being connected may not have their seat yet.
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

    /// Returns a server that nobody connects and of which something is not known, other than those that
    /// were tried as they are declared.
    fn unprimed(&self, tried: &HashMap<ServerName, Digest>) -> Option<Arc<Slot>> {
        if !self.is_primed() {
            return None;
        }
        let is_unprimed = |slot: &&Arc<Slot>| {
            let (server, owner) = (slot.name(), self.owner(slot));
            LISTS.iter().any(|list| self.shelf.listing(server, *list).is_none())
                && slot.live(owner).is_none()
                && slot.dialled_for(owner).is_none()
                && slot.gate().snapshot().state == breaker::Shown::Normal
                && tried.get(server) != Some(&Self::declared(slot))
        };
        self.pool.slots().values().find(is_unprimed).cloned()
    }

    async fn prime_one(&self, slot: Arc<Slot>, limits: Limits) {
        let owner = self.owner(&slot);
        // Where each request has a connection of its own, so has each list.
        let held = if slot.is_standing() {
            let leased = tokio::select! {
                leased = slot.lease(owner, Instant::now() + limits.silence) => leased,
                () = slot.absent(owner) => return,
            };
            match leased {
                Ok(lease) => Some(lease),
                Err(error) => {
                    let (server, reason) = (slot.name(), chain(&error));
                    tracing::debug!(mcp_server = %server, reason, "lists not read ahead");
                    return;
                }
            }
        } else {
            None
        };
        for list in LISTS {
            if self.shelf.listing(slot.name(), list).is_none() {
                let due = Due { slot: Arc::clone(&slot), list, owner: owner.cloned() };
                self.look(due, limits).await;
            }
        }
        drop(held);
        // Nobody else uses one that would be a client's.
        if slot.is_owned() || !self.pool.has_room_for_all() {
            slot.put_away(owner);
        }
    }
}
