//! A sparse array of numbers.

/// A sparse array of numbers. Access is as fast as in an array, and emptying takes as long as
/// filling.
#[derive(Default)]
pub(super) struct SparseScores {
    values: Vec<f32>,
    set: Vec<u32>,
}

impl SparseScores {
    pub(super) fn new(length: usize) -> Self {
        Self { values: vec![0.0; length], set: Vec::new() }
    }

    /// Returns the number at a place; 0 if it was not set.
    pub(super) fn at(&self, place: u32) -> f32 {
        self.values[place as usize]
    }

    pub(super) fn add(&mut self, place: u32, value: f32) {
        let known = self.touch(place);
        *known += value;
    }

    /// Raises the number at a place to `value`, unless it is larger.
    pub(super) fn set_max(&mut self, place: u32, value: f32) {
        let known = self.touch(place);
        *known = known.max(value);
    }

    pub(super) fn clear(&mut self, place: u32) {
        self.values[place as usize] = 0.0;
    }

    /// Calls `found` with each number above 0, in the order of places, and empties the array.
    pub(super) fn drain(&mut self, mut found: impl FnMut(u32, f32)) {
        self.set.sort_unstable();
        for place in self.set.drain(..) {
            let value = std::mem::take(&mut self.values[place as usize]);
            if value > 0.0 {
                found(place, value);
            }
        }
    }

    /// Returns the places that are set, in no particular order.
    pub(super) fn places(&self) -> &[u32] {
        &self.set
    }

    fn touch(&mut self, place: u32) -> &mut f32 {
        let known = &mut self.values[place as usize];
        if *known == 0.0 {
            // A place that was reset to 0 is listed twice, which does no harm.
            self.set.push(place);
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draining_returns_the_scores_in_order_and_clears_them() {
        let mut numbers = SparseScores::new(5);
        numbers.add(3, 1.0);
        numbers.add(1, 2.0);
        numbers.add(3, 0.5);
        numbers.set_max(1, 1.0);

        let mut found = Vec::new();
        numbers.drain(|place, value| found.push((place, value)));
        assert_eq!(found, [(1, 2.0), (3, 1.5)]);
        assert_eq!((numbers.at(3), numbers.places().len()), (0.0, 0));
    }
}
