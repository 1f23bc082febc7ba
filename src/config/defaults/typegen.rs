//! Declarations of tools in TypeScript.

/// How deep a schema is followed; what is deeper is `unknown`. Ours: what the control socket is asked
/// for, and far below what compilers follow.
pub const TYPEGEN_DEPTH_MAX: usize = 64;

/// How many parts of types one schema may become, those that it names included; the rest is `unknown`.
/// Ours: a hundred times as much as the largest schema of real servers.
pub const TYPEGEN_PARTS_MAX: usize = 20_000;

/// How many alternatives an intersection of unions may come to; more of it is left out. Ours: the
/// compiler refuses a type of 100,000.
pub const TYPEGEN_ALTERNATIVES_MAX: usize = 1_000;

/// How many elements of a tuple have a type of their own; the rest is `unknown`. Ours.
pub const TYPEGEN_TUPLE_MAX: usize = 256;

/// How much of a description stands in a comment, in bytes. Ours: a screen of text.
pub const TYPEGEN_COMMENT_BYTES_MAX: usize = 4 << 10;
