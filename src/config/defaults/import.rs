//! Configurations of other clients that are read.

/// The largest file that is read, in bytes. Ours: Claude Code keeps its servers in a file in which it
/// keeps much else, and which has tens of megabytes after some years.
pub const IMPORT_BYTES_MAX: usize = 64 << 20;

/// How many servers are taken from all files together. Ours: more than anybody declares by hand, and
/// few enough for each to be checked on its own.
pub const IMPORT_SERVERS_MAX: usize = 1000;
