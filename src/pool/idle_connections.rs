//! Eviction and idle timeout of idle connections.
//!
//! Pure functions over a snapshot of all connections; the caller passes the current time.
//!
//! - The `min` most recently used connections stay, in use or not. Those of keep-alive servers
//!   count towards `min`.
//! - Eviction takes the least recently used connection, first from an account that holds more than
//!   its share. A connection with unfinished work goes last. Keep-alive connections are never
//!   evicted.
//! - A declared idle timeout is exact. `min` extends only the default idle timeout of the pool.

use std::{cmp::Reverse, time::Duration};

use tokio::time::Instant;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IdleConnection<K> {
    /// The caller's key of the connection.
    pub(super) key: K,
    /// The time of the last use.
    pub(super) since: Instant,
    /// The limit on its idle time.
    pub(super) limit: IdleLimit,
    /// The loss if it is evicted.
    pub(super) cost: EvictionCost,
    /// Its account holds more than its share of the permits.
    pub(super) is_above_share: bool,
}

/// The limit on how long a connection may stay idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdleLimit {
    /// No limit, and no eviction.
    Always,
    /// The server's own timeout, or none. Eviction is allowed.
    Own(Option<Duration>),
    /// The pool's default timeout, or none. Eviction is allowed, and `min` applies.
    Pooled(Option<Duration>),
}

/// The loss that an eviction causes, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EvictionCost {
    Nothing,
    /// State that a client has built up in the connection, or a resource that a client watches.
    State,
    /// Work that the server still does for an abandoned request.
    Work,
}

impl IdleLimit {
    /// Returns the time at which a connection that was last used at `since` expires.
    pub(super) fn ends(self, since: Instant) -> Option<Instant> {
        match self {
            Self::Always => None,
            Self::Own(limit) | Self::Pooled(limit) => Some(since + limit?),
        }
    }
}

/// Returns the connection to evict, if any. `n_busy` connections are in use or connecting.
pub(super) fn evicted<K>(idle: Vec<IdleConnection<K>>, n_busy: usize, min: usize) -> Option<K> {
    // Keep-alive connections are part of the minimum, whenever they were last used.
    let (kept, others): (Vec<_>, Vec<_>) =
        idle.into_iter().partition(|one| one.limit == IdleLimit::Always);
    let left = unprotected(others, n_busy + kept.len(), min);
    let first = |one: &IdleConnection<K>| {
        (one.cost == EvictionCost::Work, !one.is_above_share, one.cost, one.since)
    };
    left.into_iter().min_by_key(first).map(|one| one.key)
}

/// Returns the expired connections, and the next time to check if nothing changes.
pub(super) fn expired<K>(
    idle: Vec<IdleConnection<K>>,
    n_busy: usize,
    min: usize,
    now: Instant,
) -> (Vec<K>, Option<Instant>) {
    let (pooled, own): (Vec<_>, Vec<_>) =
        idle.into_iter().partition(|one| matches!(one.limit, IdleLimit::Pooled(_)));
    let n_others = n_busy + own.len();
    let left = unprotected(pooled, n_others, min).into_iter().chain(own);
    let (mut over, mut next) = (Vec::new(), None::<Instant>);
    for one in left {
        match one.limit.ends(one.since) {
            Some(ends) if ends <= now => over.push(one.key),
            Some(ends) => next = Some(next.map_or(ends, |next| next.min(ends))),
            None => {}
        }
    }
    (over, next)
}

/// Removes the connections that the minimum protects: the most recently used ones.
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

    /// Returns connections that were last used at these minutes.
    fn idle<const N: usize>(
        start: Instant,
        all: [(&'static str, u32, IdleLimit); N],
    ) -> Vec<IdleConnection<&'static str>> {
        let idle = all.map(|(key, minute, limit)| IdleConnection {
            key,
            since: start + minute * MINUTE,
            limit,
            cost: EvictionCost::Nothing,
            is_above_share: false,
        });
        idle.into()
    }

    #[test]
    fn the_least_recently_used_idle_connection_is_evicted() {
        let start = Instant::now();
        let all = idle(start, [("b", 2, POOLED), ("a", 1, POOLED), ("c", 3, POOLED)]);
        assert_eq!(evicted(all, 0, 0), Some("a"));
    }

    #[test]
    fn a_keep_alive_connection_is_not_evicted_and_one_with_its_own_timeout_is() {
        let start = Instant::now();
        let own = IdleLimit::Own(Some(100 * MINUTE));
        let all = idle(start, [("kept", 1, IdleLimit::Always), ("own", 2, own), ("c", 3, POOLED)]);
        assert_eq!(evicted(all, 0, 0), Some("own"));
        assert_eq!(evicted(idle(start, [("kept", 1, IdleLimit::Always)]), 5, 0), None);
    }

    #[test]
    fn eviction_spares_client_state_and_running_work_the_longest() {
        let start = Instant::now();
        let mut all = idle(start, [("state", 1, POOLED), ("work", 2, POOLED), ("none", 3, POOLED)]);
        all[0].cost = EvictionCost::State;
        all[1].cost = EvictionCost::Work;
        assert_eq!(evicted(all.clone(), 0, 0), Some("none"));
        all.pop();
        assert_eq!(evicted(all, 0, 0), Some("state"));
    }

    #[test]
    fn a_connection_of_an_account_above_its_share_is_evicted_first() {
        let start = Instant::now();
        let mut all = idle(start, [("a", 1, POOLED), ("large", 2, POOLED), ("work", 1, POOLED)]);
        (all[1].cost, all[1].is_above_share) = (EvictionCost::State, true);
        (all[2].cost, all[2].is_above_share) = (EvictionCost::Work, true);
        assert_eq!(evicted(all, 0, 0), Some("large"));
    }

    #[test]
    fn the_minimum_protects_the_most_recently_used_connections() {
        let start = Instant::now();
        let all = || idle(start, [("a", 1, POOLED), ("b", 2, POOLED), ("c", 3, POOLED)]);
        assert_eq!(evicted(all(), 0, 2), Some("a"));
        assert_eq!(evicted(all(), 0, 3), None);
        assert_eq!(evicted(all(), 1, 3), Some("a"), "a connection in use counts");
        let (over, next) = expired(all(), 0, 2, start + 60 * MINUTE);
        assert_eq!((over, next), (vec!["a"], None));
    }

    #[test]
    fn keep_alive_connections_count_towards_the_minimum() {
        let start = Instant::now();
        let all = idle(start, [("kept", 1, IdleLimit::Always), ("a", 2, POOLED)]);
        assert_eq!(evicted(all.clone(), 0, 1), Some("a"), "both permits of two are taken");
        assert_eq!(evicted(all, 0, 2), None);
    }

    #[test]
    fn each_connection_expires_exactly_at_its_idle_timeout() {
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
    fn the_minimum_does_not_extend_a_declared_idle_timeout() {
        let start = Instant::now();
        let all = idle(start, [("ephemeral", 1, IdleLimit::Own(Some(Duration::ZERO)))]);
        assert_eq!(expired(all, 0, 5, start + MINUTE).0, ["ephemeral"]);
    }

    #[test]
    fn a_connection_without_an_idle_timeout_never_expires() {
        let start = Instant::now();
        let all = idle(start, [("a", 1, IdleLimit::Pooled(None)), ("b", 1, IdleLimit::Own(None))]);
        assert_eq!(expired(all, 0, 0, start + 100_000 * MINUTE), (vec![], None));
    }
}
