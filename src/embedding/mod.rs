//! Vectors of texts from an embedding model, for search by meaning.
//!
//! An [`Embedder`] asks an endpoint with the API of OpenAI, if the configuration names one; no
//! environment variable does. It never blocks a search. Known vectors are available at once, and
//! the others are learned in the background. A search waits only briefly for the vector of its
//! query, and does without it on any failure.
//!
//! Pure modules choose the next texts (`request_batch`), check answers (`openai_api`), and
//! hold the vectors (`vector_table`). `background_embedding` and
//! `query_vector` drive them. `vector_file` stores learned vectors under a hash of each text.

mod background_embedding;
mod embedder;
mod error;
mod openai_api;
mod query_vector;
mod request_batch;
mod text_hash;
mod vector_file;
mod vector_table;

pub use embedder::Embedder;
pub use error::EmbeddingError;
pub use openai_api::ResponseError;
pub use text_hash::EmbeddingText;
