//! The dense vectors of tools, and their similarity to the vector of a query.

/// The vectors of tools, all of one length and of norm 1; zeros for a tool without a vector.
#[derive(Default)]
pub(super) struct ToolVectors {
    length: usize,
    values: Box<[f32]>,
}

/// The similarity of each tool to a query.
pub(super) struct ToolSimilarity(Vec<f32>);

impl ToolVectors {
    /// Keeps the vectors of tools, in their order.
    pub(super) fn of<'a>(tools: impl Iterator<Item = Option<&'a [f32]>>) -> Self {
        let vectors: Vec<Option<&[f32]>> = tools.collect();
        let length = vectors.iter().flatten().map(|it| it.len()).find(|&it| it > 0);
        let Some(length) = length else { return Self::default() };
        let mut values = vec![0.0; vectors.len() * length];
        for (to, vector) in values.chunks_exact_mut(length).zip(vectors) {
            if let Some(vector) = vector.filter(|vector| vector.len() == length) {
                to.copy_from_slice(vector);
                normalize(to);
            }
        }
        Self { length, values: values.into() }
    }

    /// Returns the cosine of each tool's vector and the query's vector, or 0 if it is negative.
    pub(super) fn similar(&self, query: Option<&[f32]>) -> ToolSimilarity {
        let query = query.filter(|query| self.length > 0 && query.len() == self.length);
        let Some(query) = query else { return ToolSimilarity(Vec::new()) };
        let mut query = query.to_vec();
        normalize(&mut query);
        let cosine = |vector: &[f32]| vector.iter().zip(&query).map(|(a, b)| a * b).sum::<f32>();
        ToolSimilarity(
            self.values.chunks_exact(self.length).map(|it| cosine(it).clamp(0.0, 1.0)).collect(),
        )
    }
}

impl ToolSimilarity {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the similarity of a tool, between 0 and 1.
    pub(super) fn of(&self, number: u32) -> f64 {
        self.0.get(number as usize).copied().map_or(0.0, f64::from)
    }
}

/// Scales a vector to norm 1; a vector without a direction becomes zero.
fn normalize(vector: &mut [f32]) {
    let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    let is_sound = norm.is_finite() && norm > 0.0;
    for value in vector {
        *value = if is_sound { *value / norm } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_vectors_of_one_length_have_a_similarity() {
        let tools: [Option<&[f32]>; 5] =
            [Some(&[3.0, 0.0]), None, Some(&[1.0]), Some(&[f32::NAN, 1.0]), Some(&[-1.0, 1.0])];
        let vectors = ToolVectors::of(tools.into_iter());

        let similar = vectors.similar(Some(&[5.0, 0.0]));
        assert_eq!(
            [0, 1, 2, 3, 4, 9].map(|number| similar.of(number)),
            [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        );
        assert!(vectors.similar(Some(&[1.0])).is_empty() && vectors.similar(None).is_empty());
        assert!(ToolVectors::of([None].into_iter()).similar(Some(&[1.0])).is_empty());
    }
}
