//! Search over the definitions of tools: by words, by what they mean, and by pattern.
//!
//! Everything here is pure: definitions in, places out. It knows no server, no clock and no task;
//! an index is immutable, and a new one is made when a server offers something else.
//!
//! ```text
//!  definitions ── words ── stems ── Analyzed ┐ one per server, kept
//!  thesaurus.txt ── concepts ── Lexicon ─────┼── Index: Evidence of tools and of servers
//!  query ── Request: words with senses ──────┘      └── best ── Hit, Explanation
//! ```
//!
//! A word of a request is worth what BM25 says over six fields, or what its best concept is worth,
//! which is counted in the same way; a tool is worth the sum of that, less where little of the
//! request is covered, and a little more if its server is about the same. How much is covered is the
//! confidence. A tool that is called by its name comes before all others. All of it is a sum with named
//! parts, which an [`ScoreExplanation`] shows.
//!
//! What it calls the similarity of concepts comes from a thesaurus that people wrote
//! ([`Thesaurus`]), and from no model.

mod analyzed_server;
mod bigram_filter;
mod definition;
mod document_builder;
mod explanation;
mod index;
mod keyword_ranking;
mod name_index;
mod pattern;
mod postings;
mod query;
mod query_terms;
mod ranking_weights;
mod relevance_terms;
mod score_parts;
mod sparse_scores;
mod spelling_correction;
mod stemmer;
mod term_dictionary;
mod term_evidence;
mod thesaurus;
mod tokenizer;
mod tool_vectors;
mod top_tools;

pub use analyzed_server::{AnalyzedServer, TextField};
pub use explanation::{ScoreExplanation, ScorePart};
pub use index::SearchIndex;
pub use pattern::{SearchPattern, SearchPatternError};
pub use query::{RankingStrategy, SearchHit, SearchQuery, ToolPosition};
pub use relevance_terms::{RelevanceTerms, bearing};
pub use thesaurus::Thesaurus;

#[cfg(test)]
mod tests;
