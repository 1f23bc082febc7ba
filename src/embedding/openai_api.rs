//! Requests and answers of an embedding endpoint. Source: OpenAI API, "Create embeddings". Pure.

use serde::{Deserialize, Serialize};

use super::{
    text_hash::EmbeddingText,
    vector_table::{UnitVector, normalised},
};
use crate::config::defaults;

/// A request for the vectors of some texts.
///
/// It has no `encoding_format`, which some endpoints do not know. All endpoints send numbers.
#[derive(Debug, Serialize)]
pub(super) struct EmbeddingRequest<'a> {
    model: &'a str,
    input: Vec<&'a str>,
}

impl<'a> EmbeddingRequest<'a> {
    pub(super) fn new(model: &'a str, texts: &'a [EmbeddingText]) -> Self {
        Self { model, input: texts.iter().map(EmbeddingText::as_str).collect() }
    }
}

/// The answer to an [`EmbeddingRequest`]. Other members are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct EmbeddingResponse {
    data: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    /// The index of its text. Without it, the vectors are in the order of the texts.
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// The mistake for which an answer is rejected as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// The number of vectors differs from the number of texts.
    #[error("it has {found} vectors for {asked} texts")]
    Number {
        /// The number of texts that were sent.
        asked: usize,
        /// The number of vectors that came.
        found: usize,
    },
    /// Two vectors belong to one text, or one vector to a text that was not sent.
    #[error("its vectors do not match the texts")]
    Order,
    /// The vectors have different dimensions.
    #[error("it has vectors of {found} and of {known} numbers")]
    Mixed {
        /// The dimension of the first vector.
        known: usize,
        /// The dimension of another vector.
        found: usize,
    },
    /// The vectors have another dimension than those of earlier answers.
    #[error("its vectors have {found} numbers, and earlier ones {known}")]
    Dimension {
        /// The dimension of earlier answers.
        known: usize,
        /// The dimension of this answer.
        found: usize,
    },
    /// A vector has too many numbers.
    #[error(
        "it has a vector of {found} numbers, and the maximum is {}",
        defaults::EMBEDDING_DIMENSION_MAX
    )]
    Long {
        /// The number of its numbers.
        found: usize,
    },
    /// A vector has no direction: it is empty, all zeros, or not finite.
    #[error("it has a vector without a direction")]
    Nowhere,
}

impl EmbeddingResponse {
    /// Returns the vectors of `n_asked` texts in their order, each of length one.
    ///
    /// # Errors
    ///
    /// [`ResponseError`] if the answer has a mistake.
    pub(super) fn vectors(self, n_asked: usize) -> Result<Vec<UnitVector>, ResponseError> {
        let n_found = self.data.len();
        if n_found != n_asked {
            return Err(ResponseError::Number { asked: n_asked, found: n_found });
        }
        let known = self.data.first().map(|entry| entry.embedding.len()).unwrap_or_default();
        let mut vectors: Vec<Option<UnitVector>> = vec![None; n_asked];
        for (place, entry) in self.data.into_iter().enumerate() {
            let found = entry.embedding.len();
            if found > defaults::EMBEDDING_DIMENSION_MAX {
                return Err(ResponseError::Long { found });
            }
            if found != known {
                return Err(ResponseError::Mixed { known, found });
            }
            let vector = normalised(&entry.embedding).ok_or(ResponseError::Nowhere)?;
            let place =
                vectors.get_mut(entry.index.unwrap_or(place)).ok_or(ResponseError::Order)?;
            if place.replace(vector).is_some() {
                return Err(ResponseError::Order);
            }
        }
        vectors.into_iter().collect::<Option<_>>().ok_or(ResponseError::Order)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(data: Value, n_asked: usize) -> Result<Vec<Vec<f32>>, ResponseError> {
        let answer: EmbeddingResponse =
            serde_json::from_value(json!({ "object": "list", "data": data }))
                .expect("it has the shape");
        let vectors = answer.vectors(n_asked)?;
        Ok(vectors.iter().map(|vector| vector.to_vec()).collect())
    }

    #[test]
    fn an_embedding_request_has_only_members_that_every_endpoint_knows() {
        let texts = [EmbeddingText::new("a"), EmbeddingText::new(" b ")];
        let request = serde_json::to_value(EmbeddingRequest::new("m", &texts)).expect("JSON");
        assert_eq!(request, json!({ "model": "m", "input": ["a", "b"] }));
    }

    #[test]
    fn vectors_are_put_into_the_order_of_the_texts() {
        let data = json!([
            { "index": 1, "embedding": [0, 2.0], "object": "embedding" },
            { "index": 0, "embedding": [5e-3, 0] },
        ]);
        assert_eq!(read(data, 2), Ok(vec![vec![1.0, 0.0], vec![0.0, 1.0]]));
        let data = json!([{ "embedding": [1, 0] }, { "embedding": [0, 1] }]);
        assert_eq!(read(data, 2), Ok(vec![vec![1.0, 0.0], vec![0.0, 1.0]]));
    }

    #[test]
    fn an_answer_with_a_defect_is_rejected_as_a_whole() {
        let entry = |index: usize, numbers: Value| json!({ "index": index, "embedding": numbers });
        let one = || entry(0, json!([1, 0]));
        let long = vec![1; defaults::EMBEDDING_DIMENSION_MAX + 1];
        for (data, expected) in [
            (json!([]), "it has 0 vectors for 2 texts"),
            (json!([one()]), "it has 1 vectors for 2 texts"),
            (json!([one(), one()]), "its vectors do not match the texts"),
            (json!([one(), entry(2, json!([1, 0]))]), "its vectors do not match the texts"),
            (json!([one(), entry(1, json!([1]))]), "it has vectors of 1 and of 2 numbers"),
            (json!([one(), entry(1, json!([0, 0]))]), "it has a vector without a direction"),
            (json!([one(), entry(1, json!([1e39, 0]))]), "it has a vector without a direction"),
            (json!([entry(0, json!([])), one()]), "it has a vector without a direction"),
            (
                json!([entry(0, json!(long)), one()]),
                "it has a vector of 8193 numbers, and the maximum is 8192",
            ),
        ] {
            let error = read(data.clone(), 2).expect_err("a flaw").to_string();
            assert_eq!(error, expected, "{data}");
        }
    }
}
