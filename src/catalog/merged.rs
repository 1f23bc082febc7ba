//! The lists of all servers at once, and what is known of those that are not there.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::join_all};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Catalog, Listing, digest::CatalogDigest, list_entry::ListEntry, snapshot::about};
use crate::{
    breaker,
    call::CallError,
    config::defaults,
    connection::{ConnectionLimits, SessionOwner},
    error_report::chain,
    name::ServerName,
    pool::ServerSlot,
    protocol::payloads::{ListKind, ServerProfile},
    search::RelevanceTerms,
};

/// A server whose tools are not known.
#[derive(Clone, Debug)]
pub struct UnreadServer {
    /// Its name.
    pub server: ServerName,
    /// Why they are not.
    pub reason: String,
    /// For how long it has been connecting; nothing when it does not.
    pub read_for: Option<Duration>,
}

impl Catalog {
    /// Returns the list of every server that has it, in the order of the servers' names.
    ///
    /// A server that is not connected is not connected for this: what is known of it counts, be it
    /// from the disk, until it says otherwise; clients are told then. One of which nothing is known
    /// is asked. If it cannot be connected at once, fails, or takes longer than [`defaults::LIST_PATIENCE`] or a request may stay
    /// silent, it is left out and logged: the tools of the others are worth more than an error. One
    /// that did so the last time is not waited for at all. Clients are told when it comes.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn all(
        &self,
        list: ListKind,
        owner: Option<&SessionOwner>,
        limits: ConnectionLimits,
    ) -> Vec<(ServerName, Listing)> {
        let each = self.each(list, owner, limits).await.into_iter();
        each.filter_map(|(server, listing)| Some((server, listing.ok()?))).collect()
    }

    /// Returns the list of every server, as [`Catalog::all`] does, or why it is left out.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn each(
        &self,
        list: ListKind,
        owner: Option<&SessionOwner>,
        limits: ConnectionLimits,
    ) -> Vec<(ServerName, Result<Listing, String>)> {
        let slots = self.pool.slots();
        let reads = slots.values().map(|slot| async move {
            (slot.name().clone(), self.soon(slot, list, owner, limits).await)
        });
        join_all(reads).await
    }

    /// Returns one server's list: as it is known where the server is not connected, else as it is
    /// read, be it that the server is connected for that.
    ///
    /// # Errors
    ///
    /// [`CallError`] when nothing is known of it and the server cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Safe: the read goes on for the others.
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

    /// Has every server connected and asked for its tools of which nothing is known, all at once and
    /// each with the patience of [`Catalog::all`]; one that the words of a request are about, with that
    /// of a search. Returns those whose tools are not known still.
    ///
    /// # Cancel safety
    ///
    /// Safe: the reads go on.
    pub async fn learn(
        &self,
        limits: ConnectionLimits,
        sought: Option<&RelevanceTerms>,
    ) -> Vec<UnreadServer> {
        let slots = self.pool.slots();
        let is_unknown =
            |slot: &&Arc<ServerSlot>| self.shelf.listing(slot.name(), ListKind::Tools).is_none();
        let most = Instant::now() + defaults::SEARCH_PATIENCE.min(limits.silence);
        let reads = slots.values().filter(is_unknown).map(|slot| async move {
            let owner = self.owner(slot);
            let reason = self.soon(slot, ListKind::Tools, owner, limits).await.err()?;
            if sought.is_some_and(|words| self.is_about(slot, words))
                && under_way(slot, owner).is_some()
            {
                let listing = self.listing(slot, ListKind::Tools, owner, limits);
                tokio::select! {
                    listed = listing => if listed.is_ok() {
                        return None;
                    },
                    () = slot.absent(owner) => {}
                    () = sleep_until(most) => {}
                }
            }
            let (server, read_for) = (slot.name().clone(), under_way(slot, owner));
            Some(UnreadServer { server, reason, read_for })
        });
        join_all(reads).await.into_iter().flatten().collect()
    }

    /// Tells whether a request with these words is about a server, as far as its name and what it said
    /// of itself the last time tell.
    fn is_about(&self, slot: &ServerSlot, words: &RelevanceTerms) -> bool {
        let about = self.profile(slot.name()).map(|profile| about(&profile)).unwrap_or_default();
        words.are_about(slot.name().as_str(), &about)
    }

    /// Has a server asked for its tools, whatever is known of it, connecting it where that is needed.
    ///
    /// # Errors
    ///
    /// [`CallError`] when it cannot be connected or does not answer with a list: what was known of
    /// it still is.
    ///
    /// # Cancel safety
    ///
    /// Safe: the read goes on for the others.
    pub async fn refresh(
        &self,
        slot: &Arc<ServerSlot>,
        limits: ConnectionLimits,
    ) -> Result<Listing, Arc<CallError>> {
        let owner = self.owner(slot);
        self.entry(slot, ListKind::Tools, owner).expire();
        self.listing(slot, ListKind::Tools, owner, limits).await
    }

    /// Returns what a server said of itself when it was connected last, be it in the life of another
    /// process.
    pub fn profile(&self, server: &ServerName) -> Option<Arc<ServerProfile>> {
        self.shelf.profile(server)
    }

    /// Returns one server's list if it is known or there in time, else why it is not.
    async fn soon(
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
        let most = defaults::LIST_PATIENCE.min(limits.silence);
        let patience = entry.readiness(slot, owner, &self.records).patience(most);
        let listing = self.listing(slot, list, owner, limits);
        let listed = match patience {
            // The shortest of timers takes a millisecond.
            Duration::ZERO => listing.now_or_never(),
            patience => {
                let waiting = async {
                    tokio::select! {
                        biased;
                        listed = listing => Some(listed),
                        // It may come later, and then clients are told.
                        () = slot.absent(owner) => None,
                    }
                };
                timeout(patience, waiting).await.ok().flatten()
            }
        };
        let is_late = listed.is_none();
        let reason = match listed {
            Some(Ok(listing)) => return Ok(listing),
            Some(Err(error)) => chain(&*error),
            None => late(slot, owner),
        };
        // What was known before is better than nothing.
        if let Some(known) = self.known_of(slot, list, owner, &entry) {
            return Ok(known);
        }
        if let Some(listing) = entry.note_omitted(slot, owner, is_late && !patience.is_zero()) {
            return Ok(listing);
        }
        if slot.live(owner).is_none() {
            if is_late {
                self.records.note(slot, true);
            }
            slot.note_omitted();
        }
        let (server, method) = (slot.name(), list.method());
        // Said once, and not with every list.
        if patience.is_zero() {
            tracing::debug!(mcp_server = %server, mcp_method = method, reason, "list left out again");
        } else {
            tracing::warn!(mcp_server = %server, mcp_method = method, reason, "list left out");
        }
        Err(reason)
    }

    /// Returns a list as it was read last, and takes note that clients are shown it.
    fn known_of(
        &self,
        slot: &ServerSlot,
        list: ListKind,
        owner: Option<&SessionOwner>,
        entry: &ListEntry,
    ) -> Option<Listing> {
        // One that is left alone is left out, for nothing that is on its list can be had.
        if slot.gate().snapshot().state != breaker::BreakerState::Normal {
            return None;
        }
        let known = self.shelf.listing(slot.name(), list)?;
        let (listing, is_news) = entry.show_known(slot, owner, known);
        if is_news {
            self.tell_changed(slot, list, owner);
        }
        Some(listing)
    }

    /// Returns for whom the lists of `slot` are read that are for nobody in particular.
    pub(super) fn owner(&self, slot: &ServerSlot) -> Option<&SessionOwner> {
        slot.is_per_session().then_some(&self.onlooker)
    }

    /// Returns how a server is declared, as far as that decides what it lists.
    pub(super) fn declared(slot: &ServerSlot) -> CatalogDigest {
        CatalogDigest::of_declaration(slot.declared())
    }
}

/// Returns why a list is not there in time: its server may have failed before, and be tried again.
/// Returns for how long a server has been connecting, if it is; nothing when the attempt has failed.
fn under_way(slot: &ServerSlot, owner: Option<&SessionOwner>) -> Option<Duration> {
    slot.connecting_for(owner).or_else(|| slot.live(owner).map(|_| Duration::ZERO))
}

fn late(slot: &ServerSlot, owner: Option<&SessionOwner>) -> String {
    let last_error = slot.live(owner).is_none().then(|| slot.status().last_error).flatten();
    last_error.unwrap_or_else(|| "not there in time".to_owned())
}
