//! The vectors of the latest queries. Pure.

use std::collections::VecDeque;

use super::{text_hash::TextDigest, vector_table::UnitVector};
use crate::config::defaults;

/// The vectors of the latest queries; the one used longest ago is evicted first.
#[derive(Debug, Default)]
pub(super) struct QueryVectorCache(VecDeque<(TextDigest, UnitVector)>);

impl QueryVectorCache {
    /// Returns the vector of a query, and marks it as used.
    pub(super) fn get(&mut self, digest: TextDigest) -> Option<UnitVector> {
        let at = self.0.iter().position(|(known, _)| *known == digest)?;
        let found = self.0.remove(at)?;
        let vector = found.1.clone();
        self.0.push_back(found);
        Some(vector)
    }

    /// Keeps the vector of a query.
    pub(super) fn insert(&mut self, digest: TextDigest, vector: UnitVector) {
        self.0.retain(|(known, _)| *known != digest);
        if self.0.len() == defaults::EMBEDDING_QUERIES_KEPT {
            self.0.pop_front();
        }
        self.0.push_back((digest, vector));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_that_was_used_longest_ago_is_evicted() {
        let digest = |n: usize| TextDigest::of(&[&n.to_le_bytes()]);
        let mut recent = QueryVectorCache::default();
        for n in 0..defaults::EMBEDDING_QUERIES_KEPT {
            recent.insert(digest(n), UnitVector::from([1.0]));
        }
        assert!(recent.get(digest(0)).is_some());
        recent.insert(digest(1000), UnitVector::from([1.0]));
        assert!(recent.get(digest(0)).is_some());
        assert!(recent.get(digest(1)).is_none());
        recent.insert(digest(0), UnitVector::from([2.0]));
        assert_eq!(recent.get(digest(0)).as_deref(), Some(&[2.0][..]));
    }
}
