//! The defects of servers' lists, for operators: quarantined items and name collisions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;

use super::{Catalog, announced_version::ListPosition};
use crate::{
    config::defaults,
    connection::SessionOwner,
    pool::ServerSlot,
    protocol::{
        Message,
        jsonrpc::MessagePart,
        list_page::{ListItem, ListKind, ListPage},
        malformed_items::RejectedItem,
        mcp_apps,
    },
    redact,
    server_name::ServerName,
};

/// An item that clients are not shown because they would reject it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QuarantinedItem {
    /// The server of the item.
    pub server: ServerName,
    /// The list of the item, by its protocol name.
    pub list: &'static str,
    /// The name, URI or URI template, or the position in the list.
    pub item: String,
    /// The defect.
    pub reason: &'static str,
}

/// Two items with the same name in the merged view: one of them cannot be reached there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NameCollision {
    /// The list of both items, by its protocol name.
    pub list: &'static str,
    /// The name of both items.
    pub item: String,
    /// The server whose item is shown and can be called.
    pub server: ServerName,
    /// The server whose item is left out.
    pub left_out: ServerName,
    /// The original names at `server` and `left_out`.
    #[serde(skip)]
    pub keys: (String, String),
}

/// The reasons, by server, list and item.
type Quarantine = BTreeMap<(ServerName, &'static str, String), &'static str>;

/// All findings that still hold.
#[derive(Debug, Default)]
pub struct CatalogFindings {
    quarantined: Mutex<Quarantine>,
    collisions: Mutex<BTreeSet<NameCollision>>,
}

impl CatalogFindings {
    /// Records what was read of a list: all of it, if `is_whole`.
    pub(super) fn read(
        &self,
        server: &ServerName,
        list: ListKind,
        good: &[ListItem],
        rejected: &[RejectedItem],
        is_whole: bool,
    ) {
        let mut quarantined = self.quarantined();
        if quarantined.is_empty() && rejected.is_empty() {
            return;
        }
        let name = list.member();
        let rejected: BTreeMap<String, &'static str> =
            rejected.iter().map(|found| (quoted(&found.item), found.reason)).collect();
        quarantined.retain(|(owner, listed, item), _| {
            let is_another = owner != server || *listed != name || rejected.contains_key(item);
            is_another || !(is_whole || good.iter().any(|good| good.key == *item))
        });
        for (item, reason) in rejected {
            let key = (server.clone(), name, item.clone());
            let is_known = quarantined.get(&key) == Some(&reason);
            if is_known || quarantined.len() >= defaults::FINDINGS_MAX {
                continue;
            }
            tracing::warn!(
                mcp_server = %server, mcp_list = name, item, reason,
                "item quarantined: {item:?} in `{name}` of server `{server}`: {reason}"
            );
            quarantined.insert(key, reason);
        }
    }

    /// Records name collisions in a merged list.
    pub fn collided(&self, found: impl IntoIterator<Item = NameCollision>) {
        for mut collision in found {
            collision.item = quoted(&collision.item);
            let mut collisions = self.collisions();
            if collisions.contains(&collision) || collisions.len() >= defaults::FINDINGS_MAX {
                continue;
            }
            let NameCollision { list, item, server, left_out, .. } = &collision;
            tracing::warn!(
                mcp_list = list, item, mcp_server = %server, left_out = %left_out,
                "item left out: {item:?} of server `{left_out}`, because server `{server}` has an item of the same name"
            );
            collisions.insert(collision);
        }
    }

    /// Returns the items that clients are not shown, of servers for which `is_declared` holds.
    pub(super) fn quarantined_of(
        &self,
        is_declared: impl Fn(&ServerName) -> bool,
    ) -> Vec<QuarantinedItem> {
        let mut quarantined = self.quarantined();
        quarantined.retain(|(server, ..), _| is_declared(server));
        let all = quarantined.iter().map(|((server, list, item), reason)| QuarantinedItem {
            server: server.clone(),
            list,
            item: item.clone(),
            reason,
        });
        all.collect()
    }

    /// Returns whether the last check found any collisions.
    pub(super) fn has_collisions(&self) -> bool {
        !self.collisions().is_empty()
    }

    /// Returns the collisions for which `are` still holds, and forgets the others.
    pub(super) fn current_collisions(
        &self,
        are: impl Fn(&NameCollision) -> bool,
    ) -> Vec<NameCollision> {
        let mut collisions = self.collisions();
        collisions.retain(are);
        collisions.iter().cloned().collect()
    }

    fn quarantined(&self) -> MutexGuard<'_, Quarantine> {
        // Held for statements on plain data, like the other lock.
        self.quarantined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn collisions(&self) -> MutexGuard<'_, BTreeSet<NameCollision>> {
        self.collisions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the part of a foreign text that operators are shown.
fn quoted(word: &str) -> String {
    redact::cut(word, defaults::QUOTE_BYTES_MAX).to_owned()
}

impl Catalog {
    /// Returns the function that removes two kinds of items from a server's list: those that the
    /// client would reject, and, unless it `shows_pages`, tools for app pages only. Other answers
    /// pass unchanged. `is_first` means that the client asked for the first page.
    pub fn quarantine_filter(
        &self,
        slot: &ServerSlot,
        list: ListKind,
        owner: Option<&SessionOwner>,
        is_first: bool,
        shows_pages: bool,
    ) -> impl FnOnce(Message) -> Message + Send + Sync + use<> {
        let (entry, findings) = (self.entry(slot, list, owner), Arc::clone(&self.findings));
        let server = slot.name().clone();
        move |answer| {
            // The client handles errors and invalid results itself.
            let Some(result) = answer.part(MessagePart::Result) else { return answer };
            let Ok(page) = ListPage::read(list, result) else { return answer };
            let place = ListPosition { is_first, is_last: page.next.is_none() };
            let is_whole = place.is_first && place.is_last;
            findings.read(&server, list, &page.items, &page.rejected, is_whole);
            entry.note_shown_page(&page.items, place);
            let is_hidden = |item: &str| !shows_pages && mcp_apps::is_app_only(item);
            if page.rejected.is_empty() && !page.items.iter().any(|item| is_hidden(item.json())) {
                return answer;
            }
            match page.without_rejected(list, result, is_hidden) {
                Some(rest) => answer.with(MessagePart::Result, &rest),
                None => answer,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::list_page::ListPage;

    fn name(text: &str) -> ServerName {
        ServerName::new(text).expect("a name")
    }

    fn read(findings: &CatalogFindings, server: &str, tools: &serde_json::Value, is_whole: bool) {
        let result = serde_json::json!({ "tools": tools }).to_string();
        let page = ListPage::read(ListKind::Tools, &result).expect("a list");
        findings.read(&name(server), ListKind::Tools, &page.items, &page.rejected, is_whole);
    }

    fn items(findings: &CatalogFindings) -> Vec<(String, String)> {
        let all = findings.quarantined_of(|_| true).into_iter();
        all.map(|found| (found.server.to_string(), found.item)).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn an_item_is_quarantined_until_its_server_lists_it_without_the_defect() {
        let good = serde_json::json!({ "name": "x", "inputSchema": { "type": "object" } });
        let bad = serde_json::json!({ "name": "x" });
        let findings = CatalogFindings::default();
        read(&findings, "a", &serde_json::json!([bad, { "name": "y" }]), false);
        read(&findings, "b", &serde_json::json!([bad]), true);
        assert_eq!(items(&findings), pairs(&[("a", "x"), ("a", "y"), ("b", "x")]));
        read(&findings, "a", &serde_json::json!([good]), false);
        assert_eq!(
            items(&findings),
            pairs(&[("a", "y"), ("b", "x")]),
            "a page says nothing of `y`"
        );
        read(&findings, "a", &serde_json::json!([good]), true);
        assert_eq!(items(&findings), pairs(&[("b", "x")]));
        assert_eq!(findings.quarantined_of(|server| *server != name("b")), []);
        assert_eq!(items(&findings), [], "its server is gone");
    }

    #[test]
    fn the_number_of_remembered_findings_is_bounded() {
        let findings = CatalogFindings::default();
        let tools: Vec<_> = (0..2 * defaults::FINDINGS_MAX)
            .map(|n| serde_json::json!({ "name": format!("tool_{n}") }))
            .collect();
        read(&findings, "a", &tools.into(), true);
        assert_eq!(items(&findings).len(), defaults::FINDINGS_MAX);
    }
}
