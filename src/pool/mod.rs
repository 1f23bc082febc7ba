//! The declared servers and their connections. All clients share one connection per server, unless
//! the server declares another `sharing`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{self, Config, ServerConfig, ServerConfigs, SharingMode, StartPolicy, defaults},
    connection::{Dialer, SessionOwner},
    oauth::LoginService,
    protocol::Era,
    reconfigure::{ConfigChange, Reconfigure, ServerDiff},
    server_name::ServerName,
    telemetry::duration_histogram::DurationHistogram,
};

mod admission;
mod breaker_gate;
mod connection_lifecycle;
mod desired_state;
mod error;
mod exclusive;
mod idle_connections;
mod immediate_task_results;
mod per_session;
mod permits;
mod server_events;
mod server_slot;
mod status;
mod supervisor;
mod tool_hints;

use admission::PermitAdmission;
pub use breaker_gate::{BreakerGate, BreakerOpen, GatePass};
pub use connection_lifecycle::LifecycleState;
pub use desired_state::ClientDemand;
pub use error::SlotError;
pub use immediate_task_results::{FinishedTask, FinishedTasks};
pub use per_session::OneShotClient;
pub use server_events::{ServerEvent, ServerEventKind, ServerEvents};
pub use server_slot::{ConnectionLease, ServerSlot};
pub use status::{PoolStatus, ServerConnections, ServerFailure, SlotStatus};
pub use tool_hints::ToolHints;

#[cfg(test)]
mod tests;

/// The slots of all declared servers.
#[derive(Debug)]
pub struct Pool {
    dialer: Dialer,
    admission: Arc<PermitAdmission>,
    slots: ArcSwap<BTreeMap<ServerName, Arc<ServerSlot>>>,
    /// Serialises changes.
    changing: Mutex<()>,
    /// Ends every connection, including those of removed servers.
    closing: CancellationToken,
}

impl Reconfigure for Pool {
    fn reconfigure(&self, change: &ConfigChange) {
        let ConfigChange { old, new, servers, diff, .. } = change;
        self.apply(servers, diff, new, old.service.max_total_timeout);
    }
}

impl Pool {
    /// Returns a pool of the servers in `config`. Connects nothing yet.
    pub fn new(dialer: Dialer, config: &Config) -> Self {
        let closing = CancellationToken::new();
        let admission = PermitAdmission::new(&config.pool);
        let sweep =
            closing.clone().run_until_cancelled_owned(Arc::clone(&admission).run_idle_sweep());
        dialer.tasks().spawn(sweep);
        let (slots, changing) = (ArcSwap::default(), Mutex::new(()));
        let pool = Self { dialer, admission, slots, changing, closing };
        let slots = config
            .servers
            .iter()
            .map(|(name, server)| pool.slot_for(name, server, None, config.breaker));
        pool.slots.store(Arc::new(slots.collect()));
        pool
    }

    /// Returns the slot of the server called `name`.
    pub fn slot(&self, name: &str) -> Option<Arc<ServerSlot>> {
        self.slots.load().get(name).cloned()
    }

    /// Returns all slots, ordered by server name.
    pub fn slots(&self) -> Arc<BTreeMap<ServerName, Arc<ServerSlot>>> {
        self.slots.load_full()
    }

    /// Records the eras that servers spoke in an earlier process, so that metamcp does not probe an
    /// upstream of the legacy era again.
    pub fn remember_eras(&self, era_of: impl Fn(&ServerName) -> Option<Era>) {
        for (name, slot) in self.slots().iter() {
            if era_of(name) == Some(Era::Legacy) {
                self.dialer.remember_legacy(name, slot.declared());
            }
        }
    }

    /// Returns the `prewarm` servers that are not connected yet and whose attempt has not failed.
    pub fn awaited(&self) -> Vec<ServerName> {
        let slots = self.slots();
        let awaited = slots.values().filter(|slot| {
            let declared = slot.declared();
            declared.start == StartPolicy::Prewarm
                && declared.sharing == SharingMode::Shared
                && slot.live(None).is_none()
                && slot.wait_until_absent(None).now_or_never().is_none()
        });
        awaited.map(|slot| slot.name().clone()).collect()
    }

    /// Connects the servers that are not lazy. Waits for each `prewarm` server until it is
    /// connected or an attempt has failed, for at most [`defaults::PREWARM_TIMEOUT`] in total.
    /// Cancel safe: the connection attempts continue.
    pub async fn warm_up(&self) {
        let slots = self.slots();
        let mut prewarmed = Vec::new();
        for slot in slots.values() {
            match slot.declared().start {
                StartPolicy::Lazy => {}
                StartPolicy::Eager => slot.start_connecting(),
                StartPolicy::Prewarm => {
                    // This attempt keeps waiting for a permit after the timeout below.
                    slot.start_connecting();
                    prewarmed.push(slot.connect());
                }
            }
        }
        let all = futures_util::future::join_all(prewarmed);
        if tokio::time::timeout(defaults::PREWARM_TIMEOUT, all).await.is_err() {
            let names: Vec<_> = self.awaited().iter().map(ServerName::to_string).collect();
            let (names, after) = (names.join(", "), defaults::PREWARM_TIMEOUT.as_secs());
            tracing::warn!(
                "`prewarm` servers not connected within {after} s, serving without them: {names}"
            );
        }
    }

