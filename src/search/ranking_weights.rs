//! The weights of a ranking.
//!
//! The weights were found by measurement, on sets of tools and requests from outside this project,
//! and cross-checked between the sets. The ranking changes little if a weight is a third larger or
//! smaller.

use super::analyzed_server::TextField;

/// The weight of a word, by its [`TextField`].
pub(super) const FIELDS: [f32; TextField::COUNT] = [3.0, 2.0, 0.7, 0.3, 0.2, 2.0];

/// The influence of each field's length, between 0 and 1 (`b` of BM25). Descriptions differ
/// most in length, names hardly.
pub(super) const LENGTHS: [f32; TextField::COUNT] = [0.3, 0.3, 0.6, 0.6, 0.6, 0.0];

/// The saturation of repeated words (`k1` of BM25, usually 1.2 to 2.0).
pub(super) const SATURATION: f32 = 1.8;

/// The exponent of a word's rarity. In a few hundred definitions a word may be rare by chance.
pub(super) const RARITY: f32 = 0.9;

/// The exponent of the number of a word's senses, by which each sense weighs less.
pub(super) const AMBIGUITY: f32 = 0.2;

/// The weight of each word of a phrase.
pub(super) const PHRASE: f32 = 0.75;

/// The weight of a concept that matches by another word.
pub(super) const CONCEPT: f32 = 0.95;

/// The weight of the lower score, if both the word and its concept match.
pub(super) const BOTH: f32 = 0.2;

/// The weight of the server's score.
pub(super) const SERVER: f32 = 0.3;

/// The part of a score that depends on the coverage of the request.
pub(super) const COVERAGE: f32 = 0.5;

/// The amount of a word or concept that covers it: about one occurrence in a description of
/// common length.
pub(super) const COVERED_AT: f32 = 0.2;

/// The weight of a file's extension and an address's site: they belong to the input, and say
/// less about the task.
pub(super) const FORMAT: f32 = 0.7;

/// The weight of a number: it is mostly a value, but a tool may have it in its name.
pub(super) const NUMBER: f32 = 0.3;

/// The weight of a variant of a word with digits or marks.
pub(super) const BESIDE: f32 = 0.5;

/// The weight of a word with corrected spelling.
pub(super) const CORRECTED: f32 = 0.5;

/// The weight of a word that no tool and no concept knows, relative to the rarest words.
pub(super) const UNKNOWN: f32 = 0.25;

/// The weight of the similarity of vectors, relative to all words of the request.
pub(super) const VECTOR: f32 = 1.0;
