//! Notifications about changed lists. A list that its server reports as changed is read again and
//! compared with what clients know: one read at a time, and one per [`defaults::NOTICE_WINDOW`].
//!
//! ```text
//!  connections ── announcements ──┬── anything else ─────────────────────────────▶ sessions
//!                                 └── a list has changed ──▶ window ──▶ read ──┬──▶
//!                                                                     changed ─┘ same: nothing
//! ```

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Catalog, fetch::FetchReason};
use crate::{
    config::defaults,
    connection::{Announcement, ConnectionLimits, NoticeSource, SessionOwner, SideMessage},
    error_report::chain,
    pool::{ServerEventKind, ServerSlot},
    protocol::list_page::ListKind,
    reconfigure::ServerDiff,
    server_name::ServerName,
    session::{Debounce, sleep_until},
};

/// The key of a notice: server, owner of the connection, main list, and sender.
type Key = (ServerName, Option<u64>, ListKind, NoticeSource);

impl Catalog {
    /// Forwards notifications that belong to no request, until `stop`. Forwards `list_changed` only
    /// if clients know another list. `limits` returns the current limits of a request.
    ///
    /// # Cancel safety
    ///
    /// Messages in the queue are lost.
    pub async fn run_announcements(
        &self,
        mut announced: mpsc::Receiver<Announcement>,
        limits: impl Fn() -> ConnectionLimits,
        stop: CancellationToken,
    ) {
        let since = Instant::now();
        let mut held = Debounce::<Key, Option<SessionOwner>>::new(defaults::NOTICE_WINDOW);
        let (mut checked, mut checks) = (HashSet::new(), FuturesUnordered::new());
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(announcement) = announced.recv() => match list_of(&announcement) {
                    Some(list) => {
                        let source = announcement.source();
                        let Announcement { server, owner, .. } = announcement;
                        let key = (server, owner.as_ref().map(|owner| owner.key), list, source);
                        held.hold(key, owner, since.elapsed());
                    }
                    // Waits while the channel to the sessions is full; the queue is bounded.
                    None => drop(self.notices.send(announcement).await),
                },
                () = sleep_until(held.next_end().map(|end| since + end)) => {
                    let now = since.elapsed();
                    while let Some((key, owner)) = held.take(now) {
                        if checked.insert(key.clone()) {
                            let limits = limits();
                            checks.push(async move {
                                self.check(&key.0, owner.as_ref(), (key.2, key.3), limits).await;
                                key
                            });
                        } else {
                            // The running read may have begun before this notice.
                            held.hold(key, owner, now);
                        }
                    }
                }
                Some(key) = checks.next() => drop(checked.remove(&key)),
            }
        }
    }

    /// Notifies clients when a list that its server reported as changed really differs.
    async fn check(
        &self,
        server: &ServerName,
        owner: Option<&SessionOwner>,
        (notice, source): (ListKind, NoticeSource),
        limits: ConnectionLimits,
    ) {
        let Some(slot) = self.pool.slot(server.as_str()) else { return };
        if source == NoticeSource::Server {
            slot.events().record(ServerEventKind::ListChanged, notice.method());
        }
        if !self.sessions.has_listener(server, owner) {
            // No client listens. The search index must be right all the same; a client that asks
            // later gets a new read.
            return self.refresh_known(&slot, owner, notice, limits).await;
        }
        let notify = || {
            let notice = Announcement::of_change(server.clone(), owner.cloned(), notice);
            try_send(&self.notices, notice);
        };
        let mut lists = ListKind::of_notice(notice.notice()).to_vec();
        let is_unshown = |list: &ListKind| self.entry(&slot, *list, owner).is_unshown();
        if lists.iter().all(is_unshown) {
            // A search finds tools without a list.
            let is_of_use = self.is_searched.load(Ordering::Relaxed)
                || source == NoticeSource::Server && !self.pool.is_starting();
            if !is_of_use {
                return self.refresh_known(&slot, owner, notice, limits).await;
            }
            // There is nothing to compare with, only next time.
            lists.truncate(1);
            notify();
        } else {
            lists.retain(|list| !is_unshown(list));
        }
        if slot.live(owner).is_none() {
            // A connection that metamcp closed as idle is compared once it is open again. It is not
            // opened for this: some servers report changed lists at each start.
            if !slot.is_closed_idle(owner) {
                lists.iter().for_each(|list| self.entry(&slot, *list, owner).forget());
                notify();
            }
            return;
        }
        for list in lists {
            if self.has_changed(&slot, list, owner, limits).await {
                notify();
            }
        }
    }

    /// Reads a list. Returns whether clients know another one, or it cannot be read in time.
    async fn has_changed(
        &self,
        slot: &Arc<ServerSlot>,
        list: ListKind,
        owner: Option<&SessionOwner>,
        limits: ConnectionLimits,
    ) -> bool {
        let entry = self.entry(slot, list, owner);
        // The read from a slow server continues in the background for the next caller.
        let reading = timeout(defaults::LIST_TIMEOUT, self.listing(slot, list, owner, limits));
        let reason = match reading.await {
            // The reader of a changed list sends the notice, unless clients have seen that list.
            Ok(Ok(listing)) => return entry.show(&listing),
            Ok(Err(error)) => chain(&*error),
            Err(_) => "the list did not arrive in time".to_owned(),
        };
        let (server, method) = (slot.name(), list.method());
        tracing::debug!(
            mcp_server = %server, mcp_method = method, reason,
            "`{method}` of server `{server}` not compared: {reason}"
        );
        entry.forget();
        true
    }

    /// Reads known lists again, unless their server has no connection.
    async fn refresh_known(
        &self,
        slot: &Arc<ServerSlot>,
        owner: Option<&SessionOwner>,
        notice: ListKind,
        limits: ConnectionLimits,
    ) {
        if slot.live(owner).is_none() || owner != self.owner(slot) {
            return;
        }
        for list in ListKind::of_notice(notice.notice()) {
            if self.store.reading(slot.name(), *list).is_some() {
                let _as_it_was =
                    self.read(slot, *list, owner, limits, FetchReason::Connected).await;
            }
        }
    }

    /// Notifies clients of servers that a reload added or removed. A server with a changed
    /// declaration may have the same lists as before: they are compared once it is connected.
    pub fn replaced(&self, diff: &ServerDiff) {
        self.redeclare(diff);
        self.redeclared.notify_one();
        for server in diff.added.iter().chain(&diff.removed) {
            for list in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
                try_send(&self.notices, Announcement::of_change(server.clone(), None, list));
            }
        }
        let slots = diff.changed.iter().filter_map(|server| self.pool.slot(server.as_str()));
        slots.for_each(|slot| slot.note_omitted());
    }
}

pub(super) fn try_send(notices: &mpsc::Sender<Announcement>, notice: Announcement) {
    match notices.try_send(notice) {
        // The channel is closed when the service stops.
        Ok(()) | Err(TrySendError::Closed(_)) => {}
        Err(TrySendError::Full(lost)) => {
            let server = lost.server;
            tracing::warn!(mcp_server = %server, "notice of server `{server}` lost: too many at once");
        }
    }
}

/// Returns the main one of the lists that have changed, if this is a `list_changed`.
fn list_of(announcement: &Announcement) -> Option<ListKind> {
    match &announcement.message {
        SideMessage::Notification(message) => {
            ListKind::of_notice(message.method().unwrap_or_default()).first().copied()
        }
        SideMessage::Question(_) => None,
    }
}

#[cfg(test)]
mod tests;
