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
    Mixed,
}

/// The place of a page in the list that a client was shown as its server wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListPosition {
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

impl ClientView {
    /// Records that clients are shown `listing` from now on. Returns whether some clients know
    /// another list and must be notified.
    pub(super) fn list(&mut self, listing: &Listing) -> bool {
        let is_notice_due = match self {
            Self::Nothing => false,
            Self::One(known) => known != listing,
            Self::Mixed => true,
        };
        *self = Self::One(Listing::clone(listing));
        is_notice_due
    }

    /// Compares what clients know with `listing`, which is recorded as shown if clients know any
    /// list. Returns whether some clients must be notified.
    pub(super) fn compare(&mut self, listing: &Listing) -> bool {
        *self != Self::Nothing && self.list(listing)
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
            Self::Nothing | Self::Mixed => {
                *self = Self::Mixed;
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
            *self = Self::Mixed;
        }
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
        let mut view = ClientView::default();
        assert!(!view.compare(&listing(&["a"])));
        assert_eq!(view, ClientView::Nothing);
        view.list(&listing(&["a"]));
        assert!(!view.compare(&listing(&["a"])));
        assert!(view.compare(&listing(&["b"])));
        assert!(!view.compare(&listing(&["b"])), "they were notified");
        view = ClientView::Mixed;
        assert!(view.compare(&listing(&["b"])));
    }

    #[test]
    fn a_client_that_reads_a_list_is_notified_only_if_the_list_changed_since_it_was_shown() {
        let mut view = ClientView::default();
        assert!(!view.list(&listing(&["a"])));
        assert!(!view.list(&listing(&["a"])));
        assert!(view.list(&listing(&["a", "b"])));
        assert!(!view.list(&listing(&["a", "b"])), "they were notified");
    }

    #[test]
    fn clients_are_notified_of_an_omitted_list_unless_it_is_empty() {
        let mut view = ClientView::default();
        view.omit();
        assert!(!view.clone().list(&listing(&[])));
        assert!(view.list(&listing(&["a"])));
        view.omit();
        assert_eq!(view, ClientView::Mixed);
        assert!(view.list(&listing(&["a"])), "some know it, others know of none");
    }

    #[test]
    fn pages_that_match_the_known_list_change_nothing() {
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
            let mut view = ClientView::One(Listing::clone(&whole));
            view.note_page(&listing(page), ListPosition { is_first, is_last });
            assert_eq!(view == ClientView::One(Listing::clone(&whole)), fits, "{page:?}");
        }
    }

    #[test]
    fn a_whole_page_is_a_list_and_a_part_of_an_unknown_list_is_not() {
        let place = |is_first, is_last| ListPosition { is_first, is_last };
        let mut view = ClientView::default();
        view.note_page(&listing(&["a"]), place(true, true));
        assert_eq!(view, ClientView::One(listing(&["a"])));
        view = ClientView::Nothing;
        view.note_page(&listing(&["a"]), place(true, false));
        assert_eq!(view, ClientView::Mixed);
        assert!(view.list(&listing(&["a"])));
    }
}
