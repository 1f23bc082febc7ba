//! The known vectors, all of one space: those of texts and those of the latest queries. Pure.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use super::{
    openai_api::ResponseError,
    text_hash::{EmbeddingText, TextDigest},
};
use crate::config::defaults;

/// A vector of length one.
pub(super) type UnitVector = Arc<[f32]>;

/// Vectors of texts, all of the same dimension.
#[derive(Debug, Default)]
pub(super) struct VectorTable {
    pub(super) all: HashMap<TextDigest, UnitVector>,
    /// The number of numbers in each vector.
    pub(super) dimension: Option<usize>,
    /// The dimension is from the endpoint; an answer may contradict one from the disk.
    is_confirmed: bool,
}

impl VectorTable {
    /// Returns a table of the vectors from the disk.
    pub(super) fn cached(all: HashMap<TextDigest, UnitVector>) -> Self {
        let dimension = all.values().next().map(|vector| vector.len());
        Self { all, dimension, is_confirmed: false }
    }

    pub(super) fn get(&self, digest: &TextDigest) -> Option<&UnitVector> {
        self.all.get(digest)
    }

    /// Records the dimension of an answer. If the vectors from the disk have another one, the
    /// endpoint replaced the model under its name, and those vectors are dropped.
    ///
    /// # Errors
    ///
    /// [`ResponseError::Dimension`] if the endpoint gave another dimension before.
    pub(super) fn answered(&mut self, found: usize) -> Result<(), ResponseError> {
        if let Some(known) = self.dimension.filter(|known| *known != found) {
            if self.is_confirmed {
                return Err(ResponseError::Dimension { known, found });
            }
            self.all.clear();
        }
        (self.dimension, self.is_confirmed) = (Some(found), true);
        Ok(())
    }

    /// Adds vectors. If there are too many, those of texts that are not `wanted` are dropped.
    pub(super) fn insert(
        &mut self,
        found: impl IntoIterator<Item = (TextDigest, UnitVector)>,
        wanted: &[EmbeddingText],
    ) {
        self.all.extend(found);
        let n_max = self.n_max();
        if self.all.len() > n_max {
            let wanted: HashSet<TextDigest> = wanted.iter().map(EmbeddingText::digest).collect();
            self.all.retain(|digest, _| wanted.contains(digest));
        }
    }

    /// Returns whether the vectors of `wanted` alone fill the table.
    pub(super) fn is_full_of(&self, wanted: &[EmbeddingText]) -> bool {
        let n_known = wanted.iter().filter(|text| self.all.contains_key(&text.digest())).count();
        n_known >= self.n_max()
    }

    fn n_max(&self) -> usize {
        let dimension = self.dimension.unwrap_or_default();
        defaults::EMBEDDING_BYTES_MAX / (TextDigest::BYTES + dimension * size_of::<f32>())
    }
}

/// Returns the vector of length one in the same direction, or `None` if there is no direction.
pub(super) fn normalised(vector: &[f32]) -> Option<UnitVector> {
    // In f64, because the squares of large numbers exceed f32.
    let squares: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    let length = squares.sqrt();
    // NaN fails here, too.
    let is_usable = length.is_finite() && length > f64::from(f32::MIN_POSITIVE);
    #[expect(clippy::cast_possible_truncation, reason = "a part of a vector of length one")]
    is_usable.then(|| vector.iter().map(|x| (f64::from(*x) / length) as f32).collect())
}

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

    fn vector(numbers: &[f32]) -> UnitVector {
        normalised(numbers).expect("a direction")
    }

    #[test]
    fn a_normalised_vector_has_length_one_or_does_not_exist() {
        assert_eq!(*vector(&[3.0, 4.0]), [0.6, 0.8]);
        assert_eq!(*vector(&[f32::MAX, 0.0]), [1.0, 0.0]);
        for numbers in [&[0.0, 0.0][..], &[], &[f32::NAN], &[f32::INFINITY, 1.0]] {
            assert_eq!(normalised(numbers), None, "{numbers:?}");
        }
    }

    #[test]
    fn an_endpoint_may_not_change_its_dimension() {
        let mut vectors = VectorTable::default();
        assert_eq!(vectors.answered(2), Ok(()));
        assert_eq!(vectors.answered(2), Ok(()));
        assert_eq!(vectors.answered(3), Err(ResponseError::Dimension { known: 2, found: 3 }));
    }

    #[test]
    fn cached_vectors_are_dropped_if_the_model_answers_with_another_dimension() {
        let text = EmbeddingText::new("a");
        let cached = || VectorTable::cached(HashMap::from([(text.digest(), vector(&[1.0, 0.0]))]));
        let mut same = cached();
        assert_eq!(same.answered(2), Ok(()));
        assert!(same.get(&text.digest()).is_some());
        let mut other = cached();
        assert_eq!(other.answered(3), Ok(()));
        assert!(other.get(&text.digest()).is_none());
        assert_eq!(other.answered(2), Err(ResponseError::Dimension { known: 3, found: 2 }));
    }

    #[test]
    fn a_full_vector_table_drops_the_vectors_of_unwanted_texts() {
        let mut vectors = VectorTable::default();
        let large = vector(&vec![1.0; defaults::EMBEDDING_DIMENSION_MAX]);
        vectors.answered(large.len()).expect("the first one");
        let texts: Vec<EmbeddingText> =
            (0..=vectors.n_max()).map(|n| EmbeddingText::new(&n.to_string())).collect();
        let (wanted, others) = texts.split_at(texts.len() - 1);
        let found = |texts: &[EmbeddingText]| -> Vec<(TextDigest, UnitVector)> {
            texts.iter().map(|text| (text.digest(), Arc::clone(&large))).collect()
        };
        vectors.insert(found(others), wanted);
        assert!(vectors.get(&others[0].digest()).is_some());
        assert!(!vectors.is_full_of(wanted));
        vectors.insert(found(wanted), wanted);
        assert!(vectors.get(&others[0].digest()).is_none());
        assert_eq!(vectors.all.len(), wanted.len());
        assert!(vectors.is_full_of(wanted));
    }

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
