//! The lists of all servers, including the known lists of servers without a connection.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::join_all};
use tokio::time::{Instant, sleep_until, timeout};

use super::{
    Catalog, Listing, definition_hash::CatalogDigest, list_entry::ListEntry, snapshot::about,
};
use crate::{
    breaker,
    call::CallError,
    config::defaults,
    connection::{ConnectionLimits, SessionOwner},
    error_report::chain,
    pool::ServerSlot,
    protocol::{list_page::ListKind, payloads::ServerProfile},
    search::RelevanceTerms,
    server_name::ServerName,
};

/// A server whose tools are not known.
#[derive(Clone, Debug)]
pub struct UnreadServer {
    /// The name of the server.
    pub server: ServerName,
    /// The reason.
    pub reason: String,
    /// The time that it has been connecting; `None` if it is not connecting.
    pub read_for: Option<Duration>,
}

impl Catalog {
    /// Returns the list of every server that has it, in the order of the servers' names.
    ///
    /// A server without a connection is not connected for this: its known list is used, also from
    /// the disk, and clients are notified if it turns out to differ. A server without a known list
    /// is asked. If it fails or takes longer than [`defaults::LIST_TIMEOUT`] or the limit on
    /// silence, its list is left out and logged: the tools of the others are worth more than an
    /// error. The next list does not wait for such a server. Clients are notified when it connects.
    /// Cancel safe.
    pub async fn all(
        &self,
        list: ListKind,
        owner: Option<&SessionOwner>,
        limits: ConnectionLimits,
    ) -> Vec<(ServerName, Listing)> {
        let each = self.each(list, owner, limits).await.into_iter();
        each.filter_map(|(server, listing)| Some((server, listing.ok()?))).collect()
    }

    /// Returns each server's list, as [`Catalog::all`] does, or the reason why it is left out.
    /// Cancel safe.
    pub async fn each(
        &self,
        list: ListKind,
        owner: Option<&SessionOwner>,
        limits: ConnectionLimits,
    ) -> Vec<(ServerName, Result<Listing, String>)> {
        let slots = self.pool.slots();
        let reads = slots.values().map(|slot| async move {
            (slot.name().clone(), self.read_in_time(slot, list, owner, limits).await)
        });
        join_all(reads).await
    }

    /// Returns one server's list: the known one if the server has no connection, else the result of
    /// a read. Connects the server if nothing is known. Cancel safe: the read continues for other
    /// callers.
    ///
    /// # Errors
    ///
    /// [`CallError`] if no list is known and the server cannot be asked.
    pub async fn known_or_read(
        &self,
        slot: &Arc<ServerSlot>,
        list: ListKind,
        owner: Option<&SessionOwner>,
        limits: ConnectionLimits,
    ) -> Result<Listing, Arc<CallError>> {
        if slot.live(owner).is_none()
            && let Some(known) = self.known_of(slot, list, owner, &self.entry(slot, list, owner))
        {
            return Ok(known);
        }
        self.listing(slot, list, owner, limits).await
    }

    /// Connects all servers without known tools at once and reads their tools. Waits for each as
    /// [`Catalog::all`] does, and as long as a search does if `sought` is about the server. Returns
    /// the servers whose tools are still unknown. Cancel safe: the reads continue.
    pub async fn learn(
        &self,
        limits: ConnectionLimits,
        sought: Option<&RelevanceTerms>,
    ) -> Vec<UnreadServer> {
        let slots = self.pool.slots();
        let is_unknown =
            |slot: &&Arc<ServerSlot>| self.store.listing(slot.name(), ListKind::Tools).is_none();
        let most = Instant::now() + defaults::SEARCH_TIMEOUT.min(limits.silence);
        let reads = slots.values().filter(is_unknown).map(|slot| async move {
            let owner = self.owner(slot);
            let reason = self.read_in_time(slot, ListKind::Tools, owner, limits).await.err()?;
            if sought.is_some_and(|words| self.is_about(slot, words))
                && under_way(slot, owner).is_some()
            {
                let listing = self.listing(slot, ListKind::Tools, owner, limits);
                tokio::select! {
                    listed = listing => if listed.is_ok() {
                        return None;
                    },
                    () = slot.wait_until_absent(owner) => {}
                    () = sleep_until(most) => {}
                }
            }
            let (server, read_for) = (slot.name().clone(), under_way(slot, owner));
            Some(UnreadServer { server, reason, read_for })
        });
        join_all(reads).await.into_iter().flatten().collect()
    }

    /// Returns whether a request with these words is about a server, judged by its name and last
    /// profile.
    fn is_about(&self, slot: &ServerSlot, words: &RelevanceTerms) -> bool {
        let about = self.profile(slot.name()).map(|profile| about(&profile)).unwrap_or_default();
        words.are_about(slot.name().as_str(), &about)
    }

