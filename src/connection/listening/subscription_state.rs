//! When a subscription is opened, kept and let go. Pure: no clock, no server.
//!
//! ```text
//!            want               opened
//!  resting ───────▶ to be opened ─────▶ open ── want another ──▶ to be opened, open meanwhile
//!     ▲                  │  ▲             │
//!     └──── refused ─────┘  └── lost ─────┘
//! ```

use crate::era::client_subscription::SubscriptionFilter;

/// What is wanted of a server's notices, and what there is.
#[derive(Debug, Default)]
pub(super) struct SubscriptionState {
    wanted: SubscriptionFilter,
    open: Option<SubscriptionFilter>,
    /// What the server will not have: the same is not asked for again.
    refused: Option<SubscriptionFilter>,
    /// There was a subscription once, which was lost: something may have been missed.
    is_interrupted: bool,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SubscriptionAction {
    /// Nothing: what is wanted is there, or cannot be had.
    Rest,
    /// Nothing is wanted any more.
    Close,
    /// Open a subscription for this.
    Open(SubscriptionFilter),
}

impl SubscriptionState {
    /// Takes in what is wanted from now on.
    pub(super) fn set_filter(&mut self, filter: SubscriptionFilter) {
        if self.wanted != filter {
            self.refused = None;
            self.wanted = filter;
        }
    }

    /// Returns what to do next.
    pub(super) fn next(&self) -> SubscriptionAction {
        let is_nothing = self.wanted == SubscriptionFilter::default();
        match &self.open {
            Some(_) if is_nothing => SubscriptionAction::Close,
            None if is_nothing => SubscriptionAction::Rest,
            Some(open) if *open == self.wanted => SubscriptionAction::Rest,
            _ if self.refused.as_ref() == Some(&self.wanted) => SubscriptionAction::Rest,
            _ => SubscriptionAction::Open(self.wanted.clone()),
        }
    }

    /// Notes that a subscription for `filter` is open, and tells whether something may have been
    /// missed before.
    pub(super) fn opened(&mut self, filter: SubscriptionFilter) -> bool {
        self.open = Some(filter);
        std::mem::take(&mut self.is_interrupted)
    }

    /// Notes that the server refused a subscription for `filter`.
    pub(super) fn refused(&mut self, filter: SubscriptionFilter) {
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

    fn filter(uris: &[&str]) -> SubscriptionFilter {
        SubscriptionFilter {
            tools: true,
            uris: uris.iter().map(|&uri| uri.to_owned()).collect(),
            ..SubscriptionFilter::default()
        }
    }

    #[test]
    fn nothing_is_opened_for_nobody() {
        assert_eq!(SubscriptionState::default().next(), SubscriptionAction::Rest);
    }

    #[test]
    fn a_subscription_is_opened_once_and_again_for_something_else() {
        let mut plan = SubscriptionState::default();
        plan.set_filter(filter(&[]));
        assert_eq!(plan.next(), SubscriptionAction::Open(filter(&[])));
        assert!(!plan.opened(filter(&[])), "nothing was missed");
        assert_eq!(plan.next(), SubscriptionAction::Rest);
        plan.set_filter(filter(&["a"]));
        assert_eq!(plan.next(), SubscriptionAction::Open(filter(&["a"])));
        assert!(!plan.opened(filter(&["a"])), "the other one was open meanwhile");
        plan.set_filter(SubscriptionFilter::default());
        assert_eq!(plan.next(), SubscriptionAction::Close);
        plan.closed();
        assert_eq!(plan.next(), SubscriptionAction::Rest);
    }

    #[test]
    fn one_that_is_lost_is_opened_again_and_what_it_missed_is_doubted() {
        let mut plan = SubscriptionState::default();
        plan.set_filter(filter(&[]));
        plan.opened(filter(&[]));
        plan.lost();
        plan.lost();
        assert_eq!(plan.next(), SubscriptionAction::Open(filter(&[])));
        assert!(plan.opened(filter(&[])));
        assert!(!plan.opened(filter(&[])), "once");
    }

    #[test]
    fn what_was_refused_is_not_asked_for_again_until_something_else_is() {
        let mut plan = SubscriptionState::default();
        plan.set_filter(filter(&["a"]));
        plan.refused(filter(&["a"]));
        assert_eq!(plan.next(), SubscriptionAction::Rest);
        plan.set_filter(filter(&["a"]));
        assert_eq!(plan.next(), SubscriptionAction::Rest);
        plan.set_filter(filter(&["b"]));
        plan.set_filter(filter(&["a"]));
        assert_eq!(plan.next(), SubscriptionAction::Open(filter(&["a"])));
    }
}
