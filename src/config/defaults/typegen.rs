//! Types that are made of schemas.

/// How deep a type is written out; what is deeper is `unknown`. Ours: nobody reads deeper, and types
/// with a name begin anew.
pub const TYPE_DEPTH_MAX: usize = 24;

/// How many parts the types of one schema have together; what comes then is `unknown`. Ours: some
/// hundred times what tools have.
pub const TYPE_PARTS_MAX: usize = 10_000;

/// How many types with a name one schema has; further ones are `unknown`. Ours.
pub const TYPE_NAMES_MAX: usize = 500;

/// How many values are written out where only some are allowed; with more of them, their kinds are.
/// Ours.
pub const TYPE_LITERALS_MAX: usize = 256;

/// How much of a description stands above what it is about, in bytes. Ours.
pub const TYPE_COMMENT_BYTES_MAX: usize = 4 << 10;
