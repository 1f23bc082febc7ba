//! Vectors of texts that an embedding model has made, so that a search finds what is meant.
//!
//! An [`Embedder`] asks an endpoint that speaks as the OpenAI API does, if the configuration names
//! one; no variable of the environment does. It never stands in the way of a search: what it knows
//! is there at once, the rest is learned in the background, and the vector of a query is waited for
//! only as long as nobody notices. Whatever fails, the search goes on without.
//!
//! What to ask next (`batch`), what an answer is worth (`answer`), what is known (`vectors`)
//! and whether operators are to be told (`outage`) are decided by pure parts; `learning` and
//! `query` drive them. What was learned is kept on the disk (`store`), under a hash of each text.

mod batch;
mod embedder;
mod endpoint_health;
mod error;
mod learning;
mod openai_api;
mod query;
mod query_cache;
mod shared;
mod store;
mod text;
mod timeouts;
mod vectors;

pub use embedder::Embedder;
pub use error::EmbeddingError;
pub use openai_api::ResponseError;
pub use text::EmbeddingText;
