//! What an endpoint is asked and what it answers. Source: the OpenAI API, "Create embeddings". Pure.

use serde::{Deserialize, Serialize};

use super::{
    text::EmbeddingText,
    vectors::{UnitVector, normalised},
};
use crate::config::defaults;

/// A request for the vectors of some texts.
///
/// Without `encoding_format`, which not every endpoint knows: numbers are what all of them send.
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

/// The answer to it; whatever else is in it is of no use to us.
#[derive(Debug, Deserialize)]
pub(super) struct EmbeddingResponse {
    data: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    /// Which text it is of. Absent, they are in the order of the texts.
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// What is wrong with an answer, so that none of it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// There are not as many vectors as texts.
    #[error("it has {found} vectors for {asked} texts")]
    Number {
        /// How many texts were sent.
        asked: usize,
        /// How many vectors came.
        found: usize,
    },
    /// Two vectors are of one text, or one is of a text that was not sent.
    #[error("its vectors are not one of each text")]
    Order,
    /// The vectors are not all of one dimension.
    #[error("it has vectors of {found} and of {known} numbers")]
    Mixed {
        /// That of the first one.
        known: usize,
        /// That of another one.
        found: usize,
    },
    /// The vectors have another dimension than those of earlier answers.
    #[error("its vectors have {found} numbers, and those before it {known}")]
    Dimension {
        /// That of earlier ones.
        known: usize,
        /// That of this one.
        found: usize,
    },
    /// A vector has too many numbers.
    #[error(
        "it has a vector of {found} numbers, and {} are the most",
        defaults::EMBEDDING_DIMENSION_MAX
    )]
    Long {
        /// How many.
        found: usize,
    },
    /// A vector points nowhere: it has no numbers, only zeros, or one that is not finite.
    #[error("it has a vector that points nowhere")]
    Nowhere,
}

impl EmbeddingResponse {
    /// Returns the vectors of `n_asked` texts in their order, each of length one.
    ///
    /// # Errors
    ///
    /// [`ResponseError`] says what is wrong; nothing of such an answer is to be used.
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
            let seat = vectors.get_mut(entry.index.unwrap_or(place)).ok_or(ResponseError::Order)?;
            if seat.replace(vector).is_some() {
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
    fn a_request_is_what_every_endpoint_knows() {
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
    fn nothing_is_taken_of_an_answer_with_a_flaw() {
        let entry = |index: usize, numbers: Value| json!({ "index": index, "embedding": numbers });
        let one = || entry(0, json!([1, 0]));
        let long = vec![1; defaults::EMBEDDING_DIMENSION_MAX + 1];
        for (data, expected) in [
            (json!([]), "it has 0 vectors for 2 texts"),
            (json!([one()]), "it has 1 vectors for 2 texts"),
            (json!([one(), one()]), "its vectors are not one of each text"),
            (json!([one(), entry(2, json!([1, 0]))]), "its vectors are not one of each text"),
            (json!([one(), entry(1, json!([1]))]), "it has vectors of 1 and of 2 numbers"),
            (json!([one(), entry(1, json!([0, 0]))]), "it has a vector that points nowhere"),
            (json!([one(), entry(1, json!([1e39, 0]))]), "it has a vector that points nowhere"),
            (json!([entry(0, json!([])), one()]), "it has a vector that points nowhere"),
            (
                json!([entry(0, json!(long)), one()]),
                "it has a vector of 8193 numbers, and 8192 are the most",
            ),
        ] {
            let told = read(data.clone(), 2).expect_err("a flaw").to_string();
            assert_eq!(told, expected, "{data}");
        }
    }
}
