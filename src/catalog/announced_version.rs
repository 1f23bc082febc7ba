//! The version of a list that clients know, to decide whether to notify them of changes. Pure.
//!
//! All clients count as one: where they know different lists, all are notified.

use super::Listing;

/// The versions of a list that clients were shown since they were last notified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ClientView {
    /// No client was shown the list.
    #[default]
    Nothing,
    /// All clients that were shown the list saw this one.
    One(Listing),
    /// Clients saw different lists, or a page that fits no known list.
    Several,
}

/// The place of a page in the list that a client was shown as its server wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListPosition {
    /// The page is the first one.
    pub(super) is_first: bool,
    /// The page is the last one.
    pub(super) is_last: bool,
}

impl ClientView {
    /// Records that clients are shown `listing` from now on. Returns whether some clients know
    /// another list and must be notified.
    pub(super) fn list(&mut self, listing: &Listing) -> bool {
        let is_news = match self {
            Self::Nothing => false,
            Self::One(known) => known != listing,
            Self::Several => true,
        };
        *self = Self::One(Listing::clone(listing));
        is_news
    }

    /// Compares what clients know with `listing`, which is recorded as shown if clients know any
    /// list. Returns whether some clients must be notified.
    pub(super) fn compare(&mut self, listing: &Listing) -> bool {
        match self {
            Self::Nothing => false,
            Self::One(_) | Self::Several => self.list(listing),
        }
    }

    /// Records that a client was shown the lists of other servers without this one.
    pub(super) fn omit(&mut self) {
        self.note_page(&[], ListPosition { is_first: true, is_last: true });
    }

    /// Records that a client was shown a page as the server wrote it.
    pub(super) fn note_page(&mut self, page: &[super::ListItem], place: ListPosition) {
        let ListPosition { is_first, is_last } = place;
        let known = match self {
            Self::One(known) => known,
            Self::Nothing if is_first && is_last => {
                *self = Self::One(Listing::new(page.to_vec()));
                return;
            }
            Self::Nothing | Self::Several => {
                *self = Self::Several;
                return;
            }
        };
        let is_part = match (is_first, is_last) {
            (true, true) => **known == page,
            (true, false) => known.starts_with(page),
            (false, true) => known.ends_with(page),
            (false, false) => match page.first() {
                Some(first) => known
                    .iter()
                    .position(|item| item == first)
                    .is_some_and(|at| known[at..].starts_with(page)),
                None => true,
            },
        };
        if !is_part {
            *self = Self::Several;
        }
    }

    /// Records that a client was told something other than the list.
    pub(super) fn mark_stale(&mut self) {
        *self = Self::Several;
    }

    /// Records that all clients are told to ask again, without a comparison.
    pub(super) fn forget(&mut self) {
        *self = Self::Nothing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::list_page::{ListKind, ListPage};

    fn listing(names: &[&str]) -> Listing {
        let tool =
            |name: &&str| serde_json::json!({ "name": name, "inputSchema": { "type": "object" } });
        let tools: Vec<_> = names.iter().map(tool).collect();
        let result = serde_json::json!({ "tools": tools }).to_string();
        Listing::new(ListPage::read(ListKind::Tools, &result).expect("a list").items)
    }

    #[test]
    fn comparing_a_list_does_not_count_as_showing_it_to_a_client() {
        let mut shown = ClientView::default();
        assert!(!shown.compare(&listing(&["a"])));
        assert_eq!(shown, ClientView::Nothing);
        shown.list(&listing(&["a"]));
        assert!(!shown.compare(&listing(&["a"])));
        assert!(shown.compare(&listing(&["b"])));
        assert!(!shown.compare(&listing(&["b"])), "they were told");
        shown.mark_stale();
        assert!(shown.compare(&listing(&["b"])));
    }

    #[test]
    fn a_client_that_reads_a_list_is_notified_only_if_the_list_changed_since_it_was_shown() {
        let mut shown = ClientView::default();
        assert!(!shown.list(&listing(&["a"])));
        assert!(!shown.list(&listing(&["a"])));
        assert!(shown.list(&listing(&["a", "b"])));
        assert!(!shown.list(&listing(&["a", "b"])), "they were told");
    }

    #[test]
    fn a_list_that_was_left_out_is_news_unless_it_is_empty() {
        let mut shown = ClientView::default();
        shown.omit();
        assert!(!shown.clone().list(&listing(&[])));
        assert!(shown.list(&listing(&["a"])));
        shown.omit();
        assert_eq!(shown, ClientView::Several);
        assert!(shown.list(&listing(&["a"])), "some know it, others know of none");
    }

    #[test]
    fn pages_that_fit_to_the_list_that_is_known_change_nothing() {
        let whole = listing(&["a", "b", "c", "d"]);
        for (page, is_first, is_last, fits) in [
            (&["a", "b", "c", "d"][..], true, true, true),
            (&["a", "b"], true, false, true),
            (&["b", "c"], false, false, true),
            (&["c", "d"], false, true, true),
            (&[], false, false, true),
            (&["a", "b"], true, true, false),
            (&["b"], true, false, false),
            (&["b", "d"], false, false, false),
            (&["x"], false, false, false),
            (&["a"], false, true, false),
        ] {
            let mut shown = ClientView::One(Listing::clone(&whole));
            shown.note_page(&listing(page), ListPosition { is_first, is_last });
            assert_eq!(shown == ClientView::One(Listing::clone(&whole)), fits, "{page:?}");
        }
    }

    #[test]
    fn a_whole_page_is_a_list_and_a_part_of_an_unknown_one_is_none() {
        let place = |is_first, is_last| ListPosition { is_first, is_last };
        let mut shown = ClientView::default();
        shown.note_page(&listing(&["a"]), place(true, true));
        assert_eq!(shown, ClientView::One(listing(&["a"])));
        shown.forget();
        shown.note_page(&listing(&["a"]), place(true, false));
        assert_eq!(shown, ClientView::Several);
        assert!(shown.list(&listing(&["a"])));
    }
}
