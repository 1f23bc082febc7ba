//! Which of the connections that nobody uses go: for room, or because their time is over.
//!
//! Pure: a look at all of them, and the time as an argument.
//!
//! - The `min` connections that were used last stay, whether they are in use or not. Those of a
//!   server that is to be there always are among them.
//! - For room goes the one that was used longest ago, of an account that holds more than its share
//!   where there is one; one with something that only its client
//!   knows goes only when there is no other. A server that is to be there always is not looked at.
//! - A time that was declared for a server is kept to the letter; the minimum prolongs only the
//!   time that the pool gives to all.
//!
//! Source: seed 000, "Pool sizing", "Idle sweep", "Eviction"; features §4.3.

use std::{cmp::Reverse, time::Duration};

use tokio::time::Instant;

/// One connection that nobody uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IdleConnection<K> {
    /// Which.
    pub(super) key: K,
    /// When it was used last.
    pub(super) since: Instant,
    /// How long it may stay.
    pub(super) stay: IdleLimit,
    /// What would be lost with it.
    pub(super) loss: EvictionCost,
    /// It counts for an account that holds more than its share of the seats.
    pub(super) is_above_share: bool,
}

/// How long a connection may stay that nobody uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdleLimit {
    /// For ever, also when others need room.
    Always,
    /// For so long, or for ever; others may need its room.
    Own(Option<Duration>),
    /// As [`IdleLimit::Own`], for all that declare nothing; the minimum counts here.
    Pooled(Option<Duration>),
}

/// What would be lost with a connection, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EvictionCost {
    /// Nothing.
    Nothing,
    /// What a client has built up in it, or watches with it.
    State,
    /// Something that the server still works on, although nobody wants it any more.
    Work,
}

impl IdleLimit {
    /// Returns when the time of a connection is over that was used last at `since`.
    pub(super) fn ends(self, since: Instant) -> Option<Instant> {
        match self {
            Self::Always => None,
            Self::Own(stay) | Self::Pooled(stay) => Some(since + stay?),
        }
    }
}

/// Returns which connection makes room, if any does. `n_busy` are in use or being connected.
pub(super) fn evicted<K>(idle: Vec<IdleConnection<K>>, n_busy: usize, min: usize) -> Option<K> {
    // What is there always is part of the minimum, whenever it was used.
    let (kept, others): (Vec<_>, Vec<_>) =
        idle.into_iter().partition(|one| one.stay == IdleLimit::Always);
    let left = unprotected(others, n_busy + kept.len(), min);
    let first = |one: &IdleConnection<K>| {
        (one.loss == EvictionCost::Work, !one.is_above_share, one.loss, one.since)
    };
    left.into_iter().min_by_key(first).map(|one| one.key)
}

/// Returns the connections whose time is over, and when to look again unless something happens.
pub(super) fn expired<K>(
    idle: Vec<IdleConnection<K>>,
    n_busy: usize,
    min: usize,
    now: Instant,
) -> (Vec<K>, Option<Instant>) {
    let (pooled, own): (Vec<_>, Vec<_>) =
        idle.into_iter().partition(|one| matches!(one.stay, IdleLimit::Pooled(_)));
    let n_others = n_busy + own.len();
    let left = unprotected(pooled, n_others, min).into_iter().chain(own);
    let (mut over, mut next) = (Vec::new(), None::<Instant>);
    for one in left {
        match one.stay.ends(one.since) {
            Some(ends) if ends <= now => over.push(one.key),
            Some(ends) => next = Some(next.map_or(ends, |next| next.min(ends))),
            None => {}
        }
    }
    (over, next)
}

