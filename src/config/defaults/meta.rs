//! Bounds of the meta-tools: their arguments, and the size of their results.

use std::time::Duration;

use super::MESSAGE_BYTES_MAX;

/// The largest result of a call through a meta-tool that is returned whole, in bytes. It is about
/// 16,000 tokens, more than a model can use.
pub const RESULT_BYTES_MAX: usize = 64 << 10;

/// The smallest and the largest `tools.result_bytes_max`, in bytes. A preview must be smaller
/// than its result, and no message is larger.
pub const RESULT_BYTES_RANGE: (usize, usize) = (1 << 10, MESSAGE_BYTES_MAX);

/// The default for the largest number of steps in a chain.
pub const CHAIN_STEPS_MAX: usize = 8;

/// The largest number of steps of a chain that can be declared.
pub const CHAIN_STEPS_LIMIT: usize = 64;

/// The space for server names in the view `meta`'s instructions, which clients cut at 2 KB.
pub const INSTRUCTIONS_BYTES_MAX: usize = 1 << 10;

/// The largest number of paths in one request for parts of a result: more than a person writes.
pub const FIELDS_MAX: usize = 64;

/// The largest number of names in a path: deeper than any result that people read.
pub const FIELD_DEPTH_MAX: usize = 32;

/// The bytes of a result that are read to find the requested paths. Those of an array are read
/// again for each array within it. It is sixteen times the largest result, and takes half a second.
pub const FIELD_BYTES_READ_MAX: usize = 256 << 20;

/// The bytes that a visit to one value counts in addition to its own, for the time it takes.
pub const FIELD_VALUE_BYTES: usize = 32;

/// The largest number of a result's paths that metamcp lists after a request for others, and their
/// largest depth. They are enough to see what was meant.
pub const FIELD_PATHS_SHOWN_MAX: usize = 20;
/// See [`FIELD_PATHS_SHOWN_MAX`].
pub const FIELD_PATHS_DEPTH_MAX: usize = 3;

/// The default and the largest number of entries of a search or a list of tools.
pub const DISCOVER_LIMIT: usize = 20;
/// See [`DISCOVER_LIMIT`].
pub const DISCOVER_LIMIT_MAX: usize = 100;

/// The largest number of examples of a tool that are shown.
pub const EXAMPLES_MAX: usize = 5;

/// The longest timeout that a caller may set for a tool.
pub const META_CALL_TIMEOUT_MAX: Duration = Duration::from_millis(600_000);

/// The longest error of a server that is passed on as an object, in bytes.
pub const ERROR_DETAIL_BYTES_MAX: usize = 8 * 1024;

/// The largest total size of the images and sounds of a result that are shown, in bytes of JSON
/// text: a picture of a whole screen.
pub const PREVIEW_MEDIA_BYTES_MAX: usize = 1024 * 1024;

/// The largest number of blocks of a large result that are shown.
pub const PREVIEW_BLOCKS_MAX: usize = 50;

/// The bounds on large results that are kept for further reading: total bytes, number and age. They
/// are what a few clients read at a time, and less than the 16 MiB that may stay after a load.
pub const RESULTS_BYTES_MAX: usize = 12 * 1024 * 1024;
/// See [`RESULTS_BYTES_MAX`].
pub const RESULTS_KEPT_MAX: usize = 64;
/// See [`RESULTS_BYTES_MAX`].
pub const RESULTS_AGE_MAX: Duration = Duration::from_secs(10 * 60);

/// The largest schema of a tool that arguments are checked against, in bytes: ten times the largest
/// known one. A schema of 217 KB with 2,000 properties compiles in 5 to 11 ms and checks in 1 ms.
/// With as many patterns, it takes 120 to 150 ms and 7 ms. 1,000 definitions that refer to each
/// other take 15 to 20 ms and 1 ms. So metamcp compiles once, beside the event loop.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// The largest number of compiled schemas that are kept, and the memory that they may take, in
/// bytes, as [`COMPILE_STEP_BYTES`] and [`PATTERN_STATE_BYTES`] estimate it. A few clients use that
/// many tools at a time. An ordinary schema has 20 parts and takes 100 KB. A schema above a quarter
/// of the bytes is not kept, and compiled for each check.
pub const VALIDATORS_MAX: usize = 256;
/// See [`VALIDATORS_MAX`].
pub const VALIDATORS_BYTES_MAX: usize = 12 << 20;

/// The largest number of accounts whose costly arguments a schema remembers.
pub const COSTLY_ACCOUNTS_MAX: usize = 16;

