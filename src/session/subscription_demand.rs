//! The demand of clients on servers: watched resources and log levels.

use std::sync::atomic::Ordering;

use tokio::time;

use super::{Session, SessionRegistry};
use crate::{
    config::defaults,
    pool::{ClientDemand, ServerSlot},
    protocol::LoggingLevel,
};

/// The reason why a resource is not watched.
#[derive(Debug)]
pub enum WatchRefusal {
    /// The server refuses, with this error object as JSON text.
    ByServer(String),
    /// The client watches the maximum number of resources.
    Full,
}

impl SessionRegistry {
    /// Returns whether a client has set a log level, so that servers may send more than by default.
    pub fn has_levels(&self) -> bool {
        self.n_levels.load(Ordering::Relaxed) > 0
    }

    /// Sets the log level of a client. Its servers get the lowest level of all their clients.
    /// Cancel safe: the level is set, and the servers get it in the background.
    pub async fn set_level(&self, session: &Session, level: LoggingLevel) {
        {
            // A level that is never reset must not count: that of an anonymous client, or of one
            // that ended its session meanwhile.
            let by_id = self.read();
            let known = session.id().and_then(|id| by_id.get(id));
            let is_known = known.is_some_and(|known| std::ptr::eq(&raw const **known, session));
            if is_known && session.memory().level.replace(level).is_none() {
                self.n_levels.fetch_add(1, Ordering::Relaxed);
            }
        }
        let slots = self.pool.slots();
        let covered = slots.values().filter(|slot| session.scope.covers(slot.name()));
        futures_util::future::join_all(covered.map(|slot| self.reconcile(session, slot))).await;
    }

    /// Subscribes a client to a resource of a server. Cancel safe: the subscription is still made.
    ///
    /// # Errors
    ///
    /// [`WatchRefusal`] if the server refuses, or if the client watches too many resources.
    pub async fn watch(
        &self,
        session: &Session,
        slot: &ServerSlot,
        uri: &str,
    ) -> Result<(), WatchRefusal> {
        let watched = (slot.name().clone(), uri.to_owned());
        {
            let mut memory = session.memory();
            if memory.watched.len() >= defaults::SUBSCRIPTIONS_MAX
                && !memory.watched.contains(&watched)
            {
                return Err(WatchRefusal::Full);
            }
            memory.watched.insert(watched.clone());
        }
        self.reconcile(session, slot).await;
        let Some(error) = slot.refusal(session.owner(), uri) else { return Ok(()) };
        session.memory().watched.remove(&watched);
        self.reconcile(session, slot).await;
        Err(WatchRefusal::ByServer(error))
    }

    /// Subscribes a client to resources of a server. Returns those that the server has not refused
    /// in time. Cancel safe: the subscriptions are still made.
    pub async fn watch_all(
        &self,
        session: &Session,
        slot: &ServerSlot,
        uris: &[String],
    ) -> Vec<String> {
        let watched = |uri: &String| (slot.name().clone(), uri.clone());
        let mut accepted = Vec::new();
        {
            let mut memory = session.memory();
            for uri in uris {
                if memory.watched.len() < defaults::SUBSCRIPTIONS_MAX {
                    memory.watched.insert(watched(uri));
                    accepted.push(uri.clone());
                }
            }
        }
        let owner = session.owner();
        let reconciling = self.reconcile(session, slot);
        // After the timeout, the pool continues in the background.
        let _timed_out = time::timeout(defaults::SUBSCRIBE_TIMEOUT, reconciling).await;
        let n_accepted = accepted.len();
        accepted.retain(|uri| {
            let is_refused = slot.refusal(owner, uri).is_some();
            if is_refused {
                session.memory().watched.remove(&watched(uri));
            }
            !is_refused
        });
        if accepted.len() < n_accepted {
            // The caller need not wait until the demand for refused resources has ended.
            slot.set_demand_in_background(owner, || self.client_demand(slot, session));
        }
        accepted
    }

    /// Ends a client's subscription to a resource. Cancel safe: the subscription still ends.
    pub async fn unwatch(&self, session: &Session, slot: &ServerSlot, uri: &str) {
        session.memory().watched.remove(&(slot.name().clone(), uri.to_owned()));
        self.reconcile(session, slot).await;
    }

    /// Sends the clients' demand to servers whose declaration has changed.
    pub fn reconcile_redeclared(&self) {
        for slot in self.pool.slots().values() {
            if slot.is_per_session() {
                let sessions: Vec<_> = self.read().values().cloned().collect();
                for session in sessions.iter().filter(|found| found.scope.covers(slot.name())) {
                    slot.set_demand_in_background(session.owner(), || {
                        session.demand_on(slot.name())
                    });
                }
            } else {
                slot.set_demand_in_background(None, || self.shared_demand(slot));
            }
        }
    }

    /// Returns the demand of all clients that share the connection of `session` to the server.
    pub(super) fn client_demand(&self, slot: &ServerSlot, session: &Session) -> ClientDemand {
        match slot.is_per_session() {
            true => session.demand_on(slot.name()),
            false => self.shared_demand(slot),
        }
    }

    /// Returns the demand of all clients on a server that they share.
    pub(super) fn shared_demand(&self, slot: &ServerSlot) -> ClientDemand {
        let mut all = ClientDemand::default();
        for session in self.read().values().filter(|session| session.scope.covers(slot.name())) {
            let demand = session.demand_on(slot.name());
            all.level = all.level.into_iter().chain(demand.level).min();
            all.uris.extend(demand.uris);
        }
        all
    }
}
