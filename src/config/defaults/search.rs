//! Words that mean the same, and vectors of texts.

use std::time::Duration;

use super::BREAKER_COOLDOWN;

/// How many groups of synonyms can be declared. Ours: more than one can review.
pub const SYNONYM_GROUPS_MAX: usize = 256;

/// How many words or phrases such a group may have. Ours: each finds all others.
pub const SYNONYMS_IN_GROUP_MAX: usize = 16;

/// The longest of them, in bytes. Ours: a phrase, and no sentence.
pub const SYNONYM_BYTES_MAX: usize = 64;

/// How much of a text a model is asked to take in, in bytes. Ours: some 500 tokens, which is what
/// small models take; most of what a tool does is said in its first sentences.
pub const EMBEDDING_TEXT_BYTES_MAX: usize = 2 << 10;

/// How many texts one request for vectors has at most. Ours: common servers take 32 and more.
pub const EMBEDDING_BATCH_TEXTS_MAX: usize = 32;

/// How many bytes they have together. Ours: half of what 32 texts may have, so that a request on a
/// CPU is a matter of seconds.
pub const EMBEDDING_BATCH_BYTES_MAX: usize = 32 << 10;

/// How long such a request may take. Ours: some servers load the model when they are asked.
pub const EMBEDDING_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a search waits for the vector of its query, before it is made without.
/// Ours: a small model takes 20 ms on a CPU, and a person notices a second.
pub const EMBEDDING_QUERY_PATIENCE: Duration = Duration::from_millis(300);

/// How many requests for vectors of queries may run at a time. Ours.
pub const EMBEDDING_QUERIES_MAX: usize = 4;

/// How many vectors of queries are kept. Ours: a model asks the same again in other words at most
/// a few times.
pub const EMBEDDING_QUERIES_KEPT: usize = 128;

/// How many numbers a vector has at most. Ours: the largest models in use have 4,096.
pub const EMBEDDING_DIMENSION_MAX: usize = 8 << 10;

/// The longest answer, in bytes: as many numbers as there may be, in 24 bytes each. Ours.
pub const EMBEDDING_ANSWER_BYTES_MAX: usize =
    EMBEDDING_BATCH_TEXTS_MAX * EMBEDDING_DIMENSION_MAX * 24;

/// How much the vectors of texts may take together, in memory and on the disk, in bytes. Ours:
/// 40,000 tools with a small model, 4,000 with a large one.
pub const EMBEDDING_BYTES_MAX: usize = 64 << 20;

/// After how many batches what was learned is written to the disk. Ours: that of minutes.
pub const EMBEDDING_BATCHES_UNSAVED: u32 = 16;

/// How many requests in a row an endpoint fails until it is left alone, and for how long. Ours:
/// as a server, but sooner: search does without.
pub const EMBEDDING_FAILURES: u32 = 3;

/// For how long it is left alone then. Ours: as a server.
pub const EMBEDDING_COOLDOWN: Duration = BREAKER_COOLDOWN;

/// The first and the longest pause before texts are asked for again. Ours.
pub const EMBEDDING_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The bytes that a search reads of each tool. Ours: so that the tools of [`INLINE_BYTES_MAX`] bytes,
/// about 650, take less than a millisecond.
///
/// [`INLINE_BYTES_MAX`]: super::INLINE_BYTES_MAX
pub const SEARCH_BYTES_PER_TOOL: usize = 100;
