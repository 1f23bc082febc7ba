//! The meta tools: what they take, and how much of it they show.

use std::time::Duration;

use super::MESSAGE_BYTES_MAX;

/// The largest result of a call through a meta-tool that is returned whole, in bytes. Ours: about
/// 16,000 tokens, more than a model reads with profit.
pub const RESULT_BYTES_MAX: usize = 64 << 10;

/// The least and the largest such size that can be declared, in bytes. Ours: a preview is to be
/// smaller than what it is a preview of, and no message is larger.
pub const RESULT_BYTES_RANGE: (usize, usize) = (1 << 10, MESSAGE_BYTES_MAX);

/// How many steps a chain may have. Source: seed 002, `max_chain_steps`.
pub const CHAIN_STEPS_MAX: usize = 8;

/// The largest such number that can be declared. Source: seed 000, a method's 64 steps.
pub const CHAIN_STEPS_LIMIT: usize = 64;

/// How many bytes of the names of servers the instructions of the view `meta` have. Ours: clients cut
/// instructions at 2 KB.
pub const INSTRUCTIONS_BYTES_MAX: usize = 1 << 10;

/// How many paths a caller may ask for of one result. Ours: more than one writes by hand.
pub const FIELDS_MAX: usize = 64;

/// How many names a path has at most. Ours: deeper than any result that people read.
pub const FIELD_DEPTH_MAX: usize = 32;

/// How many bytes of a result are read to find what was asked for, where those of an array are read again
/// for each array within it. Ours: sixteen times the largest result, which takes half a second.
pub const FIELD_BYTES_READ_MAX: usize = 256 << 20;

/// How many bytes the look at one value counts for, beside its own. Ours: it takes as long.
pub const FIELD_VALUE_BYTES: usize = 32;

/// How many paths a result is said to have whose caller has asked for others, and how deep they go.
/// Ours: enough to see what was meant.
pub const FIELD_PATHS_SHOWN_MAX: usize = 20;
/// See [`FIELD_PATHS_SHOWN_MAX`].
pub const FIELD_PATHS_DEPTH_MAX: usize = 3;

/// How many entries a search or a list of tools has, if nobody asks for another number, and how many
/// at most. Source: seeds 000 and 002.
pub const DISCOVER_LIMIT: usize = 20;
/// See [`DISCOVER_LIMIT`].
pub const DISCOVER_LIMIT_MAX: usize = 100;

/// How many examples of a tool are shown. Source: seed 002.
pub const EXAMPLES_MAX: usize = 5;

/// How long a caller may have a tool take. Source: seed 000 (1.0), `timeoutMs`.
pub const META_CALL_TIMEOUT_MAX: Duration = Duration::from_millis(600_000);

/// How long a caller may have a program take. Source: seed 002, `timeout_ms`.
pub const EXECUTE_TIMEOUT_MAX: Duration = Duration::from_millis(60_000);

/// How many tools a caller may have a program call. Source: seed 002, `max_tool_calls`.
pub const EXECUTE_CALLS_MAX: usize = 1000;

/// How much of an error of a server is passed on as an object, in bytes. Ours: an error that is
/// longer says nothing more to a model.
pub const ERROR_DETAIL_BYTES_MAX: usize = 8 * 1024;

/// How large the images and sounds of a result may be together that is shown whole, in bytes of JSON
/// text. Ours: a picture of a whole screen.
pub const PREVIEW_MEDIA_BYTES_MAX: usize = 1024 * 1024;

/// How many blocks of a large result are shown. Ours.
pub const PREVIEW_BLOCKS_MAX: usize = 50;

/// How many bytes of large results are kept to be read on in, how many results, and for how long.
/// Ours: what a few clients read at a time, and less than the 16 MiB that may stay after a load.
pub const RESULTS_BYTES_MAX: usize = 12 * 1024 * 1024;
/// See [`RESULTS_BYTES_MAX`].
pub const RESULTS_KEPT_MAX: usize = 64;
/// See [`RESULTS_BYTES_MAX`].
pub const RESULTS_AGE_MAX: Duration = Duration::from_secs(10 * 60);

/// How large the schema of a tool is that arguments are held against, in bytes. Ours: the largest
/// that were seen are a tenth of it. One of 217 KB with 2,000 properties takes 5 to 11 ms to be
/// understood and 1 ms to be held against, with as many patterns 120 to 150 ms and 7 ms, and 1,000
/// definitions that refer to each other 15 to 20 ms and 1 ms, which is why that is done beside the
/// event loop, once.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// The largest number of compiled schemas that are kept, and the memory that they may take, in bytes, as
/// [`COMPILE_STEP_BYTES`] and [`PATTERN_STATE_BYTES`] estimate it. Ours: a few clients use that many
/// tools at a time. An ordinary schema has 20 parts and takes 100 KB. A schema that takes more than a
/// quarter of the bytes is not kept, and compiled for each check.
pub const VALIDATORS_MAX: usize = 256;
/// See [`VALIDATORS_MAX`].
pub const VALIDATORS_BYTES_MAX: usize = 12 << 20;

