//! Bounds of synonyms, and of vectors of texts.

use std::time::Duration;

use super::BREAKER_COOLDOWN;

/// The largest number of declared groups of synonyms: more than a person can review.
pub const SYNONYM_GROUPS_MAX: usize = 256;

/// The largest number of words or phrases in a group of synonyms. Each finds all others.
pub const SYNONYMS_IN_GROUP_MAX: usize = 16;

/// The longest synonym, in bytes: a phrase, and no sentence.
pub const SYNONYM_BYTES_MAX: usize = 64;

/// The part of a text that is sent to a model, in bytes: some 500 tokens, which small models
/// accept. The first sentences say most of what a tool does.
pub const EMBEDDING_TEXT_BYTES_MAX: usize = 2 << 10;

/// The largest number of texts in one request for vectors. Common servers take 32 and more.
pub const EMBEDDING_BATCH_TEXTS_MAX: usize = 32;

/// The largest total size of the texts of one embedding request, in bytes. It is half of what 32
/// texts may have, so that a request takes seconds on a CPU.
pub const EMBEDDING_BATCH_BYTES_MAX: usize = 32 << 10;

/// The longest time of an embedding request. Some servers load the model for the first one.
pub const EMBEDDING_TIMEOUT: Duration = Duration::from_secs(30);

/// The time that a search waits for the vector of its query, before it runs without. A small model
/// takes 20 ms on a CPU, and a person notices a second.
pub const EMBEDDING_QUERY_TIMEOUT: Duration = Duration::from_millis(300);

/// The largest number of requests for vectors of queries that run at a time.
pub const EMBEDDING_QUERIES_MAX: usize = 4;

/// The largest number of kept vectors of queries. A model repeats a query a few times.
pub const EMBEDDING_QUERIES_KEPT: usize = 128;

/// The largest number of dimensions of a vector. The largest models in use have 4,096.
pub const EMBEDDING_DIMENSION_MAX: usize = 8 << 10;

/// The longest answer, in bytes: the largest number of vectors and dimensions, 24 bytes each.
pub const EMBEDDING_ANSWER_BYTES_MAX: usize =
    EMBEDDING_BATCH_TEXTS_MAX * EMBEDDING_DIMENSION_MAX * 24;

/// The largest total size of the vectors of texts, in memory and on disk, in bytes. It suffices for
/// 40,000 tools with a small model, and 4,000 with a large one.
pub const EMBEDDING_BYTES_MAX: usize = 64 << 20;

/// The number of batches after which new vectors are written to disk: minutes of work.
pub const EMBEDDING_BATCHES_UNSAVED: u32 = 16;

/// The failed requests in a row after which an endpoint is left alone. It is fewer than for a
/// server, because search works without.
pub const EMBEDDING_FAILURES: u32 = 3;

/// The time that the endpoint is then left alone, as a server is.
pub const EMBEDDING_COOLDOWN: Duration = BREAKER_COOLDOWN;

/// The first and the longest pause before texts are requested again.
pub const EMBEDDING_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The bytes that a search reads of each tool. So the tools of [`INLINE_BYTES_MAX`] bytes, about
/// 650, take less than a millisecond.
///
/// [`INLINE_BYTES_MAX`]: super::INLINE_BYTES_MAX
pub const SEARCH_BYTES_PER_TOOL: usize = 100;
