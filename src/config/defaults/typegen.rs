//! Bounds of declarations of tools in TypeScript.

/// The depth to which a schema is followed; deeper parts are `unknown`. Requests to the control
/// socket have this bound, and compilers follow far deeper.
pub const TYPEGEN_DEPTH_MAX: usize = 64;

/// The largest number of parts of types for one schema, including named ones; the rest is
/// `unknown`. It is a hundred times the largest schema of real servers.
pub const TYPEGEN_PARTS_MAX: usize = 20_000;

/// The largest number of alternatives of an intersection of unions; the rest is left out. The
/// compiler refuses a type of 100,000.
pub const TYPEGEN_ALTERNATIVES_MAX: usize = 1_000;

/// The largest number of elements of a tuple with types of their own; the rest is `unknown`.
pub const TYPEGEN_TUPLE_MAX: usize = 256;

/// The longest description in a comment, in bytes: a screen of text.
pub const TYPEGEN_COMMENT_BYTES_MAX: usize = 4 << 10;