/// The largest number of problems with arguments in one answer: more than a caller fixes at once.
pub const PROBLEMS_MAX: usize = 8;

/// The longest summary of a tool, in characters.
pub const SUMMARY_CHARS_MAX: usize = 200;

/// The longest notes about a tool, in characters.
pub const NOTES_CHARS_MAX: usize = 2000;

/// The longest text in an example, in characters.
pub const EXAMPLE_CHARS_MAX: usize = 300;

/// The longest hint about a result, in characters.
pub const HINT_CHARS_MAX: usize = 200;

/// The deepest nesting of the arguments of an example.
pub const EXAMPLE_DEPTH_MAX: usize = 5;

/// The largest number of fields of an object in an example.
pub const EXAMPLE_KEYS_MAX: usize = 50;

/// The largest number of values in an example. Five levels of 50 fields would be 300 million.
pub const EXAMPLE_VALUES_MAX: usize = 250;

/// The largest schema that is shown whole, in bytes.
pub const SCHEMA_SHOWN_BYTES_MAX: usize = 48_000;

/// The largest number of backtracks of a schema's look-around pattern before it is given up: a
/// millisecond or two. A pattern of an address takes a few hundred.
pub const PATTERN_BACKTRACKS_MAX: usize = 10_000;

/// The steps that the check of one call's arguments may take: a fraction of a second. A step visits
/// one value or 16 bytes of a text, in some nanoseconds. The largest schema that is read takes a
/// tenth of the steps for ordinary arguments.
pub const CHECK_STEPS_MAX: u64 = 5_000_000;

/// The steps of a check that may run on an event loop: less than a millisecond. A longer check
/// begins again beside it. An ordinary call takes some hundred.
pub const CHECK_STEPS_INLINE_MAX: u64 = 50_000;

/// The stack that the check of one call's arguments may take, in bytes: half of what a thread has.
/// An ordinary call takes a hundredth.
pub const CHECK_STACK_BYTES_MAX: usize = 1 << 20;

/// The steps that compiling one schema may take: one for each part, one for each way that leads to
/// it, and one for 64 bytes of its path. A step takes about 10 µs.
pub const COMPILE_STEPS_MAX: u64 = 10_000;

/// The memory that a step of compiling takes, in bytes. Measured: 4,000 to 6,000 stay, by the
/// resident memory of 20 schemas of 1,000 to 5,000 parts.
pub const COMPILE_STEP_BYTES: usize = 5_000;

/// The largest number of parts of a schema, and of levels that they are nested in. The largest
/// known schemas have some hundred parts and 20 levels.
pub const SUBSCHEMAS_MAX: usize = 5_000;
/// See [`SUBSCHEMAS_MAX`].
pub const SCHEMA_DEPTH_MAX: usize = 64;

/// The longest chain of references in a schema. People write one or two.
pub const REFERENCE_CHAIN_MAX: usize = 16;

/// The largest number of references in a schema with `unevaluatedProperties` or `unevaluatedItems`.
/// Each way through them is compiled separately, and 24 references have at most 3^8 ways.
pub const UNEVALUATED_REFERENCES_MAX: usize = 24;

/// The longest pattern of a schema, in bytes. Addresses of all kinds take 1 KB.
pub const PATTERN_BYTES_MAX: usize = 2 << 10;

/// The largest number of states of a pattern, and of all patterns of a schema together. A state
/// compiles in about a microsecond, and an ordinary pattern has 50.
pub const PATTERN_WEIGHT_MAX: u64 = 20_000;
/// See [`PATTERN_WEIGHT_MAX`].
pub const PATTERNS_WEIGHT_MAX: u64 = 400_000;

/// The largest compiled pattern, in bytes: a hundred for each state.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 2 << 20;

/// The memory that a state of a compiled pattern takes, in bytes. Measured: 12, by the resident
/// memory of 80 patterns of 4,000 states each.
pub const PATTERN_STATE_BYTES: usize = 15;

/// The largest cache of states that one pattern builds while it is matched, in bytes. An ordinary
/// pattern needs a few KiB. A full cache is emptied and filled again.
pub const PATTERN_STATES_BYTES_MAX: usize = 256 << 10;

/// The largest message that is parsed on an event loop, in bytes: less than a millisecond.
pub const INLINE_BYTES_MAX: usize = 64 << 10;

/// The largest total size of the schemas in an operator's list of tools without a depth, in bytes.
pub const SCHEMA_BUDGET: usize = 48_000;
