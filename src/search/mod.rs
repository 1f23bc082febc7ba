//! Search over the definitions of tools: by words, by meaning, and by pattern.
//!
//! Everything here is pure: definitions in, positions out, without servers, clocks or tasks. An
//! index is immutable, and is rebuilt when a server offers something else.
//!
//! ```text
//!  definitions ── tokenizer ── stemmer ── AnalyzedServer ┐ one per server, kept
//!  thesaurus.txt ── concepts ── TermDictionary ──────────┼── SearchIndex: TermEvidence
//!  query ── QueryTerms: words with senses ───────────────┘      └── TopTools ── SearchHit
//! ```
//!
//! The score of a word is that of BM25 over six fields, or that of its best concept, counted in the
//! same way. The score of a tool is the sum over the words, reduced if little of the request is
//! covered, and a little higher if its server matches, too. The confidence is the covered part. A
//! tool that is called by its name comes before all others. A [`ScoreExplanation`] shows the parts
//! of the sum.
//!
//! The similarity of concepts comes from a hand-written thesaurus ([`Thesaurus`]), and from no
//! model.

mod analyzed_server;
mod bigram_filter;
mod definition_text;
mod document_builder;
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

pub use analyzed_server::{AnalyzedServer, TextField};
pub use index::SearchIndex;
pub use pattern::{SearchPattern, SearchPatternError};
pub use query::{RankingStrategy, SearchHit, SearchQuery, ToolPosition};
pub use relevance_terms::{RelevanceTerms, bearing};
pub use score_parts::{ScoreExplanation, ScorePart};
pub use thesaurus::Thesaurus;

#[cfg(test)]
mod tests;
