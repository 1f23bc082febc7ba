//! The most recent clients of a server.

use std::time::Duration;

use crate::capacity_holder::{Account, Holder};

/// The two most recent clients of a server, with the time of their last use.
///
/// Two are enough to determine for any client whether another one has used the server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentClients {
    last: Option<Use>,
    /// The last use by a client other than that of `last`.
    other: Option<Use>,
}

#[derive(Clone, Copy, Debug)]
struct Use {
    holder: Holder,
    at: Duration,
}

impl RecentClients {
    /// Records that `holder` uses the server. metamcp itself is not a client.
    pub(super) fn note(&mut self, holder: Holder, now: Duration) {
        if holder.account == Account::Service {
            return;
        }
        match &mut self.last {
            Some(last) if last.holder == holder => last.at = now,
            last => self.other = last.replace(Use { holder, at: now }).or(self.other),
        }
    }

    /// Returns whether a client other than `holder` has used the server at `since` or later.
    pub(super) fn has_other_client(&self, holder: Holder, since: Duration) -> bool {
        let others = [self.last, self.other].into_iter().flatten();
        others.filter(|used| used.holder != holder).any(|used| used.at >= since)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capacity_holder::AccountMember;

    fn client(number: u64) -> Holder {
        Holder { account: Account::User(1000), member: AccountMember::Session(number) }
    }

    #[test]
    fn metamcp_does_not_count_as_another_client() {
        let mut users = RecentClients::default();
        users.note(client(1), Duration::ZERO);
        users.note(Holder::SERVICE, Duration::ZERO);
        assert!(!users.has_other_client(client(1), Duration::ZERO));
        assert!(users.has_other_client(Holder::SERVICE, Duration::ZERO));
    }

    proptest! {
        #[test]
        fn two_remembered_clients_suffice(
            uses in prop::collection::vec((0_u64..4, 0_u64..5), 0..20),
            asked in 0_u64..4,
            window in 0_u64..20,
        ) {
            let (mut users, mut all, mut now) = (RecentClients::default(), Vec::new(), 0);
            for (number, pause) in uses {
                now += pause;
                users.note(client(number), Duration::from_secs(now));
                all.push((number, now));
            }
            let since = now.saturating_sub(window);
            let expected = all.iter().any(|(number, at)| *number != asked && *at >= since);
            let found = users.has_other_client(client(asked), Duration::from_secs(since));
            prop_assert_eq!(found, expected);
        }
    }
}
