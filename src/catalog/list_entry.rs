//! One list of one server: read once for all who ask, and kept while it is current.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::{
    Listing,
    client_view::{ClientView, ListPosition},
    connect_attempts::ConnectAttempts,
    fetch::{FetchReason, FetchedPages, ListFetch},
    findings::CatalogFindings,
    list_timeout::ServerReadiness,
};
use crate::{
    call::CallError,
    config::defaults,
    connection::{Connection, ConnectionLimits, ListRevisions, SessionOwner},
    pool::ServerSlot,
    protocol::{
        Era,
        payloads::{ListItem, ListKind},
    },
    single_flight::SingleFlight,
};

/// How a read ends, for all who wait for it.
pub(super) type ListReadOutcome = Result<Listing, UnreadList>;

/// A list that could not be read.
#[derive(Clone, Debug)]
pub(super) struct UnreadList {
    pub(super) error: Arc<CallError>,
    /// Who asks for it may try what was not tried.
    pub(super) reason: FetchReason,
}

/// One list of one server, or of one client's connection to it.
#[derive(Debug)]
pub(super) struct ListEntry {
    list: ListKind,
    /// Whose connection it is read on, where the server has one for each client.
    pub(super) owner: Option<SessionOwner>,
    pub(super) reads: Arc<SingleFlight<ListReadOutcome>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: Option<Kept>,
    shown: ClientView,
    /// The generation of the last connection that did not give it in time.
    slow_one: Option<u64>,
}

/// A list and the state of the connection that it was read in.
#[derive(Clone, Debug)]
struct Kept {
    lists: Arc<ListRevisions>,
    /// How many changes the server had announced.
    revision: u64,
    /// Until when it is good, where its server does not say when it changes.
    good_until: Option<Instant>,
    listing: Listing,
    /// Clients were told, so that what it says of tools counts in what is done with their calls.
    is_told: bool,
}

/// What came of reading a list.
pub(super) struct ListRead {
    pub(super) listing: Listing,
    /// There are clients that know another one.
    pub(super) is_news: bool,
    /// What it was read on.
    pub(super) connection: Arc<Connection>,
}

impl ListEntry {
    /// Returns one that was not read yet.
    pub(super) fn new(list: ListKind, owner: Option<SessionOwner>) -> Arc<Self> {
        Arc::new(Self { list, owner, reads: SingleFlight::new(), state: Mutex::default() })
    }

