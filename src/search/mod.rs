//! Search over the definitions of tools: by words, by what they mean, and by pattern.
//!
//! Everything here is pure: definitions in, places out. It knows no server, no clock and no task;
//! an index is immutable, and a new one is made when a server offers something else.
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

pub use analyzed::{Analyzed, Field};
pub use bearing::bearing;
pub use explanation::{Explanation, Part};
pub use index::Index;
pub use pattern::{Pattern, PatternError};
pub use query::{Hit, Place, Query, Strategy};
pub use thesaurus::Thesaurus;

#[cfg(test)]
mod tests;
