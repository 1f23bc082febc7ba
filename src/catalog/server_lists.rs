//! The cached profile and lists of one server, read from the server or from the disk. Pure.

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use serde::Serialize;

use super::{Listing, definition_hash::CatalogDigest};
use crate::protocol::{list_page::ListKind, payloads::ServerProfile};

/// The source of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KnownSource {
    /// The server, since this service started.
    Live,
    /// The disk, written by an earlier process.
    Cache,
}

/// All lists, in the order in which they are stored.
pub(super) const LISTS: [ListKind; 4] =
    [ListKind::Tools, ListKind::Prompts, ListKind::Resources, ListKind::ResourceTemplates];

/// The cached profile and lists of one server.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownLists {
    /// The digest of the declaration that the lists belong to.
    pub(super) declared: Option<CatalogDigest>,
    profile: Option<Arc<ServerProfile>>,
    lists: BTreeMap<&'static str, KnownList>,
    /// The digest of the content of the cache file.
    pub(super) saved: Option<CatalogDigest>,
}

/// One list of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownList {
    pub(super) listing: Listing,
    pub(super) source: KnownSource,
    /// The time at which the list was read from the server.
    pub(super) read: SystemTime,
}

/// The effect of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownChange {
    /// Nothing has changed.
    Nothing,
    /// The content is the same, and the server has now confirmed it.
    Confirmed,
    /// The content has changed.
    Changed,
}

impl KnownLists {
    /// Returns an empty record for a server with this declaration.
    pub(super) fn of(declared: CatalogDigest) -> Self {
        Self { declared: Some(declared), ..Self::default() }
    }

    /// Returns a record with the content of the cache file.
    pub(super) fn restored(
        declared: CatalogDigest,
        profile: Option<ServerProfile>,
        lists: impl IntoIterator<Item = (ListKind, Listing)>,
        read: SystemTime,
        saved: CatalogDigest,
    ) -> Self {
        let reading = |(list, listing): (ListKind, Listing)| {
            (list.member(), KnownList { listing, source: KnownSource::Cache, read })
        };
        Self {
            declared: Some(declared),
            profile: profile.map(Arc::new),
            lists: lists.into_iter().map(reading).collect(),
            saved: Some(saved),
        }
    }

    /// Records a list that the server has sent, and its profile.
    pub(super) fn learn(
        &mut self,
        list: ListKind,
        listing: &Listing,
        profile: Option<&ServerProfile>,
        now: SystemTime,
    ) -> KnownChange {
        let mut change = KnownChange::Confirmed;
        if profile.is_some() && self.profile.as_deref() != profile {
            self.profile = profile.cloned().map(Arc::new);
            change = KnownChange::Changed;
        }
        let live = |listing| KnownList { listing, source: KnownSource::Live, read: now };
        match self.lists.get_mut(list.member()) {
            // Equal lists share one allocation, so that later comparisons are fast.
            Some(known) if known.listing == *listing => {
                *known = live(Arc::clone(&known.listing));
            }
            _ => {
                self.lists.insert(list.member(), live(Arc::clone(listing)));
                change = KnownChange::Changed;
            }
        }
        change
    }

    /// Takes over the content of the cache file, unless something newer is known.
    pub(super) fn restore(&mut self, found: Self) -> KnownChange {
        // The server has answered meanwhile, and its answer is newer.
        if self.profile.is_some() || !self.lists.is_empty() {
            self.saved = self.saved.or(found.saved);
            return KnownChange::Nothing;
        }
        *self = found;
        KnownChange::Changed
    }

    pub(super) fn profile(&self) -> Option<&Arc<ServerProfile>> {
        self.profile.as_ref()
    }

    /// Returns a list as it was last read.
    pub(super) fn reading(&self, list: ListKind) -> Option<&KnownList> {
        self.lists.get(list.member())
    }

    /// Returns the items of a list; an empty list if the server declares that it has no such list.
    pub(super) fn listing(&self, list: ListKind) -> Option<Listing> {
        match self.reading(list) {
            Some(reading) => Some(Arc::clone(&reading.listing)),
            None => {
                let profile = self.profile.as_ref()?;
                (!profile.has(list.capability())).then(Listing::default)
            }
        }
    }

    /// Returns the time at which the oldest list was read.
    pub(super) fn read(&self) -> Option<SystemTime> {
        self.lists.values().map(|reading| reading.read).min()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::list_page::ListPage;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn listing(names: &[&str]) -> Listing {
        let tool =
            |name: &&str| serde_json::json!({ "name": name, "inputSchema": { "type": "object" } });
        let tools: Vec<_> = names.iter().map(tool).collect();
        let result = serde_json::json!({ "tools": tools }).to_string();
        Listing::new(ListPage::read(ListKind::Tools, &result).expect("a list").items)
    }

    fn profile(instructions: &str) -> ServerProfile {
        let result = serde_json::json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "instructions": instructions,
        });
        ServerProfile::read(&result.to_string()).expect("a profile")
    }

    fn cached(names: &[&str]) -> KnownLists {
        let saved = CatalogDigest::of(b"");
        KnownLists::restored(
            saved,
            Some(profile("a")),
            [(ListKind::Tools, listing(names))],
            NOW,
            saved,
        )
    }

    #[test]
    fn a_list_with_equal_items_is_confirmed_and_a_different_list_is_a_change() {
        let mut known = KnownLists::default();
        let mut learn = |names: &[&str], profile: Option<&ServerProfile>| {
            known.learn(ListKind::Tools, &listing(names), profile, NOW)
        };
        assert_eq!(learn(&["a"], None), KnownChange::Changed);
        assert_eq!(learn(&["a"], None), KnownChange::Confirmed);
        assert_eq!(learn(&["a"], Some(&profile("a"))), KnownChange::Changed);
        assert_eq!(learn(&["a"], Some(&profile("b"))), KnownChange::Changed);
        assert_eq!(learn(&["a"], Some(&profile("b"))), KnownChange::Confirmed);
        assert_eq!(learn(&["b"], Some(&profile("b"))), KnownChange::Changed);
        assert_eq!(learn(&[], None), KnownChange::Changed);
        assert_eq!(learn(&[], None), KnownChange::Confirmed);
    }

    #[test]
    fn a_list_read_from_the_server_replaces_the_list_from_the_disk() {
        let mut known = cached(&["a"]);
        let later = NOW + Duration::from_secs(1);
        assert_eq!(
            known.learn(ListKind::Tools, &listing(&["a"]), Some(&profile("a")), later),
            KnownChange::Confirmed
        );
        let reading = known.reading(ListKind::Tools).expect("known");
        assert_eq!((reading.source, reading.read), (KnownSource::Live, later));
        assert_eq!(known.restore(cached(&["b"])), KnownChange::Nothing);
        assert_eq!(known.listing(ListKind::Tools), Some(listing(&["a"])));
    }

    #[test]
    fn a_server_that_declares_no_such_capability_has_an_empty_list() {
        let mut known = KnownLists::default();
        assert_eq!(known.listing(ListKind::Prompts), None);
        assert_eq!(known.restore(cached(&["a"])), KnownChange::Changed);
        assert_eq!(known.listing(ListKind::Prompts), Some(Listing::default()));
        assert_eq!(known.listing(ListKind::Tools), Some(listing(&["a"])));
    }
}
