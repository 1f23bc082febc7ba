//! One list of one server: read once for all callers, and kept while it is current.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    Listing,
    announced_version::{ClientView, ListPosition},
    fetch::{ConnectAttempts, FetchReason, FetchedPages, ListFetch},
    list_defects::CatalogFindings,
};
use crate::{
    call::CallError,
    config::defaults,
    connection::{Connection, ConnectionLimits, ListRevisions, SessionOwner},
    pool::ServerSlot,
    protocol::{
        Era,
        list_page::{ListItem, ListKind},
    },
    single_flight::SingleFlight,
};

/// The outcome of a read, for all callers that wait for it.
pub(super) type ListReadOutcome = Result<Listing, UnreadList>;

/// A list that could not be read.
#[derive(Clone, Debug)]
pub(super) struct UnreadList {
    pub(super) error: Arc<CallError>,
    /// The reason for the read: a caller with a stronger reason may try again.
    pub(super) reason: FetchReason,
}

/// One list of one server, or of one client's connection to it.
#[derive(Debug)]
pub(super) struct ListEntry {
    list: ListKind,
    /// The owner of the connection, where the server has one for each client.
    pub(super) owner: Option<SessionOwner>,
    pub(super) reads: Arc<SingleFlight<ListReadOutcome>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: Option<Kept>,
    client_view: ClientView,
    /// The generation of the last connection that did not deliver the list in time.
    slow_generation: Option<u64>,
}

/// A list, with the state of the connection at the time of the read.
#[derive(Clone, Debug)]
struct Kept {
    lists: Arc<ListRevisions>,
    /// The number of changes that the server had announced.
    revision: u64,
    /// The time until which the list is valid, if its server does not announce changes.
    valid_until: Option<Instant>,
    listing: Listing,
    /// Clients were shown the list, so its annotations affect the handling of tool calls.
    is_announced: bool,
}

pub(super) struct ListRead {
    pub(super) listing: Listing,
    /// Some clients know another list.
    pub(super) is_notice_due: bool,
    /// The connection that the list was read on.
    pub(super) connection: Arc<Connection>,
}

impl ListEntry {
    /// Returns an entry that was not read yet.
    pub(super) fn new(list: ListKind, owner: Option<SessionOwner>) -> Arc<Self> {
        Arc::new(Self { list, owner, reads: SingleFlight::new(), state: Mutex::default() })
    }

    /// Returns the kept list if it is still valid: it came from the current connection, or the last
    /// one before its idle timeout, and no change was announced since.
    pub(super) fn current(
        &self,
        slot: &ServerSlot,
        owner: Option<&SessionOwner>,
    ) -> Option<Listing> {
        self.current_in(&self.state(), slot, owner)
    }

    fn current_in(
        &self,
        state: &State,
        slot: &ServerSlot,
        owner: Option<&SessionOwner>,
    ) -> Option<Listing> {
        let kept = state.kept.as_ref()?;
        let is_good = kept.valid_until.is_none_or(|until| Instant::now() < until);
        let is_current =
            is_good && kept.revision == kept.lists.of(self.list) && slot.has(&kept.lists, owner);
        is_current.then(|| Arc::clone(&kept.listing))
    }

    /// Returns the list as it was last read.
    pub(super) fn last(&self) -> Option<Listing> {
        self.state().kept.as_ref().map(|kept| Arc::clone(&kept.listing))
    }

    pub(super) fn readiness(
        &self,
        slot: &Arc<ServerSlot>,
        owner: Option<&SessionOwner>,
        attempts: &ConnectAttempts,
    ) -> ServerReadiness {
        if let Some(connection) = slot.live(owner) {
            let is_slow = self.state().slow_generation == Some(connection.generation());
            return ServerReadiness::Live { is_slow };
        }
        if attempts.has_failed(slot) {
            return ServerReadiness::Failed;
        }
        slot.connecting_for(owner).map_or(ServerReadiness::Absent, ServerReadiness::Dialled)
    }

