//! What is known of one server: what it said of itself and what it lists, be it from the server or
//! from the disk. Pure.

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use serde::Serialize;

use super::{Listing, digest::Digest};
use crate::protocol::mcp::{List, Profile};

/// Where something that is known of a server comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// From the server, since the service has started.
    Live,
    /// From the disk: as it was in the life of another process.
    Cache,
}

/// All lists, in the order in which they are kept.
pub(super) const LISTS: [List; 4] =
    [List::Tools, List::Prompts, List::Resources, List::ResourceTemplates];

/// What is known of one server.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// How the server is declared of which it is known.
    pub(super) declared: Option<Digest>,
    profile: Option<Arc<Profile>>,
    lists: BTreeMap<&'static str, Reading>,
    /// What is on the disk.
    pub(super) saved: Option<Digest>,
}

/// One list of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) listing: Listing,
    pub(super) source: Source,
    /// When it was read from the server.
    pub(super) read: SystemTime,
}

/// What came of taking something new to the known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// It is as it was.
    Nothing,
    /// It is what was known, but it is the server now who says it, or says it again.
    Confirmed,
    /// It is another one.
    Changed,
}

impl Known {
    /// Returns nothing, of a server that is declared like this.
    pub(super) fn of(declared: Digest) -> Self {
        Self { declared: Some(declared), ..Self::default() }
    }

    /// Returns what the disk had.
    pub(super) fn restored(
        declared: Digest,
        profile: Option<Profile>,
        lists: impl IntoIterator<Item = (List, Listing)>,
        read: SystemTime,
        saved: Digest,
    ) -> Self {
        let reading = |(list, listing): (List, Listing)| {
            (list.member(), Reading { listing, source: Source::Cache, read })
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
        list: List,
        listing: &Listing,
        profile: Option<&Profile>,
        now: SystemTime,
    ) -> News {
        let mut news = News::Confirmed;
        if profile.is_some() && self.profile.as_deref() != profile {
            self.profile = profile.cloned().map(Arc::new);
            news = News::Changed;
        }
        let live = |listing| Reading { listing, source: Source::Live, read: now };
        match self.lists.get_mut(list.member()) {
            // What is the same is there once, and known to be the same at a glance.
            Some(known) if known.listing == *listing => {
                *known = live(Arc::clone(&known.listing));
            }
            _ => {
                self.lists.insert(list.member(), live(Arc::clone(listing)));
                news = News::Changed;
            }
        }
        news
    }

    /// Takes what the disk had, as far as nothing newer is known.
    pub(super) fn restore(&mut self, found: Self) -> News {
        // Said by a server that has been there meanwhile: its word counts.
        if self.profile.is_some() || !self.lists.is_empty() {
            self.saved = self.saved.or(found.saved);
            return News::Nothing;
        }
        *self = found;
        News::Changed
    }

    /// Returns what the server says of itself.
    pub(super) fn profile(&self) -> Option<&Arc<Profile>> {
        self.profile.as_ref()
    }

    /// Returns a list as it was read last.
    pub(super) fn reading(&self, list: List) -> Option<&Reading> {
        self.lists.get(list.member())
    }

    /// Returns the items of a list: none where the server says that it has no such list.
    pub(super) fn listing(&self, list: List) -> Option<Listing> {
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
    use crate::protocol::mcp::Page;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn listing(names: &[&str]) -> Listing {
        let tool =
            |name: &&str| serde_json::json!({ "name": name, "inputSchema": { "type": "object" } });
        let tools: Vec<_> = names.iter().map(tool).collect();
        let result = serde_json::json!({ "tools": tools }).to_string();
        Listing::new(Page::read(List::Tools, &result).expect("a list").items)
    }

    fn profile(instructions: &str) -> Profile {
        let result = serde_json::json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "instructions": instructions,
        });
        Profile::read(&result.to_string()).expect("a profile")
    }

    fn cached(names: &[&str]) -> Known {
        let saved = Digest::of(b"");
        Known::restored(saved, Some(profile("a")), [(List::Tools, listing(names))], NOW, saved)
    }

    #[test]
    fn only_what_is_another_one_has_changed() {
        let mut known = Known::default();
        let mut learn = |names: &[&str], profile: Option<&Profile>| {
            known.learn(List::Tools, &listing(names), profile, NOW)
        };
        assert_eq!(learn(&["a"], None), News::Changed);
        assert_eq!(learn(&["a"], None), News::Confirmed);
        assert_eq!(learn(&["a"], Some(&profile("a"))), News::Changed);
        assert_eq!(learn(&["a"], Some(&profile("b"))), News::Changed);
        assert_eq!(learn(&["a"], Some(&profile("b"))), News::Confirmed);
        assert_eq!(learn(&["b"], Some(&profile("b"))), News::Changed);
        assert_eq!(learn(&[], None), News::Changed);
        assert_eq!(learn(&[], None), News::Confirmed);
    }

    #[test]
    fn what_the_server_says_takes_the_place_of_what_the_disk_had() {
        let mut known = cached(&["a"]);
        let later = NOW + Duration::from_secs(1);
        assert_eq!(
            known.learn(List::Tools, &listing(&["a"]), Some(&profile("a")), later),
            News::Confirmed
        );
        let reading = known.reading(List::Tools).expect("known");
        assert_eq!((reading.source, reading.read), (Source::Live, later));
        assert_eq!(known.restore(cached(&["b"])), News::Nothing);
        assert_eq!(known.listing(List::Tools), Some(listing(&["a"])));
    }

    #[test]
    fn a_server_that_declares_no_such_list_is_known_to_have_none() {
        let mut known = Known::default();
        assert_eq!(known.listing(List::Prompts), None);
        assert_eq!(known.restore(cached(&["a"])), News::Changed);
        assert_eq!(known.listing(List::Prompts), Some(Listing::default()));
        assert_eq!(known.listing(List::Tools), Some(listing(&["a"])));
    }
}
