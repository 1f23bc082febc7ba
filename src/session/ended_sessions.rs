//! The ended sessions whose ids are still validly signed.

use std::collections::{HashSet, VecDeque};

use crate::config::defaults;

/// The numbers of the most recently ended sessions.
#[derive(Debug, Default)]
pub(super) struct EndedSessions {
    numbers: HashSet<u128>,
    in_order: VecDeque<u128>,
}

impl EndedSessions {
    /// Adds a session. Returns `false` if it had ended before.
    pub(super) fn add(&mut self, number: u128) -> bool {
        if !self.numbers.insert(number) {
            return false;
        }
        self.in_order.push_back(number);
        if self.in_order.len() > defaults::SESSIONS_ENDED_MAX
            && let Some(forgotten) = self.in_order.pop_front()
        {
            self.numbers.remove(&forgotten);
        }
        true
    }

    pub(super) fn has(&self, number: u128) -> bool {
        self.numbers.contains(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_recently_ended_sessions_are_remembered() {
        let mut ended = EndedSessions::default();
        let max = defaults::SESSIONS_ENDED_MAX as u128;
        assert!(ended.add(0) && !ended.add(0), "once");
        for number in 1..=max {
            assert!(ended.add(number));
        }
        assert!(!ended.has(0) && ended.has(1) && ended.has(max));
        assert_eq!((ended.numbers.len(), ended.in_order.len()), (max as usize, max as usize));
    }
}