/// Leaves out those that the minimum protects: the ones that were used last.
fn unprotected<K>(
    mut idle: Vec<IdleConnection<K>>,
    n_others: usize,
    min: usize,
) -> Vec<IdleConnection<K>> {
    idle.sort_by_key(|one| Reverse(one.since));
    let n_protected = min.saturating_sub(n_others).min(idle.len());
    idle.split_off(n_protected)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const POOLED: IdleLimit = IdleLimit::Pooled(Some(Duration::from_secs(300)));

    /// Returns connections that were used last at these minutes.
    fn idle<const N: usize>(
        start: Instant,
        all: [(&'static str, u32, IdleLimit); N],
    ) -> Vec<IdleConnection<&'static str>> {
        let idle = all.map(|(key, minute, stay)| IdleConnection {
            key,
            since: start + minute * MINUTE,
            stay,
            loss: EvictionCost::Nothing,
            is_above_share: false,
        });
        idle.into()
    }

    #[test]
    fn the_one_that_was_used_longest_ago_makes_room() {
        let start = Instant::now();
        let all = idle(start, [("b", 2, POOLED), ("a", 1, POOLED), ("c", 3, POOLED)]);
        assert_eq!(evicted(all, 0, 0), Some("a"));
    }

    #[test]
    fn one_that_is_to_be_there_always_does_not_make_room_and_one_with_its_own_time_does() {
        let start = Instant::now();
        let own = IdleLimit::Own(Some(100 * MINUTE));
        let all = idle(start, [("kept", 1, IdleLimit::Always), ("own", 2, own), ("c", 3, POOLED)]);
        assert_eq!(evicted(all, 0, 0), Some("own"));
        assert_eq!(evicted(idle(start, [("kept", 1, IdleLimit::Always)]), 5, 0), None);
    }

    #[test]
    fn what_only_its_client_knows_is_lost_last() {
        let start = Instant::now();
        let mut all = idle(start, [("state", 1, POOLED), ("work", 2, POOLED), ("none", 3, POOLED)]);
        all[0].loss = EvictionCost::State;
        all[1].loss = EvictionCost::Work;
        assert_eq!(evicted(all.clone(), 0, 0), Some("none"));
        all.pop();
        assert_eq!(evicted(all, 0, 0), Some("state"));
    }

    #[test]
    fn an_account_that_holds_more_than_its_share_makes_room_first() {
        let start = Instant::now();
        let mut all = idle(start, [("a", 1, POOLED), ("large", 2, POOLED), ("work", 1, POOLED)]);
        (all[1].loss, all[1].is_above_share) = (EvictionCost::State, true);
        (all[2].loss, all[2].is_above_share) = (EvictionCost::Work, true);
        assert_eq!(evicted(all, 0, 0), Some("large"));
    }

    #[test]
    fn the_minimum_protects_those_that_were_used_last_from_both() {
        let start = Instant::now();
        let all = || idle(start, [("a", 1, POOLED), ("b", 2, POOLED), ("c", 3, POOLED)]);
        assert_eq!(evicted(all(), 0, 2), Some("a"));
        assert_eq!(evicted(all(), 0, 3), None);
        assert_eq!(evicted(all(), 1, 3), Some("a"), "one that is in use counts");
        let (over, next) = expired(all(), 0, 2, start + 60 * MINUTE);
        assert_eq!((over, next), (vec!["a"], None));
    }

    #[test]
    fn one_that_is_to_be_there_always_is_part_of_the_minimum() {
        let start = Instant::now();
        let all = idle(start, [("kept", 1, IdleLimit::Always), ("a", 2, POOLED)]);
        assert_eq!(evicted(all.clone(), 0, 1), Some("a"), "with both seats of two taken");
        assert_eq!(evicted(all, 0, 2), None);
    }

    #[test]
    fn each_goes_when_its_time_is_over_and_not_before() {
        let start = Instant::now();
        let own = IdleLimit::Own(Some(MINUTE));
        let all =
            || idle(start, [("own", 1, own), ("a", 1, POOLED), ("kept", 0, IdleLimit::Always)]);
        let at = |minute: u32| expired(all(), 0, 0, start + minute * MINUTE);
        assert_eq!(at(1), (vec![], Some(start + 2 * MINUTE)));
        assert_eq!(at(2), (vec!["own"], Some(start + 6 * MINUTE)));
        assert_eq!(at(6).0.len(), 2);
        let (early, _) = expired(all(), 0, 0, start + 6 * MINUTE - Duration::from_millis(1));
        assert_eq!(early, ["own"]);
    }

    #[test]
    fn the_minimum_does_not_prolong_a_time_that_was_declared() {
        let start = Instant::now();
        let all = idle(start, [("ephemeral", 1, IdleLimit::Own(Some(Duration::ZERO)))]);
        assert_eq!(expired(all, 0, 5, start + MINUTE).0, ["ephemeral"]);
    }

    #[test]
    fn without_a_time_nothing_is_ever_over() {
        let start = Instant::now();
        let all = idle(start, [("a", 1, IdleLimit::Pooled(None)), ("b", 1, IdleLimit::Own(None))]);
        assert_eq!(expired(all, 0, 0, start + 100_000 * MINUTE), (vec![], None));
    }
}
