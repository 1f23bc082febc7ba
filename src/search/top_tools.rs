//! The selection of the best tools without sorting all of them.

/// The best tools so far, by number and score.
pub(super) struct TopTools {
    limit: usize,
    found: Vec<(u32, f64)>,
}

impl TopTools {
    /// Returns an empty selection of at most `limit` tools.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, found: Vec::new() }
    }

    /// Inserts a tool, unless its score is 0.
    pub(super) fn insert(&mut self, number: u32, score: f64) {
        if score > 0.0 && self.limit > 0 {
            self.found.push((number, score));
        }
    }

    /// Returns the best tools, best first; of equal ones the one with the lower number.
    pub(super) fn in_order(mut self) -> impl Iterator<Item = (u32, f64)> {
        let order = |a: &(u32, f64), b: &(u32, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if self.found.len() > self.limit {
            self.found.select_nth_unstable_by(self.limit, order);
            self.found.truncate(self.limit);
        }
        self.found.sort_unstable_by(order);
        self.found.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_tools_come_in_order_and_of_equal_tools_the_first() {
        let mut best = TopTools::new(3);
        for (number, score) in [(4, 1.0), (3, 2.0), (0, 0.0), (2, 1.0), (1, 2.0), (5, 3.0)] {
            best.insert(number, score);
        }

        assert_eq!(best.in_order().collect::<Vec<_>>(), [(5, 3.0), (1, 2.0), (3, 2.0)]);
    }
}