/// The largest number of accounts whose costly arguments a schema remembers. Ours: fewer accounts use one
/// tool at a time.
pub const COSTLY_ACCOUNTS_MAX: usize = 16;

/// How many problems with its arguments a caller is told at a time. Ours: more than one mends.
pub const PROBLEMS_MAX: usize = 8;

/// How long the summary of a tool is, in characters. Source: seed 002.
pub const SUMMARY_CHARS_MAX: usize = 200;

/// How long the notes about a tool are, in characters. Source: seed 002.
pub const NOTES_CHARS_MAX: usize = 2000;

/// How long a text in an example is, in characters. Source: seed 002.
pub const EXAMPLE_CHARS_MAX: usize = 300;

/// How long the hint at a result is, in characters. Source: seed 002.
pub const HINT_CHARS_MAX: usize = 200;

/// How deep the arguments of an example are. Source: seed 002.
pub const EXAMPLE_DEPTH_MAX: usize = 5;

/// How many fields an object of an example has. Source: seed 002.
pub const EXAMPLE_KEYS_MAX: usize = 50;

/// How many values an example has in all. Ours: five levels of 50 fields would be 300 million.
pub const EXAMPLE_VALUES_MAX: usize = 250;

/// How large a schema is that is shown whole, in bytes. Source: seed 001, `schemaBudget`.
pub const SCHEMA_SHOWN_BYTES_MAX: usize = 48_000;

/// How often a pattern of a schema that looks around may try another way before it is given up. Ours:
/// a millisecond or two; a pattern of an address takes a few hundred.
pub const PATTERN_BACKTRACKS_MAX: usize = 10_000;

/// The steps that the check of one call's arguments may take. A step is a look at one value or at 16
/// bytes of a text, some nanoseconds. Ours: a fraction of a second; the largest schema that is read
/// takes a tenth of that for ordinary arguments.
pub const CHECK_STEPS_MAX: u64 = 5_000_000;

/// The steps of a check that may run on an event loop, and those of one that is not done by then are
/// begun again beside it. Ours: less than a millisecond; an ordinary call takes some hundred.
pub const CHECK_STEPS_INLINE_MAX: u64 = 50_000;

/// The stack that the check of one call's arguments may take, in bytes. Ours: half of what a thread
/// has; an ordinary call takes a hundredth.
pub const CHECK_STACK_BYTES_MAX: usize = 1 << 20;

/// The steps that compiling one schema may take: one for each part, once for each way that leads to
/// it, and one for 64 bytes of its path; about 10 µs each. Ours: twice as many as a schema may have
/// parts.
pub const COMPILE_STEPS_MAX: u64 = 10_000;

/// The memory that a step of compiling takes, in bytes. Ours: 4,000 to 6,000 stay, by the resident
/// memory of 20 schemas of 1,000 to 5,000 parts.
pub const COMPILE_STEP_BYTES: usize = 5_000;

/// The largest number of parts of a schema, and the largest number of levels that they are nested in.
/// Ours: the largest schemas that we saw have some hundred parts and 20 levels.
pub const SUBSCHEMAS_MAX: usize = 5_000;
/// See [`SUBSCHEMAS_MAX`].
pub const SCHEMA_DEPTH_MAX: usize = 64;

/// How many references of a schema may lead from one to the next. Ours: people write one or two.
pub const REFERENCE_CHAIN_MAX: usize = 16;

/// How many references a schema may have that asks for what no other part has looked at
/// (`unevaluatedProperties`, `unevaluatedItems`). Ours: each way through them is compiled apart, and
/// 24 references have at most 3^8 ways.
pub const UNEVALUATED_REFERENCES_MAX: usize = 24;

/// How long a pattern of a schema may be, in bytes. Ours: addresses of all kinds take 1 KB.
pub const PATTERN_BYTES_MAX: usize = 2 << 10;

/// How many states a pattern may have, and all patterns of a schema together. Ours: a state takes
/// about a microsecond to be compiled, and an ordinary pattern has 50.
pub const PATTERN_WEIGHT_MAX: u64 = 20_000;
/// See [`PATTERN_WEIGHT_MAX`].
pub const PATTERNS_WEIGHT_MAX: u64 = 400_000;

/// How large a compiled pattern may be, in bytes. Ours: a hundred bytes for each state.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 2 << 20;

/// The memory that a state of a compiled pattern takes, in bytes. Ours: 12, by the resident memory of 80
/// patterns of 4,000 states each.
pub const PATTERN_STATE_BYTES: usize = 15;

/// The largest cache of states that one pattern builds while it is matched, in bytes. Ours: an ordinary
/// pattern needs a few KiB. A full cache is emptied and filled again.
pub const PATTERN_STATES_BYTES_MAX: usize = 256 << 10;

/// The largest message that is taken apart on an event loop, in bytes. Ours: less than a millisecond;
/// larger ones are taken apart beside it.
pub const INLINE_BYTES_MAX: usize = 64 << 10;

/// How large the schemas of a list of tools may be together for an operator who does not say how deep
/// they are to be shown, in bytes. Source: seed 001, `schemaBudget`.
pub const SCHEMA_BUDGET: usize = 48_000;
