//! What is known of one server: what it said of itself and what it lists, be it from the server or
//! from the disk. Pure.

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use serde::Serialize;

use super::{Listing, digest::CatalogDigest};
use crate::protocol::payloads::{ListKind, ServerProfile};

/// Where something that is known of a server comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KnownSource {
    /// From the server, since the service has started.
    Live,
    /// From the disk: as it was in the life of another process.
    Cache,
}

/// All lists, in the order in which they are kept.
pub(super) const LISTS: [ListKind; 4] =
    [ListKind::Tools, ListKind::Prompts, ListKind::Resources, ListKind::ResourceTemplates];

/// What is known of one server.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownLists {
    /// How the server is declared of which it is known.
    pub(super) declared: Option<CatalogDigest>,
    profile: Option<Arc<ServerProfile>>,
    lists: BTreeMap<&'static str, KnownList>,
    /// What is on the disk.
    pub(super) saved: Option<CatalogDigest>,
}

/// One list of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownList {
    pub(super) listing: Listing,
    pub(super) source: KnownSource,
    /// When it was read from the server.
    pub(super) read: SystemTime,
}

/// What came of taking something new to the known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownChange {
    /// It is as it was.
    Nothing,
    /// It is what was known, but it is the server now who says it, or says it again.
    Confirmed,
    /// It is another one.
    Changed,
}

impl KnownLists {
    /// Returns nothing, of a server that is declared like this.
    pub(super) fn of(declared: CatalogDigest) -> Self {
        Self { declared: Some(declared), ..Self::default() }
    }

    /// Returns what the disk had.
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

    /// Takes note of a list that the server has given, and of what it says of itself.
    pub(super) fn learn(
        &mut self,
        list: ListKind,
        listing: &Listing,
        profile: Option<&ServerProfile>,
        now: SystemTime,
    ) -> KnownChange {
        let mut news = KnownChange::Confirmed;
        if profile.is_some() && self.profile.as_deref() != profile {
            self.profile = profile.cloned().map(Arc::new);
            news = KnownChange::Changed;
        }
        let live = |listing| KnownList { listing, source: KnownSource::Live, read: now };
        match self.lists.get_mut(list.member()) {
            // What is the same is there once, and known to be the same at a glance.
            Some(known) if known.listing == *listing => {
                *known = live(Arc::clone(&known.listing));
            }
            _ => {
                self.lists.insert(list.member(), live(Arc::clone(listing)));
                news = KnownChange::Changed;
            }
        }
        news
    }

    /// Takes what the disk had, as far as nothing newer is known.
    pub(super) fn restore(&mut self, found: Self) -> KnownChange {
        // Said by a server that has been there meanwhile: its word counts.
        if self.profile.is_some() || !self.lists.is_empty() {
            self.saved = self.saved.or(found.saved);
            return KnownChange::Nothing;
        }
        *self = found;
        KnownChange::Changed
    }

    /// Returns what the server says of itself.
    pub(super) fn profile(&self) -> Option<&Arc<ServerProfile>> {
        self.profile.as_ref()
    }

    /// Returns a list as it was read last.
    pub(super) fn reading(&self, list: ListKind) -> Option<&KnownList> {
        self.lists.get(list.member())
    }

    /// Returns the items of a list: none where the server says that it has no such list.
    pub(super) fn listing(&self, list: ListKind) -> Option<Listing> {
        match self.reading(list) {
            Some(reading) => Some(Arc::clone(&reading.listing)),
            None => {
                let profile = self.profile.as_ref()?;
                (!profile.has(list.capability())).then(Listing::default)
            }
        }
    }

    /// Returns when the first of the lists was read.
    pub(super) fn read(&self) -> Option<SystemTime> {
        self.lists.values().map(|reading| reading.read).min()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::payloads::ListPage;

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
    fn only_what_is_another_one_has_changed() {
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
    fn what_the_server_says_takes_the_place_of_what_the_disk_had() {
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
    fn a_server_that_declares_no_such_list_is_known_to_have_none() {
        let mut known = KnownLists::default();
        assert_eq!(known.listing(ListKind::Prompts), None);
        assert_eq!(known.restore(cached(&["a"])), KnownChange::Changed);
        assert_eq!(known.listing(ListKind::Prompts), Some(Listing::default()));
        assert_eq!(known.listing(ListKind::Tools), Some(listing(&["a"])));
    }
}