    /// Returns the list that was kept, if it came from this very connection, or the one that was
    /// there until nobody used it, and no change was announced since.
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
        let is_good = kept.good_until.is_none_or(|until| Instant::now() < until);
        let is_current =
            is_good && kept.revision == kept.lists.of(self.list) && slot.has(&kept.lists, owner);
        is_current.then(|| Arc::clone(&kept.listing))
    }

    /// Returns the list as it was read last.
    pub(super) fn last(&self) -> Option<Listing> {
        self.state().kept.as_ref().map(|kept| Arc::clone(&kept.listing))
    }

    /// Tells what is known of the server.
    pub(super) fn readiness(
        &self,
        slot: &Arc<ServerSlot>,
        owner: Option<&SessionOwner>,
        records: &ConnectAttempts,
    ) -> ServerReadiness {
        if let Some(connection) = slot.live(owner) {
            let is_slow = self.state().slow_one == Some(connection.generation());
            return ServerReadiness::Live { is_slow };
        }
        if records.has_failed(slot) {
            return ServerReadiness::Failed;
        }
        slot.connecting_for(owner).map_or(ServerReadiness::Absent, ServerReadiness::Dialled)
    }

    /// Notes that somebody is shown the lists of the others without this one, and is to be told when
    /// it comes; unless it has come at this moment. `has_waited` says that it was waited for in vain.
    pub(super) fn note_omitted(
        &self,
        slot: &ServerSlot,
        owner: Option<&SessionOwner>,
        has_waited: bool,
    ) -> Option<Listing> {
        let mut state = self.state();
        let current = self.current_in(&state, slot, owner);
        if current.is_none() {
            state.shown.omit();
            if has_waited && let Some(connection) = slot.live(owner) {
                state.slow_one = Some(connection.generation());
            }
        }
        current
    }

    /// Notes that a client was shown a page as the server wrote it.
    pub(super) fn note_shown_page(&self, page: &[ListItem], place: ListPosition) {
        self.state().shown.note_page(page, place);
    }

    /// Notes that clients are shown `listing` from now on, and tells whether some know another one.
    pub(super) fn show(&self, listing: &Listing) -> bool {
        self.state().shown.list(listing)
    }

    /// Notes that clients are shown `known`, which was read before there was a connection, or on the
    /// last one; unless the list has come at this moment. Returns the one of them that is shown, and
    /// whether some clients know another one.
    pub(super) fn show_known(
        &self,
        slot: &ServerSlot,
        owner: Option<&SessionOwner>,
        known: Listing,
    ) -> (Listing, bool) {
        let mut state = self.state();
        let shown = self.current_in(&state, slot, owner).unwrap_or(known);
        let is_news = state.shown.list(&shown);
        (shown, is_news)
    }

    /// Takes note that clients are told of `listing`, which was read for nobody in particular.
    /// Returns whether some clients know another one.
    pub(super) fn note_announced(&self, slot: &ServerSlot, listing: &Listing) -> bool {
        let is_news = {
            let mut state = self.state();
            let Some(kept) = state.kept.as_mut().filter(|kept| Arc::ptr_eq(&kept.listing, listing))
            else {
                return false;
            };
            if std::mem::replace(&mut kept.is_told, true) {
                return false;
            }
            state.shown.list(listing)
        };
        if self.list == ListKind::Tools {
            let tools: Vec<&str> = listing.iter().map(ListItem::json).collect();
            slot.hints().learn(&format!(r#"{{"tools":[{}]}}"#, tools.join(",")), true);
        }
        is_news
    }

    /// Has the list read again by whoever asks next.
    pub(super) fn expire(&self) {
        if let Some(kept) = &mut self.state().kept {
            kept.good_until = Some(Instant::now());
        }
    }

    /// Notes that a client was told something that may be wrong.
    pub(super) fn mark_stale(&self) {
        self.state().shown.mark_stale();
    }

    /// Tells whether clients were shown nothing since they were told to ask again.
    pub(super) fn is_unshown(&self) -> bool {
        self.state().shown == ClientView::Nothing
    }

    /// Notes that all clients are told to ask again.
    pub(super) fn forget(&self) {
        self.state().shown.forget();
    }

    /// Reads the list.
    pub(super) async fn read(
        &self,
        slot: Arc<ServerSlot>,
        owner: Option<SessionOwner>,
        limits: ConnectionLimits,
        reason: FetchReason,
        (records, findings): (Arc<ConnectAttempts>, Arc<CatalogFindings>),
    ) -> Result<ListRead, CallError> {
        let asking = ListFetch { slot: &slot, owner: owner.as_ref(), limits, reason };
        let lease = asking.connection(&records).await?;
        let connection = Arc::clone(&lease.connection);
        // Kept while the list is read, so that it does not make room for another one meanwhile; but
        // not where each request takes one for itself.
        let is_kept = slot.has_fixed_connection() || reason == FetchReason::There;
        let _kept = is_kept.then_some(lease);
        // Noted before the list is read: a change announced meanwhile has it read again.
        let lists = Arc::clone(connection.lists());
        let revision = lists.of(self.list);
        let ahead = connection.take_prefetched(self.list);
        // What was read before anybody used the connection says nothing of how it is to be called.
        let is_told = reason == FetchReason::Asked && ahead.is_none();
        let capability = self.list.capability();
        let profile = connection.profile().filter(|profile| profile.has(capability));
        let FetchedPages { items, rejected, ttl } = match profile {
            Some(_) => asking.pages(self.list, &connection, ahead).await?,
            None => FetchedPages::default(),
        };
        findings.read(slot.name(), self.list, &items, &rejected, true);
        let is_untold = profile.is_some_and(|found| !found.has_list_changed(capability));
        let said = ttl.filter(|_| profile.is_some_and(|found| found.era() == Era::Modern));
        let good_for = said.map_or(defaults::REFRESH_AFTER, |ttl| ttl.max(defaults::LIST_TTL_MIN));
        let good_until = is_untold.then(|| Instant::now().checked_add(good_for)).flatten();
        let listing: Listing = Arc::new(items);
        let is_news = {
            let mut state = self.state();
            let listing = Arc::clone(&listing);
            let is_news = match reason {
                FetchReason::Asked => state.shown.list(&listing),
                FetchReason::There => state.shown.compare(&listing),
            };
            state.kept = Some(Kept { lists, revision, good_until, listing, is_told });
            state.slow_one = None;
            is_news
        };
        Ok(ListRead { listing, is_news, connection })
    }

    /// Tells whether the connection is there that the list was read from, or one is being made, or the
    /// client whose it is was shown something, and is to hear if that was wrong.
    pub(super) fn is_current(&self) -> bool {
        let is_there = |kept: &Kept| Arc::strong_count(&kept.lists) > 1;
        let is_shown =
            || self.owner.as_ref().is_some_and(|owner| !owner.has_gone()) && !self.is_unshown();
        self.reads.is_flying() || self.state().kept.as_ref().is_some_and(is_there) || is_shown()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Held for statements on plain data, never across an await.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
