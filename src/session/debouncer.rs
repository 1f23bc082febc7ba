//! Values held for a moment, so that repeated values are sent once.
//!
//! Pure: the caller passes the time, as the duration since a fixed moment.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    time::Duration,
};

/// Values that wait for the end of their window, one for each key.
#[derive(Debug)]
pub struct Debounce<K, V> {
    window: Duration,
    held: HashMap<K, V>,
    /// The ends of the windows, in order of their start. Windows of equal length end in that order.
    ends: VecDeque<(Duration, K)>,
}

impl<K: Clone + Eq + Hash, V> Debounce<K, V> {
    /// Returns an empty debounce that holds each value for `window`.
    pub fn new(window: Duration) -> Self {
        Self { window, held: HashMap::new(), ends: VecDeque::new() }
    }

    /// Changes the window for new values. A shorter one still ends after the earlier windows.
    pub fn set_window(&mut self, window: Duration) {
        self.window = window;
    }

    /// Holds `value` until the window of `key` ends. The window starts with the first value, so
    /// that a constant stream of values is sent too. The last value counts.
    pub fn hold(&mut self, key: K, value: V, now: Duration) {
        if self.held.insert(key.clone(), value).is_none() {
            self.ends.push_back((now + self.window, key));
        }
    }

    /// Returns the end of the next window.
    pub fn next_end(&self) -> Option<Duration> {
        self.ends.front().map(|(ends, _)| *ends)
    }

    /// Removes a value whose window has ended, in the order of the windows.
    pub fn take(&mut self, now: Duration) -> Option<(K, V)> {
        self.next_end().filter(|ends| *ends <= now)?;
        let (_, key) = self.ends.pop_front()?;
        let value = self.held.remove(&key)?;
        Some((key, value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW: Duration = Duration::from_millis(100);

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn all(debounce: &mut Debounce<char, u64>, now: Duration) -> Vec<(char, u64)> {
        std::iter::from_fn(|| debounce.take(now)).collect()
    }

    #[test]
    fn a_burst_is_sent_once_at_the_end_of_its_window() {
        let mut debounce = Debounce::new(WINDOW);
        for n in 0..50 {
            debounce.hold('a', n, ms(n));
        }
        assert_eq!(debounce.next_end(), Some(WINDOW));
        assert_eq!(all(&mut debounce, ms(99)), []);
        assert_eq!(all(&mut debounce, ms(100)), [('a', 49)]);
        assert_eq!(debounce.next_end(), None);
        debounce.hold('a', 50, ms(100));
        assert_eq!(debounce.next_end(), Some(ms(200)), "the next window");
    }

    #[test]
    fn a_changed_window_applies_to_later_values() {
        let mut debounce = Debounce::new(WINDOW);
        debounce.hold('a', 0, ms(0));
        debounce.set_window(ms(10));
        debounce.hold('b', 1, ms(1));
        assert_eq!(all(&mut debounce, ms(99)), [], "in their order");
        assert_eq!(all(&mut debounce, ms(100)), [('a', 0), ('b', 1)]);
        debounce.hold('a', 2, ms(100));
        assert_eq!(all(&mut debounce, ms(110)), [('a', 2)]);
    }

    #[test]
    fn each_key_has_its_own_window_and_windows_end_in_order() {
        let mut debounce = Debounce::new(WINDOW);
        for (key, at) in [('b', 0), ('a', 0), ('c', 50), ('b', 60)] {
            debounce.hold(key, at, ms(at));
        }
        assert_eq!(all(&mut debounce, ms(100)), [('b', 60), ('a', 0)]);
        assert_eq!(all(&mut debounce, ms(1000)), [('c', 50)]);
    }

    proptest! {
        #[test]
        fn each_key_is_sent_once_per_window_and_never_later(
            steps in prop::collection::vec((0..4_u8, 0..60_u64), 1..200)
        ) {
            let mut debounce = Debounce::new(WINDOW);
            let (mut now, mut sent, mut waits) = (Duration::ZERO, HashMap::new(), HashMap::new());
            for (key, pause) in steps {
                let until = now + ms(pause);
                // Like a driver, which wakes at the end of each window.
                while let Some(ends) = debounce.next_end().filter(|ends| *ends <= until) {
                    while let Some((key, ())) = debounce.take(ends) {
                        let before = sent.insert(key, ends);
                        prop_assert!(before.is_none_or(|before| ends >= before + WINDOW));
                        prop_assert_eq!(waits.remove(&key), Some(ends));
                    }
                }
                now = until;
                debounce.hold(key, (), now);
                waits.entry(key).or_insert(now + WINDOW);
            }
            prop_assert_eq!(debounce.held.len(), debounce.ends.len());
            prop_assert_eq!(waits.len(), debounce.held.len());
        }
    }
}