    /// Records that clients miss this list and must be notified of it, or returns it if it has just
    /// arrived. `has_waited` means that the list did not come in time.
    pub(super) fn note_omitted(
        &self,
        slot: &ServerSlot,
        owner: Option<&SessionOwner>,
        has_waited: bool,
    ) -> Option<Listing> {
        let mut state = self.state();
        let current = self.current_in(&state, slot, owner);
        if current.is_none() {
            state.client_view.omit();
            if has_waited && let Some(connection) = slot.live(owner) {
                state.slow_generation = Some(connection.generation());
            }
        }
        current
    }

    /// Records that a client was shown a page as the server wrote it.
    pub(super) fn note_shown_page(&self, page: &[ListItem], place: ListPosition) {
        self.state().client_view.note_page(page, place);
    }

    /// Records that clients are shown `listing`. Returns whether some know another list.
    pub(super) fn show(&self, listing: &Listing) -> bool {
        self.state().client_view.list(listing)
    }

    /// Records that clients are shown `known`, from the disk or from an earlier connection, unless
    /// the list has arrived at this moment. Returns the list to show, and whether some clients know
    /// another one.
    pub(super) fn show_known(
        &self,
        slot: &ServerSlot,
        owner: Option<&SessionOwner>,
        known: Listing,
    ) -> (Listing, bool) {
        let mut state = self.state();
        let listing = self.current_in(&state, slot, owner).unwrap_or(known);
        let is_notice_due = state.client_view.list(&listing);
        (listing, is_notice_due)
    }

