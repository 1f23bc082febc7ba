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

mod analyzed;
mod bearing;
mod best;
mod definition;
mod document;
mod evidence;
mod explanation;
mod index;
mod keyword;
mod lexicon;
mod names;
mod pairs;
mod parts;
mod pattern;
mod postings;
mod query;
mod request;
mod sparse;
mod spelling;
mod stem;
mod thesaurus;
mod vectors;
mod weights;
mod words;

pub use analyzed::{AnalyzedServer, TextField};
pub use bearing::{RelevanceTerms, bearing};
pub use explanation::{ScoreExplanation, ScorePart};
pub use index::SearchIndex;
pub use pattern::{SearchPattern, SearchPatternError};
pub use query::{RankingStrategy, SearchHit, SearchQuery, ToolPosition};
pub use thesaurus::Thesaurus;

#[cfg(test)]
mod tests;
