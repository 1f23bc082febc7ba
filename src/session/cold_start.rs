//! List notices gathered while servers connect for the first time. A client with a merged list gets
//! one when the first servers have connected and one when all have, instead of one per server.
//!
//! Pure: the caller passes the time, as the duration since a fixed moment.
//!
//! ```text
//!  warm ── a server is starting ──▶ cold: each key's first notice passes, later ones are gathered
//!   ▲                                │
//!   └── none for COLD_START_QUIET ───┘  gathered notices are sent; also after COLD_START_MAX
//! ```

use std::{collections::HashMap, hash::Hash, time::Duration};

use crate::config::defaults;

/// The notices that wait for the end of a cold start.
#[derive(Debug)]
pub(super) struct ColdStart<K, V> {
    /// The earliest end of the cold start; `None` when there is none.
    cold_until: Option<Duration>,
    /// The time of the last notice of each key in this cold start. The value keeps its session
    /// alive, so that no other session gets the same key.
    sent: HashMap<K, (Duration, V)>,
    gathered: HashMap<K, V>,
}

impl<K, V> Default for ColdStart<K, V> {
    fn default() -> Self {
        Self { cold_until: None, sent: HashMap::new(), gathered: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> ColdStart<K, V> {
    /// Records whether a server is connecting for the first time.
    pub(super) fn observe(&mut self, is_starting: bool, now: Duration) {
        if is_starting {
            self.cold_until = Some(now + defaults::COLD_START_QUIET);
        } else if self.cold_until.is_some_and(|until| until <= now) {
            self.cold_until = None;
        }
    }

    /// Returns `value` if it must be sent now. Otherwise stores it as the last value of `key`.
    pub(super) fn hold_or_send(&mut self, key: K, value: V, now: Duration) -> Option<V> {
        if self.cold_until.is_none() {
            return Some(value);
        }
        if self.sent.contains_key(&key) {
            self.gathered.insert(key, value);
            return None;
        }
        self.sent.insert(key, (now, value.clone()));
        Some(value)
    }

    /// Removes and returns the gathered values that must be sent now.
    pub(super) fn take(&mut self, now: Duration) -> Vec<V> {
        if self.cold_until.is_none() {
            self.sent.clear();
            return self.gathered.drain().map(|(_, value)| value).collect();
        }
        let sent = &mut self.sent;
        let due = self.gathered.extract_if(|key, _| match sent.get_mut(key) {
            Some((last, _)) if now < *last + defaults::COLD_START_MAX => false,
            Some((last, _)) => {
                *last = now;
                true
            }
            None => true,
        });
        due.map(|(_, value)| value).collect()
    }

    /// Returns the time of the next [`observe`](Self::observe), or `None` outside a cold start.
    pub(super) fn next_observation(&self, now: Duration) -> Option<Duration> {
        self.cold_until.map(|_| now + defaults::COLD_START_QUIET / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the times of the notices, in milliseconds. Servers connect at the times in
    /// `arrivals`, and others are starting until `end`.
    fn sent_at(arrivals: &[u64], end: u64) -> Vec<u64> {
        let mut start = ColdStart::<char, ()>::default();
        let mut sent_at = Vec::new();
        for now in (0..120_000).step_by(50) {
            let at = Duration::from_millis(now);
            start.observe(now < end, at);
            let is_sent = !start.take(at).is_empty()
                | (arrivals.contains(&now) && start.hold_or_send('a', (), at).is_some());
            sent_at.extend(is_sent.then_some(now));
        }
        sent_at
    }

    #[test]
    fn a_cold_start_sends_one_notice_at_its_first_connection_and_one_at_its_end() {
        let arrivals: Vec<u64> = (500..15_000).step_by(250).collect();
        assert_eq!(sent_at(&arrivals, 15_000), [500, 15_950]);
    }

    #[test]
    fn a_server_that_never_connects_delays_notices_no_longer_than_the_limit() {
        let limit = u64::try_from(defaults::COLD_START_MAX.as_millis()).expect("small");
        let end = 3 * limit;
        assert_eq!(sent_at(&[500, 1000, limit + 600], end), [500, 500 + limit, 500 + 2 * limit]);
    }

    #[test]
    fn notices_are_sent_at_once_outside_a_cold_start() {
        assert_eq!(sent_at(&[500, 700, 900], 0), [500, 700, 900]);
        assert_eq!(sent_at(&[500, 3000, 3050], 1000), [500, 3000, 3050]);
    }

    #[test]
    fn each_key_has_its_own_notices_during_a_cold_start_and_the_last_value_counts() {
        let mut start = ColdStart::default();
        start.observe(true, SECOND);
        assert_eq!(start.hold_or_send('a', 1, SECOND), Some(1));
        assert_eq!(start.hold_or_send('b', 2, SECOND), Some(2));
        assert_eq!(
            (start.hold_or_send('a', 3, SECOND), start.hold_or_send('a', 4, SECOND)),
            (None, None)
        );
        assert!(start.take(SECOND).is_empty() && start.next_observation(SECOND).is_some());
        start.observe(false, 2 * SECOND);
        assert_eq!((start.take(2 * SECOND), start.next_observation(2 * SECOND)), (vec![4], None));
    }
}