    /// Reads a server's tools, whatever is known of them, and connects the server if needed. Cancel
    /// safe: the read continues for other callers.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server cannot be connected or does not answer with a list. The known
    /// list stays.
    pub async fn refresh(
        &self,
        slot: &Arc<ServerSlot>,
        limits: ConnectionLimits,
    ) -> Result<Listing, Arc<CallError>> {
        let owner = self.owner(slot);
        self.entry(slot, ListKind::Tools, owner).expire();
        self.listing(slot, ListKind::Tools, owner, limits).await
    }

    /// Returns the last profile that a server sent, also to an earlier process.
    pub fn profile(&self, server: &ServerName) -> Option<Arc<ServerProfile>> {
        self.store.profile(server)
    }

    /// Returns one server's list if it is known or arrives in time, else the reason why not.
    async fn read_in_time(
        &self,
        slot: &Arc<ServerSlot>,
        list: ListKind,
        owner: Option<&SessionOwner>,
        limits: ConnectionLimits,
    ) -> Result<Listing, String> {
        let entry = self.entry(slot, list, owner);
        if slot.live(owner).is_none()
            && let Some(known) = self.known_of(slot, list, owner, &entry)
        {
            return Ok(known);
        }
        let most = defaults::LIST_TIMEOUT.min(limits.silence);
        let wait = entry.readiness(slot, owner, &self.attempts).list_timeout(most);
        let listing = self.listing(slot, list, owner, limits);
        let listed = match wait {
            // A timer takes at least a millisecond.
            Duration::ZERO => listing.now_or_never(),
            wait => {
                let waiting = async {
                    tokio::select! {
                        biased;
                        listed = listing => Some(listed),
                        // The list may arrive later; clients are notified then.
                        () = slot.wait_until_absent(owner) => None,
                    }
                };
                timeout(wait, waiting).await.ok().flatten()
            }
        };
        let is_late = listed.is_none();
        let reason = match listed {
            Some(Ok(listing)) => return Ok(listing),
            Some(Err(error)) => chain(&*error),
            None => late(slot, owner),
        };
        // An older list is better than none.
        if let Some(known) = self.known_of(slot, list, owner, &entry) {
            return Ok(known);
        }
        if let Some(listing) = entry.note_omitted(slot, owner, is_late && !wait.is_zero()) {
            return Ok(listing);
        }
        if slot.live(owner).is_none() {
            if is_late {
                self.attempts.note(slot, true);
            }
            slot.note_omitted();
        }
        log_omitted(slot.name(), list.method(), &reason, !wait.is_zero());
        Err(reason)
    }

    /// Returns a list as it was last read, and records that clients are shown it.
    fn known_of(
        &self,
        slot: &ServerSlot,
        list: ListKind,
        owner: Option<&SessionOwner>,
        entry: &ListEntry,
    ) -> Option<Listing> {
        // The list of a server behind an open breaker is left out: its items cannot be used.
        if slot.gate().snapshot().state != breaker::BreakerState::Normal {
            return None;
        }
        let known = self.store.listing(slot.name(), list)?;
        let (listing, is_notice_due) = entry.show_known(slot, owner, known);
        if is_notice_due {
            self.notify_changed(slot, list, owner);
        }
        Some(listing)
    }

    /// Returns the connection owner used to read lists on behalf of all clients.
    pub(super) fn owner(&self, slot: &ServerSlot) -> Option<&SessionOwner> {
        slot.is_per_session().then_some(&self.observer)
    }

    /// Returns the digest of those parts of a server's declaration that decide what it lists.
    pub(super) fn declared(slot: &ServerSlot) -> CatalogDigest {
        CatalogDigest::of_declaration(slot.declared())
    }
}

/// Returns the time that a server has been connecting, if it is; `None` when the attempt has
/// failed.
fn under_way(slot: &ServerSlot, owner: Option<&SessionOwner>) -> Option<Duration> {
    slot.connecting_for(owner).or_else(|| slot.live(owner).map(|_| Duration::ZERO))
}

/// Logs that a list is left out: warns once, not for every list.
fn log_omitted(server: &ServerName, method: &str, reason: &str, is_first: bool) {
    if is_first {
        tracing::warn!(
            mcp_server = %server, mcp_method = method, reason,
            "`{method}` of server `{server}` left out: {reason}"
        );
    } else {
        tracing::debug!(
            mcp_server = %server, mcp_method = method, reason,
            "`{method}` of server `{server}` left out again: {reason}"
        );
    }
}

/// Returns why a list is late: the server's last error, if it has no connection and had one.
fn late(slot: &ServerSlot, owner: Option<&SessionOwner>) -> String {
    let last_error = slot.live(owner).is_none().then(|| slot.status().last_error).flatten();
    last_error.unwrap_or_else(|| "the list did not arrive in time".to_owned())
}
