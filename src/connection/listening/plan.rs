//! When a subscription is opened, kept and let go. Pure: no clock, no server.
//!
//! ```text
//!            want               opened
//!  resting ───────▶ to be opened ─────▶ open ── want another ──▶ to be opened, open meanwhile
//!     ▲                  │  ▲             │
//!     └──── refused ─────┘  └── lost ─────┘
//! ```

use crate::era::subscription::Filter;

/// What is wanted of a server's notices, and what there is.
#[derive(Debug, Default)]
pub(super) struct Plan {
    wanted: Filter,
    open: Option<Filter>,
    /// What the server will not have: the same is not asked for again.
    refused: Option<Filter>,
    /// There was a subscription once, which was lost: something may have been missed.
    is_interrupted: bool,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: what is wanted is there, or cannot be had.
    Rest,
    /// Nothing is wanted any more.
    Close,
    /// Open a subscription for this.
    Open(Filter),
}

impl Plan {
    /// Takes in what is wanted from now on.
    pub(super) fn want(&mut self, filter: Filter) {
        if self.wanted != filter {
            self.refused = None;
            self.wanted = filter;
        }
    }

    /// Returns what to do next.
    pub(super) fn next(&self) -> Step {
        let is_nothing = self.wanted == Filter::default();
        match &self.open {
            Some(_) if is_nothing => Step::Close,
            None if is_nothing => Step::Rest,
            Some(open) if *open == self.wanted => Step::Rest,
            _ if self.refused.as_ref() == Some(&self.wanted) => Step::Rest,
            _ => Step::Open(self.wanted.clone()),
        }
    }

    /// Notes that a subscription for `filter` is open, and tells whether something may have been
    /// missed before.
    pub(super) fn opened(&mut self, filter: Filter) -> bool {
        self.open = Some(filter);
        std::mem::take(&mut self.is_interrupted)
    }

    /// Notes that the server refused a subscription for `filter`.
    pub(super) fn refused(&mut self, filter: Filter) {
        self.refused = Some(filter);
    }

    /// Notes that the open subscription has ended, or was lost.
    pub(super) fn lost(&mut self) {
        self.is_interrupted |= self.open.take().is_some();
    }

    /// Notes that the open subscription was let go because nothing is wanted.
    pub(super) fn closed(&mut self) {
        self.open = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(uris: &[&str]) -> Filter {
        Filter {
            tools: true,
            uris: uris.iter().map(|&uri| uri.to_owned()).collect(),
            ..Filter::default()
        }
    }

    #[test]
    fn nothing_is_opened_for_nobody() {
        assert_eq!(Plan::default().next(), Step::Rest);
    }

    #[test]
    fn a_subscription_is_opened_once_and_again_for_something_else() {
        let mut plan = Plan::default();
        plan.want(filter(&[]));
        assert_eq!(plan.next(), Step::Open(filter(&[])));
        assert!(!plan.opened(filter(&[])), "nothing was missed");
        assert_eq!(plan.next(), Step::Rest);
        plan.want(filter(&["a"]));
        assert_eq!(plan.next(), Step::Open(filter(&["a"])));
        assert!(!plan.opened(filter(&["a"])), "the other one was open meanwhile");
        plan.want(Filter::default());
        assert_eq!(plan.next(), Step::Close);
        plan.closed();
        assert_eq!(plan.next(), Step::Rest);
    }

    #[test]
    fn one_that_is_lost_is_opened_again_and_what_it_missed_is_doubted() {
        let mut plan = Plan::default();
        plan.want(filter(&[]));
        plan.opened(filter(&[]));
        plan.lost();
        plan.lost();
        assert_eq!(plan.next(), Step::Open(filter(&[])));
        assert!(plan.opened(filter(&[])));
        assert!(!plan.opened(filter(&[])), "once");
    }

    #[test]
    fn what_was_refused_is_not_asked_for_again_until_something_else_is() {
        let mut plan = Plan::default();
        plan.want(filter(&["a"]));
        plan.refused(filter(&["a"]));
        assert_eq!(plan.next(), Step::Rest);
        plan.want(filter(&["a"]));
        assert_eq!(plan.next(), Step::Rest);
        plan.want(filter(&["b"]));
        plan.want(filter(&["a"]));
        assert_eq!(plan.next(), Step::Open(filter(&["a"])));
    }
}
