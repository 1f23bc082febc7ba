//! What counts for how much in a ranking.
//!
//! The figures were found by measurement, on sets of tools and requests that are not this
//! project's and crosswise between them; the ranking changes little when one of them is a third
//! larger or smaller.

use super::analyzed_server::TextField;

/// What counts for how much.
#[derive(Clone, Debug)]
pub(crate) struct RankingWeights {
    /// Of a word, by its [`TextField`]. Source: the seeds weigh a name 3 and a server's name 2.
    pub(crate) fields: [f32; TextField::COUNT],
    /// How much the length of each field counts against its words, between 0 and 1 (`b` of BM25).
    /// Ours: descriptions differ most in length, names hardly.
    pub(crate) lengths: [f32; TextField::COUNT],
    /// After how many of the same word more of it stop to count (`k1` of BM25).
    /// Source: the usual 1.2 to 2.0.
    pub(crate) saturation: f32,
    /// How much the rarity of a word counts: it is taken to this power. Ours: in a few hundred
    /// definitions a word may be rare by chance.
    pub(crate) rarity: f32,
    /// By which power of the number of its senses a word counts less for each. Ours.
    pub(crate) ambiguity: f32,
    /// Of a phrase for each of its words. Ours.
    pub(crate) phrase: f32,
    /// Of the same concept in another word. Ours.
    pub(crate) concept: f32,
    /// Of the lesser of both, where the word itself is there and its concept too. Ours.
    pub(crate) both: f32,
    /// Of what the tool's server is about. Ours.
    pub(crate) server: f32,
    /// Which part of a score depends on how much of the request is covered. Ours.
    pub(crate) coverage: f32,
    /// How much of a word or concept a tool must have for that to be covered. Ours: about once in a
    /// description of common length.
    pub(crate) covered_at: f32,
    /// Of the ending of a file's name and the site of an address: they are of what is worked with,
    /// and say less about what is done. Ours.
    pub(crate) format: f32,
    /// Of a number: mostly it is a value, but a tool may be called by it. Ours.
    pub(crate) number: f32,
    /// Of a word that stands beside one with digits, or with a mark in it. Ours.
    pub(crate) beside: f32,
    /// Of a word whose spelling was corrected. Ours.
    pub(crate) corrected: f32,
    /// What a word that no tool and no concept knows asks for, beside one of the rarest. Ours.
    pub(crate) unknown: f32,
    /// Of the similarity of vectors, beside all words of the request together. Ours.
    pub(crate) vector: f32,
}

impl RankingWeights {
    /// The ones that are used.
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
