//! Whether a list has changed of which a server says so: it is read again and compared with what
//! clients know, at most one read of it at a time, and one in [`defaults::NOTICE_WINDOW`].
//!
//! ```text
//!  connections ── announcements ──┬── anything else ─────────────────────────────▶ sessions
//!                                 └── a list has changed ──▶ window ──▶ read ──┬──▶
//!                                                                     another ─┘   as before: nothing
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
    config::{defaults, diff::ServerDiff},
    connection::{Announcement, ConnectionLimits, NoticeSource, SessionOwner, SideMessage},
    error_report::chain,
    name::ServerName,
    pool::ServerSlot,
    protocol::payloads::ListKind,
    session::{Debounce, sleep_until},
};

/// A notice: its server, the owner of its connection, its main list, and its sender.
type Key = (ServerName, Option<u64>, ListKind, NoticeSource);

impl Catalog {
    /// Hands on what servers say to nobody in particular, but of changed lists only those that have,
    /// as far as clients know them; until `stop`. `limits` are those of a request at that moment.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, what is in the queue is lost.
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
                    // Waits where clients are told more than is handed on; the queue has a bound.
                    None => drop(self.told.send(announcement).await),
                },
                () = sleep_until(since, held.next_end()) => {
                    let now = since.elapsed();
                    while let Some((key, owner)) = held.take(now) {
                        if checked.insert(key.clone()) {
                            let limits = limits();
                            checks.push(async move {
                                self.check(&key.0, owner.as_ref(), (key.2, key.3), limits).await;
                                key
                            });
                        } else {
                            // What was read may be from before the notice.
                            held.hold(key, owner, now);
                        }
                    }
                }
                Some(key) = checks.next() => drop(checked.remove(&key)),
            }
        }
    }

    /// Tells clients whether a list has changed of which its server says so.
    async fn check(
        &self,
        server: &ServerName,
        owner: Option<&SessionOwner>,
        (notice, source): (ListKind, NoticeSource),
        limits: ConnectionLimits,
    ) {
        let Some(slot) = self.pool.slot(server.as_str()) else { return };
        if !self.sessions.has_listener(server, owner) {
            // There is nobody to tell. What is searched is to be right all the same; whoever else asks
            // later has the list read again.
            self.look_again(&slot, owner, notice, limits).await;
            return;
        }
        let say = || {
            try_send(&self.told, Announcement::of_change(server.clone(), owner.cloned(), notice))
        };
        let mut lists = ListKind::of_notice(notice.notice()).to_vec();
        let unseen = |list: &ListKind| self.entry(&slot, *list, owner).is_unshown();
        if lists.iter().all(unseen) {
            // A search finds tools without a list.
            let is_of_use = self.is_searched.load(Ordering::Relaxed)
                || source == NoticeSource::Server && !self.pool.is_starting();
            if !is_of_use {
                self.look_again(&slot, owner, notice, limits).await;
                return;
            }
            // There is nothing to compare with, but the next time.
            lists.truncate(1);
            say();
        } else {
            lists.retain(|list| !unseen(list));
        }
        if slot.live(owner).is_none() {
            // One that we have closed is compared when it is there again. It is not dialled for that:
            // some say at each start that their lists have changed.
            if !slot.is_closed_idle(owner) {
                lists.iter().for_each(|list| self.entry(&slot, *list, owner).forget());
                say();
            }
            return;
        }
        for list in lists {
            let entry = self.entry(&slot, list, owner);
            // A server that takes long goes on with the list for whoever asks next.
            let reading =
                timeout(defaults::LIST_PATIENCE, self.listing(&slot, list, owner, limits));
            let reason = match reading.await {
                // Whoever reads another one tells of it, unless clients were shown that one before.
                Ok(Ok(listing)) => {
                    if entry.show(&listing) {
                        say();
                    }
                    continue;
                }
                Ok(Err(error)) => chain(&*error),
                Err(_) => "not there in time".to_owned(),
            };
            tracing::debug!(mcp_server = %server, mcp_method = list.method(), reason, "list not compared");
            entry.forget();
            say();
        }
    }

    /// Reads lists again that are known, unless their server is not there.
    async fn look_again(
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
            if self.shelf.reading(slot.name(), *list).is_some() {
                let _as_it_was = self.read(slot, *list, owner, limits, FetchReason::There).await;
            }
        }
    }

    /// Tells clients that servers have come or gone with the configuration. Those that were declared
    /// anew may have the same lists as before: these are compared once they are connected.
    pub fn replaced(&self, diff: &ServerDiff) {
        self.redeclare(diff);
        self.redeclared.notify_one();
        for server in diff.added.iter().chain(&diff.removed) {
            for list in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
                try_send(&self.told, Announcement::of_change(server.clone(), None, list));
            }
        }
        let slots = diff.changed.iter().filter_map(|server| self.pool.slot(server.as_str()));
        slots.for_each(|slot| slot.note_omitted());
    }
}

/// Hands a notice on that is not waited for.
pub(super) fn try_send(told: &mpsc::Sender<Announcement>, notice: Announcement) {
    match told.try_send(notice) {
        // Nobody is told anything any more when the service stops.
        Ok(()) | Err(TrySendError::Closed(_)) => {}
        Err(TrySendError::Full(lost)) => {
            tracing::warn!(mcp_server = %lost.server, "notice of a changed list lost: too many at once");
        }
    }
}

/// Returns the main list of those that have changed, if that is what was announced.
fn list_of(announcement: &Announcement) -> Option<ListKind> {
    match &announcement.aside {
        SideMessage::Notification(message) => {
            ListKind::of_notice(message.method().unwrap_or_default()).first().copied()
        }
        SideMessage::Question(_) => None,
    }
}

#[cfg(test)]
mod tests;
