//! Background reads of lists: when a server has connected, and when a list is used whose server
//! announces no changes.
//!
//! A read on an existing connection costs little. It compares a list from the disk or from an
//! earlier connection with the server's present one. Without use nothing is read, so that the idle
//! timeout of an unused server expires.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::{
    Catalog, Key,
    fetch::FetchReason,
    list_entry::UnreadList,
    server_lists::{KnownList, KnownSource, LISTS},
};
use crate::{
    config::{LifecycleConfig, SharingMode, defaults},
    connection::{ConnectionLimits, SessionOwner},
    error_report::chain,
    pool::ServerSlot,
    protocol::list_page::ListKind,
    server_name::ServerName,
};

/// A list to be read.
pub(super) struct DueRefresh {
    pub(super) slot: Arc<ServerSlot>,
    pub(super) list: ListKind,
    pub(super) owner: Option<SessionOwner>,
}

impl Catalog {
    /// Reads the lists of newly connected servers, until `stop`. `limits` returns the current
    /// limits of a request. Cancel safe: a read in progress continues.
    pub async fn follow(&self, limits: impl Fn() -> ConnectionLimits, stop: CancellationToken) {
        let mut reads = FuturesUnordered::<BoxFuture<'_, (Key, bool)>>::new();
        let mut reading = HashSet::<Key>::new();
        // A server that crashes on such a request must not receive it at each start.
        let mut pauses = HashMap::<Key, Instant>::new();
        let mut looks_from = Instant::now();
        let mut is_over = false;
        loop {
            let used = async {
                time::sleep_until(looks_from).await;
                self.used.notified().await;
            };
            let servers = tokio::select! {
                () = stop.cancelled(), if !is_over => {
                    is_over = true;
                    // Servers that have just connected are read as well.
                    self.pool.arrived().now_or_never().unwrap_or_default()
                }
                servers = self.pool.arrived(), if !is_over => servers,
                () = used, if !is_over => {
                    looks_from = Instant::now() + defaults::REFRESH_PAUSE;
                    self.pool.slots().keys().cloned().collect()
                }
                Some((key, is_read)) = reads.next() => {
                    reading.remove(&key);
                    if !is_read {
                        pauses.insert(key, Instant::now() + defaults::REFRESH_PAUSE);
                    }
                    continue;
                }
                // Stopped, and all reads have ended.
                else => return,
            };
            let now = Instant::now();
            pauses.retain(|_, until| now < *until);
            for due in self.due(&servers) {
                let key = self.key(&due.slot, due.list, due.owner.as_ref());
                if pauses.contains_key(&key) || !reading.insert(key.clone()) {
                    continue;
                }
                let limits = limits();
                reads.push(Box::pin(async move { (key, self.read_due(due, limits).await) }));
            }
        }
    }

    /// Reads a list that is due. Returns whether that succeeded.
    pub(super) async fn read_due(&self, due: DueRefresh, limits: ConnectionLimits) -> bool {
        let DueRefresh { slot, list, owner } = due;
        let read = self.read(&slot, list, owner.as_ref(), limits, FetchReason::Connected).await;
        if let Err(UnreadList { error, .. }) = &read {
            let (server, method, reason) = (slot.name(), list.method(), chain(&**error));
            tracing::debug!(
                mcp_server = %server, mcp_method = method, reason,
                "`{method}` of server `{server}` not refreshed: {reason}"
            );
        }
        read.is_ok()
    }

    /// Returns the lists of `servers` that are due: the tools, lists that clients were shown or
    /// that were known before, and with `catalog.prime` all lists that the server has.
    fn due(&self, servers: &BTreeSet<ServerName>) -> Vec<DueRefresh> {
        let slots = servers.iter().filter_map(|server| self.pool.slot(server.as_str()));
        let mut due = Vec::new();
        for slot in slots {
            let observer = self.owner(&slot);
            let live = slot.live(observer).filter(|_| self.is_primed());
            let profile = live.as_ref().and_then(|connection| connection.profile());
            for list in LISTS {
                let is_wanted = match list {
                    ListKind::Tools => true,
                    ListKind::Prompts | ListKind::Resources | ListKind::ResourceTemplates => {
                        profile.is_some_and(|profile| profile.has(list.capability()))
                            || self.store.reading(slot.name(), list).is_some()
                    }
                };
                if is_wanted && self.is_due(&slot, list, observer) {
                    due.push(DueRefresh {
                        slot: Arc::clone(&slot),
                        list,
                        owner: observer.cloned(),
                    });
                }
            }
            due.extend(self.shown_to_owners(&slot));
        }
        due
    }

    /// Returns the lists that clients with their own connection were shown before they had it.
    fn shown_to_owners(&self, slot: &Arc<ServerSlot>) -> Vec<DueRefresh> {
        let entries = self.entries();
        let due = entries.iter().filter(|(key, entry)| {
            key.server == *slot.name() && entry.owner.is_some() && !entry.is_unshown()
        });
        let due = due.filter_map(|(key, entry)| {
            let owner = entry.owner.clone();
            let is_due = slot.live(owner.as_ref()).is_some()
                && entry.current(slot, owner.as_ref()).is_none();
            is_due.then(|| DueRefresh { slot: Arc::clone(slot), list: key.list, owner })
        });
        due.collect()
    }

    /// Returns whether the server is connected and the list is unread or out of date.
    fn is_due(&self, slot: &ServerSlot, list: ListKind, owner: Option<&SessionOwner>) -> bool {
        if slot.live(owner).is_none()
            || self.entry(slot, list, owner).current(slot, owner).is_some()
        {
            return false;
        }
        let declared = slot.declared();
        let is_short_lived = declared.lifecycle == LifecycleConfig::Ephemeral
            || matches!(declared.sharing, SharingMode::Exclusive { .. });
        let is_old = |known: KnownList| {
            // If the clock was set back, nothing is old.
            let age = known.read.elapsed().unwrap_or_default();
            known.source == KnownSource::Cache || age > defaults::REFRESH_AFTER
        };
        // Where requests may have their own connections, not on each of them.
        !is_short_lived || self.store.reading(slot.name(), list).is_some_and(is_old)
    }
}

#[cfg(test)]
mod tests;