    /// Keeps others from changing the servers until the guard is dropped. A caller that compares
    /// them holds it until the change is applied; readers never wait for it.
    pub fn lock_servers(&self) -> MutexGuard<'_, ()> {
        // Held for a change, which waits for nothing.
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares the servers of the pool with `servers`.
    pub fn compare(&self, servers: &ServerConfigs) -> ServerDiff {
        let slots = self.slots();
        let mut diff = ServerDiff::default();
        for (name, server) in servers {
            match slots.get(name) {
                None => diff.added.push(name.clone()),
                Some(slot) if slot.declared() != &**server => diff.changed.push(name.clone()),
                Some(_) => {}
            }
        }
        diff.removed.extend(slots.keys().filter(|name| !servers.contains_key(*name)).cloned());
        diff
    }

    /// Replaces the servers by `servers`, which differ by `diff`, and the limits by those of
    /// `config`. Unchanged servers keep their connections.
    ///
    /// Removed and changed servers finish their running requests in the background, for at most
    /// `drain_timeout`. The caller holds [`Pool::lock_servers`].
    pub fn apply(
        &self,
        servers: &ServerConfigs,
        diff: &ServerDiff,
        config: &Config,
        drain_timeout: Duration,
    ) {
        self.admission.set_rules(&config.pool);
        self.dialer.reload_certificates(servers);
        let mut slots = BTreeMap::clone(&self.slots.load());
        let mut closing = Vec::<Arc<ServerSlot>>::new();
        for name in diff.removed.iter().chain(&diff.changed) {
            if let Some(slot) = slots.remove(name) {
                closing.push(slot);
            }
        }
        for name in diff.added.iter().chain(&diff.changed) {
            if let Some(server) = servers.get(name) {
                let replaced = closing.iter().find(|closing| closing.name() == name).cloned();
                let (name, slot) = self.slot_for(name, server, replaced.as_deref(), config.breaker);
                if server.start != StartPolicy::Lazy {
                    slot.start_connecting();
                }
                if let Some(replaced) = replaced {
                    slot.events().record(ServerEventKind::Reloaded, "");
                    replaced.set_successor(Arc::clone(&slot));
                }
                slots.insert(name, slot);
            }
        }
        for slot in slots.values() {
            slot.gate().configure(config.breaker);
        }
        self.slots.store(Arc::new(slots));
        // Close the old slots only after the swap, so that no caller finds a closing slot.
        for slot in closing {
            self.dialer.tasks().spawn(async move { slot.close(drain_timeout).await });
        }
    }
    /// Waits until servers have new connections, and returns those servers. For a single waiter.
    /// Cancel safe: the next call returns them.
    pub async fn arrived(&self) -> BTreeSet<ServerName> {
        self.admission.arrived().await
    }

    /// Closes all connections concurrently. The caller has already waited for running requests.
    /// Cancel safe: connections that were asked to close still close.
    pub async fn close(&self) {
        let slots = self.slots();
        let closing = slots.values().map(|slot| slot.close(Duration::ZERO));
        futures_util::future::join_all(closing).await;
        // Includes servers that a reload removed and that still finish requests.
        self.closing.cancel();
        self.dialer.tasks().close();
        self.dialer.tasks().wait().await;
    }

    /// Closes the connections of a client that has disconnected.
    pub fn release(&self, owner: &SessionOwner) {
        for slot in self.slots().values() {
            slot.release(owner);
        }
    }

    /// Returns the number of connections made so far, for all servers.
    pub fn n_connected(&self) -> u64 {
        self.dialer.n_connected()
    }

    /// Returns the number of connections that the pool can add without an eviction.
    pub fn n_free(&self) -> usize {
        let PoolStatus { size, connections, waiting, .. } = self.admission.status();
        size.saturating_sub(connections + waiting)
    }

    /// Returns whether the pool has room for one connection of each server.
    pub fn has_room_for_all(&self) -> bool {
        self.slots().len() <= self.admission.status().size
    }

    /// Returns whether a server is connecting for the first time.
    pub fn is_starting(&self) -> bool {
        self.slots().values().any(|slot| slot.is_starting())
    }

    /// Returns the state of all connections together.
    pub fn status(&self) -> PoolStatus {
        self.admission.status()
    }

    /// Returns the times that connections waited for room in the pool.
    pub fn waits(&self) -> &DurationHistogram {
        self.admission.waits()
    }

    /// Returns the logins of this host.
    pub fn logins(&self) -> Option<&Arc<LoginService>> {
        self.dialer.logins()
    }

    /// Returns the state of every server.
    pub fn servers(&self) -> Vec<SlotStatus> {
        self.slots().values().map(|slot| slot.status()).collect()
    }

    fn slot_for(
        &self,
        name: &ServerName,
        server: &Arc<ServerConfig>,
        replaced: Option<&ServerSlot>,
        breaker: config::BreakerConfig,
    ) -> (ServerName, Arc<ServerSlot>) {
        let durations = replaced.map(|replaced| replaced.durations().clone()).unwrap_or_default();
        let dialer = self.dialer.clone().measuring(durations);
        let admission = Arc::clone(&self.admission);
        let (declared, closing) = ((name.clone(), Arc::clone(server)), self.closing.child_token());
        // All continue across a change: the generation distinguishes connections.
        let history = replaced.map_or_else(Default::default, |replaced| {
            (replaced.generation(), Arc::clone(replaced.events()))
        });
        let slot = ServerSlot::new(dialer, admission, declared, history, breaker, closing);
        (name.clone(), slot)
    }
}
