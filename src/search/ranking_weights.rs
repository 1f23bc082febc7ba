//! The weights of a ranking.
//!
//! The weights were found by measurement, on sets of tools and requests from outside this project,
//! and cross-checked between the sets. The ranking changes little if a weight is a third larger or
//! smaller.

use super::analyzed_server::TextField;

/// The weights of a ranking.
#[derive(Clone, Debug)]
pub(crate) struct RankingWeights {
    /// The weight of a word, by its [`TextField`].
    pub(crate) fields: [f32; TextField::COUNT],
    /// The influence of each field's length, between 0 and 1 (`b` of BM25). Descriptions differ
    /// most in length, names hardly.
    pub(crate) lengths: [f32; TextField::COUNT],
    /// The saturation of repeated words (`k1` of BM25, usually 1.2 to 2.0).
    pub(crate) saturation: f32,
    /// The exponent of a word's rarity. In a few hundred definitions a word may be rare by chance.
    pub(crate) rarity: f32,
    /// The exponent of the number of a word's senses, by which each sense weighs less.
    pub(crate) ambiguity: f32,
    /// The weight of each word of a phrase.
    pub(crate) phrase: f32,
    /// The weight of a concept that matches by another word.
    pub(crate) concept: f32,
    /// The weight of the lower score, if both the word and its concept match.
    pub(crate) both: f32,
    /// The weight of the server's score.
    pub(crate) server: f32,
    /// The part of a score that depends on the coverage of the request.
    pub(crate) coverage: f32,
    /// The amount of a word or concept that covers it: about one occurrence in a description of
    /// common length.
    pub(crate) covered_at: f32,
    /// The weight of a file's extension and an address's site: they belong to the input, and say
    /// less about the task.
    pub(crate) format: f32,
    /// The weight of a number: it is mostly a value, but a tool may have it in its name.
    pub(crate) number: f32,
    /// The weight of a variant of a word with digits or marks.
    pub(crate) beside: f32,
    /// The weight of a word with corrected spelling.
    pub(crate) corrected: f32,
    /// The weight of a word that no tool and no concept knows, relative to the rarest words.
    pub(crate) unknown: f32,
    /// The weight of the similarity of vectors, relative to all words of the request.
    pub(crate) vector: f32,
}

impl RankingWeights {
    /// The weights in use.
    pub(crate) const OURS: Self = Self {
        fields: [3.0, 2.0, 0.7, 0.3, 0.2, 2.0],
        lengths: [0.3, 0.3, 0.6, 0.6, 0.6, 0.0],
        saturation: 1.8,
        rarity: 0.9,
        ambiguity: 0.2,
        phrase: 0.75,
        concept: 0.95,
        both: 0.2,
        server: 0.3,
        coverage: 0.5,
        covered_at: 0.2,
        format: 0.7,
        number: 0.3,
        beside: 0.5,
        corrected: 0.5,
        unknown: 0.25,
        vector: 1.0,
    };
}