    /// Records that clients are notified of `listing`, which was read for no particular client.
    /// Returns whether some clients know another list.
    pub(super) fn note_announced(&self, slot: &ServerSlot, listing: &Listing) -> bool {
        let is_notice_due = {
            let mut state = self.state();
            let Some(kept) = state.kept.as_mut().filter(|kept| Arc::ptr_eq(&kept.listing, listing))
            else {
                return false;
            };
            if std::mem::replace(&mut kept.is_announced, true) {
                return false;
            }
            state.client_view.list(listing)
        };
        if self.list == ListKind::Tools {
            let tools: Vec<&str> = listing.iter().map(ListItem::json).collect();
            slot.hints().learn(&format!(r#"{{"tools":[{}]}}"#, tools.join(",")), true);
        }
        is_notice_due
    }

    /// Marks the list as expired: the next caller reads it again.
    pub(super) fn expire(&self) {
        if let Some(kept) = &mut self.state().kept {
            kept.valid_until = Some(Instant::now());
        }
    }

    /// Records that a client was shown something that may be wrong.
    pub(super) fn mark_stale(&self) {
        self.state().client_view = ClientView::Mixed;
    }

    /// Returns whether clients were shown nothing since they were last notified to ask again.
    pub(super) fn is_unshown(&self) -> bool {
        self.state().client_view == ClientView::Nothing
    }

    /// Records that all clients are notified to ask again, without a comparison.
    pub(super) fn forget(&self) {
        self.state().client_view = ClientView::Nothing;
    }

    pub(super) async fn read(
        &self,
        slot: Arc<ServerSlot>,
        owner: Option<SessionOwner>,
        limits: ConnectionLimits,
        reason: FetchReason,
        (attempts, findings): (Arc<ConnectAttempts>, Arc<CatalogFindings>),
    ) -> Result<ListRead, CallError> {
        let fetch = ListFetch { slot: &slot, owner: owner.as_ref(), limits, reason };
        let lease = fetch.connection(&attempts).await?;
        let connection = Arc::clone(&lease.connection);
        // The lease prevents the eviction of the connection during the read. Where each request
        // takes its own connection, it is returned at once.
        let is_kept = slot.has_fixed_connection() || reason == FetchReason::Connected;
        let _kept = is_kept.then_some(lease);
        // Noted before the read: a change announced meanwhile causes another read.
        let lists = Arc::clone(connection.lists());
        let revision = lists.of(self.list);
        let prefetched = connection.take_prefetched(self.list);
        // A list that was read before any use does not affect the handling of calls.
        let is_announced = reason == FetchReason::Requested && prefetched.is_none();
        let capability = self.list.capability();
        let profile = connection.profile().filter(|profile| profile.has(capability));
        let FetchedPages { items, rejected, ttl } = match profile {
            Some(_) => fetch.pages(self.list, &connection, prefetched).await?,
            None => FetchedPages::default(),
        };
        findings.read(slot.name(), self.list, &items, &rejected, true);
        let is_silent = profile.is_some_and(|found| !found.has_list_changed(capability));
        let ttl = ttl.filter(|_| profile.is_some_and(|found| found.era() == Era::Modern));
        let good_for = ttl.map_or(defaults::REFRESH_AFTER, |ttl| ttl.max(defaults::LIST_TTL_MIN));
        let valid_until = is_silent.then(|| Instant::now().checked_add(good_for)).flatten();
        let listing: Listing = Arc::new(items);
        let is_notice_due = {
            let mut state = self.state();
            let listing = Arc::clone(&listing);
            let is_notice_due = match reason {
                FetchReason::Requested => state.client_view.list(&listing),
                FetchReason::Connected => state.client_view.compare(&listing),
            };
            state.kept = Some(Kept { lists, revision, valid_until, listing, is_announced });
            state.slow_generation = None;
            is_notice_due
        };
        Ok(ListRead { listing, is_notice_due, connection })
    }

    /// Returns whether the list's connection exists, a read is running, or the owner was shown a
    /// list and must hear if it changes.
    pub(super) fn is_current(&self) -> bool {
        let is_connected = |kept: &Kept| Arc::strong_count(&kept.lists) > 1;
        let is_shown =
            || self.owner.as_ref().is_some_and(|owner| !owner.has_gone()) && !self.is_unshown();
        self.reads.is_running()
            || self.state().kept.as_ref().is_some_and(is_connected)
            || is_shown()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Held for statements on plain data, never across an await.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of a server when a client asks for a list of all servers.
///
/// A list must not wait repeatedly for a server that did not answer in time. When such a server
/// connects, clients are notified to read the lists again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerReadiness {
    /// The server has no connection and is not connecting. The next attempt may succeed.
    Absent,
    /// The server has been connecting for this long, and may succeed.
    Dialled(Duration),
    /// The last attempt failed or took too long; another one may be under way.
    Failed,
    /// The server has a connection.
    Live {
        /// An earlier caller did not get the list in time.
        is_slow: bool,
    },
}

impl ServerReadiness {
    /// Returns the time to wait for a list, at most `most`.
    pub(super) fn list_timeout(self, most: Duration) -> Duration {
        match self {
            Self::Absent | Self::Live { is_slow: false } => most,
            // The wait counts from the first caller.
            Self::Dialled(age) => most.saturating_sub(age),
            Self::Failed | Self::Live { is_slow: true } => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(4);

    #[test]
    fn a_list_waits_only_for_a_server_that_may_still_answer_in_time() {
        let seconds = Duration::from_secs;
        for (readiness, timeout) in [
            (ServerReadiness::Absent, MOST),
            (ServerReadiness::Dialled(Duration::ZERO), MOST),
            (ServerReadiness::Dialled(seconds(1)), seconds(3)),
            (ServerReadiness::Dialled(MOST), Duration::ZERO),
            (ServerReadiness::Dialled(seconds(3600)), Duration::ZERO),
            (ServerReadiness::Failed, Duration::ZERO),
            (ServerReadiness::Live { is_slow: false }, MOST),
            (ServerReadiness::Live { is_slow: true }, Duration::ZERO),
        ] {
            assert_eq!(readiness.list_timeout(MOST), timeout, "{readiness:?}");
        }
    }
}
