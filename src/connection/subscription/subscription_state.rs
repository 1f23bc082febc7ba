//! The state machine that opens, keeps and closes a subscription. Pure: no clock, no server.
//!
//! ```text
//!            want               opened
//!  resting ───────▶ to be opened ─────▶ open ── want another ──▶ to be opened, open meanwhile
//!     ▲                  │  ▲             │
//!     └──── refused ─────┘  └── lost ─────┘
//! ```

use crate::era::client_subscription::SubscriptionFilter;

/// The wanted and the actual subscription to a server's notices.
#[derive(Debug, Default)]
pub(super) struct SubscriptionState {
    wanted: SubscriptionFilter,
    open: Option<SubscriptionFilter>,
    /// The filter that the server refused: it is not requested again.
    refused: Option<SubscriptionFilter>,
    /// `true` if an open subscription was lost, so that notices may have been missed.
    is_interrupted: bool,
}

/// The next action of the caller.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SubscriptionAction {
    /// Nothing: the wanted subscription is open, or refused.
    Rest,
    /// Close the subscription: notices are no longer wanted.
    Close,
    /// Open a subscription with this filter.
    Open(SubscriptionFilter),
}

impl SubscriptionState {
    /// Sets the notices that are wanted from now on.
    pub(super) fn set_filter(&mut self, filter: SubscriptionFilter) {
        if self.wanted != filter {
            self.refused = None;
            self.wanted = filter;
        }
    }

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

    /// Records that a subscription for `filter` is open. Returns whether notices may have been
    /// missed before.
    pub(super) fn opened(&mut self, filter: SubscriptionFilter) -> bool {
        self.open = Some(filter);
        std::mem::take(&mut self.is_interrupted)
    }

    /// Records that the server refused a subscription for `filter`.
    pub(super) fn refused(&mut self, filter: SubscriptionFilter) {
        self.refused = Some(filter);
    }

    /// Records that the open subscription has ended or was lost.
    pub(super) fn lost(&mut self) {
        self.is_interrupted |= self.open.take().is_some();
    }

    /// Records that the open subscription was closed because no notices are wanted.
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
    fn an_empty_subscription_opens_no_stream() {
        assert_eq!(SubscriptionState::default().next(), SubscriptionAction::Rest);
    }

    #[test]
    fn a_subscription_is_opened_once_for_each_filter() {
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
    fn a_lost_subscription_is_opened_again_and_may_have_missed_notices() {
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
    fn a_refused_filter_is_not_requested_again_until_the_filter_changes() {
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
