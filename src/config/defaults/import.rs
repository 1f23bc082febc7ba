//! Bounds of the configurations of other clients that are read.

/// The largest file that is read, in bytes. Claude Code keeps its servers in a file with much else,
/// which has tens of megabytes after some years.
pub const IMPORT_BYTES_MAX: usize = 64 << 20;

/// The largest number of servers that are taken from all files together: more than a person
/// declares by hand, and few enough to check each on its own.
pub const IMPORT_SERVERS_MAX: usize = 1000;
