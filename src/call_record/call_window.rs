//! The calls of the last minutes, in slots of equal length. Pure.

use std::time::Duration;

/// The length of a slot of the last minute.
pub(super) const MINUTE_SLOT_SECONDS: u64 = 10;
/// The number of slots of the last minute.
pub(super) const MINUTE_SLOTS: usize = 6;
/// The length of a slot of the history of a server.
pub(super) const HISTORY_SLOT_SECONDS: u64 = 15;
/// The number of slots of that history: ten minutes.
pub const HISTORY_SLOTS: usize = 40;

/// The calls in one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTotals {
    /// The number of calls.
    pub n_calls: u64,
    /// The number of these that failed.
    pub n_failed: u64,
    /// The sum of the durations.
    pub total: Duration,
    /// The longest duration.
    pub longest: Duration,
}

/// The calls of the last `N` slots.
#[derive(Clone, Debug)]
pub(super) struct CallWindow<const N: usize> {
    slots: [CallTotals; N],
    /// The number of the newest slot since some beginning.
    newest: u64,
}

impl CallTotals {
    /// Returns the average duration.
    pub fn average(&self) -> Duration {
        self.total / u32::try_from(self.n_calls).unwrap_or(u32::MAX).max(1)
    }

    fn add(&mut self, duration: Duration, has_failed: bool) {
        self.n_calls += 1;
        self.n_failed += u64::from(has_failed);
        self.total += duration;
        self.longest = self.longest.max(duration);
    }
}

impl std::iter::Sum for CallTotals {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            n_calls: sum.n_calls + one.n_calls,
            n_failed: sum.n_failed + one.n_failed,
            total: sum.total + one.total,
            longest: sum.longest.max(one.longest),
        })
    }
}

impl<const N: usize> CallWindow<N> {
    /// Returns an empty window whose newest slot is `slot`.
    pub(super) fn at(slot: u64) -> Self {
        Self { slots: [CallTotals::default(); N], newest: slot }
    }

    /// Adds a call that ends in `slot`.
    pub(super) fn add(&mut self, slot: u64, duration: Duration, has_failed: bool) {
        self.advance(slot);
        self.slots[Self::index(self.newest)].add(duration, has_failed);
    }

    /// Returns the slots up to `slot`, oldest first.
    pub(super) fn slots(&self, slot: u64) -> [CallTotals; N] {
        let mut window = self.clone();
        window.advance(slot);
        std::array::from_fn(|age| window.slots[Self::index(window.newest + 1 + age as u64)])
    }

    /// Returns whether no call ended in the slots up to `slot`.
    pub(super) fn is_empty(&self, slot: u64) -> bool {
        self.slots(slot).iter().all(|slot| slot.n_calls == 0)
    }

    /// Empties the slots that have passed. An older slot counts as the newest one: threads may get
    /// here in another order.
    fn advance(&mut self, slot: u64) {
        for passed in (self.newest + 1..=slot).take(N) {
            self.slots[Self::index(passed)] = CallTotals::default();
        }
        // After a long time, all slots are empty, whatever their number.
        if slot > self.newest.saturating_add(N as u64) {
            self.slots = [CallTotals::default(); N];
        }
        self.newest = self.newest.max(slot);
    }

    fn index(slot: u64) -> usize {
        (slot % N as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn counts<const N: usize>(window: &CallWindow<N>, slot: u64) -> [u64; N] {
        window.slots(slot).map(|slot| slot.n_calls)
    }

    #[test]
    fn a_window_forgets_the_slots_that_have_passed() {
        let mut window = CallWindow::<3>::at(7);
        window.add(7, MS, false);
        window.add(8, MS, true);
        window.add(8, 3 * MS, false);
        assert_eq!(counts(&window, 8), [0, 1, 2]);
        assert_eq!(counts(&window, 9), [1, 2, 0]);
        let sum: CallTotals = window.slots(8).into_iter().sum();
        assert_eq!((sum.n_failed, sum.total, sum.longest), (1, 5 * MS, 3 * MS));
        assert_eq!(counts(&window, 10), [2, 0, 0]);
        for late in [11, 12, 13, 1000] {
            assert!(window.is_empty(late), "{late}");
        }
        window.add(1000, MS, false);
        assert_eq!(counts(&window, 1001), [0, 1, 0]);
        // A thread that is late.
        window.add(999, MS, false);
        assert_eq!(counts(&window, 1000), [0, 0, 2]);
    }
}
